"""What it costs to switch the library's algorithm for one call, by the compiled engine.

One rank, where an allreduce takes little else; two tables of calls on the same communicator take
turns, one served by the library's default and one by an algorithm of its own.

    python benchmarks/switching.py [--rounds 200]
"""

import argparse
import random
import time
from typing import Any

import numpy as np
from bench_support import number
from mpi4py import MPI

from collwise.measure.statistics import median_interval, ratio_interval
from collwise.mpi.engine.loading import COMPILED
from collwise.mpi.library.own_algorithms import catalogue
from collwise.mpi.library.switching import OwnCalls, Switched
from collwise.mpi.runtime.world import library_line

CALLS = 2000
"""In a row, between two looks at the clock."""


def served(program: Any) -> Any:
    """An Allreduce that the engine serves as `program` says."""
    assert COMPILED is not None, "this is about the compiled engine"

    def slow(_: str, key: bytes | None, *__: Any) -> None:
        calls.remember(key, program, ())

    comm = MPI.COMM_SELF
    calls: Any = COMPILED.Calls(0, ["Allreduce"], comm, 0, 1, MPI.SUM, slow, print)
    return calls.allreduce


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=number(int), default=200)
    rounds = parser.parse_args().rounds
    name = next(iter(catalogue("Allreduce", "blocking").algorithms))
    own = OwnCalls(MPI.COMM_SELF).find("Allreduce", "blocking", name, {}, local=False)
    assert isinstance(own, Switched), own
    competitors = {"the library's default": served(None), f"library:{name}": served(own.in_c)}
    sent, received = np.ones(1), np.zeros(1)
    samples: dict[str, list[float]] = {label: [] for label in competitors}
    for turn in range(rounds):
        labels = list(competitors)
        random.Random(turn).shuffle(labels)
        for label in labels:
            call = competitors[label]
            call(sent, received)
            began_s = time.perf_counter()
            for _ in range(CALLS):
                call(sent, received)
            samples[label].append((time.perf_counter() - began_s) / CALLS)
    print(
        f"{library_line()}, an Allreduce of 8 bytes on one rank, {rounds} rounds of {CALLS} calls"
    )
    for label, times_s in samples.items():
        middle, low, high = (1e6 * value for value in median_interval(times_s))
        print(f"{label:<32} {middle:.3f} µs ({low:.3f} … {high:.3f})")
    default, other = samples.values()
    middle, low, high = ratio_interval(other, default)
    print(f"ratio {middle:.2f} ({low:.2f} … {high:.2f})")


if __name__ == "__main__":
    main()
