"""What benchmarks share: timing in fresh processes, tables in Markdown, dated result files."""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from math import inf
from pathlib import Path
from typing import Any, TypeVar

import collwise as cw

N = TypeVar("N", int, float)
T = TypeVar("T")
RESULTS = Path(__file__).resolve().parent / "results"


MPIS = ["mpich", "openmpi"]
QUIET_LOAD, PATIENCE_S = 1.0, 120.0
"""What runs in a lab waits for this load average, but no longer than this."""


def today() -> str:
    """The date in UTC, such as 2026-11-21."""
    return datetime.now(UTC).date().isoformat()


def number(kind: Callable[[str], N], least: float = 1) -> Callable[[str], N]:
    """For argparse: a finite number of a kind, not below the least."""

    def read(text: str) -> N:
        value = kind(text)
        if not least <= value < inf:
            raise argparse.ArgumentTypeError(f"{text} is no number of at least {least}")
        return value

    return read


def listed(read: Callable[[str], T], among: Iterable[T] | None = None) -> Callable[[str], list[T]]:
    """For argparse: values with commas between them.   among: all that there are."""

    def read_all(text: str) -> list[T]:
        values = [read(word) for word in text.split(",")]
        if among is not None and (odd := [value for value in values if value not in among]):
            raise argparse.ArgumentTypeError(
                f"no {odd[0]!r}; there are {', '.join(map(str, among))}"
            )
        return values

    return read_all


def run_fresh(program: str, *arguments: object, runs: int = 3) -> list[float]:
    """Run a Python file in fresh processes, so that nothing is cached.

    program: a path; it prints numbers, seconds first.   arguments: the program's, as text.
    runs: how many, an odd number.
    Returns the numbers of the run with the median seconds.
    """
    command = [sys.executable, program, *map(str, arguments)]
    outputs = []
    for _ in range(runs):
        ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        outputs.append([float(number) for number in ran.stdout.split()])
    return sorted(outputs)[runs // 2]


def settings_of(algorithm: cw.Algorithm) -> dict[str, Any]:
    """A value for each of an algorithm's parameters."""
    values = {"lam": Fraction(9, 5), "alpha": Fraction(3, 5), "k": 3, "segment": 256, "latency": 2}
    return {name: values[name] for name in algorithm.parameters}


def table_head(titles: Sequence[str]) -> str:
    """The first two lines of a table."""
    return f"{table_row(titles)}\n|{'---|' * len(titles)}"


def table_row(cells: Iterable[object]) -> str:
    """One line of a table."""
    return f"| {' | '.join(map(str, cells))} |"


def misprediction(predicted: float, measured: float) -> float:
    """By which factor a prediction is off, >= 1: the same for half of what it takes and for twice.

    Both positive.
    """
    return max(predicted / measured, measured / predicted)


def wait_until_quiet(patience_s: float) -> None:
    """Wait, for so long at most, until nothing else runs."""
    deadline = time.monotonic() + patience_s
    while os.getloadavg()[0] > QUIET_LOAD and time.monotonic() < deadline:
        time.sleep(5)
