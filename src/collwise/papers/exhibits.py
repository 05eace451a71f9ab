"""A paper's figures and tables, and the paper itself, as data."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, TypeAlias

from matplotlib.figure import Figure

from collwise.errors import UnknownName
from collwise.papers.claims import Claim, Measure

HERE = "-measured"
"""The end of the name of a picture that was measured on the machine at hand."""
Rows: TypeAlias = Sequence[Mapping[str, str]]
"""A table: cells by column title; every row has the same titles."""


@dataclass(frozen=True)
class Exhibit:
    """A figure or a table of the paper, made again from our own computation.

    named: "ID: TITLE".  The id is the paper's number, such as fig6 or table1, with a letter if a
    figure has several pictures; or our own, such as t3d.   caption: what is to be seen.   draw:
    makes the picture, or the rows of the table.   measure: measures it on real ranks.
    """

    named: str
    caption: str
    draw: Callable[[], Figure | Rows]
    measure: Measure | None = None
    kind: ClassVar[Literal["exact", "simulated"]] = "exact"

    @property
    def id(self) -> str:
        """The exhibit's number in the paper, such as "fig6", or an id of our own, such as "t3d"."""
        return self.named.split(": ")[0]

    @property
    def title(self) -> str:
        """The exhibit's title on the page."""
        return self.named.split(": ", 1)[1]


class Simulated(Exhibit):
    """An exhibit that the paper measured on a machine of its time, which is simulated here."""

    kind = "simulated"


@dataclass(frozen=True, kw_only=True)
class Paper:
    """A paper: its bibliography key in lower case, its title, its claims and its exhibits.

    about: its authors and year, and how the paper is run again.
    """

    key: str
    title: str
    about: str
    claims: Sequence[Claim]
    exhibits: Sequence[Exhibit]

    def selected(self, items: Sequence[str]) -> "Paper":
        """The paper with the named exhibits and claims only, or with all if `items` is empty.

        The item fig1 also selects fig1a and fig1b, and B-c5 selects B-c5a and B-c5b.   Raises
        UnknownName for an item that the paper does not have.
        """
        if not items:
            return self
        names = [*(e.id for e in self.exhibits), *(c.id for c in self.claims)]
        for item in items:
            if not any(_named(name, item) for name in names):
                raise UnknownName.of(f"figure, table or claim of {self.key}", item, names)
        return replace(
            self,
            claims=[c for c in self.claims if any(_named(c.id, item) for item in items)],
            exhibits=[e for e in self.exhibits if any(_named(e.id, item) for item in items)],
        )


def _named(name: str, item: str) -> bool:
    """Whether `item` is this name, or this name without the letter at its end; case is ignored."""
    name, item = name.lower(), item.lower()
    return name == item or (name[:-1] == item and name[-1].isalpha())
