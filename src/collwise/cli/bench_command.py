"""`collwise bench`: one race, all its numbers."""

from pathlib import Path
from typing import Any

import click

from collwise.cli import output
from collwise.cli.collective_options import (
    USUAL_SOURCES,
    Sources,
    check_options,
    chosen_sources,
    dtype_option,
    op_option,
    root_option,
    sources_options,
)
from collwise.cli.option_groups import Command
from collwise.cli.parameter_types import BUDGET, SIZE
from collwise.cli.profile_option import profile_for, profile_option
from collwise.cli.start_ranks import on_ranks
from collwise.planner.operator_order import DTYPE, OP

_QUICK_S = 3.0
"""Seconds to measure where there is no profile."""


def _check(options: dict[str, Any]) -> None:
    from collwise.algorithms.registry import algorithms_for, find

    algorithms_for(options["collective"])
    if options["algorithm"] is not None:
        find(options["algorithm"], options["collective"])
    check_options([options["collective"]], options)


@click.command("bench", cls=Command)
@click.option(
    "--collective",
    default="broadcast",
    show_default=True,
    help="What to race: broadcast, reduce, allreduce or s_to_p.",
)
@click.option(
    "--bytes",
    "nbytes",
    type=SIZE,
    default=512,
    show_default=True,
    help="Bytes of the message, of everybody's vector, or of each source's contribution.",
)
@root_option
@op_option
@dtype_option
@click.option("--algorithm", help="Race this algorithm  [default: the planned best few].")
@click.option(
    "--budget",
    type=BUDGET,
    default=5.0,
    show_default=True,
    help="Seconds for the race.",
)
@click.option(
    "--repetitions",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    help="The most repetitions.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of the order.")
@profile_option
@output.json_option
@sources_options(USUAL_SOURCES)
@on_ranks(lambda options: options["budget"] + _QUICK_S, _check)
def command(
    collective: str,
    nbytes: int,
    root: int,
    op: str | None,
    dtype: str | None,
    sources: Sources | None,
    pattern: str | None,
    shape: tuple[int, int] | None,
    algorithm: str | None,
    budget: float,
    repetitions: int,
    seed: int,
    profile_path: Path | None,
    as_json: bool,
) -> None:
    """Race collwise against the MPI library's own collective in one interleaved run.

    Competitors: mpi4py's Comm.Bcast (or Reduce, Allreduce, Allgatherv), the library's persistent
    form, and planned schedules, as persistent requests and as blocking calls.  The slowest rank's
    time is what counts.

    \b
        collwise bench -n 4 --collective allreduce --bytes 64k --op max
        collwise bench -n 8 --collective s_to_p --pattern equal --sources 3
        mpiexec -n 64 collwise bench --algorithm postal_tree
    """  # noqa: D301
    from collwise.mpi.bench.measuring import run_campaign
    from collwise.mpi.bench.race_harness import RaceHarness
    from collwise.mpi.runtime.agreement import on_root
    from collwise.mpi.runtime.private_communicator import PrivateCommunicator
    from collwise.mpi.runtime.world import describe, world
    from collwise.planner.plans import source_lines
    from collwise.report.tuning_tables import RACE_SPARE, race_document, race_rows, race_summary
    from collwise.system import formatting
    from collwise.tuning.session import Task, compare

    comm = world()
    task = Task.of(  # refuses, before measuring
        collective,
        nbytes,
        root,
        op or OP,
        dtype or DTYPE,
        ranks=comm.size,
        sources=chosen_sources(comm.size, sources, pattern, shape),
        shape=shape,
    )
    here = describe(comm)
    channel = PrivateCommunicator(comm)
    profile = on_root(comm, lambda: profile_for(here.fingerprint(), profile_path))
    quick = profile is None
    beginning = f"racing {task} on {comm.size} ranks for about {budget + _QUICK_S * quick:g} s"
    with output.progress(as_json or comm.rank > 0, beginning) as progress:
        if profile is None:
            share = _QUICK_S / (_QUICK_S + budget)
            profile = run_campaign(
                channel.comm,
                here,
                budget_s=_QUICK_S,
                seed=seed,
                report=lambda done: progress("measuring t0 and λ", done * share),
            )
        progress(f"racing: {task}", 0.5)
        outcome = compare(
            RaceHarness(channel, here.crowded),
            profile,
            task,
            budget_s=budget,
            repetitions=repetitions,
            seed=seed,
            algorithm=algorithm,
        )
    channel.free()

    def finish() -> None:
        if as_json:
            output.write_json(race_document(outcome))
            return
        title = f"{outcome.plan.problem}, {here.library}"
        output.table(title, *race_rows(outcome), RACE_SPARE)
        output.write(*source_lines(outcome.plan.problem))
        output.write(*race_summary(outcome))
        if quick:
            output.write("note     no profile of this machine yet: measured for 3 s to plan with")
        if here.crowded:
            shared = formatting.count(here.cores, "core")
            output.write(f"note     {comm.size} ranks share {shared}: expect noise")

    on_root(comm, finish, takes_long=True)
