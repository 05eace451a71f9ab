"""Source distributions: exactly as many as asked for, in the paper's patterns."""

from collections import Counter
from itertools import product
from math import ceil, isqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import collwise as cw
from collwise.model.sources import DISTRIBUTIONS, checked, distribute, picture, rows_of

NAMES = tuple(DISTRIBUTIONS)
MESHES = [(r, c) for r, c in product(range(1, 8), repeat=2)] + [(4, 30), (30, 4), (1, 16)]

SHAPES = st.tuples(st.integers(1, 24), st.integers(1, 24))


@st.composite
def cases(draw: st.DrawFn) -> tuple[int, int, int]:
    rows, columns = draw(SHAPES)
    return rows, columns, draw(st.integers(1, rows * columns))


@pytest.mark.parametrize("name", NAMES)
def test_every_number_of_sources_on_every_mesh(name: str) -> None:
    for rows, columns in MESHES:
        for count in range(1, rows * columns + 1):
            ranks = distribute(name, (rows, columns), count)
            assert len(ranks) == count, (rows, columns, count)
            assert list(ranks) == sorted(set(ranks) & set(range(rows * columns)))


@pytest.mark.parametrize("name", NAMES)
def test_the_first_rank_has_data(name: str) -> None:
    """The patterns start at the paper's (1, 1), the left diagonals at its (1, c)."""
    corner = 9 if name == "left_diagonal" else 0
    for count in (1, 7, 30, 99):
        assert corner in distribute(name, (10, 10), count)


# --- the paper's examples ---

PICTURES = """
cross 10 10 30
● ● ● ● ● ● ● ● ● ●
● · · · · ● · · · ·
● · · · · ● · · · ·
● · · · · ● · · · ·
● · · · · ● · · · ·
● ● ● ● ● ● ● · · ·
● · · · · ● · · · ·
● · · · · · · · · ·
● · · · · · · · · ·
● · · · · · · · · ·

right_diagonal 4 6 10
● · ● · ● ·
· ● · ● · ●
· · ● · ● ·
· · · ● · ●

left_diagonal 4 6 10
· ● · ● · ●
● · ● · ● ·
· ● · ● · ·
● · ● · · ·

band 3 8 13
● ● ● ● · ● · ·
· ● ● ● · · ● ·
· · ● ● ● · · ●

square 4 8 7
● ● ● · · · · ·
● ● ● · · · · ·
● · · · · · · ·
· · · · · · · ·
"""


@pytest.mark.parametrize("example", PICTURES.strip().split("\n\n"))
def test_pictures(example: str) -> None:
    asked, shown = example.split("\n", 1)
    name, *numbers = asked.split()
    rows, columns, count = map(int, numbers)
    assert picture((rows, columns), distribute(name, (rows, columns), count)) == shown


def test_rows_and_squares() -> None:
    assert {rank // 10 for rank in distribute("row", (10, 10), 30)} == {0, 3, 6}  # Fig 1
    # why R(20) on 10 × 10 is no ideal one [Hambrusch1998 §3]
    assert distribute("row", (10, 10), 20) == (*range(10), *range(50, 60))
    assert distribute("square", (4, 30), 30) == tuple(
        row * 30 + column for row, width in enumerate((8, 8, 8, 6)) for column in range(width)
    )
    assert distribute("square", (30, 4), 30) == tuple(range(30))


def test_equal_turns_into_row_column_and_diagonal() -> None:
    """§4: for particular r, c and s."""
    assert distribute("equal", (10, 10), 20) == distribute("column", (10, 10), 20)
    assert distribute("equal", (4, 1), 2) == distribute("row", (4, 1), 2)
    assert distribute("equal", (5, 4), 4) == distribute("right_diagonal", (4, 4), 4)


# --- what the definitions say ---


@given(cases())
def test_rows_and_columns(case: tuple[int, int, int]) -> None:
    rows, columns, count = case
    ranks = distribute("row", (rows, columns), count)
    used = Counter(rank // columns for rank in ranks)
    *full, last = (used[row] for row in sorted(used))
    assert len(used) == ceil(count / columns)
    assert set(full) <= {columns}
    assert {rank % columns for rank in ranks if rank // columns == max(used)} == set(range(last))
    assert_evenly_spaced(sorted(used), rows)
    turned = distribute("column", (columns, rows), count)
    assert sorted(rank % rows * columns + rank // rows for rank in turned) == list(ranks)


def assert_evenly_spaced(places: list[int], room: int) -> None:
    """Round the ring of all places, no two gaps differ by more than 1."""
    gaps = [b - a for a, b in zip(places, [*places[1:], places[0] + room], strict=True)]
    assert max(gaps) - min(gaps) <= 1


@given(cases())
def test_equal_is_evenly_spaced(case: tuple[int, int, int]) -> None:
    rows, columns, count = case
    assert_evenly_spaced(list(distribute("equal", (rows, columns), count)), rows * columns)


@given(cases())
def test_diagonals(case: tuple[int, int, int]) -> None:
    rows, columns, count = case
    ranks = distribute("right_diagonal", (rows, columns), count)
    used = Counter((rank % columns - rank // columns) % columns for rank in ranks)
    assert len(used) == ceil(count / rows)
    assert_evenly_spaced(sorted(used), columns)
    assert all(used[start] == rows for start in sorted(used)[:-1])
    per_row = Counter(rank // columns for rank in ranks)
    assert max(per_row.values()) - min(per_row.get(row, 0) for row in range(rows)) <= 1
    mirrored = {rank - rank % columns + columns - 1 - rank % columns for rank in ranks}
    assert set(distribute("left_diagonal", (rows, columns), count)) == mirrored


@given(cases())
def test_bands_are_as_many_and_as_wide_as_the_paper_says(case: tuple[int, int, int]) -> None:
    rows, columns, count = case
    bands = ceil(columns / rows)
    width = ceil(count / (bands * rows))
    ranks = distribute("band", (rows, columns), count)
    starts = {(rank % columns - rank // columns) % columns for rank in ranks}
    firsts = [band * columns // bands for band in range(bands)]
    allowed = {(first + i) % columns for first in firsts for i in range(width)}
    assert len(starts) == ceil(count / rows)
    assert starts <= allowed
    if bands == 1:
        assert starts == set(range(width))


@given(cases())
def test_the_parts_of_a_cross_are_about_equal(case: tuple[int, int, int]) -> None:
    """It is R(a) with nearly all of C(a): at most one rank of the column part is left out."""
    rows, columns, count = case
    ranks = set(distribute("cross", (rows, columns), count))
    fits = [
        len(both) - count
        for half in range((count + 1) // 2, count + 1)
        if ranks
        <= (
            both := set(distribute("row", (rows, columns), half))
            | set(distribute("column", (rows, columns), half))
        )
        and ranks >= set(distribute("row", (rows, columns), half))
    ]
    assert fits
    assert min(fits) <= 1


@given(cases())
def test_square_blocks_fit(case: tuple[int, int, int]) -> None:
    rows, columns, count = case
    ranks = distribute("square", (rows, columns), count)
    width = 1 + max(rank % columns for rank in ranks)
    height = 1 + max(rank // columns for rank in ranks)
    side = 1 + isqrt(count - 1)
    assert width * height - count < width
    if side <= min(rows, columns):
        assert max(width, height) <= side
    elif side > columns:
        assert (width, height) == (min(columns, count), ceil(count / columns))
    else:
        assert width == ceil(count / rows)


# --- rows that are given, sets that are given ---


def test_rows_of() -> None:
    assert rows_of((10, 10), 20, (0, 6)) == (*range(10), *range(60, 70))
    assert rows_of((3, 4), 5, (2, 1, 0)) == (4, 8, 9, 10, 11)
    assert rows_of((3, 4), 4, np.array([1, 2])) == (4, 5, 6, 7)
    for count in range(1, 31):
        used = range(0, 10, 4)
        assert len(set(rows_of((10, 10), count, used))) == count


def test_checked() -> None:
    assert checked([3, 0, 2], 4) == (0, 2, 3)
    assert checked(range(4), 4) == checked({3, 2, 1, 0}, 4) == (0, 1, 2, 3)
    ranks = checked(np.array([2, 1]), 3)
    assert ranks == (1, 2)
    assert {type(rank) for rank in ranks} == {int}
    assert checked(iter([1]), np.int64(2)) == (1,)  # type: ignore[arg-type]


def test_public_names() -> None:
    assert cw.sources.distribute("row", (2, 2), 2) == (0, 1)
    assert all(name == distribution.name for name, distribution in DISTRIBUTIONS.items())
    for distribution in DISTRIBUTIONS.values():
        assert distribution.summary
        assert "\n" not in distribution.summary
    assert len({distribution.symbol for distribution in DISTRIBUTIONS.values()}) == len(NAMES)


# --- what is refused ---
