"""`collwise tune`: measure, plan, race, save, report."""

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from collwise.cli import output
from collwise.cli.grouped_command import GroupedCommand, said
from collwise.cli.parameter_types import BUDGET, COLLECTIVES, FILE, INTEGER, OUTPUT, SIZES
from collwise.cli.problem_options import (
    COLLECTIVE_NAMES,
    DEFAULT_SOURCES,
    PROBLEM,
    ProblemOptions,
    problem_options,
)
from collwise.cli.profile_option import Keeper, placement_option, profile_for, save_option
from collwise.cli.ranks_option import Communicator, World, on_ranks
from collwise.errors import InvalidArgument
from collwise.model.placement import Placement
from collwise.profiles.fingerprint import Fingerprint
from collwise.profiles.profile import Profile
from collwise.profiles.records import FORMS, Form
from collwise.profiles.store import default_path
from collwise.report.tables import Saved
from collwise.system.launcher import last_words, launched, status_file


def _check(options: dict[str, Any]) -> None:
    from collwise.tuning.occurred import read_summary

    options["request"].check(options["collectives"])
    if options["summary_path"] is not None:
        if both := said("sizes", "collectives", *PROBLEM):
            raise click.UsageError(f"--from-summary says what to race: leave out {', '.join(both)}")
        if launched() is None:  # else rank 0 alone may have it
            read_summary(options["summary_path"])


def _known(fingerprint: Fingerprint, path: Path | None) -> tuple[Profile, Path]:
    """The saved profile that --continue extends, and its file; InvalidArgument without one."""
    path = path if path is not None and path.exists() else None
    profile = profile_for(fingerprint, path)
    if profile is None:
        seen, remedy = "no profile of this machine is saved", "tune without --continue first"
        raise InvalidArgument("go on with a tuning", seen, remedy)
    return profile, path or default_path(fingerprint)


@click.command("tune", cls=GroupedCommand)
@click.option(
    "--budget",
    type=BUDGET,
    default=32.0,
    help="Seconds for measuring and racing; the report comes on top.",
)
@click.option(
    "--bytes",
    "sizes",
    type=SIZES,
    default="8,512,4096,65536,1048576",
    help="Sizes to plan and race, comma-separated; of allgatherv, of each source's contribution.",
)
@click.option(
    "--collective",
    "collectives",
    type=COLLECTIVES,
    default="all",
    help=f"What to plan and race, comma-separated: {COLLECTIVE_NAMES}.",
)
@click.option(
    "--from-summary",
    "summary_path",
    type=FILE,
    help="Race what a program called, as collwise run --json FILE told it, instead.",
)
@problem_options(default_sources=DEFAULT_SOURCES)
@click.option(
    "--continue",
    "goes_on",
    is_flag=True,
    help="Do not measure: race what the saved profile does not know yet.",
)
@click.option(
    "--form",
    type=click.Choice(FORMS),
    default="blocking",
    help="A form of the calls to race in any case: non-blocking calls are raced only if this asks"
    " for them or there is time.",
)
@click.option("--seed", type=INTEGER, default=0, help="Seed of targets and order.")
@click.option(
    "--report",
    "report_path",
    type=OUTPUT,
    default=Path("collwise-report.html"),
    help="Where to write the HTML report; missing folders are made.",
)
@placement_option
@save_option
@output.json_option
@on_ranks(lambda options: options["budget"], _check)
def command(
    comm: Communicator,
    here: World,
    budget: float,
    sizes: Sequence[int],
    collectives: Sequence[str],
    summary_path: Path | None,
    request: ProblemOptions,
    goes_on: bool,
    form: Form,
    seed: int,
    placement: Placement | None,
    report_path: Path,
    save_path: Path | None,
    as_json: bool,
) -> Callable[[], None]:
    """Measure this machine, plan collectives, race them against the library's own, report.

    Saves a profile (what was measured, and which races were won) that collwise.Comm finds again,
    and writes one self-contained HTML page.  The most useful races come first: what a program
    spends most on (--from-summary), else collectives in turns, small sizes first.

    \b
        collwise tune
        collwise tune --continue --budget 60
        collwise tune -n 8 --collective broadcast --bytes 512,2k --budget 10
        collwise tune --collective allgatherv --pattern equal --sources 3
        mpiexec -n 64 collwise tune --report big/report.html
    """  # noqa: D301
    from collwise.mpi.runtime.agreement import on_root
    from collwise.report.tuning_tables import (
        levels_table,
        tuning_document,
        tuning_summary,
        tuning_table,
    )
    from collwise.tuning.agenda import not_raced
    from collwise.tuning.occurred import tasks_of
    from collwise.tuning.session import Session

    if summary_path is None:
        wanted = [
            request.task(collective, comm.size, nbytes, round_up=True)
            for collective in collectives
            for nbytes in sizes
        ]
        tasks = dict.fromkeys(wanted, 0.0)
    else:
        tasks = on_root(comm, lambda: tasks_of(summary_path, comm.size))
    known, origin = None, save_path
    if goes_on:
        known, origin = on_root(comm, lambda: _known(here.fingerprint(), save_path))
    every = len(tasks)
    if known is not None:
        tasks = {task: tasks[task] for task in not_raced(tasks, known, here.ranks_per_node, form)}
        known = replace(known.at(comm.size, here.ranks_per_node), race_results=())
    work = "racing" if goes_on else "measuring and racing"
    beginning = f"{work} on {comm.size} ranks for about {budget:g} s, then reporting"
    quiet = as_json or comm.rank > 0
    keeper = Keeper(save_path)
    say = keeper.say if comm.rank == 0 else partial(time.sleep, 1)  # until rank 0 has said it
    with (
        last_words(say) if status_file() is None else nullcontext(),  # else its starter says it
        output.progress(quiet, beginning) as progress,
        Session(comm, here, seed=seed, placement=placement, progress=progress) as session,
    ):
        said = (lambda line: None) if quiet else partial(output.write, stream="err")
        tuning = session.tune(tasks, budget, known, said, form, keeper.keep)

    def show() -> None:
        if origin != save_path is not None:
            output.write(f"note     t0 and λ are those of {origin}")
        if len(tasks) < every:
            output.write(f"{every - len(tasks)} of {every} races are in the profile already")
        output.table(tuning_table(tuning, f"{comm.size} ranks, {here.library}"))
        if tuning.profile.levels:
            output.table(levels_table(tuning.profile))
        output.write(*tuning_summary(tuning))

    def report() -> Saved:
        from collwise.report.html_report import write_report

        write_report(tuning, report_path)
        return Saved([f"report   {report_path}"], {"report_path": str(report_path)})

    savings = (partial(keeper.save, tuning.profile), report)
    return partial(output.deliver, as_json, partial(tuning_document, tuning), show, savings)
