"""Calls on several ranks of each node, through the node's memory and by messages, interleaved.

Run: uv run collwise lab --hosts 4 --ranks-per-host 4 --latency 1ms --rate 100mbit --
         python benchmarks/transports.py [--seconds 60] [--out benchmarks/results]

Each communicator runs what is planned for its machine in MACHINES, whose nodes cost what the
transport costs.  A time is the slowest rank's, from a common start; a ratio is memory / messages of
two calls in a row.  The record has all samples.
"""

import argparse
import json
import os
import time
from pathlib import Path

import numpy as np
from bench_support import RESULTS, number, table_head, table_row, today
from mpi4py import MPI

import collwise as cw
from collwise.measure.statistics import median_interval, ratio_interval
from collwise.model.level_notation import parse
from collwise.mpi.runtime.world import describe

ACROSS = "60us+80ns/B,20"
"""Emulated hosts: a millisecond one way, 100 Mbit/s."""
MACHINES = {
    "memory": f"300ns+0.1ns/B,3,read 200ns+0.1ns/B; {ACROSS}",
    "messages": f"2us+1ns/B,3; {ACROSS}",
}
"""By transport; inside a node about what two cores take."""
SIZES = (8, 512, 16384, 131072)
FEWEST = 20


def main() -> None:
    """Time every call with both transports; rank 0 writes the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=number(float, 1), default=60)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    world, here = MPI.COMM_WORLD, describe(MPI.COMM_WORLD)
    nodes = [here.nodes.count(node) for node in dict.fromkeys(here.nodes)]
    shape = "+".join(map(str, nodes))
    comms = {
        way: cw.Comm(
            world,
            machine=parse(f"{shape}: {costs}"),
            effort="estimate",
            profile=False,
            transport=way,
        )
        for way, costs in MACHINES.items()
    }
    calls = [(method, n) for n in SIZES for method in ("Bcast", "Allreduce", "Allgather")]
    rows, samples = [], {}
    for method, nbytes in calls:
        data, every = np.ones(nbytes // 8), np.empty(nbytes // 8 * world.size)
        into = {"Allreduce": np.empty_like(data), "Allgather": every}.get(method)
        arguments = (data,) if into is None else (data, into)
        times: dict[str, list[float]] = {way: [] for way in comms}
        until = time.monotonic() + options.seconds / len(calls)
        going = True
        while going:
            for way, comm in comms.items():
                world.Barrier()
                begin = time.perf_counter()
                getattr(comm, method)(*arguments)
                took = world.allreduce(time.perf_counter() - begin, MPI.MAX)
                times[way].append(took)
            few = len(times["memory"]) < FEWEST + 2
            going = world.bcast(few or time.monotonic() < until)
        times = {way: every[2:] for way, every in times.items()}  # the first make the plan
        samples[f"{method} {nbytes}"] = times
        medians = [median_interval(times[way]).middle * 1e3 for way in comms]
        ratio = ratio_interval(times["memory"], times["messages"])
        low, high = ratio.low, ratio.high
        about = [f"{ratio.middle:.2f}", f"{low:.2f} … {high:.2f}", len(times["memory"])]
        rows.append([method, nbytes, *(f"{median:.3g}" for median in medians), *about])
    if world.rank == 0:
        name = f"transports-{here.library.split()[0].lower()}-{here.ranks_per_node}-{today()}"
        titles = ["call", "bytes", "memory, ms", "messages, ms", "ratio", "95 %", "repetitions"]
        lines = [
            f"# Through memory and by messages, {here.ranks_per_node} ranks, {here.library}",
            "",
            f"Made by `benchmarks/transports.py` under `collwise lab` ({here.emulated}), on"
            f" {os.cpu_count()} cores for all ranks. Samples: `{name}.json`.",
            "",
            table_head(titles),
            *map(table_row, rows),
            "",
        ]
        (options.out / f"{name}.md").write_text("\n".join(lines))
        (options.out / f"{name}.json").write_text(json.dumps(samples))
        print("\n".join(lines))


main()
