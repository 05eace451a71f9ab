"""`collwise export`: schedules for other tools, and races as rules for an MPI library."""

import json
import shlex
from collections.abc import Callable, Iterable
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from collwise.cli import output
from collwise.cli.grouped_command import GroupedCommand, all_of
from collwise.cli.parameter_types import OUTPUT
from collwise.cli.planning_options import PlanningQuestion, algorithm_options, planning_options
from collwise.cli.profile_option import holds_else, profile_option
from collwise.errors import InvalidArgument
from collwise.model.machine import Machine
from collwise.profiles.profile import Profile
from collwise.profiles.store import of_this_machine
from collwise.schedule.program import Schedule
from collwise.system.files import save_text

if TYPE_CHECKING:
    from collwise.formats.selection_rules import RuleFormat

exporting = all_of(
    planning_options(
        algorithm_options("Export this one  [default: the planned one]."),
        click.option("--out", type=OUTPUT, help="The file  [default: standard output]."),
    )
)


@click.group("export")
def command() -> None:
    """Write schedules for other tools, and what won races as rules for an MPI library.

    goal, smpi and chrome-trace take what plan and simulate take.  openmpi, mpich and intel take a
    profile with races, and put the library's better algorithms in force in programs without
    collwise.  Each takes --out FILE and --json.

    \b
        collwise export goal -n 64 --bytes 512 --t0 1.7ms --lam 4 --out it.goal
        collwise export smpi allreduce -n 8 --bytes 1k --alpha 50us --beta 1ns
        collwise export chrome-trace -n 16 --bytes 64k --t0 2us --lam 3 \\
            --algorithm postal_segmented --out it.json
        collwise export mpich --out better.json --check
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
    """Plan, and write the schedule's lines to a file, to standard output, or in a JSON document."""
    from collwise.report.plan_document import problem_document
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


_RULES = {
    "openmpi": ("openmpi_rules", "a rules file for Open MPI 4 or 5, whose coll/tuned reads it"),
    "mpich": ("mpich_selection", "a selection file for MPICH: its own table, with our rules in it"),
    "intel": ("intel_adjust", "I_MPI_ADJUST_* variables for Intel MPI, if presets were raced"),
}
"""For each MPI library, the module of its format of rules, and what that module writes."""
_RULED = """Write {what}.

The rules are of blocking calls on as many ranks as were raced, of sizes as far as races count;
never of a size at which a race was not won.
--check starts the library with the rules and without them: fingerprints tell whether each is in
force (exit code 1 if one is not), and its algorithm is raced against the default once more.
"""
_ruling = all_of(
    profile_option,
    click.option("--out", type=OUTPUT, help="The file  [default: standard output]."),
    click.option("--env", is_flag=True, help="Print the lines for a job script, nothing else."),
    click.option("--check", "checks", is_flag=True, help="Prove it on ranks, and race it again."),
    click.option("--commuting", is_flag=True, help="All operators commute: more rules are right."),
    output.json_option,
)


def _export_rules(
    kind: str,
    profile_path: Path | None,
    out: Path | None,
    env: bool,
    checks: bool,
    commuting: bool,
    as_json: bool,
) -> int:
    """Write rules to a file, standard output or JSON; check them if asked; return the exit code."""
    from collwise.formats.selection_rules import CAUTION, is_export
    from collwise.tuning.export_check import check
    from collwise.tuning.exported_rules import SIZES, exported, installed_library

    form: RuleFormat = import_module(f"collwise.formats.{_RULES[kind][0]}").FORMAT
    if env and out is None and kind != "intel":
        raise click.UsageError("--env prints the lines that name the file: give --out, too")
    asked = f"rules for {form.vendor}"
    path, remark = (profile_path, "") if profile_path else of_this_machine(form.vendor)
    profile = Profile.load(path)
    measured = profile.fingerprint.mpi_library
    form = form.read_by(measured)
    library = installed_library()
    if library.library != measured:
        seen = f"{path} was measured with {measured}, and {library.library} is installed here"
        raise InvalidArgument(asked, seen, "export where the same library is installed")
    made = exported(profile, form, library, commuting=commuting)
    unsaid = [*made.unsaid, *form.cannot_say]
    texts = form.texts(made.rules, library, SIZES, unsaid)
    if out is None and len(texts) > 1:
        seen = f"several ranks on each of several nodes need {len(texts)} files"
        raise InvalidArgument(asked, seen, "give --out; the others will lie beside that file")
    with TemporaryDirectory(prefix="collwise-") as folder:
        file = out or Path(folder) / "rules"
        paths = {file.with_name(file.name + suffix): text for suffix, text in texts.items()}
        for one in paths:
            if trouble := holds_else(one, is_export, "export"):
                raise InvalidArgument(asked, f"{one} {trouble}", "name another file")
        for one, text in paths.items():
            save_text(one, text, "rules")
        variables = form.variables(made.rules, str(file.resolve()))
        checked = check(made.rules, variables, form) if checks else []
    lines = [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]
    if as_json:
        rules = [rule._asdict() for rule in made.rules]
        about: dict[str, Any] = {"format": "collwise export", "version": 1, "exported": kind}
        about |= {"library": measured, "cannot_say": unsaid, "not_raced": form.not_raced}
        proofs = {"checked": [{**one._asdict(), "rule": str(one.rule)} for one in checked]}
        where = {"path": str(out), "environment": variables} if out else {"text": texts[""]}
        output.write_json({**about, "rules": rules, **proofs, **where})
    elif env:
        click.echo("\n".join(lines))
    elif out is None and not checks:
        click.echo(texts[""], nl=False)
    else:
        output.write(*(f"rule     {one}" for one in checked or made.rules))
        output.write(*(f"unsaid   {line}" for line in unsaid), f"profile  {remark or path}")
        if out is not None:
            output.write(*(f"{kind:<8} {out}{suffix}" for suffix in texts))
            said = f"caution  {CAUTION.format(measured)}"
            output.write(said, *(f"use      {line}" for line in lines))
    return int(any(one.failed for one in checked))


for _kind, (_, _what) in _RULES.items():
    command.command(_kind, help=_RULED.format(what=_what))(_ruling(partial(_export_rules, _kind)))
