"""What simulating every algorithm costs on a machine with levels: CPU seconds, by bytes.

Run: uv run python benchmarks/simulating_levels.py [--only allreduce/ring,…] [--sizes 8,65536]

Each has the settings that are planned for it, for an operator that may combine in any order.  Bytes
are those of the root, of a rank's vector, or of all sources together: every 64th rank, or all.  In
processes of their own, at most 60 s of CPU each besides planning.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

from bench_support import listed, number, table_head, table_row

import collwise as cw
from collwise.errors import InvalidArgument
from collwise.model.level_notation import parse

LEVELS = "64x64: 0.3us+0.1ns/B,0.6us+0.1ns/B,0.1us+0.8ns/B; 3us+0.8ns/B,15us+0.8ns/B"
SIZES = (8, 1 << 16, 1 << 22)
LIMIT_S = 60
PLANNING_S = 240
TITLES = ("algorithm", "bytes", "messages", "CPU s", "µs/message", "by", "MiB", "settings")


def cells(sizes: Sequence[int]) -> Iterator[tuple[str, int, int]]:
    """Names of algorithms, bytes, and the distance of sources (0: there are none)."""
    for name, algorithm in cw.ALGORITHMS.items():
        for nbytes in sizes:
            for every in (64, 1) if algorithm.kind.has_sources else (0,):
                yield name, nbytes, every


def simulate(levels: str, name: str, nbytes: int, every: int) -> None:
    """Plan, then print what simulating costs, as JSON."""
    machine, algorithm = parse(levels), cw.ALGORITHMS[name]
    asked: dict[str, Any] = {"ranks": machine.placement.ranks, "machine": machine}
    if every:
        asked["sources"] = list(range(0, asked["ranks"], every))
        nbytes = max(nbytes // len(asked["sources"]), 1)
    if algorithm.kind.combines:
        asked |= {"op": "max", "dtype": "int64"}
        unit = algorithm.kind.unit(asked["ranks"], 8)
        nbytes = -(-nbytes // unit) * unit
    try:
        plan = cw.plan(algorithm.collective, algorithm=name, nbytes=nbytes, **asked)
    except InvalidArgument as refusal:
        print(json.dumps({"refused": refusal.seen}))
        return
    limit = int(time.process_time()) + LIMIT_S + 1
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    print(
        json.dumps({"settings": ", ".join(f"{k}={v}" for k, v in plan.settings.items())}),
        flush=True,
    )
    begin = time.process_time()
    trace = cw.simulate(plan.schedule, machine)
    assert trace.completion
    cpu_s = time.process_time() - begin
    messages = int(trace.sizes[1].sum())
    by = "arrays" if plan.schedule.program.makes_rows() else "lists"
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"cpu_s": cpu_s, "by": by, "messages": messages, "mib": memory}))


def run(*arguments: object) -> dict[str, Any]:
    """What a process of its own has printed until it ended."""
    command = [sys.executable, __file__, "simulate", *map(str, arguments)]
    try:
        ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=PLANNING_S)
        text = ran.stdout
    except subprocess.TimeoutExpired as expired:
        text = (expired.stdout or b"").decode()
    result: dict[str, Any] = {}
    for line in text.splitlines():
        result |= json.loads(line)
    return result


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--levels", default=LEVELS)
    parser.add_argument("--only", type=listed(str, cw.ALGORITHMS), default=list(cw.ALGORITHMS))
    parser.add_argument("--sizes", type=listed(number(int, 1)), default=SIZES)
    options = parser.parse_args()
    print(table_head(TITLES))
    for name, nbytes, every in cells(options.sizes):
        if name not in options.only:
            continue
        row = run(options.levels, name, nbytes, every)
        what = f"{name}" + f" from every {every}" * (every > 1) + " from all" * (every == 1)
        cost = ["", row.get("refused", f"> {LIMIT_S}"), "", "", ""]
        if "cpu_s" in row:
            messages, cpu_s = row["messages"], row["cpu_s"]
            each = f"{1e6 * cpu_s / max(messages, 1):.1f}"
            cost = [f"{messages:,}", f"{cpu_s:.2f}", each, row["by"], f"{row['mib']:.0f}"]
        settings = row.get("settings", "").replace("|", "and")
        print(table_row((what, f"{nbytes:,}", *cost, settings)), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["simulate"]:
        simulate(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
    else:
        main()
