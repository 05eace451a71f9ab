"""What simulating very many ranks costs: seconds and peak memory, by algorithm and machine.

Run: uv run python benchmarks/simulating.py [--json] [--ranks 1048576]

Trees have --ranks ranks; segmented and scattered broadcasts have fewer, so that they have about as
many messages.  Each is simulated in a fresh process, and checked.
LogGP, for which every rank's list is made, is left out where there are segments.
"""

import argparse
import json
import platform
import resource
import sys
import time
from fractions import Fraction

import numpy as np
from bench_support import number, run_fresh, settings_of, table_head, table_row

import collwise as cw
from collwise.timing import completion as completion_of

MACHINES = {
    "postal": cw.Machine.postal(t0_s=1.7e-3, lam=Fraction(9, 5)),
    "hockney": cw.Machine.hockney(alpha_s=525e-6, beta_s=0.5e-6),
    "loggp": cw.Machine.loggp(L_s=3e-6, o_s=1e-6, g_s=2e-6, G_s=1e-9),
}
FEWER = {"broadcast/scatter_ring": 1 << 10, "broadcast/scatter_allgather": 1 << 4}
"""How many times fewer ranks these have than a tree; segmented ones have 2^4 times fewer."""
TITLES = (
    *("algorithm", "ranks", "messages", "rows, s", "machine"),
    *("s", "CPU s", "finish_s, s", "MiB"),
)


def time_rows(name: str, ranks: int, nbytes: int) -> None:
    """Print the seconds that making a schedule's rows takes, and how many there are."""
    algorithm = cw.ALGORITHMS[name]
    schedule = algorithm.schedule(ranks, nbytes, 5, **settings_of(algorithm))
    begin = time.perf_counter()
    rows = len(schedule.rows(combines=False))
    print(time.perf_counter() - begin, rows)


def time_simulation(name: str, kind: str, ranks: int, nbytes: int) -> None:
    """Print seconds and CPU seconds until completion, seconds of finish_s, and peak bytes."""
    algorithm, machine = cw.ALGORITHMS[name], MACHINES[kind]
    schedule = algorithm.schedule(ranks, nbytes, 5, **settings_of(algorithm))
    begin, cpu_begin = time.perf_counter(), time.process_time()
    trace = cw.simulate(schedule, machine)
    completion = trace.completion
    simulate_s, cpu_s = time.perf_counter() - begin, time.process_time() - cpu_begin
    begin = time.perf_counter()
    assert max(trace.finish_s) == trace.completion_s
    finish_s = time.perf_counter() - begin
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    assert completion_of(schedule, machine) == completion  # of trees, by their shapes
    print(simulate_s, cpu_s, finish_s, memory)


def main() -> None:
    """Print a table in Markdown, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--ranks", type=number(int, 2), default=1 << 20)
    options = parser.parse_args()
    rows = []
    if not options.json:
        print(f"Python {platform.python_version()}, NumPy {np.__version__}\n")
        print(table_head(TITLES))
    for name, algorithm in cw.ALGORITHMS.items():
        if algorithm.collective != "broadcast" or algorithm.levels:
            continue
        ranks = options.ranks // FEWER.get(name, 1 << 4 if algorithm.segmented else 1)
        nbytes = 1 << 20 if name in FEWER else 4096 if algorithm.segmented else 512
        rows_s, messages = run_fresh(__file__, "rows", name, ranks, nbytes)
        for kind in MACHINES:
            if kind == "loggp" and algorithm.segmented:
                continue
            simulate_s, cpu_s, finish_s, memory = run_fresh(
                __file__, "simulation", name, kind, ranks, nbytes
            )
            rows.append(
                {
                    "algorithm": name,
                    "ranks": ranks,
                    "messages": int(messages),
                    "rows_s": rows_s,
                    "machine": kind,
                    "simulate_s": simulate_s,
                    "cpu_s": cpu_s,
                    "finish_s": finish_s,
                    "peak_bytes": int(memory),
                }
            )
            if not options.json:
                cells = (
                    *(name, f"{ranks:,}", f"{int(messages):,}", f"{rows_s:.2f}", kind),
                    *(f"{seconds:.2f}" for seconds in (simulate_s, cpu_s, finish_s)),
                    f"{memory / 2**20:.0f}",
                )
                print(table_row(cells), flush=True)
    if options.json:
        print(json.dumps(rows, indent=2))


if __name__ == "__main__":
    if sys.argv[1:2] == ["rows"]:
        time_rows(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    elif sys.argv[1:2] == ["simulation"]:
        time_simulation(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
    else:
        main()
