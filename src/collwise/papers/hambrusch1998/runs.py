"""Simulated runs on a Paragon's mesh and a T3D: curves for judging claims and drawing figures.

A transfer waits until its ports and links are free.  The machines are the presets "paragon" and
"t3d", whose notes say which of their numbers are estimates.  Times are in milliseconds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache, lru_cache
from itertools import chain
from random import Random
from typing import TypeAlias

import collwise as cw
from collwise.model.exact import seconds
from collwise.schedule.operations import Send
from collwise.timing.trace import completion

Shape: TypeAlias = tuple[int, int]

BRANCHING = ("br_lin", "br_xy_source", "br_xy_dim")
BRUTE = ("two_step", "xor")
FIVE = (*BRANCHING, *BRUTE)
IDEAL = ("row", "column", "equal", "right_diagonal")
HARD = ("square", "cross")
OTHERS = ("equal", "cross", "square", "band")
"""The distributions from which data are moved to better ranks first (repositioning)."""
PARAGON = cw.presets["paragon"].machine
COUNTS = (1, 2, 4, 8, 16, 30, 50, 75, 100)
LENGTHS = (32, 128, 512, 1024, 4096, 8192, 16384)
SIDES = (2, 3, 4, 6, 8, 10, 12, 16)
MESHES = ((4, 30), (5, 24), (6, 20), (8, 15), (10, 12))
MOVED = (16, 32, 48, 64, 75, 96, 112, 144, 192)
MOVED_LENGTHS = (512, 1024, 2048, 4096, 6144, 8192, 16384)


@cache
def time_from(
    name: str,
    shape: Shape,
    sources: tuple[int, ...],
    nbytes: int | tuple[int, ...],
    machine: cw.Machine = PARAGON,
    network: cw.topology.Topology | None = None,
) -> float:
    """Milliseconds that an allgatherv algorithm takes from these sources.

    nbytes: bytes of every source's message, or a tuple with the bytes of each source's message.
    network: the topology; None for a mesh of `shape`, which the algorithms always assume.
    """
    time = completion(
        _schedule(name, shape, sources, nbytes), machine, network or cw.topology.Mesh(*shape)
    )
    assert time is not None  # no limit is given, at which simulation would end with None
    return 1e3 * seconds(time)


@lru_cache(maxsize=64)  # often timed on several machines in a row
def _schedule(
    name: str, shape: Shape, sources: tuple[int, ...], nbytes: int | tuple[int, ...]
) -> cw.Schedule:
    algorithm = cw.ALGORITHMS[f"allgatherv/{name}"]
    return algorithm.schedule(shape[0] * shape[1], nbytes, sources=sources, shape=shape)


def busiest(name: str, shape: Shape, distribution: str, count: int) -> tuple[int, int]:
    """How many contributions the busiest rank sends, and how many are in the largest message."""
    sources = cw.sources.distribute(distribution, shape, count)
    sent = [
        [len(op.blocks) for op in operations if isinstance(op, Send)]
        for operations in _schedule(name, shape, sources, 1).lists
    ]
    return max(map(sum, sent)), max(chain.from_iterable(sent))


def time_on(
    name: str,
    shape: Shape,
    distribution: str,
    count: int,
    nbytes: int,
    machine: cw.Machine = PARAGON,
) -> float:
    """Milliseconds of an algorithm from `count` sources in a distribution of `model.sources`."""
    sources = cw.sources.distribute(distribution, shape, count)
    return time_from(name, shape, sources, nbytes, machine)


Curves: TypeAlias = dict[str, dict[int, float]]
"""Curves by name: milliseconds (or percent) by place on the x axis."""


@cache
def by_sources() -> Curves:
    """Fig 2: times by algorithm and number of sources; equal distribution, 10 × 10, 4 KB each."""
    return {a: {s: time_on(a, (10, 10), "equal", s, 4096) for s in COUNTS} for a in FIVE}


@cache
def by_length(machine: cw.Machine = PARAGON) -> Curves:
    """Fig 3: times by algorithm and bytes of a message; 30 sources on right diagonals, 10 × 10."""
    sources = cw.sources.distribute("right_diagonal", (10, 10), 30)
    return {a: {n: time_from(a, (10, 10), sources, n, machine) for n in LENGTHS} for a in FIVE}


def without_copies() -> cw.Machine:
    """The Paragon, if neither its system nor its programs copied messages."""
    return replace(PARAGON, copy=Fraction(0))


@cache
def by_ranks() -> Curves:
    """Fig 4: times by algorithm and number p of ranks; √p sources on right diagonals, 4 KB each."""
    return {a: {r * r: time_on(a, (r, r), "right_diagonal", r, 4096) for r in SIDES} for a in FIVE}


@cache
def by_distribution() -> dict[str, dict[str, float]]:
    """Fig 5: times by distribution and BRANCHING algorithm; 30 sources, 10 × 10, 4 KB each."""
    return {d: {a: time_on(a, (10, 10), d, 30, 4096) for a in BRANCHING} for d in (*IDEAL, *HARD)}


@cache
def of_80_kb() -> Curves:
    """Fig 6: times by BRANCHING algorithm and number of sources (right diagonals); 80 KB in all."""
    counts = (5, 10, 20, 40, 80)
    return {
        a: {s: time_on(a, (10, 10), "right_diagonal", s, 81920 // s) for s in counts}
        for a in BRANCHING
    }


@cache
def by_shape() -> dict[int, dict[str, float]]:
    """Fig 7: times of br_lin by number of sources (placed equally) and mesh; 120 ranks, 4 KB."""
    return {
        s: {f"{r}×{c}": time_on("br_lin", (r, c), "equal", s, 4096) for r, c in MESHES}
        for s in (5, 15, 30, 60)
    }


def saved_from(
    shape: Shape, sources: Sequence[int], nbytes: int, machine: cw.Machine = PARAGON
) -> tuple[float, float]:
    """The time that br_xy_source saves if data are first moved to ideal ranks: (ms, percent)."""
    plain, moved = (
        time_from(a, shape, tuple(sources), nbytes, machine)
        for a in ("br_xy_source", "repos_xy_source")
    )
    return plain - moved, 100 * (1 - moved / plain)


def gain(distribution: str, s: int, nbytes: int = 6144) -> float:
    """Percent of time that repositioning saves on 16 × 16 with s sources of a distribution."""
    return saved_from((16, 16), cw.sources.distribute(distribution, (16, 16), s), nbytes)[1]


@cache
def gains_by_sources() -> Curves:
    """Fig 8: 16 × 16, 6 KB: percent saved by repositioning, over the number of sources."""
    return {d: {s: gain(d, s) for s in MOVED} for d in OTHERS}


@cache
def gains_by_length() -> Curves:
    """Fig 9: 16 × 16, 75 sources: percent saved by repositioning, over the length."""
    return {d: {n: gain(d, 75, n) for n in MOVED_LENGTHS} for d in OTHERS}


@cache
def of_different_lengths() -> Mapping[tuple[str, str], tuple[float, float]]:
    """By (algorithm, distribution), milliseconds with messages of equal and of random lengths."""
    shape, random = (10, 10), Random(1998)
    different = tuple(random.randint(1, 8191) for _ in range(30))
    sizes = (sum(different) // len(different), different)
    return {
        (a, d): (
            time_from(a, shape, sources := cw.sources.distribute(d, shape, 30), sizes[0]),
            time_from(a, shape, sources, sizes[1]),
        )
        for a in FIVE
        for d in (*IDEAL, *HARD)
    }


@cache
def on_the_t3d() -> dict[str, dict[str, float]]:
    """Times by distribution and algorithm on a T3D of 4 × 4 × 8, seen as 8 × 16; s = 32, 4 KB."""
    preset, shape = cw.presets["t3d"], (8, 16)
    sources = {d: cw.sources.distribute(d, shape, 32) for d in (*IDEAL, *HARD)}
    return {
        d: {
            a: time_from(a, shape, ranks, 4096, preset.machine, preset.topology(4, 4, 8))
            for a in BRANCHING
        }
        for d, ranks in sources.items()
    }
