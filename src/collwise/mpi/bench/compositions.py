"""What else a program could call: other collectives that together do the same.

A library's collective should not be slower than these.  Source: [TraffGroppThakur2010].
"""

from collections.abc import Mapping
from functools import partial
from itertools import accumulate
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from mpi4py import MPI

from collwise.measure.race import BLOCKING
from collwise.mpi.bench.workloads import Competitor, Workload, nothing

Calls: TypeAlias = tuple[tuple[str, ...], ...]
"""Methods of a communicator, each with the words of `_arguments` for what it is given."""

COMPOSITIONS: Mapping[str, Mapping[str, Calls]] = MappingProxyType(
    {
        "Bcast": {
            "Scatterv + Allgatherv": (
                ("Scatterv", "parts", "part or in place", "root"),
                ("Allgatherv", "in place", "parts"),
            ),
        },
        "Reduce": {
            "Allreduce": (("Allreduce", "own", "whole", "op"),),
            "Reduce_scatter + Gatherv": (
                ("Reduce_scatter", "own", "part", "counts", "op"),
                ("Gatherv", "part or in place", "parts", "root"),
            ),
        },
        "Allreduce": {
            "Reduce + Bcast": (
                ("Reduce", "own", "whole", "op", "root"),
                ("Bcast", "whole", "root"),
            ),
            "Reduce_scatter + Allgatherv": (
                ("Reduce_scatter", "own", "part", "counts", "op"),
                ("Allgatherv", "in place", "parts"),
            ),
        },
        "Reduce_scatter_block": {
            "Reduce_scatter": (("Reduce_scatter", "own", "result", "counts", "op"),),
            "Reduce + Scatter": (
                ("Reduce", "own", "whole", "op", "root"),
                ("Scatter", "whole", "result", "root"),
            ),
        },
        "Allgatherv": {
            "Allgather": (("Allgather", "own", "whole"),),
            "Gatherv + Bcast": (("Gatherv", "own", "parts", "root"), ("Bcast", "whole", "root")),
        },
    }
)
"""By method, what does the same, by name.  An Allgatherv has contributions of one length here."""


def composed(workload: Workload, name: str) -> Competitor:
    """The competitor that makes the calls of one of the COMPOSITIONS on a workload's buffers."""
    known = _arguments(workload)
    calls = [
        partial(getattr(workload.comm, method), *(known[word] for word in words))
        for method, *words in COMPOSITIONS[workload.kind.methods[0]][name]
    ]

    def run() -> None:
        for call in calls:
            call()

    return Competitor(name + BLOCKING, run, nothing)


def _arguments(workload: Workload) -> dict[str, Any]:
    """What calls are given.   part: this rank's part of the whole result, cut as `counts` says."""
    ranks, rank, root = workload.problem.ranks, workload.private.rank, workload.problem.root
    whole = workload.result
    length = workload.problem.nbytes // workload.own_data.itemsize
    if whole is None or len(whole) != length:
        whole = np.zeros(length, workload.own_data.dtype)
    short, longer = divmod(length, ranks)
    counts = [short + (each < longer) for each in range(ranks)]
    begin = [0, *accumulate(counts)][rank]
    part = whole[begin : begin + counts[rank]]
    return {
        "own": workload.own_data,
        "result": workload.result,
        "whole": whole,
        "counts": counts,
        "parts": [whole, counts],
        "part": part,
        "part or in place": MPI.IN_PLACE if rank == root else part,
        "in place": MPI.IN_PLACE,
        "op": workload.op,
        "root": root,
    }
