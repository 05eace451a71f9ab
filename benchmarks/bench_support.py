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
from collwise.system.launcher import start

N = TypeVar("N", int, float)
T = TypeVar("T")
RESULTS = Path(__file__).resolve().parent / "results"


LIMIT_S = 900
"""For ranks that a benchmark starts."""
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


def start_or_be_rank(
    about: str | None, run_rank: Callable[[Path, float], None], *, engines: bool = False
) -> None:
    """Start ranks of this very program, or be one of them and call `run_rank`.

    about: the program's docstring.   run_rank: is given the folder for results and the seconds.
    engines: offer --engine.
    """
    if sys.argv[1:2] == ["rank"]:
        run_rank(Path(sys.argv[2]), float(sys.argv[3]))
        return
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--ranks", type=number(int), default=2)
    parser.add_argument("--budget", type=number(float, 0.1), default=60)
    parser.add_argument("--out", type=Path, default=RESULTS)
    if engines:
        parser.add_argument("--engine", choices=("compiled", "python"), default="compiled")
    options = parser.parse_args()
    command = [sys.executable, sys.argv[0], "rank", str(options.out), str(options.budget)]
    engine = {"COLLWISE_ENGINE": options.engine} if engines else {}
    if code := start(options.ranks, command, {**os.environ, **engine}, LIMIT_S):
        raise SystemExit(f"{options.ranks} ranks ended with {code}")


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
