"""Collectives that together do the same as one, which should not be slower than they are.

Source: [Traeff2010].
"""

from collections.abc import Mapping
from functools import partial
from itertools import accumulate
from types import MappingProxyType

import numpy as np
from mpi4py import MPI

from collwise.measure.race import BLOCKING
from collwise.mpi.bench.workloads import Competitor, Workload, nothing

COMPOSITIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "Bcast": ("Scatterv parts part_or_in_place root + Allgatherv in_place parts",),
        "Reduce": (
            "Allreduce own whole op",
            "Reduce_scatter own part counts op + Gatherv part_or_in_place parts root",
        ),
        "Allreduce": (
            "Reduce own whole op root + Bcast whole root",
            "Reduce_scatter own part counts op + Allgatherv in_place parts",
        ),
        "Reduce_scatter_block": (
            "Reduce_scatter own result counts op",
            "Reduce own whole op root + Scatter whole result root",
        ),
        "Allgatherv": ("Allgather own whole", "Gatherv own parts root + Bcast whole root"),
    }
)
"""By method: methods, each followed by its arguments.  Contributions to gather are equally long."""


def compositions(workload: Workload) -> list[Competitor]:
    """Competitors that make these calls on a workload's buffers, such as "Reduce + Bcast"."""
    rank, problem, whole = workload.private.rank, workload.problem, workload.result
    length = problem.nbytes // workload.own_data.itemsize
    if whole is None or len(whole) != length:
        whole = np.zeros(length, workload.own_data.dtype)
    counts = [length // problem.ranks + (r < length % problem.ranks) for r in range(problem.ranks)]
    ends = [*accumulate(counts)]
    part = whole[ends[rank] - counts[rank] : ends[rank]]
    arguments = {
        "own": workload.own_data,
        "result": workload.result,
        "whole": whole,
        "counts": counts,
        "parts": [whole, counts],
        "part": part,
        "in_place": MPI.IN_PLACE,
        "part_or_in_place": MPI.IN_PLACE if rank == problem.root else part,
        "op": workload.op,
        "root": problem.root,
    }

    def competitor(composition: str) -> Competitor:
        methods = [call.split() for call in composition.split(" + ")]
        calls = [
            partial(getattr(workload.comm, method), *map(arguments.get, words))
            for method, *words in methods
        ]

        def run() -> None:
            for call in calls:
                call()

        return Competitor(" + ".join(method for method, *_ in methods) + BLOCKING, run, nothing)

    return [competitor(one) for one in COMPOSITIONS[workload.kind.methods[0]]]
