"""Whether a sweep's medians are those of plain loops, as OSU's benchmarks have them, in mpi4py.

Run: uv run python benchmarks/sweeping.py [--ranks 2] [--budget 60] [--out FOLDER]

An allreduce of 8 B to 1 MiB: before and after each race of collwise's, the same call of mpi4py's
is timed in a loop with a barrier before each call; the slowest rank counts, repetition by
repetition.  A row has both medians of the library's blocking call with their 95 % intervals, their
ratio, and the seconds that the race took with its planning and its checks.
Writes FOLDER/sweeping-LIBRARY-DATE.md (benchmarks/results by default).
"""

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
from bench_support import start_or_be_rank, table_head, table_row, today

SIZES = [8 << n for n in range(18)]
WITHIN = 0.05
TITLES = ("bytes", "loops, µs", "95 %", "sweep, µs", "95 %", "sweep / loops", "repetitions", "s")


def run_rank(out: Path, budget_s: float) -> None:
    """Time all sizes; rank 0 writes the table."""
    from mpi4py import MPI

    from collwise.measure.race import LIBRARY
    from collwise.measure.statistics import median_interval
    from collwise.mpi.runtime.world import describe
    from collwise.planner.choose import problem_for
    from collwise.tuning.outcomes import Task
    from collwise.tuning.session import Session

    comm = MPI.COMM_WORLD
    here, each_s = describe(comm), budget_s / len(SIZES) / 2
    rows, ratios, raced_s = [], [], 0.0
    with Session(comm, here) as session:
        profile = session.measure(3.0)
        for nbytes in SIZES:
            task = Task(problem_for("allreduce", ranks=comm.size, nbytes=nbytes)[0])
            before = plain_loop(comm, nbytes, each_s / 2)
            begin = time.perf_counter()
            race = session.race(task, profile, each_s, 1000, within=WITHIN).races["blocking"]
            took_s = time.perf_counter() - begin
            loops = median_interval([*before, *plain_loop(comm, nbytes, each_s / 2)])
            sweep = race.medians[LIBRARY]
            ratios.append(sweep.middle / loops.middle)
            raced_s += took_s
            cells = [str(nbytes)]
            for median in (loops, sweep):
                low, high = median.low * 1e6, median.high * 1e6
                cells += [f"{median.middle * 1e6:.2f}", f"{low:.2f} to {high:.2f}"]
            cells += [f"{ratios[-1]:.2f}", str(len(race.samples[LIBRARY])), f"{took_s:.2f}"]
            rows.append(table_row(cells))
    if comm.rank:
        return
    load = os.getloadavg()[0]
    page = [
        f"# A sweep and plain loops: {here.library}, {today()}",
        "",
        f"Made by `uv run python benchmarks/sweeping.py`; {comm.size} ranks on {here.cores} cores,"
        f" load average {load:.1f}. All races took {raced_s:.1f} s; the median ratio is"
        f" {np.median(ratios):.2f}.",
        "",
        table_head(TITLES),
        *rows,
    ]
    name = here.library.rpartition(" ")[0].replace(" ", "").lower()
    path = out / f"sweeping-{name}-{today()}.md"
    path.write_text("\n".join(page) + "\n", encoding="utf-8")
    print("\n".join(page))


def plain_loop(comm: Any, nbytes: int, budget_s: float) -> list[float]:
    """Seconds of the slowest rank in each repetition, after a tenth of them to warm up."""
    from mpi4py import MPI

    mine, result = np.ones(nbytes // 8), np.empty(nbytes // 8)
    times: list[float] = []
    begin = time.perf_counter()
    while comm.bcast(time.perf_counter() - begin < budget_s and len(times) < 1000):
        for _ in range(20):
            comm.Barrier()
            start = time.perf_counter()
            comm.Allreduce(mine, result)
            times.append(time.perf_counter() - start)
    slowest = np.empty(len(times))
    comm.Allreduce(np.array(times), slowest, MPI.MAX)
    kept: list[float] = slowest[len(times) // 10 :].tolist()
    return kept


if __name__ == "__main__":
    start_or_be_rank(__doc__, run_rank)
