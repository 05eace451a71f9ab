"""What planning costs in a fresh process.

Run: uv run python benchmarks/planning.py [--json] [--ranks 1048576]

For each broadcast algorithm: the schedule of one rank, and that of all ranks as columns.  For
s-to-p broadcasts: the whole plan, with predictions for all algorithms, at up to --ranks ranks.
"""

import argparse
import json
import resource
import sys
import time

from bench_support import number, run_fresh, settings_of

import collwise as cw

S_TO_P = ((16, 16), (64, 3), (64, 64), (256, 30), (256, 256), (1024, 64))
"""Ranks, and how many of them are sources."""


def time_schedule(part: str, name: str, ranks: int) -> None:
    """Print seconds, then the operations of one rank or the peak bytes for all ranks."""
    algorithm = cw.ALGORITHMS[name]
    settings = settings_of(algorithm)
    begin = time.perf_counter()
    schedule = algorithm.schedule(ranks, 512, 5, **settings)
    if part == "one-rank":
        operations = schedule.rank(ranks * 3 // 4)
        print(time.perf_counter() - begin, len(operations))
    else:
        schedule.columns()
        took_s = time.perf_counter() - begin
        print(took_s, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)


def time_plan(ranks: int, sources: int) -> None:
    """Print the seconds that the plan of an s-to-p broadcast takes."""
    machine = cw.Machine.postal(t0_s=1e-6, lam=4)
    cw.plan("s_to_p", ranks=4, sources=[0], nbytes=8, machine=machine)  # imports
    begin = time.perf_counter()
    cw.plan("s_to_p", ranks=ranks, sources=range(sources), nbytes=1024, machine=machine)
    print(time.perf_counter() - begin)


def main() -> None:
    """Print a table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--ranks", type=number(int, 2), default=1 << 20)
    options = parser.parse_args()
    rows: list[dict[str, object]] = []
    for name, algorithm in cw.ALGORITHMS.items():
        # The ring has p - 1 steps on each of p ranks: 10^12 messages.
        if (
            algorithm.collective != "broadcast"
            or algorithm.levels
            or name == "broadcast/scatter_ring"
        ):
            continue
        one_s, operations = run_fresh(__file__, "one-rank", name, options.ranks, runs=5)
        all_s, memory = run_fresh(__file__, "all-ranks", name, options.ranks)
        rows.append(
            {
                "algorithm": name,
                "ranks": options.ranks,
                "one_rank_s": one_s,
                "operations": int(operations),
                "columns_s": all_s,
                "columns_peak_bytes": int(memory),
            }
        )
        if not options.json:
            print(
                f"{name:30} one rank {one_s * 1e3:8.3f} ms ({int(operations)} operations)"
                f"   all {all_s:6.3f} s, peak {memory / 2**20:6.0f} MiB",
                flush=True,
            )
    for ranks, sources in S_TO_P:
        if ranks > options.ranks:
            continue
        (plan_s,) = run_fresh(__file__, "plan", ranks, sources)
        rows.append({"plan": "s_to_p", "ranks": ranks, "sources": sources, "plan_s": plan_s})
        if not options.json:
            print(f"s_to_p, {sources} sources of {ranks} ranks: plan {plan_s:.3f} s", flush=True)
    if options.json:
        print(json.dumps(rows, indent=2))


if __name__ == "__main__":
    if sys.argv[1:2] == ["plan"]:
        time_plan(int(sys.argv[2]), int(sys.argv[3]))
    elif sys.argv[1:2] in (["one-rank"], ["all-ranks"]):
        time_schedule(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    else:
        main()
