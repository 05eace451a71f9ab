"""Random calls, whose results are compared with the library's, and what happens in their midst."""

import gc
import os
import random
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from mpi4py import MPI

import collwise as cw
from collwise.comm.recording import Way
from collwise.profiles.records import FORMS
from tests.mpi.programs.alike import perform

SIZES = 1, 6, 7, 100, 5_000, 9_000, 40_000
"""Numbers of elements: pieces in letters, in rings, and several of them."""


def many_sizes(number: int) -> list[int]:
    """So many different sizes, most of them small, beside the usual ones."""
    draw, sizes = random.Random(number), {*SIZES}
    while len(sizes) < number:
        sizes.add(round(max(SIZES) ** draw.random()))
    return sorted(sizes)


def compare(
    ours: cw.Comm,
    plain: MPI.Comm,
    draw: random.Random,
    form: Way = "blocking",
    sizes: Sequence[int] = SIZES,
) -> None:
    """One call of a random kind, whose results have to be the library's."""
    size, rank = plain.size, plain.rank
    count, root = draw.choice(sizes), draw.randrange(size)
    dtype, op = draw.choice(["i8", "f8", "i2"]), draw.choice([MPI.MAX, MPI.SUM, MPI.BXOR])
    op = MPI.SUM if dtype == "f8" and op == MPI.BXOR else op
    mine = np.random.default_rng([count, rank, root]).integers(-99, 99, count).astype(dtype)
    kind = draw.randrange(6)
    results = []
    both: tuple[tuple[MPI.Comm, Way], ...] = (plain, "blocking"), (ours, form)
    for comm, way in both:
        called = partial(perform, way, comm, starts=2)  # the second start must change nothing
        result = mine.copy() if kind == 0 else np.zeros(count, dtype)
        if kind == 0:
            called("Bcast", result, root)
        elif kind == 1:
            called("Allreduce", mine, result, op)
        elif kind == 2:
            called("Reduce", mine, result if rank == root else None, op, root)
        elif kind == 3:
            counts = [count * (other % 3) // 2 for other in range(size)]
            result = np.zeros(sum(counts), dtype)
            called("Allgatherv", np.resize(mine, counts[rank]), [result, counts])
        elif kind == 4:
            called("Reduce_scatter_block", np.resize(mine, count * size), result, op)
        else:
            gaps = np.zeros((count, 3), dtype)
            gaps[:, 1] = mine
            column = MPI.Datatype.fromcode(np.dtype(dtype).char)
            strided = column.Create_vector(count, 1, 3).Commit()
            strides = rank % 2 == 1
            result = gaps[:, 1] if strides else mine.copy()
            called("Bcast", [gaps.reshape(-1)[1:], 1, strided] if strides else result, root)
            assert not gaps[:, [0, 2]].any()
            strided.Free()
        results.append(result.tobytes())
    assert results[0] == results[1], (form, kind, count, root, dtype, op)


CONSTRUCTORS = (
    "Dup", "Clone", "Idup", "Split", "Split_type", "Create", "Create_group", "Create_cart",
    "Create_graph", "Create_dist_graph_adjacent",
)  # fmt: skip


def derived(ours: cw.Comm, draw: random.Random) -> Any:
    """A communicator of some of the ranks, in some order, by some constructor; or COMM_NULL."""
    rank, members = ours.rank, draw.sample(range(ours.size), draw.randint(1, ours.size))
    some, name = len(members), draw.choice(CONSTRUCTORS)
    neighbours = [(rank + step) % ours.size for step in (-1, 1)]
    group = ours.group.Incl(members)
    arguments: dict[str, tuple[Any, ...]] = {
        "Split": (rank % some, -rank),
        "Split_type": (MPI.COMM_TYPE_SHARED, -rank),
        "Create": (group,),
        "Create_group": (group,),
        "Create_cart": ([some], [True], True),
        "Create_graph": ([*range(1, some + 1)], [*range(1, some), 0]),
        "Create_dist_graph_adjacent": (neighbours[:1], neighbours[1:]),
    }
    made: Any = MPI.COMM_NULL
    if name != "Create_group" or rank in members:
        made = getattr(ours, name)(*arguments.get(name, ()))
    group.Free()
    if name == "Idup":
        made, request = made
        request.Wait()
    return made


def one_call(draw: random.Random, ours: cw.Comm, plain: MPI.Comm, sizes: Sequence[int]) -> None:
    seed, form = draw.random(), draw.choice(FORMS)
    compare(ours, plain, random.Random(seed), "blocking" if ours.size == 1 else form, sizes)


def calls_on_another(draw: random.Random, ours: cw.Comm, sizes: Sequence[int]) -> Any:
    """Calls on a communicator that is made for them, which is returned."""
    seed, made = draw.random(), derived(ours, draw)
    for number in range(3 if made != MPI.COMM_NULL else 0):
        one_call(random.Random(f"{seed} {number}"), made, MPI.Intracomm(made), sizes)
    return made


def forks() -> None:
    """A child that ends without a word; what it has of ours it has given up."""
    if (child := os.fork()) == 0:
        gc.collect()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
