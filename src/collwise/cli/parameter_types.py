"""Values on the command line: sizes (512, 64k), times (1.7ms), collectives, files to write."""

import errno
import os
import re
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from functools import partial
from itertools import accumulate, repeat, takewhile
from operator import mul
from pathlib import Path
from typing import Any, TypeVar

import click

from collwise.errors import InvalidArgument, UnknownName
from collwise.model.level_notation import parse_placement
from collwise.schedule.collectives import COLLECTIVES as ALL_COLLECTIVES
from collwise.schedule.collectives import find_collective
from collwise.system.integers import MOST_RANKS
from collwise.system.quantities import parse_number, parse_share, parse_size, parse_time

T = TypeVar("T")

MAX_SIZES = 1000
"""The most sizes in a range."""
LONGEST_S = 10_000_000
"""The longest budget, 115 days in seconds: clocks of the system cannot wait for much more."""


class ParsedType(click.ParamType[T]):
    """A value that `parse` reads from text; a usage error (exit code 2) if `parse` refuses it."""

    def __init__(self, name: str, parse: Callable[[str], T]) -> None:
        self.name = name
        self.parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> T:
        """Read text; return a default that is no text unchanged."""
        if not isinstance(value, str):
            return value  # type: ignore[no-any-return]
        try:
            return self.parse(value)
        except InvalidArgument as problem:
            self.fail(f"{problem.seen}; {problem.remedy}", param, ctx)


class Integer(click.IntRange):
    """An integer in the digits 0 to 9.  Python itself would also read ٣ and 1_0."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number; a usage error for anything else."""
        if isinstance(value, str) and not re.fullmatch(r"[+-]?[0-9]{1,20}", value.strip()):
            self.fail(f"{value[:40]!r} is no integer in plain digits", param, ctx)
        return super().convert(value, param, ctx)


class FilePath(click.Path):
    """The path of a file or folder; it must not be empty.

    writes: the command writes the file, so a path that cannot be written is refused at once.
    suffixes: suffixes that the name may have; empty for any name.   folder: refuse what is a file.
    """

    def __init__(
        self, *, writes: bool = False, suffixes: tuple[str, ...] = (), folder: bool = False
    ) -> None:
        super().__init__(path_type=Path, file_okay=not folder)
        self.writes = writes
        self.suffixes = suffixes

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """The path; a usage error for a path that cannot be used."""
        if value == "":
            self.fail(
                f"the name is empty; name a {'file' if self.file_okay else 'folder'}", param, ctx
            )
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if self.suffixes and path.suffix.lower() not in self.suffixes:
            ending = f"ends in {path.suffix!r}" if path.suffix else "has no suffix"
            remedy = f"give a name that ends in {' or '.join(self.suffixes)}"
            self.fail(f"{path} {ending}; {remedy}", param, ctx)
        if self.writes and (trouble := unwritable(path)):
            self.fail(f"{path} {trouble}; name another file", param, ctx)
        if trouble := named_twice(path, param, ctx):
            self.fail(f"{path} {trouble}; name another file", param, ctx)
        return path


def _items(text: str, what: str) -> list[str]:
    """The parts of a comma-separated list; raises InvalidArgument if there are none."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise InvalidArgument(
            "a list", f"there is no {what} in {text!r}", f"give at least one {what}"
        )
    return parts


def _parse_sizes(text: str) -> tuple[int, ...]:
    """Sizes in bytes, ascending and distinct: 8,512 or 8:1M:2, or both."""
    sizes: set[int] = set()
    for part in _items(text, "size"):
        first, *rest = part.split(":")
        if len(rest) > 2:
            remedy = "write FIRST:LAST:FACTOR, as in 8:1M:2"
            raise InvalidArgument("sizes", f"{part!r} has more than three parts", remedy)
        factor = parse_number(rest[1]) if rest[1:] else Fraction(2)
        sizes.update(size_range(parse_size(first), parse_size((rest or [first])[0]), factor))
    return tuple(sorted(sizes))


def size_range(first: int, last: int, factor: Fraction) -> tuple[int, ...]:
    """Sizes first·factor^k up to `last` in bytes, rounded down; (first,) if `first` equals `last`.

    Raises InvalidArgument for a range without sizes, or with more than MAX_SIZES.
    """
    if first == last:
        return (first,)
    if not 0 < first < last or factor <= 1:
        seen = f"from {first} to {last} bytes by a factor of {float(factor):g} there are none"
        remedy = "begin at 1 byte or more, end above it, and give a factor above 1"
        raise InvalidArgument("sizes", seen, remedy)
    powers = accumulate(repeat(factor, MAX_SIZES), mul, initial=Fraction(first))
    sizes = [int(at) for at in takewhile(lambda at: at <= last, powers)]
    if len(sizes) > MAX_SIZES:
        seen = f"these are more than {MAX_SIZES}"
        raise InvalidArgument("sizes", seen, "give a larger factor")
    return tuple(dict.fromkeys(sizes))


def _parse_counts(text: str) -> tuple[int, ...]:
    """Numbers of ranks, ascending and distinct: 2,4,8."""
    counts = _items(text, "number of ranks")
    if odd := [count for count in counts if not re.fullmatch("[1-9][0-9]{0,7}", count)]:
        seen, remedy = f"{odd[0][:20]!r} is no number of ranks", "give some such as 2,4,8"
        raise InvalidArgument("numbers of ranks", seen, remedy)
    return tuple(sorted(set(map(int, counts))))


def _parse_cells(text: str) -> tuple[int, ...]:
    """Numbers of cells of a grid: 0,7,14."""
    numbers = _items(text, "number")
    if odd := [number for number in numbers if not re.fullmatch("[0-9]{1,6}", number)]:
        seen = f"{odd[0][:20]!r} is no number of a cell"
        raise InvalidArgument("cells of a grid", seen, "leave --cells to bench itself")
    return tuple(map(int, numbers))


def _parse_ranks_per_host(text: str) -> int | tuple[int, ...]:
    """Numbers of ranks: 4 on every host, or 5+3+8 on the first, second and third host."""
    if not re.fullmatch(r"[1-9][0-9]{0,4}(\+[1-9][0-9]{0,4})*", text):
        seen, remedy = f"{text[:20]!r} is no number of ranks", "give one such as 4, or 5+3+8"
        raise InvalidArgument("ranks on each host", seen, remedy)
    first, *others = map(int, text.split("+"))
    return (first, *others) if others else first


def _parse_budget(text: str) -> float:
    """Seconds that a command may work, more than 0."""
    with suppress(InvalidArgument):
        if 0 < (time := parse_time(text)) <= LONGEST_S:
            return float(time)
    remedy = f"give seconds > 0, such as 5 (at most {LONGEST_S})"
    raise InvalidArgument("a budget", f"{text[:20]!r} is no time to spend", remedy)


def _parse_shape(text: str) -> tuple[int, int]:
    """Rows and columns of a mesh: 4x8."""
    match = re.fullmatch(r"\s*([0-9]{1,10})\s*[x×]\s*([0-9]{1,10})\s*", text, re.IGNORECASE)
    if match is None or not (int(match[1]) and int(match[2])):
        remedy = "give rows and columns >= 1, as in 4x8"
        raise InvalidArgument("a mesh", f"{text!r} is no mesh", remedy)
    return int(match[1]), int(match[2])


def _parse_collectives(text: str) -> tuple[str, ...]:
    """Names of collectives, each once; "all" means all collectives."""
    names: list[str] = []
    for item in _items(text, "collective"):
        try:
            names += ALL_COLLECTIVES if item.lower() == "all" else [find_collective(item).name]
        except UnknownName as problem:
            also = ", all" * problem.remedy.startswith("known: ")
            raise UnknownName(problem.asked, problem.seen, problem.remedy + also) from None
    return tuple(dict.fromkeys(names))


def unwritable(path: Path) -> str:
    """Why a file cannot be written; empty if it can."""
    absolute = Path(os.path.realpath(path))
    above = (p for p in absolute.parents if os.path.exists(p))  # noqa: PTH110 - never raises
    folder = next(above, absolute)
    if os.path.isdir(absolute):  # noqa: PTH112
        return "is a folder"
    if os.path.exists(absolute) and not os.path.isfile(absolute):  # noqa: PTH110, PTH113
        return _odd_file(absolute)
    if not folder.is_dir():
        return f"cannot be made: {folder} is no folder"
    if folder not in (absolute, *absolute.parents[:2]):
        return f"cannot be made: there is no folder {absolute.parents[1]}"
    if not os.access(folder, os.W_OK | os.X_OK):
        return f"cannot be made: {folder} may not be written"
    return ""


def named_twice(path: Path, param: click.Parameter | None, ctx: click.Context | None) -> str:
    """An error text if another option names the same file and one of the two writes it, else "".

    Several options may name one device or pipe.
    """
    if param is None or ctx is None or (os.path.exists(path) and not os.path.isfile(path)):  # noqa: PTH110, PTH113
        return ""
    for other in ctx.command.get_params(ctx):
        value = ctx.params.get(other.name or "")
        if (
            other is not param
            and isinstance(value, Path)
            and any(isinstance(one.type, FilePath) and one.type.writes for one in (param, other))
            and os.path.realpath(value) == os.path.realpath(path)
        ):
            return f"is the file of {other.opts[-1]}, too"
    return ""


_held_open: list[int] = []


def _odd_file(path: Path) -> str:
    """Why a device or a named pipe cannot be written; empty if it can.

    A pipe stays open until this process ends; otherwise its reader would see the end of file.
    """
    if path.is_fifo() and os.access(path, os.W_OK):
        try:
            _held_open.append(os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC))
        except OSError as problem:
            nobody = problem.errno == errno.ENXIO
            return "is a named pipe that nobody reads" if nobody else str(problem.strerror)
    return "" if os.access(path, os.W_OK) else "may not be written"


FILE = FilePath()
FOLDER = FilePath(folder=True)
OUTPUT = FilePath(writes=True)
PICTURE = FilePath(writes=True, suffixes=(".png", ".svg"))
SIZE = ParsedType("bytes", parse_size)
SIZES = ParsedType("bytes,first:last:factor,…", _parse_sizes)
CELLS = ParsedType("numbers", _parse_cells)
RANKS_PER_HOST = ParsedType("ranks", _parse_ranks_per_host)
COUNTS = ParsedType("ranks,ranks,…", _parse_counts)
PRECISION = ParsedType("percent", partial(parse_share, what="a precision"))
BUDGET = ParsedType("seconds", _parse_budget)
EXACT = ParsedType("number", parse_number)
SECONDS = ParsedType("seconds", parse_time)
SHAPE = ParsedType("ROWSxCOLUMNS", _parse_shape)
COLLECTIVE = ParsedType("name", lambda text: find_collective(text).name)
COLLECTIVES = ParsedType("names", _parse_collectives)
PLACEMENT = ParsedType("NODESxRANKS", parse_placement)
INTEGER = Integer(min=0)
POSITIVE = Integer(min=1)
RANKS = Integer(min=1, max=MOST_RANKS)
