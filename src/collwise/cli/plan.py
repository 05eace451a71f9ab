"""`collwise plan`: what would be chosen, and why.  Needs no MPI."""

from pathlib import Path
from typing import Any

import click

from collwise.cli import output
from collwise.cli.commands import Command
from collwise.cli.planning import asked, planning_options
from collwise.cli.values import drawable


@click.command("plan", cls=Command)
@planning_options(
    click.option("--algorithm", help="Take this algorithm, with its best settings."),
    click.option(
        "--picture",
        type=click.Path(path_type=Path),
        callback=drawable,
        help="Draw into .svg or .png files: the schedule's tree, or a mesh with its sources; and,"
        " as NAME-timeline, the schedule in time.",
    ),
)
def command(algorithm: str | None, picture: Path | None, as_json: bool, **options: Any) -> None:
    """Plan COLLECTIVE: the choice, the runners-up and why not, the lower bound.

    COLLECTIVE is broadcast (if none is given), reduce, allreduce or s_to_p.  The machine is a
    measured profile, one of the papers', or one that options describe.

    \b
        collwise plan broadcast -n 64 --bytes 512 --t0 1.7ms --lam 4 --picture tree.svg
        collwise plan allreduce -n 64 --bytes 64k --alpha 50us --beta 1ns --op max
        collwise plan s_to_p -n 32 --bytes 1k --sources 0,5,9 --t0 1.7ms --lam 4
        collwise plan s_to_p -n 100 --bytes 2k --pattern cross --sources 30 --preset paragon
    """  # noqa: D301
    from collwise.planner.choose import plan
    from collwise.tuning.reports import plan_document

    collective, arguments, given = asked(options)
    made = plan(collective, machine=given.machine, algorithm=algorithm, **arguments)
    drawn = []
    if picture is not None:
        from collwise.tuning.pages import draw

        drawn = draw(made, picture)
    if as_json:
        output.write_json(plan_document(made, given.origin))
        return
    output.write(*str(made).splitlines(), *(f"picture      {path}" for path in drawn))
