"""`collwise bench`: one race, all its numbers."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from collwise.cli import output
from collwise.cli.grouped_command import GroupedCommand
from collwise.cli.parameter_types import BUDGET, COLLECTIVE, INTEGER, POSITIVE, SIZE
from collwise.cli.problem_options import (
    COLLECTIVE_NAMES,
    DEFAULT_SOURCES,
    ProblemOptions,
    problem_options,
)
from collwise.cli.profile_option import profile_for, profile_option
from collwise.cli.ranks_option import on_ranks

if TYPE_CHECKING:  # the help needs no MPI
    from collwise.mpi.runtime.world import Communicator, World

_MEASURING_S = 3.0
"""Seconds to measure where there is no profile."""
_NBYTES = 512
"""The default size, rounded up to whole elements or blocks."""


def _check(options: dict[str, Any]) -> None:
    from collwise.algorithms.registry import find

    if options["algorithm"] is not None:
        find(options["algorithm"], options["collective"])
    options["request"].check([options["collective"]])


@click.command("bench", cls=GroupedCommand)
@click.option(
    "--collective",
    type=COLLECTIVE,
    metavar="TEXT",
    default="broadcast",
    help=f"What to race: {COLLECTIVE_NAMES}.",
)
@click.option(
    "--bytes",
    "nbytes",
    type=SIZE,
    help="Bytes of the message, of everybody's vector, or of each source's contribution"
    f"  [default: {_NBYTES}].",
)
@problem_options(default_sources=DEFAULT_SOURCES)
@click.option("--algorithm", help="Race this algorithm  [default: the planned best few].")
@click.option("--budget", type=BUDGET, default=5.0, help="Seconds for the race.")
@click.option("--repetitions", type=POSITIVE, default=1000, help="The most repetitions.")
@click.option("--seed", type=INTEGER, default=0, help="Seed of the order of repetitions.")
@profile_option
@output.json_option
@on_ranks(lambda options: options["budget"] + _MEASURING_S, _check)
def command(
    comm: "Communicator",
    here: "World",
    collective: str,
    nbytes: int | None,
    request: ProblemOptions,
    algorithm: str | None,
    budget: float,
    repetitions: int,
    seed: int,
    profile_path: Path | None,
    as_json: bool,
) -> Callable[[], None]:
    """Race collwise against the MPI library's own collective in one interleaved run.

    Competitors: mpi4py's method (Comm.Bcast, Comm.Allgatherv, …), the library's persistent form,
    and planned schedules, as persistent requests and as blocking calls.  The slowest rank's time is
    what counts.

    \b
        collwise bench -n 4 --collective allreduce --bytes 64k --op max
        collwise bench -n 8 --collective allgatherv --pattern equal --sources 3
        mpiexec -n 64 collwise bench --algorithm postal_tree
    """  # noqa: D301
    from collwise.mpi.runtime.agreement import on_root
    from collwise.planner.plans import source_lines
    from collwise.report.tuning_tables import race_document, race_summary, race_table
    from collwise.system import formatting
    from collwise.tuning.session import Session

    size = _NBYTES if nbytes is None else nbytes
    task = request.task(collective, comm.size, size, round_up=nbytes is None)
    saved = on_root(comm, lambda: profile_for(here.fingerprint(), profile_path))
    measuring_s = 0 if saved else _MEASURING_S
    beginning = f"racing {task} on {comm.size} ranks for about {budget + measuring_s:g} s"
    with (
        output.progress(as_json or comm.rank > 0, beginning) as progress,
        Session(comm, here, seed=seed, progress=progress) as session,
    ):
        if saved:
            profile = saved.at(comm.size, here.ranks_per_node)
        else:
            share = measuring_s / (measuring_s + budget)
            profile = session.measure(measuring_s, share=share)
        progress(f"racing: {task}", 0.5)
        outcome = session.race(task, profile, budget, repetitions, algorithm)

    def show_results() -> None:
        if as_json:
            output.write_json(race_document(outcome))
            return
        output.table(race_table(outcome, f"{task.problem}, {here.library}"))
        output.write(*source_lines(task.problem), *race_summary(outcome))
        if saved is None:
            output.write("note     no profile of this machine yet: measured for 3 s to plan with")
        if here.oversubscribed:
            cores = formatting.count(here.cores, "core")
            output.write(f"note     {comm.size} ranks share {cores}: expect noise")

    return show_results
