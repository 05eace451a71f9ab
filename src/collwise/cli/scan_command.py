"""`collwise scan`: whether the library's defaults are bad here, and what mends that."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from collwise.cli import output
from collwise.cli.grouped_command import GroupedCommand
from collwise.cli.parameter_types import BUDGET, COLLECTIVES, SIZES
from collwise.cli.problem_options import COLLECTIVE_NAMES, ProblemOptions, Sources
from collwise.cli.profile_option import profile_for, profile_option
from collwise.cli.ranks_option import on_ranks

if TYPE_CHECKING:  # the help needs no MPI
    from collwise.mpi.runtime.world import Communicator, World


@click.command("scan", cls=GroupedCommand)
@click.option("--budget", type=BUDGET, default=60.0, help="Seconds for measuring and racing.")
@click.option(
    "--bytes",
    "sizes",
    type=SIZES,
    default="8:1M:4",
    help="Sizes of the message, or of every rank's vector or contribution.",
)
@click.option(
    "--collective",
    "collectives",
    type=COLLECTIVES,
    default="allreduce,broadcast,all",
    help=f"What to scan, comma-separated: {COLLECTIVE_NAMES}.",
)
@profile_option
@output.json_option
@on_ranks(lambda options: options["budget"])
def command(
    comm: "Communicator",
    here: "World",
    budget: float,
    sizes: Sequence[int],
    collectives: Sequence[str],
    profile_path: Path | None,
    as_json: bool,
) -> Callable[[], None]:
    """Find out whether the MPI library's defaults are bad here, and what mends that.

    Races each collective's default with the library's other algorithms and its persistent form,
    with other collectives that do the same, with twice the bytes, and on one rank fewer.  Looks for
    cliffs, where one element more takes over 1.5 times as long, at each size, and between sizes
    where the time rises more than the model's.  Looks for times far above the lower bound on the
    measured machine.  Only what is significant in two races is reported.

    \b
        collwise scan
        collwise scan -n 8 --collective allreduce,broadcast --budget 20
        mpiexec -n 64 collwise scan --json
    """  # noqa: D301
    import msgspec

    from collwise.mpi.runtime.agreement import on_root
    from collwise.report.scan_summary import scan_lines
    from collwise.tuning.scan_races import scan
    from collwise.tuning.session import Session

    request = ProblemOptions(0, None, None, None, Sources(), None, None)
    by_size = [(name, nbytes) for nbytes in sizes for name in collectives]
    every = (request.task(name, comm.size, nbytes, round_up=True) for name, nbytes in by_size)
    tasks = list(dict.fromkeys(every))
    saved = on_root(comm, lambda: profile_for(here.fingerprint(), profile_path))
    beginning = f"scanning {len(tasks)} calls on {comm.size} ranks for about {budget:g} s"
    with (
        output.progress(as_json or comm.rank > 0, beginning) as progress,
        Session(comm, here, progress=progress) as session,
    ):
        known = saved and saved.at(comm.size, here.ranks_per_node)
        scanned = scan(session, tasks, budget, known)
    lines = (*scan_lines(scanned), *here.crowding)
    show, document = partial(output.write, *lines), partial(msgspec.to_builtins, scanned)
    return partial(output.deliver, as_json, document, show, ())
