"""Runs on a Paragon's mesh, and the numbers by which they are judged.

Every transfer waits for ports and links (`timing.wormhole`), on the machine of the preset
"paragon", whose notes say which of its numbers are estimates.  What the paper judges by eye is
judged here by two numbers: CLEARLY for "clearly, heavily, considerably", ABOUT for "the same".
"""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, TypeAlias

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
def time_from(
    name: str, shape: Shape, sources: tuple[int, ...], nbytes: int | tuple[int, ...]
) -> float:
    """Milliseconds of an algorithm on a Paragon's mesh, for sources of so many bytes each."""
    algorithm = ALGORITHMS[f"s_to_p/{name}"]
    schedule = algorithm.schedule(shape[0] * shape[1], nbytes, sources=sources, shape=shape)
    return 1e3 * ideal(schedule, PRESETS["paragon"].machine, Mesh(*shape)).completion_s


def time_on(name: str, shape: Shape, distribution: str, count: int, nbytes: int) -> float:
    """The same for so many sources by one of the paper's distributions."""
    return time_from(name, shape, distribute(distribution, shape, count), nbytes)


def times_on(
    names: Iterable[str], shape: Shape, distribution: str, count: int, nbytes: int
) -> dict[str, float]:
    """The same for several algorithms, by name."""
    return {name: time_on(name, shape, distribution, count, nbytes) for name in names}


def listed(numbers: Mapping[Any, float], name: str = "{}", digits: int = 1) -> str:
    """Numbers with their names in one line.  name: how a name is written, as in "s = {}"."""
    return ", ".join(f"{name.format(key)} {number:.{digits}f}" for key, number in numbers.items())
