"""Ranks as a mesh: rows, columns, the snake, halves.  Against lists that are written out."""

from itertools import product

import pytest

from collwise.model.topology import snake
from collwise.schedule.grids import Grid, Snake

SHAPES = list(product((1, 2, 3, 5, 8), repeat=2))


def written(grid: Grid) -> list[list[int]]:
    """Its rows as lists."""
    return [
        [row * grid.width + column for column in range(grid.left, grid.right)]
        for row in range(grid.top, grid.bottom)
    ]


def parts(grid: Grid) -> list[Grid]:
    """The grid, its halves, their halves, and so on."""
    if grid.size == 1:
        return [grid]
    one, other = grid.halves()
    return [grid, *parts(one), *parts(other)]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_grid_and_all_its_parts(shape: tuple[int, int]) -> None:
    whole = Grid.of(shape)
    assert whole.shape == shape
    for grid in parts(whole):
        rows = written(grid)
        ranks = [rank for row in rows for rank in row]
        assert grid.size == len(ranks)
        assert [grid.rank(i) for i in range(grid.size)] == ranks
        assert [grid.inner(rank) for rank in ranks] == list(range(grid.size))
        assert [rank for rank in range(whole.size) if grid.has(rank)] == ranks
        assert [list(row) for row in grid.rows()] == rows
        assert [list(column) for column in grid.columns()] == [
            list(column) for column in zip(*rows, strict=True)
        ]
        for row in rows:
            assert all(list(grid.row(rank)) == row for rank in row)
        for column in grid.columns():
            assert all(grid.column(rank) == column for rank in column)


@pytest.mark.parametrize("shape", SHAPES)
def test_halves(shape: tuple[int, int]) -> None:
    """Across the longer side, rows if both are as long; the first has the odd line more."""
    whole = Grid.of(shape)
    if whole.size == 1:
        return
    one, other = whole.halves()
    assert sorted(rank for half in (one, other) for row in written(half) for rank in row) == list(
        range(whole.size)
    )
    longer = 0 if shape[0] >= shape[1] else 1
    assert one.shape[longer] - other.shape[longer] == shape[longer] % 2
    assert one.shape[1 - longer] == other.shape[1 - longer] == shape[1 - longer]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_snake(shape: tuple[int, int]) -> None:
    assert tuple(Snake(Grid.of(shape))) == snake(shape)
    for grid in parts(Grid.of(shape)):
        line = Snake(grid)
        told = [r for i, row in enumerate(written(grid)) for r in (row[::-1] if i % 2 else row)]
        assert list(line) == told
        assert len(line) == len(told)
        assert [line.index(rank) for rank in told] == list(range(len(told)))
        assert line[1:] == told[1:]
        assert line[::-2] == told[::-2]


def test_what_is_not_there() -> None:
    line = Snake(Grid.of((4, 4)).halves()[1])
    for position in (-1, 8):
        with pytest.raises(IndexError):
            line[position]
    with pytest.raises(ValueError, match="rank 3 is not in"):
        line.index(3)
    assert 3 not in line
    assert 12 in line
