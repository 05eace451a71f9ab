"""What planning and simulating cost as commands: CPU seconds and memory, imports included.

Run: uv run python benchmarks/planning.py [--json] [--ranks 1048576]

Each in fresh processes, the median of three.  `one_rank.py` measures the schedule of one rank,
`simulating.py` broadcasts by algorithm and machine.
"""

import argparse
import json
import os
import subprocess
import sys
import time

from bench_support import number, table_head, table_row

HOCKNEY = "--alpha 1us --beta 1ns --gamma 0.1ns"
S_TO_P = ((256, 256), (1024, 64), (4096, 4096))
"""Ranks, and how many of them are sources."""
RUNS = 3


def commands(ranks: int) -> list[tuple[str, float | None]]:
    """Command lines, and the CPU seconds that are the aim."""
    fewer = max(ranks >> 4, 2)
    doubling = f"--algorithm recursive_doubling {HOCKNEY}"
    halving = f"--algorithm halving_doubling {HOCKNEY}"
    several = [
        (
            f"plan allgatherv -n {p} --bytes 1k --t0 1us --lam 4 --sources "
            + ("all" if s == p else f"0-{s - 1}"),
            5 if p == s == 4096 else None,
        )
        for p, s in S_TO_P
    ]
    return [
        ("plan broadcast -n 1024 --bytes 64k --preset t3d", 3),
        ("plan allreduce -n 1024 --bytes 64k --preset t3d", 6),
        *several,
        (f"simulate allreduce -n {fewer} --bytes 512 {doubling}", 5),
        (f"simulate allreduce -n {fewer + 1} --bytes 512 {doubling}", None),
        (f"simulate allreduce -n {fewer // 2 + 1} --bytes 1M {halving}", None),
        (f"simulate reduce -n {ranks} --bytes 512 --algorithm binomial {HOCKNEY}", 2),
    ]


def run(command: str) -> tuple[float, float, float]:
    """CPU seconds, seconds and peak MiB of a command: the run with the median CPU seconds."""
    line = [sys.executable, "-m", "collwise", *command.split()]
    rows = []
    for _ in range(RUNS):
        begin = time.perf_counter()
        process = subprocess.Popen(line, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert not process.returncode, command
        took_s = time.perf_counter() - begin
        rows.append((usage.ru_utime + usage.ru_stime, took_s, usage.ru_maxrss / 1024))
    return sorted(rows)[RUNS // 2]


def main() -> None:
    """Print a table in Markdown, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--ranks", type=number(int, 2), default=1 << 20)
    options = parser.parse_args()
    rows = []
    if not options.json:
        print(table_head(("collwise …", "CPU s", "aim", "s", "MiB")))
    for command, aim_s in commands(options.ranks):
        cpu_s, took_s, memory = run(command)
        rows.append({"command": command, "cpu_s": cpu_s, "s": took_s, "peak_mib": memory})
        if not options.json:
            cells = f"{cpu_s:.2f}", aim_s or "", f"{took_s:.2f}", f"{memory:.0f}"
            print(table_row((command, *cells)), flush=True)
    if options.json:
        print(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
