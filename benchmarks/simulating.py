"""What simulating very many ranks costs: seconds and peak memory, by algorithm and machine.

Run: uv run python benchmarks/simulating.py [--json]
Trees of 2^20 ranks; in segments, or scattered and collected, of as many as make 10^6 messages.
Each is simulated in a fresh process, so that nothing is cached, and checked where there is a closed
form.  LogGP is left out where it is played event by event.
"""

import json
import platform
import sys

import numpy as np
from fresh import ask

import collwise as cw

SIMULATE = """
import resource, sys, time
from fractions import Fraction
import collwise as cw
from collwise.schedule.timing import Timing

name, kind, ranks, nbytes = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
machines = {
    "postal": cw.Machine.postal(t0_s=1.7e-3, lam=Fraction(9, 5)),
    "hockney": cw.Machine.hockney(alpha_s=525e-6, beta_s=0.5e-6),
    "loggp": cw.Machine.loggp(L_s=3e-6, o_s=1e-6, g_s=2e-6, G_s=1e-9),
}
values = {"lam": Fraction(9, 5), "alpha": Fraction(3, 5), "k": 3, "segment": 256}
algorithm = cw.ALGORITHMS[name]
settings = {key: values[key] for key in algorithm.parameters}
schedule = algorithm.schedule(ranks, nbytes, 5, **settings)
begin, at_work = time.perf_counter(), time.process_time()
if kind == "columns":
    rows = len(schedule.columns())
    print(time.perf_counter() - begin, rows)
else:
    machine = machines[kind]
    trace = cw.simulate(schedule, machine)
    trace.completion
    simulate_s, cpu_s = time.perf_counter() - begin, time.process_time() - at_work
    assert not isinstance(trace.played, Timing)
    begin = time.perf_counter()
    assert max(trace.finish_s) == trace.completion_s
    finish_s = time.perf_counter() - begin
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    if machine.independent_ports and "scatter" not in name:
        assert algorithm.predict(machine, ranks, nbytes, 5, **settings) == trace.completion
    print(simulate_s, cpu_s, finish_s, memory)
"""
SIZES = {
    "broadcast/scatter_ring": (1 << 10, 1 << 20),
    "broadcast/scatter_allgather": (1 << 16, 1 << 20),
}
TREE, SEGMENTED = (1 << 20, 512), (1 << 16, 4096)


def main() -> None:
    """Print a table in Markdown, or JSON."""
    rows = []
    if "--json" not in sys.argv:
        print(f"Python {platform.python_version()}, NumPy {np.__version__}\n")
        heads = (
            "algorithm",
            "ranks",
            "blocks",
            "columns, s",
            "machine",
            "s",
            "CPU s",
            "finish_s, s",
            "MiB",
        )
        print(f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|")
    for name, algorithm in cw.ALGORITHMS.items():
        if algorithm.collective != "broadcast":
            continue
        ranks, nbytes = SIZES.get(name, SEGMENTED if algorithm.segmented else TREE)
        columns_s, blocks = ask(SIMULATE, name, "columns", ranks, nbytes)
        for kind in ("postal", "hockney", "loggp"):
            if kind == "loggp" and algorithm.segmented:
                continue
            simulate_s, cpu_s, finish_s, memory = ask(SIMULATE, name, kind, ranks, nbytes)
            rows.append(
                {
                    "algorithm": name,
                    "ranks": ranks,
                    "blocks": int(blocks),
                    "columns_s": columns_s,
                    "machine": kind,
                    "simulate_s": simulate_s,
                    "cpu_s": cpu_s,
                    "finish_s": finish_s,
                    "peak_bytes": int(memory),
                }
            )
            if "--json" not in sys.argv:
                print(
                    f"| {name} | {ranks:,} | {int(blocks):,} | {columns_s:.2f} | {kind}"
                    f" | {simulate_s:.2f} | {cpu_s:.2f} | {finish_s:.2f} | {memory / 2**20:.0f} |",
                    flush=True,
                )
    if "--json" in sys.argv:
        print(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
