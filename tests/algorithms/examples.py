"""What many tests need of algorithms: a value for every parameter, machines of every kind."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from random import Random
from typing import Any

from collwise.algorithms import ALGORITHMS, Algorithm
from collwise.algorithms.exchanges import cube_dimension
from collwise.model.machine import Machine
from collwise.model.measured_machine import measured
from collwise.schedule.program import Schedule, Written
from collwise.schedule.rows import Rows

LATENCIES = [Fraction(lam) for lam in ("1", "3/2", "9/5", "2", "5/2", "4", "10")]
MEASURED = measured(
    [
        [(8, 1.25e-6, 2.5), (256, 1.5e-6, "2.2"), (1024, 4e-6, 1.3)],
        [(2048, 7e-6, 3), (4096, 1.1e-5, "9/4")],
    ]
)
COMBINES = MEASURED.with_combining([(8, 1e-7), (1024, 9e-7), (4096, 5e-6)])
"""The same, where combining takes time."""
HOCKNEY = Machine.hockney(alpha_s="1e-6", beta_s="1/3000000000")
VAN_DE_GEIJN = Machine.hockney(alpha_s="5.25e-4", beta_s="5e-7", gamma_s="8.75e-8")
"""That of G-c5, per byte: combining takes time."""
MEMORY = Machine.memory(
    measured([[(8, 2, 3)], [(64, 9, 2), (512, 40, "3/2")]]).with_combining([(8, 1), (512, 30)]),
    read=[(8, 1), (512, 50)],
)
"""Ranks that share memory."""
MACHINES = [
    *(Machine.postal(t0_s=Fraction(1, 1000), lam=lam) for lam in LATENCIES),
    HOCKNEY,
    VAN_DE_GEIJN,
    MEASURED,
    COMBINES,
]


def strategy_for(ranks: int, bits: int = 0b0110100110010110) -> tuple[int, ...]:
    """A hybrid's choices for so many ranks: the lowest bits of a number."""
    return tuple(bits >> j & 1 for j in range(cube_dimension(ranks)))


def stages_for(ranks: int, radix: int = 3) -> str:
    """Groups of `radix` while there are so many ranks, a smaller one last; every other divides."""
    radices: list[int] = []
    while ranks > 1 or not radices:
        radices.append(max(min(radix, ranks), 2))
        ranks //= radix
    return " ".join(f"{k}{'d' * (place % 2)}" for place, k in enumerate(radices, radix))


def settings_of(algorithm: Algorithm, ranks: int, /, **wanted: Any) -> dict[str, Any]:
    """A value for every parameter of an algorithm: those that are wanted, and some."""
    values = {
        "segment": 100,
        "lam": 2,
        "alpha": "3/5",
        "k": 3,
        "latency": 3,
        "stages": stages_for(ranks),
        "radix": 3,
        "strategy": strategy_for(ranks),
        "algorithms": "binomial",
        "trees": "chain",
        "reduces": "binomial",
        "across": "binomial" if algorithm.collective == "broadcast" else "recursive_doubling",
        "gather": "bruck",
        "broadcasts": "binomial",
        "exchange": "bruck",
        "costs": "2,5",
        "pieces": 3,
        "latencies": "2 5",
        "inside": "binomial",
        "algorithm": {
            "allgatherv": "chain_segmented(segment=100)",
            "reduce_scatter_block": "postal_reduce_broadcast(lam=2)",
        }.get(algorithm.collective),
    }
    values.update(wanted)
    return {name: values[name] for name in algorithm.parameters}


def fitting(algorithm: Algorithm, p: int, nbytes: int, itemsize: int = 1) -> int:
    """So many bytes, or the next more that the collective takes on p ranks."""
    unit = algorithm.kind.unit(p, itemsize)
    return -(-nbytes // unit) * unit


def roots(algorithm: Algorithm, p: int) -> list[int]:
    """One root of every kind: the first, its neighbour, one in the middle, the last."""
    if not algorithm.kind.rooted:
        return [0]
    return sorted({0, min(1, p - 1), p // 2, p - 1})


def root_of(algorithm: Algorithm, root: int) -> int:
    """The root, or 0 where there is none."""
    return 0 if not algorithm.kind.rooted else root


def sources_for(algorithm: Algorithm, p: int) -> dict[str, Any]:
    """What else to say of a problem on p ranks: where any may have data, some that have."""
    if not algorithm.kind.has_sources:
        return {}
    random = Random(p)
    return {"sources": random.sample(range(p), random.randint(1, p))}


def written_out(schedule: Schedule) -> Schedule:
    """The slow twin, in which nothing but every rank's list says what happens."""
    lists = map(tuple, schedule.program.every(schedule.ranks))
    return replace(schedule, program=Written(tuple(lists)))


def told(rows: Rows) -> list[tuple[Any, ...]]:
    """All rows, sorted; each with those that it waits for.

    A combine waits for all that its rank receives before it, whatever it reads.
    """
    columns = rows.source, rows.target, rows.place_at_source, rows.place_at_target, rows.nbytes
    each = list(zip(*(column.tolist() for column in columns), strict=True))
    begins, needs = rows.begins.tolist(), rows.needs.tolist()
    waits = [sorted(each[n] for n in needs[a:b]) for a, b in pairwise(begins)]
    return sorted((*row, *own * (row[1] >= 0)) for row, own in zip(each, waits, strict=True))


def _with_posted_receives(algorithm: Algorithm) -> bool:
    settings, sources = settings_of(algorithm, 4), sources_for(algorithm, 4)
    made = algorithm.schedule(4, fitting(algorithm, 4, 64), **sources, **settings)
    return made.program.needs_posted_receives


WHERE_PORTS_BLOCK = [a for a in ALGORITHMS.values() if not _with_posted_receives(a)]
"""The algorithms that can be simulated on every machine."""
