"""`collwise plan`: what would be chosen, and why.  Needs no MPI."""

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


@click.command("plan", cls=Command)
@planning_options(
    click.option("--algorithm", help="Take this algorithm, with its best settings."),
    picture_option,
)
def command(algorithm: str | None, picture: Path | None, as_json: bool, **options: Any) -> None:
    """Plan COLLECTIVE: the choice, the runners-up and why not, the lower bound.

    COLLECTIVE is broadcast (if none is given), reduce, allreduce or s_to_p.  The machine is a
    measured profile, one of the papers', or one that options describe.

    \b
        collwise plan -n 64 --bytes 512 --t0 1.7ms --lam 4 --picture tree.svg
        collwise plan allreduce -n 64 --bytes 64k --alpha 50us --beta 1ns --op max
        collwise plan s_to_p -n 32 --bytes 1k --sources 0,5,9 --t0 1.7ms --lam 4
        collwise plan s_to_p -n 100 --bytes 2k --pattern cross --sources 30 \\
            --preset paragon
    """  # noqa: D301
    from collwise.planner.choose import plan_for, problem_for
    from collwise.report.tuning_tables import plan_document

    collective, arguments, given = asked(options)
    problem, reason = problem_for(collective, **arguments)
    network = given.topology
    beginning = long_work("planning", problem, given)
    with output.progress(as_json or not beginning, beginning) as progress:
        progress("playing schedules", 0.0)
        made = plan_for(problem, given.machine, algorithm, topology=network, reason=reason)
    drawn = None
    if picture is not None:
        from collwise.report.html_report import draw

        drawn = draw(made, picture)
    if as_json:
        output.write_json({**plan_document(made, given.origin), **drawn_document(drawn)})
        return
    machine = f"machine      {given.machine.describe()}"
    told = str(made).replace(machine, f"{machine} ({given.origin})", 1)
    output.write(*told.splitlines(), *drawn_lines(drawn))
