"""What `collwise bench` races: ranges of collectives, sizes and ranks, or cells of a grid."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from collwise.cli.parameter_types import size_range
from collwise.cli.problem_options import ProblemOptions
from collwise.errors import InvalidArgument

if TYPE_CHECKING:  # the help needs none of them
    from collwise.tuning.grid import Grid, GridCollective
    from collwise.tuning.outcomes import Task

_MEASURING_S = 3.0
"""Seconds to measure where there is no profile."""
NBYTES = 512
"""The default size in bytes."""
ALONE_S, EACH_S = 5.0, 1.5
"""By default, the most seconds for a race that is alone, and for each of several races."""


@dataclass(frozen=True)
class Ranges:
    """Races of every one of `collectives` with every one of `sizes` in bytes.

    counts: the numbers of ranks to race on; None for all ranks.   measuring_s: seconds to measure
    where there is no profile.   measured_sizes: always None; a grid's cells have sizes to measure.
    """

    collectives: tuple[str, ...]
    sizes: tuple[int, ...]
    counts: tuple[int, ...] | None
    measuring_s: float = _MEASURING_S
    measured_sizes: tuple[int, ...] | None = None

    @property
    def races(self) -> int:
        """The number of races."""
        return len(self.collectives) * len(self.sizes) * len(self.counts or [None])

    @property
    def several(self) -> bool:
        """Whether there are several races, which are shown as a table with a row for each race."""
        return self.races > 1

    def budget_s(self, asked: float | None) -> float:
        """The most seconds for each race: `asked`, or the default if that is None."""
        return asked or (ALONE_S if self.races == 1 else EACH_S)

    def only(self, task: object) -> list[str]:
        """The labels of the algorithms to race: none, so --algorithm says which."""
        return []

    def tasks(self, request: ProblemOptions, ranks: int) -> "list[Task]":
        """The races on `ranks` ranks, without duplicates."""
        tasks = [
            request.task(collective, ranks, nbytes, round_up=True)
            for collective in self.collectives
            for nbytes in self.sizes
        ]
        return list(dict.fromkeys(tasks))


@dataclass(frozen=True)
class GridCells:
    """Cells of a grid, by number, for one launch to race; `bench` uses them like `Ranges`.

    first: the record of a first launch, whose winners race once more; None for such a launch.
    """

    path: Path
    numbers: tuple[int, ...]
    first: Path | None = None
    counts: tuple[int, ...] | None = None
    several: bool = True

    @cached_property
    def _grid(self) -> "Grid":
        from collwise.tuning.grid import Grid

        return Grid.load(self.path)

    @cached_property
    def _cells(self) -> "list[tuple[GridCollective, int]]":
        cells = self._grid.cells
        if wrong := [number for number in self.numbers if not 0 <= number < len(cells)]:
            seen, remedy = f"the last one is {len(cells) - 1}", "leave --cells to bench itself"
            raise InvalidArgument(f"cell {wrong[0]} of {self.path}", seen, remedy)
        return [cells[number] for number in self.numbers]

    @property
    def measuring_s(self) -> float:
        """The most seconds for measuring the machine."""
        return self._grid.measuring_s

    @property
    def measured_sizes(self) -> tuple[int, ...]:
        """The message sizes at which to measure, in bytes: the grid's sizes."""
        return self._grid.sizes

    def only(self, task: "Task") -> list[str]:
        """The labels of the algorithms to race; empty for all that may win."""
        from collwise.tuning.grid_results import once_more
        from collwise.tuning.race_records import read_sweep

        return [] if self.first is None else once_more(read_sweep(self.first), task)

    @property
    def collectives(self) -> tuple[str, ...]:
        """The names of the collectives."""
        return tuple(dict.fromkeys(collective.name for collective, _ in self._cells))

    @property
    def races(self) -> int:
        """The number of races."""
        return len(self.numbers)

    def budget_s(self, asked: float | None) -> float:
        """The most seconds for each race: `asked`, or the grid's if that is None."""
        return asked or self._grid.race_s

    def tasks(self, request: object, ranks: int) -> "list[Task]":
        """The races on `ranks` ranks."""
        from collwise.tuning.session import check_raceable

        tasks = [collective.task(ranks, nbytes) for collective, nbytes in self._cells]
        for task in tasks:
            check_raceable(task)
        return tasks


def taken_from(values: dict[str, Any]) -> Ranges | GridCells:
    """Remove from `values` the options that say what to race; returns what they describe."""
    collectives = tuple(dict.fromkeys(name for some in values.pop("collective") for name in some))
    sizes, counts = values.pop("sizes"), values.pop("counts")
    first, last, factor = (values.pop(name) for name in ("first", "last", "factor"))
    if (first, last, factor) != (None, None, None):
        if sizes is not None:
            raise click.UsageError("give --bytes, or -b, -e and -f")
        if last is None and factor is not None:
            raise click.UsageError("-f is the step from the smallest size to -e: give that, too")
        if first is None and last < NBYTES:
            raise click.UsageError(f"-e {last} is below the smallest size, {NBYTES}: give -b, too")
        first = NBYTES if first is None else first
        factor = Fraction(2) if factor is None else factor
        sizes = size_range(first, first if last is None else last, factor)
    grid_path, cells, first = (values.pop(name) for name in ("grid_path", "cells", "first_launch"))
    if grid_path is not None:
        return GridCells(grid_path, cells or (), first)
    if (cells, first) != (None, None):
        raise click.UsageError("--cells are those of a --grid: name its file, too")
    return Ranges(collectives or ("broadcast",), sizes or (NBYTES,), counts)
