"""`collwise simulate`: schedules on an assumed or measured machine.  Needs no MPI."""

from pathlib import Path
from typing import Any

import click

from collwise.cli import output
from collwise.cli.option_groups import Command
from collwise.cli.planned import (
    asked,
    drawn_document,
    drawn_lines,
    long_work,
    picture_option,
    planning_options,
)


def _settings(ctx: click.Context, param: click.Parameter, pairs: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = (part.strip() for part in pair.partition("="))
        if not (name and equals and value):
            raise click.BadParameter(f"{pair!r}: write it as in lam=4", ctx, param)
        if name in found:
            raise click.BadParameter(f"{name} is given twice; give it once", ctx, param)
        found[name] = value
    return found


@click.command("simulate", cls=Command)
@planning_options(
    click.option("--algorithm", help="Simulate this one  [default: all that apply, in a table]."),
    click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="NAME=VALUE",
        callback=_settings,
        help="A parameter of the algorithm, such as lam=4 or segment=4k; once for each.",
    ),
    picture_option,
)
def command(
    algorithm: str | None,
    settings: dict[str, str],
    picture: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Simulate COLLECTIVE on a machine that is assumed, measured, or one of the papers'.

    COLLECTIVE is broadcast (if none is given), reduce, allreduce or s_to_p.  Times are exact: of
    the postal, Hockney, LogGP and wormhole models, the last also on a network whose links messages
    wait for.

    \b
        collwise simulate -n 64 --bytes 512 --t0 1.7ms --lam 4
        collwise simulate -n 1048576 --bytes 512 --t0 1.7us --lam 4 \\
            --algorithm postal_tree
        collwise simulate -n 16 --bytes 1M --alpha 50us --beta 1ns \\
            --algorithm chain_segmented --set segment=4k --json
        collwise simulate s_to_p -n 100 --bytes 2k --pattern cross --sources 30 \\
            --preset paragon
        collwise simulate s_to_p -n 20 --bytes 4k --sources 0,7,13 \\
            --topology mesh:4x5 --alpha 50us --beta 10ns \\
            --algorithm br_lin --picture mesh.png
    """  # noqa: D301
    from collwise.planner.choose import problem_for
    from collwise.report.simulation_tables import SPARE, bound_line, document, heading, lines, rows
    from collwise.tuning.simulations import simulations

    if settings and algorithm is None:
        raise click.UsageError("--set is about one algorithm: name it with --algorithm")
    collective, arguments, given = asked(options)
    problem, reason = problem_for(collective, **arguments)
    beginning = long_work("simulating", problem, given)
    with output.progress(as_json, beginning) as progress:
        found, excluded = simulations(
            problem,
            given.machine,
            given.topology,
            algorithm=algorithm,
            settings=settings,
            reason=reason,
            progress=progress,
        )
    drawn = None
    if picture is not None:
        from collwise.report.html_report import draw_trace

        drawn = draw_trace(found[0].trace, picture)
    if as_json:
        told = document(found, excluded, given.origin, reason)
        output.write_json({**told, **drawn_document(drawn)})
        return
    output.write(*heading(found[0], given.origin, reason))
    if len(found) == 1:
        output.write(*lines(found[0]))
    else:
        output.write(bound_line(found[0]))
        output.table("", *rows(found), SPARE)
        output.write(*(f"left out     {name}: {why}" for name, why in excluded.items()))
    output.write(*drawn_lines(drawn))
