"""`collwise plan`: what would be chosen, and why.  Needs no MPI."""

from pathlib import Path

import click

from collwise.cli import output
from collwise.cli.grouped_command import GroupedCommand
from collwise.cli.planning_options import PlanningQuestion, picture_option, planning_options
from collwise.profiles.records import FORMS, Form
from collwise.report.tables import Saved


@click.command("plan", cls=GroupedCommand)
@planning_options(
    click.option("--algorithm", help="Take this algorithm, with its best settings."),
    click.option(
        "--form",
        type=click.Choice(FORMS),
        default="blocking",
        help="The calls whose races decide, where a profile knows any.",
    ),
    picture_option,
)
def command(
    question: PlanningQuestion,
    algorithm: str | None,
    form: Form,
    picture: Path | None,
    as_json: bool,
) -> None:
    """Plan COLLECTIVE: the chosen algorithm, why no other, and a lower bound of the time.

    COLLECTIVE is {collectives}; broadcast if none is given.  The machine is a
    measured profile, one of the papers', or one that options describe.  Races in the profile that
    apply to the problem decide, as in collwise.Comm, unless --algorithm or --topology is given.

    \b
        collwise plan -n 64 --bytes 512 --t0 1.7ms --lam 4 --picture tree.svg
        collwise plan allreduce -n 64 --bytes 64k --alpha 50us --beta 1ns --op max
        collwise plan -n 64 --bytes 64k --levels ethernet:2x4x8
        collwise plan allgatherv -n 32 --bytes 1k --sources 0,5,9 \\
            --t0 1.7ms --lam 4
        collwise plan allgatherv -n 100 --bytes 2k --pattern cross \\
            --sources 30 --preset paragon
    """  # noqa: D301
    from collwise.planner.choose import plan_for
    from collwise.planner.race_lookup import known_races, settled, verdict
    from collwise.report.plan_document import plan_document, served_document, served_lines
    from collwise.report.schedule_files import draw_plan
    from collwise.system import formatting

    problem = question.problem
    machine, origin, topology, profile, notes, digits = question.machine
    note = question.waiting_note("planning")
    with output.progress(as_json or not note, note) as progress:
        progress("simulating schedules", 0.0)
        plan = plan_for(problem, machine, algorithm, topology=topology, reason=question.reason)
    saved = Saved([], {}) if picture is None else draw_plan(plan, picture)
    served = {}
    if profile is not None and algorithm is None and topology is None:
        races = known_races(profile, problem.ranks)
        served = {name: verdict(races, problem, name) for name in FORMS}
        plan = settled(plan, served[form])
    if as_json:
        document = {**plan_document(plan, origin), **served_document(profile, served)}
        document["machine_notes"] += notes
        output.write_json({**document, **saved.document})
        return
    line = f"machine      {machine.describe()}"
    noted = "\n".join([f"{line} ({origin})", *(f"note         {note}" for note in notes)])
    text = "\n".join(
        told if told.startswith("measured") else formatting.rounded(told, digits)
        for told in str(plan).splitlines()
    )
    text = text.replace(line, noted, 1)
    output.write(*text.splitlines(), *served_lines(profile, served), *saved.lines)
