"""Values on the command line: sizes (512, 64k), times (1.7ms), exact numbers, files to write."""

import os
import re
from fractions import Fraction
from math import isfinite
from pathlib import Path
from typing import Any

import click

from collwise.errors import InvalidArgument
from collwise.model.exact import exact

_LARGEST = 1 << 50
"""Bytes, a pebibyte: more is a slip of the keyboard, and overflows the columns of schedules."""
_RANGE = Fraction(10) ** 99
"""Numbers beyond this (or below its inverse) overflow when they become floats."""

_TIMES = {
    "s": Fraction(1),
    "ms": Fraction(1, 10**3),
    "us": Fraction(1, 10**6),
    "µs": Fraction(1, 10**6),  # the micro sign, and below it the Greek letter
    "μs": Fraction(1, 10**6),
    "ns": Fraction(1, 10**9),
}
_UNITS = {
    "": 1,
    "b": 1,
    "k": 1 << 10,
    "kb": 1 << 10,
    "kib": 1 << 10,
    "m": 1 << 20,
    "mb": 1 << 20,
    "mib": 1 << 20,
    "g": 1 << 30,
    "gb": 1 << 30,
    "gib": 1 << 30,
}


def _short(value: Any) -> str:
    """What was typed, in quotes; of very much, the beginning."""
    text = str(value)
    return repr(text if len(text) <= 40 else f"{text[:39]}…")


class Size(click.ParamType[int]):
    """A number of bytes; k, M, G mean powers of 1024."""

    name = "bytes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read a size; a usage error (exit code 2) for anything else."""
        if isinstance(value, int):
            return value
        text = str(value).strip().lower()
        digits = text.rstrip("bkmgi")
        unit = text[len(digits) :]
        if not re.fullmatch(r"[0-9]+\s*", digits) or unit not in _UNITS:
            most = f"{_LARGEST >> 30}G"
            remedy = f"give a whole number of bytes, 0 to {most}, such as 512, 64k or 1M"
            if re.search(r"\^|\*\*|\de\d", text):
                remedy += "; powers are not worked out"
            self.fail(f"{_short(value)} is no size; {remedy}", param, ctx)
        if len(digits.lstrip("0")) > 20 or (nbytes := int(digits) * _UNITS[unit]) > _LARGEST:
            remedy = f"give at most {_LARGEST >> 30}G"
            self.fail(f"{_short(value)} is too large; {remedy}", param, ctx)
        return nbytes


class Sizes(click.ParamType[tuple[int, ...]]):
    """A comma-separated list of sizes."""

    name = "bytes,bytes,…"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """Read a list; its sizes ascend and are distinct."""
        if isinstance(value, tuple):
            return value
        found = {SIZE.convert(part, param, ctx) for part in str(value).split(",") if part.strip()}
        if not found:
            self.fail("give at least one size", param, ctx)
        return tuple(sorted(found))


class Budget(click.ParamType[float]):
    """Seconds that a command may work."""

    name = "seconds"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Read a time; a usage error for what is no number, 0, negative, NaN or infinite."""
        try:
            seconds = float(value)
        except ValueError:
            seconds = 0.0
        if not (seconds > 0 and isfinite(seconds)):
            self.fail(f"{value!r} is no time to spend; give seconds > 0, such as 5", param, ctx)
        return seconds


class Exact(click.ParamType[Fraction]):
    """A finite number as it is written: 1.7e-3, 4, 9/5."""

    name = "number"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Fraction:
        """Read a number; a usage error for what is none, or is beyond all measure."""
        if isinstance(value, Fraction):
            return value
        text, unit = self._parts(value)
        if re.search(r"e[+-]?0*[1-9]\d{2}", text, re.IGNORECASE) or len(text) > 200:
            self._beyond(value, param, ctx)  # before millions of digits are written out
        try:
            number = exact(text) * unit
        except InvalidArgument as problem:
            self.fail(f"{value!r} is no number; {problem.remedy}{self._advice}", param, ctx)
        if number and not 1 / _RANGE < abs(number) < _RANGE:
            self._beyond(value, param, ctx)
        return number

    _advice = ""

    def _parts(self, value: str) -> tuple[str, Fraction]:
        """The number in a text, and what it is to be multiplied with."""
        return value, Fraction(1)

    def _beyond(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> None:
        self.fail(f"{value[:20]!r} is beyond all measure; give 1e-98 to 1e98", param, ctx)


class Seconds(Exact):
    """A time: a number of seconds, or with a unit: 1.7e-3, 1.7ms, 54.6us."""

    name = "seconds"
    _advice = " seconds, or 1.8ms"

    def _parts(self, value: str) -> tuple[str, Fraction]:
        found = re.fullmatch(r"\s*(.*\d)\s*(s|ms|us|µs|μs|ns)\s*", value)
        return (found[1], _TIMES[found[2]]) if found else (value, Fraction(1))


class Shape(click.ParamType[tuple[int, int]]):
    """Rows and columns of a mesh: 4x8."""

    name = "ROWSxCOLUMNS"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int]:
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


SIZE = Size()
SIZES = Sizes()
BUDGET = Budget()
EXACT = Exact()
SECONDS = Seconds()
SHAPE = Shape()
RANKS = click.IntRange(min=1, max=2**31 - 1)  # MPI's ranks are C integers
