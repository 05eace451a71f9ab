"""Runs on a Paragon's mesh, and what they are judged by.

Every transfer waits for ports and links (`timing.wormhole`), on the machine of the preset
"paragon", whose notes say which of its numbers are estimates.  What was judged by eye in the paper
is judged by two numbers here: CLEARLY for "clearly, heavily, considerably", ABOUT for "the same".
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from statistics import linear_regression, mean
from typing import TypeAlias

from collwise.algorithms.registry import ALGORITHMS
from collwise.model.presets import PRESETS
from collwise.model.sources import distribute
from collwise.model.topology import Mesh
from collwise.timing import ideal

Shape: TypeAlias = tuple[int, int]

BRANCHING = ("br_lin", "br_xy_source", "br_xy_dim")
BRUTE = ("two_step", "xor")
IDEAL = ("row", "column", "equal", "right_diagonal")
HARD = ("cross", "square")
CLEARLY, ABOUT = 1.1, 1.05
"""Times as long: clearly longer, and about the same."""


@cache
def time_ms(
    name: str, shape: Shape, sources: tuple[int, ...], nbytes: int | tuple[int, ...]
) -> float:
    """Milliseconds of an algorithm on a Paragon's mesh, for sources of so many bytes each."""
    algorithm = ALGORITHMS[f"s_to_p/{name}"]
    ranks = shape[0] * shape[1]
    schedule = algorithm.schedule(ranks, nbytes, sources=sources, shape=shape)
    return 1e3 * ideal(schedule, PRESETS["paragon"].machine, Mesh(*shape)).completion_s


def on(name: str, shape: Shape, distribution: str, count: int, nbytes: int) -> float:
    """The same for a distribution of sources."""
    return time_ms(name, shape, distribute(distribution, shape, count), nbytes)


def listed(times: Mapping[str, float] | Iterable[tuple[object, float]]) -> str:
    """Names and figures in one line."""
    pairs = times.items() if isinstance(times, Mapping) else times
    return ", ".join(f"{name} {time:.1f}" for name, time in pairs)


def straightness(x: Sequence[float], y: Sequence[float]) -> float:
    """R² of the straight line through points: 1 if they lie on one."""
    line = linear_regression(x, y)
    middle = mean(y)
    off = sum((b - line.intercept - line.slope * a) ** 2 for a, b in zip(x, y, strict=True))
    return 1 - off / sum((b - middle) ** 2 for b in y)
