"""`collwise export`: schedules for other tools.  Needs no MPI."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

from collwise.cli import output
from collwise.cli.grouped_command import GroupedCommand, all_of
from collwise.cli.parameter_types import OUTPUT
from collwise.cli.planning_options import PlanningQuestion, algorithm_options, planning_options
from collwise.model.machine import Machine
from collwise.schedule.program import Schedule

exporting = all_of(
    planning_options(
        algorithm_options("Export this one  [default: the planned one]."),
        click.option("--out", type=OUTPUT, help="The file  [default: standard output]."),
    )
)


@click.group("export")
def command() -> None:
    """Write schedules for other tools, from what plan and simulate take.

    Each takes --out FILE and --json.

    \b
        collwise export goal -n 64 --bytes 512 --t0 1.7ms --lam 4 --out it.goal
        collwise export smpi allreduce -n 8 --bytes 1k --alpha 50us --beta 1ns
        collwise export chrome-trace -n 16 --bytes 64k --t0 2us --lam 3 \\
            --algorithm postal_segmented --out it.json
    """  # noqa: D301


@command.command("goal", cls=GroupedCommand)
@exporting
def goal_(**asked: Any) -> None:
    """Write a schedule of COLLECTIVE as GOAL, which LogGOPSim reads.

    COLLECTIVE is {collectives}; broadcast if none is given.  Sizes are in bytes.
    Combining is a calc in whole nanoseconds, where the machine says how long it takes.
    """
    from collwise.formats.goal_writer import goal

    _export("goal", goal, **asked)


@command.command(cls=GroupedCommand)
@exporting
def smpi(**asked: Any) -> None:
    """Write a schedule of COLLECTIVE as a trace that SimGrid's smpirun -replay reads.

    COLLECTIVE is {collectives}; broadcast if none is given.  It is a
    time-independent trace of all ranks: smpirun -replay takes a file that names it.  Sizes are in
    bytes.  Combining is a compute on a host of 1 Gflop/s, where the machine says how long it takes.
    """
    from collwise.formats.time_independent_trace import time_independent_trace

    _export("smpi", time_independent_trace, **asked)


@command.command("chrome-trace", cls=GroupedCommand)
@exporting
def chrome_trace_(question: PlanningQuestion, **asked: Any) -> None:
    """Simulate a schedule of COLLECTIVE; write its times for Perfetto, or chrome://tracing.

    COLLECTIVE is {collectives}; broadcast if none is given.  Each rank is a
    process with tracks for what it sends, receives and combines; arrows are messages.
    """
    from collwise.formats.chrome_trace import chrome_trace
    from collwise.formats.export_rows import check_exportable
    from collwise.timing import ideal

    def events(schedule: Schedule, machine: Machine) -> list[str]:
        check_exportable(schedule)
        timing = ideal(schedule, machine, question.machine.topology)
        return [json.dumps(chrome_trace(timing, f"{schedule.problem}, {schedule.algorithm}"))]

    _export("chrome-trace", events, question, **asked)


def _export(
    kind: str,
    write: Callable[[Schedule, Machine], Iterable[str]],
    question: PlanningQuestion,
    algorithm: str | None,
    settings: dict[str, str],
    out: Path | None,
    as_json: bool,
) -> None:
    """Plan, and deliver the lines to a file, to standard output, or in a document."""
    from collwise.report.plan_document import problem_document
    from collwise.system.files import save_text
    from collwise.tuning.simulations import planned_schedule

    (machine, origin, topology, *_), problem = question.machine, question.problem
    note = question.waiting_note("planning")
    with output.progress(as_json or not note, note) as progress:
        progress("planning", 0.0)
        label, schedule = planned_schedule(
            problem, machine, topology, algorithm, settings, question.reason
        )
    text = "".join(f"{line}\n" for line in write(schedule, machine))
    if out is not None:
        save_text(out, text, "export")
    if as_json:
        about = {"format": "collwise export", "version": 1, "exported": kind, "algorithm": label}
        asked = problem_document(problem, machine, topology, origin, question.reason)
        output.write_json({**about, **asked, **({"path": str(out)} if out else {"text": text})})
    elif out is not None:
        output.write(f"algorithm    {label}", f"{kind:<12} {out}")
    else:
        click.echo(text, nl=False)
