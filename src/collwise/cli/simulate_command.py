"""`collwise simulate`: schedules on an assumed or measured machine.  Needs no MPI."""

from pathlib import Path

import click

from collwise.cli import output
from collwise.cli.grouped_command import GroupedCommand
from collwise.cli.planning_options import PlanningQuestion, picture_option, planning_options
from collwise.cli.problem_options import MAX_SIMULATED, check_amount
from collwise.report.tables import Saved


def _settings(ctx: click.Context, param: click.Parameter, pairs: tuple[str, ...]) -> dict[str, str]:
    settings: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = (part.strip() for part in pair.partition("="))
        if not (name and equals and value):
            raise click.BadParameter(f"{pair!r}: write it as in lam=4", ctx, param)
        if name in settings:
            raise click.BadParameter(f"{name} is given twice; give it once", ctx, param)
        settings[name] = value
    return settings


@click.command("simulate", cls=GroupedCommand)
@planning_options(
    click.option(
        "--algorithm",
        help="Simulate this one  [default: all that apply, in a table; of more than 4096 ranks,"
        " the best by its formula].",
    ),
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
    question: PlanningQuestion,
    algorithm: str | None,
    settings: dict[str, str],
    picture: Path | None,
    as_json: bool,
) -> None:
    """Simulate COLLECTIVE on a machine that is assumed, measured, or one of the papers'.

    COLLECTIVE is {collectives}; broadcast if none is given.  Times are exact, in
    the postal, Hockney, LogGP and wormhole models; in Hockney's and the wormhole model also on a
    network whose links messages wait for.

    \b
        collwise simulate -n 64 --bytes 512 --t0 1.7ms --lam 4
        collwise simulate -n 1048576 --bytes 512 --t0 1.7us --lam 4 \\
            --algorithm postal_tree
        collwise simulate -n 16 --bytes 1k --levels "4x4: 1us,2,2us; 9us,4"
        collwise simulate -n 16 --bytes 1M --alpha 50us --beta 1ns \\
            --algorithm chain_segmented --set segment=4k --json
        collwise simulate allgatherv -n 100 --bytes 2k --pattern cross \\
            --sources 30 --preset paragon
        collwise simulate allgatherv -n 20 --bytes 4k --sources 0,7,13 \\
            --topology mesh:4x5 --alpha 50us --beta 10ns \\
            --algorithm br_lin --picture mesh.png
    """  # noqa: D301
    from collwise.report.simulation_tables import (
        bound_line,
        comparison_table,
        heading,
        simulation_document,
        simulation_lines,
    )
    from collwise.system import formatting
    from collwise.tuning.simulations import simulations

    if settings and algorithm is None:
        raise click.UsageError("--set is about one algorithm: name it with --algorithm")
    if question.problem.kind.has_sources:
        why = "its schedules have to be simulated, message by message"
        check_amount(question.problem.ranks, len(question.problem.sources), MAX_SIMULATED, why)
    (machine, origin, topology, _, notes, digits), reason = question.machine, question.reason
    with output.progress(as_json, question.waiting_note("simulating")) as progress:
        simulated, excluded = simulations(
            question.problem,
            machine,
            topology,
            algorithm=algorithm,
            settings=settings,
            reason=reason,
            progress=progress,
        )
    saved = Saved([], {})
    if picture is not None:
        from collwise.report.schedule_files import draw_trace

        saved = draw_trace(simulated[0].trace, picture)
    if as_json:
        document = simulation_document(simulated, excluded, origin, reason)
        document["machine_notes"] += notes
        output.write_json({**document, **saved.document})
        return
    output.write(*heading(simulated[0], origin, reason), *(f"note         {n}" for n in notes))
    if len(simulated) == 1:
        output.write(*(formatting.rounded(one, digits) for one in simulation_lines(simulated[0])))
    else:
        output.write(formatting.rounded(bound_line(simulated[0]), digits))
        output.table(comparison_table(simulated).rounded(digits))
    output.write(*(f"left out     {name}: {why}" for name, why in excluded.items()))
    output.write(*saved.lines)
