"""The two-dimensional mesh with XY routing, as on Intel's Delta and Paragon."""

from dataclasses import dataclass
from functools import cached_property

from collwise.model.topology.base import Topology, checked_sizes

EAST, WEST, SOUTH, NORTH = range(4)


@dataclass(frozen=True)
class Mesh(Topology):
    """rows × columns nodes, numbered row by row; neighbours are linked both ways.

    rows, columns: from 1, with at most 2^31 nodes.   Link 4·node + 0, 1, 2, 3 leads from a node to
    the next column, the previous one, the next row, the previous one; where there is none, the id
    has no link.   XY: a message goes along its row to the target's column, then along that.
    Raises InvalidArgument for a size out of range.
    """

    rows: int
    columns: int
    kind = "mesh"

    def __post_init__(self) -> None:
        names = "rows", "columns"
        sizes = checked_sizes("mesh", names, (self.rows, self.columns))
        for name, size in zip(names, sizes, strict=True):
            object.__setattr__(self, name, size)  # as Python's own integers

    @cached_property
    def size(self) -> int:  # noqa: D102
        return self.rows * self.columns

    @property
    def shape(self) -> tuple[int, int]:  # noqa: D102
        return self.rows, self.columns

    @cached_property
    def links(self) -> int:  # noqa: D102
        return 4 * self.size

    def route(self, source: int, target: int) -> tuple[int, ...]:  # noqa: D102
        self._check(source, target)
        corner = source - source % self.columns + target % self.columns
        along = (
            range(4 * source + EAST, 4 * corner + EAST, 4)
            if source <= corner
            else range(4 * source + WEST, 4 * corner + WEST, -4)
        )
        across = (
            range(4 * corner + SOUTH, 4 * target + SOUTH, 4 * self.columns)
            if corner <= target
            else range(4 * corner + NORTH, 4 * target + NORTH, -4 * self.columns)
        )
        return (*along, *across)

    def ends(self, link: int) -> tuple[int, int]:  # noqa: D102
        self._check_link(link)
        link = int(link)
        node, way = divmod(link, 4)
        row, column = divmod(node, self.columns)
        row += (way == SOUTH) - (way == NORTH)
        column += (way == EAST) - (way == WEST)
        if not (0 <= row < self.rows and 0 <= column < self.columns):
            raise self._no_link(link)
        return node, row * self.columns + column

    def describe(self) -> str:  # noqa: D102
        return f"mesh of {self.rows} × {self.columns}"
