"""Parts of a mesh of ranks: its rows, its columns, its halves, and the snake through it.

Halves are grids; the others are sequences of ranks, computed on demand: the mesh itself is not
built.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, overload

from collwise.model.topology import snake_position, snake_rank


class Grid(NamedTuple):
    """Rows [top, bottom) and columns [left, right) of a mesh that is `width` columns wide."""

    top: int
    bottom: int
    left: int
    right: int
    width: int

    @staticmethod
    def of(shape: tuple[int, int]) -> "Grid":
        """The grid that is a whole mesh of (rows, columns)."""
        return Grid(0, shape[0], 0, shape[1], shape[1])

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        return self.bottom - self.top, self.right - self.left

    @property
    def size(self) -> int:
        """Number of ranks in the grid."""
        rows, columns = self.shape
        return rows * columns

    def rank(self, inner: int) -> int:
        """The rank with the index `inner` in the grid, where ranks are counted row by row."""
        row, column = divmod(inner, self.right - self.left)
        return (self.top + row) * self.width + self.left + column

    def inner(self, rank: int) -> int:
        """The index of a rank in the grid, counted row by row."""
        row, column = divmod(rank, self.width)
        return (row - self.top) * (self.right - self.left) + column - self.left

    def has(self, rank: int) -> bool:
        """Whether a rank lies in the grid."""
        row, column = divmod(rank, self.width)
        return self.top <= row < self.bottom and self.left <= column < self.right

    def row(self, rank: int) -> range:
        """The grid's ranks in the row that contains `rank`, from left to right."""
        start = rank // self.width * self.width
        return range(start + self.left, start + self.right)

    def column(self, rank: int) -> range:
        """The grid's ranks in the column that contains `rank`, from top to bottom."""
        start = rank % self.width
        return range(self.top * self.width + start, self.bottom * self.width + start, self.width)

    def rows(self) -> Iterator[range]:
        """The ranks of every row, the top row first."""
        return map(self.row, self.column(self.rank(0)))

    def columns(self) -> Iterator[range]:
        """The ranks of every column, the leftmost column first."""
        return map(self.column, self.row(self.rank(0)))

    def halves(self) -> "tuple[Grid, Grid]":
        """Two halves, cut across the longer side; the first has the extra row or column, if any."""
        rows, columns = self.shape
        if rows >= columns:
            middle = self.top + (rows + 1) // 2
            return self._replace(bottom=middle), self._replace(top=middle)
        middle = self.left + (columns + 1) // 2
        return self._replace(right=middle), self._replace(left=middle)


@dataclass(frozen=True)
class Snake(Sequence[int]):
    """All ranks of a grid, the first row left to right, the second right to left, and so on."""

    grid: Grid

    def __len__(self) -> int:
        return self.grid.size

    @overload
    def __getitem__(self, position: int) -> int: ...
    @overload
    def __getitem__(self, position: slice) -> list[int]: ...
    def __getitem__(self, position: int | slice) -> int | list[int]:
        if isinstance(position, slice):
            return [self[at] for at in range(*position.indices(len(self)))]
        if not 0 <= position < len(self):
            raise IndexError(position)
        return self.grid.rank(snake_rank(position, self.grid.shape[1]))

    def index(self, rank: int, *_: int) -> int:
        """The position of a rank in the snake; raises ValueError if the grid does not have it."""
        if not self.grid.has(rank):
            raise ValueError(f"rank {rank} is not in {self.grid}")
        return snake_position(self.grid.inner(rank), self.grid.shape[1])
