"""Message sizes on the command line: 512, 64k, 1M, and lists of them."""

from typing import Any

import click

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
        if not digits.strip().isdigit() or unit not in _UNITS:
            self.fail(f"{value!r} is no size; give bytes >= 0, such as 512, 64k or 1M", param, ctx)
        return int(digits) * _UNITS[unit]


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


SIZE = Size()
SIZES = Sizes()
