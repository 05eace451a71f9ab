"""`collwise simulate`: schedules on an assumed or measured machine.  Needs no MPI."""

from pathlib import Path

import click

from collwise.cli import output
from collwise.cli.grouped_command import GroupedCommand
from collwise.cli.planning_options import (
    GoalQuestion,
    PlanningQuestion,
    algorithm_options,
    picture_option,
    planning_options,
)
from collwise.cli.problem_options import MAX_SIMULATED, check_amount
from collwise.report.tables import Saved


@click.command("simulate", cls=GroupedCommand)
@planning_options(
    algorithm_options(
        "Simulate this one  [default: all that apply, in a table; of more than 4096 ranks, the best"
        " by its formula]."
    ),
    picture_option,
    reads_goal=True,
)
def command(
    question: PlanningQuestion | GoalQuestion,
    algorithm: str | None,
    settings: dict[str, str],
    picture: Path | None,
    as_json: bool,
) -> None:
    """Simulate COLLECTIVE on a machine that is assumed, measured, or one of the papers'.

    COLLECTIVE is {collectives}; broadcast if none is given.  Times are exact, in
    the postal, Hockney, LogGP and wormhole models.  In Hockney's and the wormhole model messages
    may also wait for the links of a network.  With --goal a GOAL program (as LogGOPSim reads) is
    timed in the place of COLLECTIVE.

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
        collwise simulate --goal program.goal --t0 1.7ms --lam 4
    """  # noqa: D301
    from collwise.report.schedule_files import draw_trace
    from collwise.report.simulation_tables import (
        bound_line,
        comparison_table,
        heading,
        simulation_document,
        simulation_lines,
    )
    from collwise.system import formatting
    from collwise.tuning.simulations import simulations

    if isinstance(question, GoalQuestion):
        _simulate_goal(question, picture, as_json)
        return
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
    saved = Saved([], {}) if picture is None else draw_trace(simulated[0].trace, picture)
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


def _simulate_goal(question: GoalQuestion, picture: Path | None, as_json: bool) -> None:
    from collwise.report.goal_tables import draw_goal, goal_document, goal_lines

    goal, (machine, origin, topology, _, notes, _) = question
    timing = goal.time(machine, topology)
    saved = Saved([], {}) if picture is None else draw_goal(goal, timing, picture)
    if as_json:
        document = goal_document(goal, timing, machine, topology, origin)
        output.write_json({**document, "machine_notes": notes, **saved.document})
        return
    lines = goal_lines(goal, timing, machine, topology, origin)
    output.write(*lines, *(f"note         {note}" for note in notes), *saved.lines)
