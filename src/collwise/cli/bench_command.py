"""`collwise bench`: one race, all its numbers."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import click

from collwise.cli import output
from collwise.cli.grouped_command import GroupedCommand
from collwise.cli.parameter_types import BUDGET, COLLECTIVE, INTEGER, POSITIVE, SIZE, ParsedType
from collwise.cli.problem_options import (
    COLLECTIVE_NAMES,
    DEFAULT_SOURCES,
    ProblemOptions,
    problem_options,
)
from collwise.cli.profile_option import profile_for, profile_option
from collwise.cli.ranks_option import on_ranks
from collwise.errors import InvalidArgument
from collwise.system.files import read_input

if TYPE_CHECKING:  # the help needs no MPI
    from collwise.mpi.runtime.world import Communicator, World

_MEASURING_S = 3.0
"""Seconds to measure where there is no profile."""
_NBYTES = 512
"""The default size, rounded up to whole elements or blocks."""


def _parse_order(text: str) -> Callable[[int], Sequence[int]]:
    """From `random:SEED`, or the name of a file of ranks: the order of so many ranks."""
    if random := re.fullmatch("random:([0-9]{1,18})", text):
        return lambda ranks: Random(int(random[1])).sample(range(ranks), ranks)
    try:
        words = re.split(r"[\s,]+", read_input(Path(text)).decode(errors="replace").strip())
    except OSError as problem:
        seen = f"{text} cannot be read: {problem.strerror}"
        raise InvalidArgument("an order", seen, "name a file of ranks, or random:1") from None
    listed = [int(word) for word in words if re.fullmatch("[0-9]{1,9}", word)]

    def order(ranks: int) -> Sequence[int]:
        if sorted(listed) != list(range(ranks)) or len(words) != ranks:
            seen, remedy = f"{text} does not list each of 0 to {ranks - 1} once", "list them so"
            raise InvalidArgument(f"an order of {ranks} ranks", seen, remedy)
        return listed

    return order


def _check(options: dict[str, Any]) -> None:
    from collwise.algorithms.registry import find
    from collwise.planner.by_hand import own_choice

    collective, algorithm = options["collective"], options["algorithm"]
    if algorithm is not None and own_choice(collective, algorithm) is None:
        find(algorithm, collective)
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
@click.option("--algorithm", help="Race this algorithm, or library:NAME  [default: the best few].")
@click.option("--budget", type=BUDGET, default=5.0, help="Seconds for the race.")
@click.option("--repetitions", type=POSITIVE, default=1000, help="The most repetitions.")
@click.option("--seed", type=INTEGER, default=0, help="Seed of the order of the competitors.")
@click.option(
    "--order",
    "rank_order",
    type=ParsedType("FILE|random:SEED", _parse_order),
    metavar="FILE|random:SEED",
    help="Number the ranks in this order: what the file lists first is rank 0.",
)
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
    rank_order: Callable[[int], Sequence[int]] | None,
    profile_path: Path | None,
    as_json: bool,
) -> Callable[[], None]:
    """Race collwise against the MPI library's own collective in one interleaved run.

    Competitors: mpi4py's method (Comm.Bcast, Comm.Allgatherv, …), the library's persistent form,
    its other algorithms as blocking calls, and planned schedules, as persistent requests and as
    blocking calls.  The slowest rank's time is what counts.

    \b
        collwise bench -n 4 --collective allreduce --bytes 64k --op max
        collwise bench -n 8 --collective allgatherv --pattern equal --sources 3
        mpiexec -n 64 collwise bench --algorithm postal_tree --order random:1
    """  # noqa: D301
    from collwise.mpi.runtime.agreement import on_root
    from collwise.planner.plans import source_lines
    from collwise.report.tuning_tables import race_document, race_summary, race_table
    from collwise.system import formatting
    from collwise.tuning.session import Session

    order = range(comm.size) if rank_order is None else rank_order(comm.size)
    if rank_order is not None:
        comm, here = comm.Create_group(comm.group.Incl(order)), here.part(order)
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
            output.write_json({**race_document(outcome), "order": list(order)})
            return
        output.table(race_table(outcome, f"{task.problem}, {here.library}"))
        output.write(*source_lines(task.problem), *race_summary(outcome))
        if rank_order is not None:
            output.write("order    the ranks are numbered as --order says")
        if saved is None:
            output.write("note     no profile of this machine yet: measured for 3 s to plan with")
        if here.oversubscribed:
            cores = formatting.count(here.cores, "core")
            output.write(f"note     {comm.size} ranks share {cores}: expect noise")

    return show_results
