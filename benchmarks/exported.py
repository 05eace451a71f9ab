"""What an exported file of rules does for a program that does not import collwise.

On emulated hosts, launches without the file, with it, and of the same program under `collwise run`
with the profile that was exported take turns; in each, every collective runs --repetitions times,
and the slowest rank's time counts.  All ranks begin at the same moment: the hosts have one clock.

    collwise lab --hosts 16 -- collwise tune --bytes 512 --save profile.json
    collwise export mpich --profile profile.json --out rules.json --json > exported.json
    python benchmarks/exported.py exported.json profile.json [--launches 3]
"""

import argparse
import json
import os
import sys
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench_support import number, table_head, table_row, today

from collwise.lab.cluster import Cluster
from collwise.measure.statistics import median_interval, ratio_interval

PLAIN = """
import json, sys, time
import numpy as np
from mpi4py import MPI
comm, repetitions = MPI.COMM_WORLD, int(sys.argv[1])
told = {}
for nbytes in map(int, sys.argv[2].split(",")):
    data, result = np.ones(nbytes // 8), np.zeros(nbytes // 8)
    calls = {"Allreduce": lambda: comm.Allreduce(data, result),
             "Bcast": lambda: comm.Bcast(data), "Reduce": lambda: comm.Reduce(data, result)}
    for name, call in calls.items():
        times = np.zeros(repetitions + 1)
        for repetition in range(repetitions + 1):
            began = comm.bcast(time.perf_counter() + 0.1)
            time.sleep(max(0, began - time.perf_counter()))
            call()
            times[repetition] = time.perf_counter() - began
        comm.Allreduce(MPI.IN_PLACE, times, MPI.MAX)
        told[f"{name} of {nbytes} bytes"] = times[1:].tolist()
assert ("collwise" in sys.modules) == (sys.argv[3] == "run")
if comm.rank == 0:
    print(json.dumps(told))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("exported", type=Path, help="what export --json printed with --out")
    parser.add_argument("profile", type=Path, help="the profile that was exported")
    parser.add_argument("--hosts", type=number(int, 2), default=16)
    parser.add_argument("--ranks-per-host", type=number(int), default=1)
    parser.add_argument("--sizes", default="512,16384")
    parser.add_argument("--launches", type=number(int), default=3)
    parser.add_argument("--repetitions", type=number(int), default=15)
    asked = parser.parse_args()
    exported = json.loads(asked.exported.read_text())
    arguments = [asked.repetitions, asked.sizes]
    samples: dict[str, dict[str, list[float]]] = {"default": {}, "with the file": {}, "run": {}}
    with (
        TemporaryDirectory() as folder,
        Cluster(asked.hosts, "5ms", "10mbit") as cluster,
    ):
        script = Path(folder) / "plain.py"
        script.write_text(PLAIN)
        launch = partial(run, cluster, asked.ranks_per_host)
        for _ in range(asked.launches):
            for how, times in samples.items():
                ours = ["-m", "collwise", "run", "--profile", asked.profile] * (how == "run")
                more = exported["environment"] if how == "with the file" else {}
                told = launch([sys.executable, *ours, script, *arguments, how], more)
                for name, seconds in told.items():
                    times.setdefault(name, []).extend(seconds)
        network = cluster.network.description
    print(f"# Plain programs with exported rules: {exported['library']}, {today()}\n")
    hosts = f"{asked.hosts} emulated hosts of {asked.ranks_per_host} rank(s)"
    print(f"Made by `benchmarks/exported.py` on {hosts}, {network}, in")
    print(f"{asked.launches} launches of each, in turns.  Medians with 95 % intervals, slowest")
    print("rank.\n")
    titles = ["default, ms", "with the file, ms", "speed-up", "collwise run, ms", "speed-up"]
    print(table_head(["call", *titles]))
    for name, default in samples["default"].items():
        cells = [shown(1e3, *median_interval(default))]
        for how in ("with the file", "run"):
            cells.append(shown(1e3, *median_interval(samples[how][name])))
            cells.append(shown(1, *ratio_interval(default, samples[how][name])))
        print(table_row([name, *cells]))
    print("\nThe rules:\n")
    for rule in exported["rules"]:
        print(f"- {rule['method']}, {rule['first']} to {rule['last']} bytes: {rule['name']}")


def run(
    cluster: Cluster, per_host: int, command: list[Any], more: dict[str, str]
) -> dict[str, list[float]]:
    """One launch: seconds by call."""
    environment = {**os.environ, **more}
    ran = cluster.run(
        command, ranks_per_host=per_host, environment=environment, capture=True, timeout_s=300
    )
    told: dict[str, list[float]] = json.loads(ran.stdout or "")
    return told


def shown(factor: float, middle: float, low: float, high: float) -> str:
    return f"{factor * middle:.2f} ({factor * low:.2f} … {factor * high:.2f})"


if __name__ == "__main__":
    main()
