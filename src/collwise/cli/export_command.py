"""`collwise export`: schedules for other tools.  Needs no MPI."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from collwise.cli import output
from collwise.cli.grouped_command import GroupedCommand, all_of
from collwise.cli.parameter_types import OUTPUT
from collwise.cli.planning_options import PlanningQuestion, planning_options, settings_option

FORMAT = "collwise export"
VERSION = 1

exporting = all_of(
    planning_options(
        click.option("--algorithm", help="Export this one  [default: the planned one]."),
        settings_option,
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
def goal_(question: PlanningQuestion, **options: Any) -> None:
    """Write a schedule of COLLECTIVE as GOAL, which LogGOPSim reads.

    COLLECTIVE is {collectives}; broadcast if none is given.  Sizes are in bytes.
    Combining is a calc in nanoseconds, where the machine says how long it takes.
    """
    from collwise.formats.goal_writer import goal, is_rounded

    label, schedule = _schedule(question, options)
    machine = question.machine.machine
    remarks = ["combining is rounded to whole nanoseconds"] * is_rounded(schedule, machine)
    _deliver("goal", label, question, goal(schedule, machine), options, remarks)


@command.command(cls=GroupedCommand)
@exporting
def smpi(question: PlanningQuestion, **options: Any) -> None:
    """Write a schedule of COLLECTIVE as a trace that SimGrid's smpirun -replay reads.

    COLLECTIVE is {collectives}; broadcast if none is given.  It is a
    time-independent trace of all ranks: smpirun -replay takes a file that names it.  Sizes are in
    bytes.  Combining is a compute on a host of 1 Gflop/s, where the machine says how long it takes.
    """
    from collwise.formats.time_independent_trace import time_independent_trace

    label, schedule = _schedule(question, options)
    actions = time_independent_trace(schedule, question.machine.machine)
    _deliver("smpi", label, question, actions, options)


@command.command("chrome-trace", cls=GroupedCommand)
@exporting
def chrome_trace_(question: PlanningQuestion, **options: Any) -> None:
    """Simulate a schedule of COLLECTIVE; write its times for Perfetto, or chrome://tracing.

    COLLECTIVE is {collectives}; broadcast if none is given.  Each rank is a
    process with tracks for what it sends, receives and combines; arrows are messages.
    """
    import json

    from collwise.formats.chrome_trace import chrome_trace
    from collwise.formats.export_rows import check_exportable
    from collwise.simulator import simulate

    label, schedule = _schedule(question, options)
    check_exportable(schedule)
    machine, _, topology, *_ = question.machine
    trace = simulate(schedule, machine, topology)
    document = chrome_trace(trace.timing, f"{schedule.problem}, {label}")
    _deliver("chrome-trace", label, question, [json.dumps(document)], options)


def _schedule(question: PlanningQuestion, options: dict[str, Any]) -> Any:
    from collwise.tuning.simulations import planned_schedule

    if options["settings"] and options["algorithm"] is None:
        raise click.UsageError("--set is about one algorithm: name it with --algorithm")
    note = question.waiting_note("planning")
    with output.progress(options["as_json"] or not note, note) as progress:
        progress("planning", 0.0)
        return planned_schedule(
            question.problem,
            question.machine.machine,
            question.machine.topology,
            options["algorithm"],
            options["settings"],
            question.reason,
        )


def _deliver(
    kind: str,
    label: str,
    question: PlanningQuestion,
    lines: Iterable[str],
    options: dict[str, Any],
    remarks: Iterable[str] = (),
) -> None:
    """Write the lines to the file or to standard output, or put them into a document."""
    from collwise.report.plan_document import problem_document
    from collwise.tuning.race_records import save_text

    machine, origin, topology, *_ = question.machine
    path: Path | None = options["out"]
    text = "".join(f"{line}\n" for line in lines)
    if path is not None:
        save_text(path, text, "export")
    if options["as_json"]:
        problem = problem_document(question.problem, machine, topology, origin, question.reason)
        where = {"path": str(path)} if path is not None else {"text": text}
        about = {"format": FORMAT, "version": VERSION, "exported": kind, "algorithm": label}
        output.write_json({**about, **problem, **where, "remarks": list(remarks)})
        return
    if path is None:
        click.echo(text, nl=False)
    else:
        output.write(f"algorithm    {label}", f"{kind:<12} {path}")
    output.write(*(f"collwise: {remark}" for remark in remarks), stream="err")
