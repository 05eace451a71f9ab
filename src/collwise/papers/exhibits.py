"""A paper's figures and tables, and the paper itself, as data."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from matplotlib.figure import Figure

from collwise.errors import UnknownName
from collwise.papers.claims import Claim, Measure

HERE = "-measured"
"""Ends the name of a picture that was measured on the machine at hand."""
Rows: TypeAlias = Sequence[Mapping[str, str]]
"""A table: cells by column title; every row has the same titles."""


@dataclass(frozen=True, kw_only=True)
class Exhibit:
    """A figure or a table of the paper, made again from our own computation.

    id: as the paper numbers it, "fig6" or "table1"; a letter more for one of several pictures.
    kind: whether it is exact, or was measured by the paper and is simulated here.
    caption: what is to be seen.   draw: makes the picture, or the rows of the table.
    measure: the same measured on real ranks.
    """

    id: str
    title: str
    caption: str
    draw: Callable[[], Figure | Rows]
    kind: Literal["exact", "simulated"] = "exact"
    measure: Measure | None = None


@dataclass(frozen=True, kw_only=True)
class Paper:
    """A paper: its key in the bibliography in small letters, its title, what it says and shows.

    about: what it is about, and how it is run again.
    """

    key: str
    title: str
    about: str
    claims: Sequence[Claim]
    exhibits: Sequence[Exhibit]

    def selected(self, items: Sequence[str]) -> "Paper":
        """Of this paper only these: exhibits (fig1: fig1a and fig1b) and claims (B-c5: B-c5a …).

        Everything if there are none.   Raises UnknownName for an item that the paper does not have.
        """
        if not items:
            return self
        names = [*(e.id for e in self.exhibits), *(c.id for c in self.claims)]
        for item in items:
            if not any(_named(name, item) for name in names):
                raise UnknownName.of(f"figure, table or claim of {self.key}", item, names)
        return Paper(
            key=self.key,
            title=self.title,
            about=self.about,
            claims=[c for c in self.claims if any(_named(c.id, item) for item in items)],
            exhibits=[e for e in self.exhibits if any(_named(e.id, item) for item in items)],
        )


def _named(name: str, item: str) -> bool:
    """Whether an item is this one, or the number of which it is a part."""
    name, item = name.lower(), item.lower()
    return name == item or (name[:-1] == item and name[-1].isalpha())
