"""What reports are made of: tables as data, and what was saved."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from collwise.system.formatting import rounded, time


class Saved(NamedTuple):
    """What was written into files: lines for people, and the same as JSON."""

    lines: list[str]
    document: dict[str, Any]


class Table(NamedTuple):
    """A table of text cells, which a terminal or an HTML page shows.

    rows: cells by column title, in the order of the columns; every row has the same titles.
    optional: titles of columns that may be left out where room is short, the first one first.
    """

    title: str
    rows: Sequence[Mapping[str, str]]
    optional: Sequence[str] = ()

    @property
    def columns(self) -> list[str]:
        """The column titles; none without rows."""
        return list(self.rows[0]) if self.rows else []

    def rounded(self, digits: int) -> "Table":
        """A copy of the table, each cell rounded by `formatting.rounded` to `digits` digits."""
        rows = [
            {name: rounded(cell, digits).strip() for name, cell in row.items()} for row in self.rows
        ]
        return self._replace(rows=rows)


def optional_time(seconds: float | None) -> str:
    """A table's cell for a time that may be unknown."""
    return "-" if seconds is None else time(seconds)


def attributes(of: object, *names: str) -> dict[str, Any]:
    """These attributes of an object, by name, for a JSON document."""
    return {name: getattr(of, name) for name in names}
