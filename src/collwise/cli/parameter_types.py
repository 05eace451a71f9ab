"""Values on the command line: sizes (512, 64k), times (1.7ms), exact numbers, files to write."""

import os
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import click

from collwise.errors import InvalidArgument
from collwise.system.quantities import parse_number, parse_size, parse_time

_T = TypeVar("_T")
_Context: TypeAlias = click.Context | None
_Parameter: TypeAlias = click.Parameter | None


class _Quantity(click.ParamType[_T]):
    """A quantity that `parse` reads; a usage error (exit code 2) for what it refuses."""

    def __init__(self, name: str, parse: Callable[[str], _T]) -> None:
        self.name = name
        self.parse = parse

    def convert(self, value: Any, param: _Parameter, ctx: _Context) -> _T:
        """Read text; a default that is no text stands as it is."""
        if not isinstance(value, str):
            return value  # type: ignore[no-any-return]
        try:
            return self.parse(value)
        except InvalidArgument as problem:
            self.fail(f"{problem.seen}; {problem.remedy}", param, ctx)


def _parse_budget(text: str) -> float:
    """Seconds that a command may work, more than 0."""
    with suppress(InvalidArgument):
        if (time := parse_time(text)) > 0:
            return float(time)
    raise InvalidArgument(
        "a budget", f"{text!r} is no time to spend", "give seconds > 0, such as 5"
    )


class Sizes(click.ParamType[tuple[int, ...]]):
    """A comma-separated list of sizes."""

    name = "bytes,bytes,…"

    def convert(self, value: Any, param: _Parameter, ctx: _Context) -> tuple[int, ...]:
        """Read a list; its sizes ascend and are distinct."""
        if isinstance(value, tuple):
            return value
        found = {SIZE.convert(part, param, ctx) for part in str(value).split(",") if part.strip()}
        if not found:
            self.fail("give at least one size", param, ctx)
        return tuple(sorted(found))


class Shape(click.ParamType[tuple[int, int]]):
    """Rows and columns of a mesh: 4x8."""

    name = "ROWSxCOLUMNS"

    def convert(self, value: Any, param: _Parameter, ctx: _Context) -> tuple[int, int]:
        """Read a shape; a usage error for anything else."""
        if isinstance(value, tuple):
            return value
        found = re.fullmatch(r"\s*([0-9]{1,10})\s*[x×]\s*([0-9]{1,10})\s*", value, re.IGNORECASE)
        if found is None or not (int(found[1]) and int(found[2])):
            self.fail(f"{value!r} is no mesh; give rows and columns >= 1, as in 4x8", param, ctx)
        return int(found[1]), int(found[2])


def writable(
    ctx: click.Context, param: click.Parameter, path: Path | None, *, remedy: str = ""
) -> Path | None:
    """Refuse a file that cannot be written: better now than after minutes of measuring."""
    if path is None:
        return None
    absolute = path.absolute()
    folder = next(p for p in absolute.parents if os.path.exists(p))  # noqa: PTH110 - never raises
    seen = ""
    if os.path.isdir(absolute):  # noqa: PTH112
        seen = "is a folder"
    elif not folder.is_dir():
        seen = f"cannot be made: {folder} is no folder"
    elif not os.access(folder, os.W_OK | os.X_OK):
        seen = f"cannot be made: {folder} may not be written"
    if seen:
        raise click.BadParameter(f"{path} {seen}; {remedy or 'name another file'}", ctx, param)
    return path


def drawable(ctx: click.Context, param: click.Parameter, path: Path | None) -> Path | None:
    """Refuse a picture that cannot be written, or in a format that nobody draws."""
    if path is not None and path.suffix.lower() not in (".png", ".svg"):
        told = f"{path} ends in {path.suffix!r}" if path.suffix else f"{path} has no suffix"
        remedy = "give a name that ends in .png or .svg"
        raise click.BadParameter(f"{told}; {remedy}", ctx, param)
    return writable(ctx, param, path)


SIZE = _Quantity("bytes", parse_size)
SIZES = Sizes()
BUDGET = _Quantity("seconds", _parse_budget)
EXACT = _Quantity("number", parse_number)
SECONDS = _Quantity("seconds", parse_time)
SHAPE = Shape()
RANKS = click.IntRange(min=1, max=2**31 - 1)  # MPI's ranks are C integers
