"""What a schedule promises: a collective, its sizes, who has data, in which order it combines."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from collwise.errors import InvalidArgument, UnknownName
from collwise.model.sources import checked
from collwise.model.topology import near_square
from collwise.schedule.collectives import COLLECTIVES
from collwise.schedule.operations import Block
from collwise.system.integers import checked_integer, checked_shape

Order: TypeAlias = Literal["any", "same", "rank"]
"""How contributions are combined: in any order, in one that is the same on all ranks (they end with
the same bits), or, beyond that, in the order of the ranks (for operators that do not commute)."""
ORDERS: tuple[Order, ...] = ("any", "same", "rank")
"""The weakest first: who keeps one of them keeps those before it."""


def keeps(kept: Order, asked: Order) -> bool:
    """Whether one order is as good as another that is asked for, or raise UnknownName for none."""
    return ORDERS.index(kept) >= ORDERS.index(_known(asked))


def _known(order: Order) -> Order:
    if order not in ORDERS:
        raise UnknownName.of("order", order, ORDERS)
    return order


COMBINING = tuple(c.name for c in COLLECTIVES.values() if c.combines)
"""Collectives that combine everybody's vectors."""
GATHERING = tuple(c.name for c in COLLECTIVES.values() if c.has_sources)
"""Collectives in which any ranks, the sources, have data, and all ranks get everybody's."""
ROOTLESS = tuple(c.name for c in COLLECTIVES.values() if not c.rooted)
"""Collectives after which all ranks are alike; virtual rank 0 is rank 0."""

NO_SOURCES = "it has no sources, and no mesh"

ABOUT: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "op": COMBINING,
        "dtype": COMBINING,
        "order": COMBINING,
        "root": tuple(c.name for c in COLLECTIVES.values() if c.rooted),
        "sources": GATHERING,
        "shape": GATHERING,
    }
)
"""By what can be asked for, the collectives about which it says something."""


def check_about(
    collectives: Sequence[str],
    given: Iterable[str],
    about: Mapping[str, tuple[str, ...]] = ABOUT,
    mark: str = "",
) -> None:
    """Refuse what says nothing about any of the collectives: InvalidArgument.

    given: the names of what was asked for.   mark: how such names are written, as in --op.
    """
    for name in given:
        kinds = about[name]
        if not set(kinds) & set(collectives):
            raise InvalidArgument(
                f"{' and '.join(collectives)} with {mark}{name}",
                f"it is for {' and '.join(kinds)} only",
                f"leave out {mark}{name}",
            )


class Source(NamedTuple):
    """A rank that has data, and its bytes >= 1."""

    rank: int
    nbytes: int


@dataclass(frozen=True)
class Problem:
    """What a schedule promises: `collective` of nbytes >= 0 over `ranks` >= 1, from or to `root`.

    item: bytes of an element >= 1, of which nbytes is a multiple; nothing is cut inside one.
    order: for collectives that combine, the order in which they do.
    sources: for those that gather, who has data, by rank; nbytes is all of it.   shape: rows and
    columns of the mesh in which ranks are seen, row by row; near a square if not given.
    Raises InvalidArgument for a size, a root, a source or a shape out of range.
    """

    collective: str
    ranks: int
    nbytes: int
    root: int = 0
    item: int = 1
    order: Order = "any"
    sources: tuple[Source, ...] = ()
    shape: tuple[int, int] = (0, 0)

    def __post_init__(self) -> None:
        for name, word, least in (
            ("ranks", "over", 1),
            ("nbytes", "of", 0),
            ("root", "from", 0),
            ("item", "of", 1),
        ):
            asked = f"{self.collective} {word} `{name}`"
            # As Python's own integer: NumPy's overflow, and cannot tell their bits.
            object.__setattr__(self, name, checked_integer(getattr(self, name), asked, name, least))
        if self.root >= self.ranks:
            raise InvalidArgument(
                f"{self.collective} from root {self.root}",
                f"there are {self.ranks} ranks",
                f"give a root from 0 to {self.ranks - 1}",
            )
        if _known(self.order) != "any":
            check_about([self.collective], ["order"])
        if self.root and self.collective in ROOTLESS:
            raise InvalidArgument(
                f"{self.collective} with root {self.root}",
                "it has no root: all ranks get the result",
                "leave the root out",
            )
        if self.nbytes % self.item:
            raise InvalidArgument(
                f"{self.collective} of elements of {self.item} bytes",
                f"nbytes = {self.nbytes}, which is no multiple",
                "give the bytes of whole elements",
            )
        self._check_sources()

    def _check_sources(self) -> None:
        asked = f"{self.collective} over {self.ranks} ranks"
        if self.collective not in GATHERING:
            if self.sources or self.shape != (0, 0):
                raise InvalidArgument(asked, NO_SOURCES, "leave sources and shape out")
            return
        sources = [self._source(source, asked) for source in self.sources]
        if sources:
            checked([source.rank for source in sources], self.ranks)
        if sum(source.nbytes for source in sources) != self.nbytes:
            seen = f"nbytes = {self.nbytes}, but the sources have others"
            raise InvalidArgument(asked, seen, "give the sum of the sources' bytes")
        shape = self.usual_shape if self.shape == (0, 0) else self.shape
        rows, columns = checked_shape(shape, asked)
        if rows * columns != self.ranks:
            seen = f"a mesh of {rows} × {columns} has {rows * columns}"
            raise InvalidArgument(asked, seen, "give rows and columns whose product it is")
        object.__setattr__(self, "sources", tuple(sorted(sources)))
        object.__setattr__(self, "shape", (rows, columns))

    def _source(self, given: Source, asked: str) -> Source:
        if not isinstance(given, tuple) or len(given) != len(Source._fields):
            raise InvalidArgument(asked, f"a source is {given!r}", "give its rank and its bytes")
        rank, nbytes = given
        source = Source(
            checked_integer(rank, asked, "a source", 0),
            checked_integer(nbytes, asked, "its nbytes", 1),
        )
        if source.nbytes % self.item:
            seen = f"source {source.rank} has {source.nbytes} bytes, an element {self.item}"
            raise InvalidArgument(asked, seen, "give the bytes of whole elements")
        return source

    @classmethod
    def of(
        cls,
        collective: str,
        ranks: int,
        nbytes: "int | Sequence[int]",
        root: int = 0,
        *,
        item: int = 1,
        order: Order = "any",
        sources: Sequence[int] | None = None,
        shape: tuple[int, int] | None = None,
    ) -> "Problem":
        """A problem as people ask for it.

        nbytes: bytes of the message or of everybody's vector; where sources are given, of each of
        theirs, or one number for each source.   sources: ranks; those with 0 bytes are left out.
        Otherwise as `Problem`, which says what is raised.
        """
        if collective not in GATHERING:
            if isinstance(nbytes, Sequence):
                asked, remedy = f"{collective} of several sizes", "give one number of bytes"
                raise InvalidArgument(asked, f"nbytes = {nbytes!r}", remedy)
            if sources is not None or shape is not None:
                raise InvalidArgument(collective, NO_SOURCES, "leave sources and shape out")
            return cls(collective, ranks, nbytes, root, item, order)
        asked = f"{collective} over {ranks} ranks"
        if sources is None:
            seen, remedy = "nothing says which ranks have data", "give the sources"
            raise InvalidArgument(asked, seen, remedy)
        ranks = checked_integer(ranks, f"{collective} over `ranks`", "ranks")
        if isinstance(sources, Iterable):  # of more than there are ranks, one is wrong
            sources = list(islice(sources, ranks + 1))
        checked(sources, ranks)
        if isinstance(nbytes, Sequence) or (isinstance(nbytes, np.ndarray) and nbytes.ndim):
            each = list(nbytes)
        else:
            each = [nbytes] * len(sources)
        if len(each) != len(sources):
            seen = f"{len(sources)} sources, and bytes for {len(each)}"
            raise InvalidArgument(asked, seen, "give one number for all, or one for each")
        lengths = [checked_integer(n, f"{asked}, of `nbytes`", "nbytes", 0) for n in each]
        given = (Source(int(r), n) for r, n in zip(sources, lengths, strict=True) if n)
        return cls(
            collective,
            ranks,
            sum(lengths),
            root,
            item,
            order,
            tuple(sorted(given)),
            (0, 0) if shape is None else checked_shape(shape, asked),
        )

    def __str__(self) -> str:
        rows, columns = self.shape
        where = {
            "broadcast": f"from rank {self.root} to {self.ranks} ranks",
            "reduce": f"from {self.ranks} ranks to rank {self.root}",
            "s_to_p": f"from {len(self.sources)} to {self.ranks} ranks ({rows} × {columns})",
        }
        return (
            f"{self.collective} of {self.nbytes} bytes"
            f" {where.get(self.collective, f'on {self.ranks} ranks')}"
        )

    @property
    def whole(self) -> Block:
        """Everything the root has."""
        return Block(self.root, 0, self.nbytes)

    @property
    def usual_shape(self) -> tuple[int, int]:
        """The mesh in which ranks are seen if nobody says; (0, 0) where there is none."""
        return near_square(self.ranks) if self.collective in GATHERING else (0, 0)

    @cached_property
    def gathered(self) -> tuple[Block, ...]:
        """Everything that all sources have, by rank."""
        return tuple(Block(rank, 0, nbytes) for rank, nbytes in self.sources)
