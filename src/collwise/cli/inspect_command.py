"""`collwise inspect`: what the MPI library's collectives do, seen from outside."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from collwise.cli import output
from collwise.cli.parameter_types import BUDGET, COLLECTIVES, PICTURE, SIZES
from collwise.cli.profile_option import profile_for
from collwise.cli.ranks_option import on_ranks
from collwise.errors import InvalidArgument
from collwise.model.machine import Machine
from collwise.system import formatting

if TYPE_CHECKING:  # the help needs no MPI
    from collwise.mpi.runtime.world import Communicator, World

MOST_BYTES = 1 << 30
"""The largest size in bytes: larger vectors may not fit into the memory of all ranks."""


def _check(options: dict[str, Any]) -> None:
    if odd := [n for n in options["sizes"] if not 1 <= n <= MOST_BYTES]:
        remedy = f"give sizes from 1 B to {formatting.size(MOST_BYTES)}"
        raise InvalidArgument(f"inspect collectives of {odd[0]} bytes", "they show nothing", remedy)


@click.command("inspect")
@click.option(
    "--collective",
    "collectives",
    type=COLLECTIVES,
    default="bcast,reduce,allreduce",
    help="What to inspect, comma-separated: broadcast, reduce, allreduce, reduce_scatter_block.",
)
@click.option(
    "--bytes",
    "sizes",
    type=SIZES,
    default="8:1M:4",
    help="Sizes to look at, comma-separated; changes between two of them are narrowed down.",
)
@click.option("--budget", type=BUDGET, default=30.0, help="Seconds to look at most.")
@click.option(
    "--picture",
    type=PICTURE,
    help="Draw the library's broadcast trees into .svg or .png files, and ours beside them (-ours),"
    " on the machine of the saved profile, else on one with λ = 2.",
)
@output.json_option
@on_ranks(lambda options: options["budget"], _check)
def command(
    comm: "Communicator",
    here: "World",
    collectives: Sequence[str],
    sizes: Sequence[int],
    budget: float,
    picture: Path | None,
    as_json: bool,
) -> Callable[[], None]:
    """Show how the MPI library broadcasts and combines, and from which size on that changes.

    A user's operator records the expression by which contributions are combined: whether all ranks
    and all elements have the same one, and which of our algorithms has it, too.  MPI.SUM on float64
    is known by how it rounds, since libraries may choose another algorithm for it.  To find a
    broadcast's tree, one rank after another enters late; this works up to the size from which on
    senders wait for their receivers.  All this needs no help from the library.

    \b
        collwise inspect -n 8
        collwise inspect -n 5 --collective allreduce --bytes 8:64k:2
        collwise inspect -n 16 --collective bcast --picture tree.svg
        mpiexec -n 64 collwise inspect --json
    """  # noqa: D301
    from collwise.report.inspection_tables import (
        draw_trees,
        inspection_document,
        inspection_table,
    )
    from collwise.tuning.inspection import inspect

    ranks = formatting.count(comm.size, "rank")
    beginning = f"inspecting {here.library} on {ranks} for at most {budget:g} s"
    with output.progress(as_json or comm.rank > 0, beginning) as progress:
        seen = inspect(comm, here.library, collectives, sizes, budget, progress)

    def show() -> None:
        if seen.stretches:
            output.table(inspection_table(seen))
        output.write(*(f"left out  {line}" for line in seen.left_out))

    def draw(path: Path) -> Any:
        profile = profile_for(here.fingerprint(), None)
        machine = profile.machine if profile else Machine.postal(t0_s=1, lam=2)
        return draw_trees(seen, machine, path)

    savings = [partial(draw, picture)] if picture else []
    return partial(output.deliver, as_json, partial(inspection_document, seen), show, savings)
