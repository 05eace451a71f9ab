"""A table as data: the terminal and the HTML page derive from the same one."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple


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
