"""A table as data: the terminal and the HTML page derive from the same one."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from collwise.system.formatting import rounded


class Table(NamedTuple):
    """A table of ready-made text.

    rows: cells by column title, in the order of the columns; every row has the same titles.
    optional: titles of columns without which it can still be read, the first to be left out first.
    """

    title: str
    rows: Sequence[Mapping[str, str]]
    optional: Sequence[str] = ()

    @property
    def columns(self) -> list[str]:
        """The column titles."""
        return list(self.rows[0]) if self.rows else []

    def rounded(self, digits: int) -> "Table":
        """The same with no more digits in its times than are known, as `formatting.rounded`."""
        rows = [
            {name: rounded(cell, digits).strip() for name, cell in row.items()} for row in self.rows
        ]
        return self._replace(rows=rows)
