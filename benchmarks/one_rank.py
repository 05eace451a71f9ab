"""What one rank's schedule costs among very many ranks: every registered algorithm, nothing cached.

Run: uv run python benchmarks/one_rank.py [--ranks 1048576] [--limit-s 20] [--only reduce/]

The slowest of a few ranks, with all caches empty (medians of seven runs).  The problem is given:
sources and placements are as long as there are ranks.  The aim: at most 1 ms for lists of up to 64
operations, at most 10 µs for each operation of longer ones; further blocks of a message count as
operations.
"""

import argparse
import gc
import os
import signal
import struct
import time
from dataclasses import replace
from fractions import Fraction
from functools import _lru_cache_wrapper
from typing import Any

from bench_support import number, table_head, table_row

import collwise as cw
from collwise.errors import InvalidArgument
from collwise.model.placement import Placement

FEW, AIM_S, AIM_EACH_S = 64, 1e-3, 10e-6
SOURCES, NODE, RUNS = 16, 32, 7


def settings_of(algorithm: cw.Algorithm, ranks: int) -> dict[str, Any]:
    """A value for each of an algorithm's parameters."""
    dimension = ranks.bit_length() - 1
    radices = [1 << min(5, dimension - done) for done in range(0, dimension, 5)]
    values = {
        "lam": Fraction(9, 5),
        "alpha": Fraction(3, 5),
        "segment": 1024,
        "latency": 3,
        "pieces": 4,
        "k": 3,
        "radix": 4,
        "costs": "2,5",
        "stages": " ".join(f"{k}{'d' * (place % 2)}" for place, k in enumerate(radices)),
        "strategy": [place % 2 for place in range(dimension)],
        "across": "binomial" if algorithm.collective == "broadcast" else "recursive_doubling",
        "gather": "bruck",
        "exchange": "bruck",
        "algorithm": {
            "reduce_scatter_block": "recursive_doubling",
            "allgatherv": "chain_segmented(segment=1024)",
        }.get(algorithm.collective),
    }
    return {name: values.get(name, "binomial") for name in algorithm.parameters}


def problem_of(algorithm: cw.Algorithm, ranks: int, sources: int, nbytes: int) -> Any:
    """A problem for it: eight bytes for each rank, where vectors are cut into parts of ranks."""
    more: dict[str, Any] = {}
    whole = not algorithm.segmented or "segment" in algorithm.parameters
    root = 5 % ranks if algorithm.kind.rooted else 0
    if algorithm.kind.has_sources:
        more["sources"] = range(0, ranks, max(ranks // sources, 1))
    else:
        unit = algorithm.kind.unit(ranks, 8)
        nbytes, more["itemsize"] = max(nbytes if whole else 8 * ranks, unit), 8
    if algorithm.levels:
        more["placement"] = Placement.of([rank // NODE for rank in range(ranks)])
    return algorithm.problem(ranks, nbytes, root, **more)


def measure(algorithm: cw.Algorithm, problem: Any, rank: int, limit_s: float) -> Any:
    """CPU seconds (median), operations and blocks of a rank's list; the limit if it takes longer.

    In a fork, which ends at the limit; −1 operations if it is refused.  Caches are emptied before
    each run.
    """
    reads, writes = os.pipe()
    if not (child := os.fork()):
        signal.setitimer(signal.ITIMER_PROF, limit_s)
        settings = settings_of(algorithm, problem.ranks)
        caches = [c for c in gc.get_objects() if isinstance(c, _lru_cache_wrapper)]
        runs: list[float] = []
        while len(runs) < RUNS and (len(runs) < 3 or sum(runs) < limit_s / RUNS):
            for one in caches:
                one.cache_clear()
            fresh = replace(problem)
            begin = time.thread_time()
            try:
                operations = algorithm.solve(fresh, settings).rank(rank)
            except InvalidArgument:
                os.write(writes, struct.pack("dqq", 0, -1, 0))
                os._exit(0)
            runs.append(time.thread_time() - begin)
            if runs[0] > 1:
                break
        os.write(
            writes,
            struct.pack(
                "dqq",
                sorted(runs)[len(runs) // 2],
                len(operations),
                sum(max(len(op.blocks), 1) for op in operations),
            ),
        )
        os._exit(0)
    os.close(writes)
    with os.fdopen(reads, "rb") as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return struct.unpack("dqq", said) if said else (limit_s, 0, 0)


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=number(int, 2), default=1 << 20)
    parser.add_argument("--limit-s", type=number(float), default=20)
    parser.add_argument("--sources", type=number(int), default=SOURCES)
    parser.add_argument("--nbytes", type=number(int, 8), default=4096)
    parser.add_argument("--only", default="", help="those whose names begin so")
    options = parser.parse_args()
    p = options.ranks
    print(table_head(("algorithm", "rank", "operations", "blocks", "ms", "µs for each", "")))
    for algorithm in cw.ALGORITHMS.values():
        if not algorithm.name.startswith(tuple(options.only.split(","))):
            continue
        sources = min(options.sources, p)
        problem = problem_of(algorithm, p, sources, options.nbytes // 8 * 8)
        rows = []
        for rank in sorted({problem.root, problem.root + 1, p // 2, p * 3 // 4 - 1, p - 1}):
            took_s, count, blocks = measure(algorithm, problem, rank % p, options.limit_s)
            if count < 0:
                rows.append((0.0, *("refused",) * 5))
                break
            aim_s = AIM_S if blocks <= FEW else AIM_EACH_S * blocks
            each = f"{took_s / max(blocks, 1) * 1e6:.1f}"
            said = f"{rank % p:,}", f"{count:,}", f"{blocks:,}", f"{took_s * 1e3:.2f}", each
            rows.append((took_s / aim_s, *said))
            if not count and took_s >= options.limit_s:
                break
        share, *cells = max(rows)
        print(table_row((algorithm.name, *cells, "missed" * (share > 1))), flush=True)


if __name__ == "__main__":
    main()
