"""`collwise scan`: whether the library's defaults are bad here, and what mends it."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from collwise.cli import output
from collwise.cli.grouped_command import GroupedCommand
from collwise.cli.parameter_types import BUDGET, COLLECTIVES, INTEGER, SIZES
from collwise.cli.problem_options import COLLECTIVE_NAMES, ProblemOptions, Sources
from collwise.cli.profile_option import profile_for, profile_option
from collwise.cli.ranks_option import on_ranks

if TYPE_CHECKING:  # the help needs no MPI
    from collwise.mpi.runtime.world import Communicator, World

_EVERY_RANK = ProblemOptions(0, None, None, None, Sources(), None, None)
"""Root 0, a sum of float64, and contributions of all ranks."""


@click.command("scan", cls=GroupedCommand)
@click.option(
    "--budget",
    type=BUDGET,
    default=60.0,
    help="Seconds for the scan; what there is no time for is named.",
)
@click.option(
    "--bytes",
    "sizes",
    type=SIZES,
    default="8,64:1M:4",
    help="Sizes to scan: of the message, of everybody's vector or contribution.",
)
@click.option(
    "--collective",
    "collectives",
    type=COLLECTIVES,
    default="all",
    help=f"What to scan, comma-separated: {COLLECTIVE_NAMES}.",
)
@profile_option
@click.option("--seed", type=INTEGER, default=0, help="Seed of the order of the competitors.")
@output.json_option
@on_ranks(lambda options: options["budget"])
def command(
    comm: "Communicator",
    here: "World",
    budget: float,
    sizes: Sequence[int],
    collectives: Sequence[str],
    profile_path: Path | None,
    seed: int,
    as_json: bool,
) -> Callable[[], None]:
    """Find out whether the MPI library's defaults are bad here, and what mends it.

    Races the blocking call of each collective, as the library serves it by default, against the
    library's other algorithms, its persistent form, other collectives that do the same, and more
    bytes.  Looks for cliffs, where one element more takes over 1.5 times as long.  Compares with
    the lower bound that the measured machine sets.  A second race has to confirm what is found.

    \b
        collwise scan
        collwise scan -n 8 --collective allreduce,broadcast --budget 20
        mpiexec -n 64 collwise scan --json > scan.json
    """  # noqa: D301
    import msgspec

    from collwise.mpi.runtime.agreement import on_root
    from collwise.report.scan_tables import scan_lines, scan_table
    from collwise.tuning.scanning import commonest_first
    from collwise.tuning.session import Session

    tasks = commonest_first(
        _EVERY_RANK.task(collective, comm.size, nbytes, round_up=True)
        for collective in collectives
        for nbytes in sizes
    )
    known = on_root(comm, lambda: profile_for(here.fingerprint(), profile_path))
    beginning = f"scanning {len(tasks)} calls on {comm.size} ranks for about {budget:g} s"
    with (
        output.progress(as_json or comm.rank > 0, beginning) as progress,
        Session(comm, here, seed=seed, progress=progress) as session,
    ):
        scan = session.scan(tasks, budget, known and known.at(comm.size, here.ranks_per_node))

    def show() -> None:
        output.table(scan_table(scan))
        output.write(*scan_lines(scan))

    return partial(output.deliver, as_json, partial(msgspec.to_builtins, scan), show, ())
