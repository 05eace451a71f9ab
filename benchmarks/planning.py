"""What planning costs at a million ranks: one rank's schedule, cold; all ranks, as columns.

Run: uv run python benchmarks/planning.py [--json]
Each algorithm is timed in a fresh process, so that nothing is cached.
"""

import json
import subprocess
import sys

import collwise as cw

RANKS = 1 << 20

ONE = """
import sys, time
from fractions import Fraction
import numpy as np
import collwise as cw
name, kind, ranks = sys.argv[1], sys.argv[2], int(sys.argv[3])
settings = {"lam": Fraction(9, 5), "alpha": Fraction(3, 5), "k": 3, "segment": 256}
algorithm = cw.ALGORITHMS[name]
settings = {key: settings[key] for key in algorithm.parameters}
if kind == "rank":
    begin = time.perf_counter()
    schedule = algorithm.schedule(ranks, 512, 5, **settings)
    operations = schedule.rank(777_777)
    print(time.perf_counter() - begin, len(operations))
else:
    begin = time.perf_counter()
    columns = algorithm.schedule(ranks, 512, 5, **settings).columns()
    took = time.perf_counter() - begin
    import resource
    print(took, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


def ask(name: str, kind: str) -> list[float]:
    """Seconds and a second figure, the median of five processes by seconds."""
    runs = []
    for _ in range(5):
        ran = subprocess.run(
            [sys.executable, "-c", ONE, name, kind, str(RANKS)],
            capture_output=True,
            text=True,
            check=True,
        )
        runs.append([float(x) for x in ran.stdout.split()])
    return sorted(runs)[2]


def main() -> None:
    """Print a table, or JSON."""
    rows = []
    for name in cw.ALGORITHMS:
        if name == "broadcast/scatter_ring":
            continue  # p - 1 steps on each of p ranks: 10^12 messages
        one_s, operations = ask(name, "rank")
        all_s, memory = ask(name, "columns")
        rows.append(
            {
                "algorithm": name,
                "ranks": RANKS,
                "one_rank_s": one_s,
                "operations": int(operations),
                "columns_s": all_s,
                "columns_peak_bytes": int(memory),
            }
        )
        if "--json" not in sys.argv:
            print(
                f"{name:36} one rank {one_s * 1e3:8.3f} ms ({int(operations)} operations)"
                f"   all {all_s:6.3f} s, peak {memory / 2**20:6.0f} MiB",
                flush=True,
            )
    if "--json" in sys.argv:
        print(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
