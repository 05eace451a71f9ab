"""Source distributions: which ranks of a mesh have data [Hambrusch1998] §4.

    distribute("right_diagonal", (10, 10), 30)      # 30 ranks, numbered row by row, ascending
    print(picture((10, 10), distribute("cross", (10, 10), 30)))

Every distribution is defined for every mesh of r × c ranks and every number s of sources from 1 to
r·c, and gives exactly s ranks.  Some numbers are illegible in the scan of the paper, and our own
rules fill the gaps.  Rows and columns count from 0 here, and from 1 in the paper.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from math import isqrt
from types import MappingProxyType

from collwise.errors import InvalidArgument, UnknownName
from collwise.system.integers import Shape, checked_integer, checked_shape


@dataclass(frozen=True)
class Distribution:
    """A pattern of sources on a mesh.

    name: the name for `distribute`.   symbol: the paper's name.   summary: a line of text.   place:
    a function from (rows, columns, number of sources) to ranks, in the order in which the pattern
    is filled; it does not check its arguments.
    """

    name: str
    symbol: str
    summary: str
    place: Callable[[int, int, int], Iterable[int]]


def distribute(name: str, shape: Shape, count: int) -> tuple[int, ...]:
    """The `count` ranks of a mesh that have data, ascending; ranks are numbered row by row.

    name: one of `DISTRIBUTIONS`.   shape: (rows, columns), each >= 1.   count: from 1 to
    rows·columns.   Raises UnknownName for another name, InvalidArgument for a number out of range.
    Source: [Hambrusch1998] §4.

    >>> distribute("equal", (2, 5), 3)
    (0, 3, 6)
    """
    if not isinstance(name, str) or name not in DISTRIBUTIONS:
        raise UnknownName.of("source distribution", name, DISTRIBUTIONS)
    rows, columns = checked_shape(shape)
    count = checked_integer(
        count, f"sources on a mesh of {rows} × {columns}", "count", 1, rows * columns
    )
    return tuple(sorted(DISTRIBUTIONS[name].place(rows, columns, count)))


def rows_of(shape: Shape, count: int, rows: Iterable[int]) -> tuple[int, ...]:
    """The `count` ranks, ascending, that fill the given rows one after another.

    shape: (rows, columns) of the mesh.   rows: distinct row numbers, filled from the left in the
    given order.  The last row in use may be filled partly, and later ones stay empty.   Raises
    InvalidArgument for a row out of range or given twice, or if the rows have fewer than `count`
    places.

    >>> rows_of((3, 4), 6, (2, 0))
    (0, 1, 8, 9, 10, 11)
    """
    height, width = checked_shape(shape)
    asked = f"sources in rows of a mesh of {height} × {width}"
    try:
        given = list(rows)
    except TypeError:
        raise InvalidArgument(asked, f"rows = {rows!r}", "give a list of rows") from None
    chosen = [checked_integer(row, asked, "row", 0, height - 1) for row in given]
    if len(set(chosen)) < len(chosen):
        raise InvalidArgument(asked, f"rows = {chosen}", "give each row once")
    if not chosen:
        raise InvalidArgument(asked, "no rows are given", "name at least one")
    count = checked_integer(count, asked, "count", 1, width * len(chosen))
    places = (row * width + column for row in chosen for column in range(width))
    return tuple(sorted(islice(places, count)))


def checked(sources: Iterable[int], ranks: int) -> tuple[int, ...]:
    """Return `sources`, which must be some of the ranks 0 … ranks − 1, as ascending integers.

    Raises InvalidArgument for no sources, and for a source that is no rank or is given twice.
    """
    asked = f"sources among {checked_integer(ranks, 'sources', 'ranks')} ranks"
    try:
        candidates = iter(sources)
    except TypeError:
        remedy = "give a list of ranks"
        raise InvalidArgument(asked, f"sources = {sources!r}", remedy) from None
    checked_ranks = [checked_integer(rank, asked, "a source", 0, ranks - 1) for rank in candidates]
    for rank, times in Counter(checked_ranks).items():
        if times > 1:
            raise InvalidArgument(asked, f"rank {rank} is given twice", "give each source once")
    if not checked_ranks:
        raise InvalidArgument(asked, "none are given", "give at least one rank")
    return tuple(sorted(checked_ranks))


def picture(shape: Shape, sources: Iterable[int]) -> str:
    """The mesh as text, a line for each row: ● for a source, · for any other rank.

    Raises InvalidArgument for a shape or sources out of range.

    >>> print(picture((2, 3), (0, 4)))
    ● · ·
    · ● ·
    """
    rows, columns = checked_shape(shape)
    marked = set(checked(sources, rows * columns))
    lines = (range(row * columns, (row + 1) * columns) for row in range(rows))
    return "\n".join(" ".join("·●"[rank in marked] for rank in line) for line in lines)


def _evenly(count: int, room: int) -> list[int]:
    """`count` numbers of 0 … room − 1, 0 first; gaps differ by at most 1.   count: <= room."""
    return [i * room // count for i in range(count)]


def _row(rows: int, columns: int, count: int) -> Iterable[int]:
    """⌈s/c⌉ evenly spaced rows, the first 0; the last may be filled in part, from the left."""
    return rows_of((rows, columns), count, _evenly(-(-count // columns), rows))


def _column(rows: int, columns: int, count: int) -> Iterable[int]:
    """⌈s/r⌉ evenly spaced columns, the first 0; the last may be filled in part, from the top."""
    return [rank % rows * columns + rank // rows for rank in _row(columns, rows, count)]


def _equal(rows: int, columns: int, count: int) -> Iterable[int]:
    """Evenly spaced ranks, s of p, rank 0 first; neighbours are ⌊p/s⌋ or ⌈p/s⌉ apart."""
    return _evenly(count, rows * columns)


def _diagonals(rows: int, columns: int, starts: Iterable[int]) -> Iterator[int]:
    """The ranks of diagonals down to the right from the columns `starts` of row 0, in order.

    Columns are taken modulo c.  So each diagonal has a rank in every row, and c diagonals are the
    whole mesh.
    """
    for start in starts:
        for row in range(rows):
            yield row * columns + (start + row) % columns


def _right_diagonal(rows: int, columns: int, count: int) -> Iterable[int]:
    """⌈s/r⌉ evenly spaced diagonals, the first from (0, 0); the last is filled from the top."""
    starts = _evenly(-(-count // rows), columns)
    return islice(_diagonals(rows, columns, starts), count)


def _left_diagonal(rows: int, columns: int, count: int) -> Iterable[int]:
    """The mirror image of the right diagonals: the first goes down to the left from (0, c − 1)."""
    for rank in _right_diagonal(rows, columns, count):
        column = rank % columns
        yield rank - column + columns - 1 - column


def _band(rows: int, columns: int, count: int) -> Iterable[int]:
    """Right diagonals in b = ⌈c/r⌉ evenly spaced bands, each at most ⌈s/(b·r)⌉ diagonals wide.

    The paper gives only the number and the width of bands.  Here the first diagonals of all bands
    are filled from the top, then the second ones to their right, and so on; the last diagonal may
    be filled in part.  So no band stays empty while others are full.  If some bands touch, since
    c/b is no integer, the wider gaps take the remaining diagonals.
    """
    bands = -(-columns // rows)
    firsts = _evenly(bands, columns)
    width = -(-count // (bands * rows))
    starts = dict.fromkeys((first + i) % columns for i in range(width) for first in firsts)
    return islice(_diagonals(rows, columns, starts), count)


def _cross(rows: int, columns: int, count: int) -> Iterable[int]:
    """Rows R(h) and columns C(h) together, for the least h with s ranks in all.

    R and C are the patterns of `_row` and `_column`.  Ranks where rows and columns cross count
    once.  When h grows by 1, both patterns grow by one rank, and their overlap never shrinks.  So
    there is at most one rank too many, which is left out at the end of the column pattern.
    """

    def union(half: int) -> list[int]:
        return list(dict.fromkeys((*_row(rows, columns, half), *_column(rows, columns, half))))

    half = bisect_left(range(count), count, lo=(count + 1) // 2, key=lambda h: len(union(h)))
    return union(half)[:count]


def _square(rows: int, columns: int, count: int) -> Iterable[int]:
    """A block of ⌈√s⌉ columns from rank 0 on, filled row by row, with at most ⌈√s⌉ rows.

    If the mesh has fewer than ⌈√s⌉ rows, the block is ⌈s/r⌉ columns wide.  If the mesh has fewer
    columns, the block has all c columns, and more rows.
    """
    side = 1 + isqrt(count - 1)
    width = min(max(side, -(-count // rows)), columns)
    return [i // width * columns + i % width for i in range(count)]


_ALL = (
    Distribution("row", "R", "full rows, evenly spaced", _row),
    Distribution("column", "C", "full columns, evenly spaced", _column),
    Distribution("equal", "E", "every p/s-th rank", _equal),
    Distribution(
        "right_diagonal", "Dr", "diagonals down to the right, evenly spaced", _right_diagonal
    ),
    Distribution(
        "left_diagonal", "Dl", "diagonals down to the left, evenly spaced", _left_diagonal
    ),
    Distribution("band", "B", "bands of neighbouring right diagonals", _band),
    Distribution("cross", "Cr", "rows and columns, half and half", _cross),
    Distribution("square", "Sq", "a square block", _square),
)

DISTRIBUTIONS: Mapping[str, Distribution] = MappingProxyType({each.name: each for each in _ALL})
"""All distributions by name."""
