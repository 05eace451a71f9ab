"""What planning costs, cold: a broadcast's schedule at a million ranks, an s-to-p broadcast's plan.

Run: uv run python benchmarks/planning.py [--json]
Of a broadcast the schedule of one rank, and of all as columns; of an s-to-p broadcast the whole
plan, all algorithms predicted.  Each is timed in a fresh process.
"""

import json
import sys

from fresh import ask

import collwise as cw

RANKS = 1 << 20
GIVING = ((16, 16), (64, 3), (64, 64), (256, 30), (256, 256), (1024, 64))
"""Ranks, and how many of them are sources."""

ONE_RANK = """
import sys, time
from fractions import Fraction
import collwise as cw
name, ranks = sys.argv[1], int(sys.argv[2])
settings = {"lam": Fraction(9, 5), "alpha": Fraction(3, 5), "k": 3, "segment": 256}
algorithm = cw.ALGORITHMS[name]
settings = {key: settings[key] for key in algorithm.parameters}
begin = time.perf_counter()
operations = algorithm.schedule(ranks, 512, 5, **settings).rank(777_777)
print(time.perf_counter() - begin, len(operations))
"""
ALL_RANKS = (
    ONE_RANK.partition("operations =")[0]
    + """
columns = algorithm.schedule(ranks, 512, 5, **settings).columns()
took = time.perf_counter() - begin
import resource
print(took, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""
)
PLAN = """
import sys, time
import collwise as cw
ranks, sources = int(sys.argv[1]), range(int(sys.argv[2]))
machine = cw.Machine.postal(t0_s=1e-6, lam=4)
cw.plan("s_to_p", ranks=4, sources=[0], nbytes=8, machine=machine)  # imports
begin = time.perf_counter()
cw.plan("s_to_p", ranks=ranks, sources=sources, nbytes=1024, machine=machine)
print(time.perf_counter() - begin)
"""


def main() -> None:
    """Print a table, or JSON."""
    quiet = "--json" in sys.argv
    rows: list[dict[str, object]] = []
    for name, algorithm in cw.ALGORITHMS.items():
        # The ring has p - 1 steps on each of p ranks: 10^12 messages.
        if algorithm.collective != "broadcast" or name == "broadcast/scatter_ring":
            continue
        one_s, operations = ask(ONE_RANK, name, RANKS, runs=5)
        all_s, memory = ask(ALL_RANKS, name, RANKS)
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
        if not quiet:
            print(
                f"{name:30} one rank {one_s * 1e3:8.3f} ms ({int(operations)} operations)"
                f"   all {all_s:6.3f} s, peak {memory / 2**20:6.0f} MiB",
                flush=True,
            )
    for ranks, sources in GIVING:
        (plan_s,) = ask(PLAN, ranks, sources)
        rows.append({"plan": "s_to_p", "ranks": ranks, "sources": sources, "plan_s": plan_s})
        if not quiet:
            print(f"s_to_p, {sources} of {ranks} ranks give: plan {plan_s:.3f} s", flush=True)
    if quiet:
        print(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
