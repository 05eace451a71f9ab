"""The problem that a schedule solves: a collective, its sizes, who has data, combining order."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from collwise.errors import InvalidArgument, UnknownName
from collwise.model.bounds import Bound
from collwise.model.levels import Levels
from collwise.model.machine import Machine
from collwise.model.placement import Placement, checked_placement
from collwise.model.sources import checked
from collwise.model.topology import near_square
from collwise.schedule.collectives import (
    Collective,
    check_about,
    find_collective,
    kind_of,
)
from collwise.schedule.operations import Block, Slot
from collwise.system.formatting import count
from collwise.system.integers import checked_integer, checked_shape

Order: TypeAlias = Literal["any", "same", "rank", "fixed"]
"""The order in which contributions are combined.  "any": any order.  "same": the same order on all
ranks, so that all ranks end with the same bits.  "rank": rank order, for operators that do not
commute.  "fixed": rank order, with the same brackets in every schedule (the function `brackets`
gives them), so that the bits depend on nothing but the contributions.
"""
ORDERS: tuple[Order, ...] = ("any", "same", "rank", "fixed")
"""Combining orders, the weakest first: each satisfies those before it."""


def satisfies(order: Order, required: Order) -> bool:
    """Whether combining in `order` satisfies `required`.

    Raises UnknownName if `required` is not in ORDERS.
    """
    return ORDERS.index(order) >= ORDERS.index(_checked_order(required))


def _checked_order(order: Order) -> Order:
    if not isinstance(order, str) or order not in ORDERS:
        raise UnknownName.of("order", order, ORDERS)
    return order


def brackets(ranks: int) -> Iterator[tuple[int, int]]:
    """The combines of the order "fixed" for `ranks` >= 1 contributions, by recursive doubling.

    If `ranks` is 2^k + e with 0 <= e < 2^k, contributions 2i and 2i + 1 are combined for every
    i < e.  Then neighbours are combined until one value is left, in a balanced tree.
    Yields pairs (left, right).  A value has the index of its last contribution, so the result of
    combining left and right has the index `right`.
    """
    whole = 1 << ranks.bit_length() - 1
    extra = ranks - whole
    yield from ((2 * number, 2 * number + 1) for number in range(extra))
    last = [number + min(number + 1, extra) for number in range(whole)]
    while len(last) > 1:
        yield from zip(last[::2], last[1::2], strict=True)
        last = last[1::2]


NO_SOURCES = "it has no sources, and no mesh"


class Source(NamedTuple):
    """A rank that contributes data, and the number of its bytes, at least 1."""

    rank: int
    nbytes: int


@dataclass(frozen=True)
class Problem:
    """What a schedule solves: `collective` of nbytes >= 0 over `ranks` >= 1, from or to `root`.

    collective: a name or alias of `COLLECTIVES`; any other name for a schedule written by hand.
    nbytes: bytes of the root's data, of each rank's vector, or of all sources' data together.
    itemsize: bytes of an element, >= 1; divides nbytes.  Collectives that combine cut no element.
    order: for collectives that combine, the order in which they combine contributions.
    sources: for collectives with sources, which ranks have data, and how many bytes each.
    shape: for collectives with sources, rows and columns of the mesh of ranks, numbered row by row;
    (0, 0) for nearly equal ones.   placement: every rank's node, rack, …; None without levels.
    Raises UnknownName for an order not in ORDERS, and InvalidArgument if a number is out of range,
    or if a field has no meaning for the collective or contradicts the others.
    """

    collective: str
    ranks: int
    nbytes: int
    root: int = 0
    itemsize: int = 1
    order: Order = "any"
    sources: tuple[Source, ...] = ()
    shape: tuple[int, int] = (0, 0)
    placement: Placement | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "collective", self.kind.name)
        for name, word, least in (
            ("ranks", "over", 1),
            ("nbytes", "of", 0),
            ("root", "from", 0),
            ("itemsize", "of", 1),
        ):
            asked = f"{self.collective} {word} `{name}`"
            # Python integers: those of NumPy overflow, and have no bit_length.
            object.__setattr__(self, name, checked_integer(getattr(self, name), asked, name, least))
        if self.root >= self.ranks:
            raise InvalidArgument(
                f"{self.collective} from root {self.root}",
                f"it has {count(self.ranks, 'rank')}",
                f"give a root from 0 to {self.ranks - 1}",
            )
        if _checked_order(self.order) != "any":
            check_about([self.collective], ["order"])
        if self.root and not self.kind.rooted:
            raise InvalidArgument(
                f"{self.collective} with root {self.root}",
                "it has no root: all ranks get the result",
                "leave the root out",
            )
        if self.nbytes % self.itemsize:
            raise InvalidArgument(
                f"{self.collective} of elements of {self.itemsize} bytes",
                f"nbytes = {self.nbytes}, which is no multiple",
                "give the bytes of whole elements",
            )
        if self.nbytes % (unit := self.kind.unit(self.ranks, self.itemsize)):
            raise InvalidArgument(
                f"{self.collective} of {self.nbytes} bytes over {self.ranks} ranks",
                f"they are not {self.ranks} equal blocks of whole elements",
                f"give a multiple of {unit} bytes",
            )
        self._check_sources()
        if self.placement is not None:
            asked = f"{self.collective} over {self.ranks} ranks"
            if checked_placement(self.placement, asked).ranks != self.ranks:
                seen = f"a placement of {self.placement.ranks}"
                raise InvalidArgument(asked, seen, "place every rank")
            if self.placement.depth == 1:
                object.__setattr__(self, "placement", None)

    def _check_sources(self) -> None:
        asked = f"{self.collective} over {self.ranks} ranks"
        if not self.kind.has_sources:
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

    def _source(self, pair: Source, asked: str) -> Source:
        if not isinstance(pair, tuple) or len(pair) != len(Source._fields):
            raise InvalidArgument(asked, f"a source is {pair!r}", "give its rank and its bytes")
        source = Source(
            checked_integer(pair[0], asked, "a source", 0),
            checked_integer(pair[1], asked, "its nbytes", 1),
        )
        if source.nbytes % self.itemsize:
            seen = f"source {source.rank} has {source.nbytes} bytes, an element {self.itemsize}"
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
        itemsize: int = 1,
        order: Order = "any",
        sources: Sequence[int] | None = None,
        shape: tuple[int, int] | None = None,
        placement: Placement | None = None,
    ) -> "Problem":
        """A problem from arguments as users give them.

        nbytes: bytes of the message or of each rank's vector; with sources, bytes of each source,
        or a sequence with one number per source.   sources: ranks, of which those with 0 bytes are
        left out; None for collectives without sources.   shape: None for the usual shape.
        The other arguments are fields of `Problem`.  Raises the same errors as `Problem`.
        """
        if not kind_of(collective).has_sources:
            if isinstance(nbytes, Sequence):
                asked, remedy = f"{collective} of several sizes", "give one number of bytes"
                raise InvalidArgument(asked, f"nbytes = {nbytes!r}", remedy)
            if sources is not None or shape is not None:
                raise InvalidArgument(collective, NO_SOURCES, "leave sources and shape out")
            return cls(collective, ranks, nbytes, root, itemsize, order, placement=placement)
        collective = kind_of(collective).name
        asked = f"{collective} over {ranks} ranks"
        if sources is None:
            seen, remedy = (
                "nothing says which ranks have data",
                "give the sources (range(ranks): all)",
            )
            raise InvalidArgument(asked, seen, remedy)
        ranks = checked_integer(ranks, f"{collective} over `ranks`", "ranks")
        with suppress(TypeError):  # more sources than ranks are an error anyway
            sources = list(islice(sources, min(ranks + 1, sys.maxsize)))
        checked(sources, ranks)
        if isinstance(nbytes, Sequence) or (isinstance(nbytes, np.ndarray) and nbytes.ndim):
            each = list(nbytes)
        else:
            each = [nbytes] * len(sources)
        if len(each) != len(sources):
            seen = f"{len(sources)} sources, and bytes for {len(each)}"
            raise InvalidArgument(asked, seen, "give one number for all, or one for each")
        lengths = [checked_integer(n, f"{asked}, of `nbytes`", "nbytes", 0) for n in each]
        given = tuple(Source(int(r), n) for r, n in zip(sources, lengths, strict=True) if n)
        mesh = (0, 0) if shape is None else checked_shape(shape, asked)
        return cls(collective, ranks, sum(lengths), root, itemsize, order, given, mesh, placement)

    def __str__(self) -> str:
        where = self.kind.where.format(
            ranks=f"{self.ranks} rank" + "s" * (self.ranks > 1),
            root=self.root,
            sources=len(self.sources),
            rows=self.shape[0],
            columns=self.shape[1],
        )
        return f"{self.collective} of {self.nbytes} bytes {where}"

    @property
    def kind(self) -> Collective:
        """The collective's entry in `COLLECTIVES`; for an unknown name, what `kind_of` makes."""
        return kind_of(self.collective)

    @property
    def whole(self) -> Block:
        """All bytes of the root's data, or of every rank's vector, as one block of the root."""
        return Block(self.root, 0, self.nbytes)

    @property
    def vector(self) -> tuple[Block, ...]:
        """All bytes of every rank's vector as one block with owner 0; no block for 0 bytes."""
        return (Block(0, 0, self.nbytes),) if self.nbytes else ()

    @property
    def usual_shape(self) -> tuple[int, int]:
        """The default rows and columns of the mesh, nearly equal; (0, 0) without sources."""
        return near_square(self.ranks) if self.kind.has_sources else (0, 0)

    @property
    def all_give_alike(self) -> bool:
        """Whether every rank is a source, and all sources have the same number of bytes."""
        lengths = {source.nbytes for source in self.sources}
        return len(self.sources) == self.ranks and len(lengths) == 1

    @property
    def method(self) -> str:
        """The MPI method that programs call: if several can do it, the least general one."""
        return self.kind.methods[-1 if self.all_give_alike else 0]

    @cached_property
    def gathered(self) -> tuple[Block, ...]:
        """The contributions of all sources, one block each, ordered by rank."""
        return tuple(Block(rank, 0, nbytes) for rank, nbytes in self.sources)

    @property
    def input_slot(self) -> Slot:
        """The slot in which ranks have their data at the start.

        In a collective that combines, it is the input slot; in all others, the output slot.
        """
        return Slot.INPUT if self.kind.combines else Slot.OUTPUT

    def input_of(self, rank: int) -> tuple[Block, ...]:
        """The blocks that a rank has at the start, in `input_slot`."""
        if self.kind.has_sources:
            return self._contributions.get(rank, ())
        return (self.whole,) if self.kind.input == "everyone" or rank == self.root else ()

    @cached_property
    def _contributions(self) -> dict[int, tuple[Block, ...]]:
        return {block.owner: (block,) for block in self.gathered}

    def output_of(self, rank: int) -> tuple[Block, ...]:
        """The blocks that a rank has in its output at the end."""
        if not self.kind.has_output(rank, self.root):
            return ()
        if self.kind.output == "own block":
            length = self.nbytes // self.ranks
            return (Block(self.root, rank * length, length),)
        return self.gathered if self.kind.has_sources else (self.whole,)

    def lower_bounds(self, machine: Machine) -> tuple[Bound, Bound]:
        """Two lower bounds on the time on a machine: for all schedules, and for unsegmented ones.

        An unsegmented schedule cuts no vector, no result block of a reduce-scatter, and no source's
        contribution.  Raises UnknownName for a collective that is not in the table.
        """
        kind = find_collective(self.collective)
        amount = [source.nbytes for source in self.sources] if kind.has_sources else self.nbytes
        arguments = machine, self.ranks, amount
        return kind.bound(*arguments), kind.unsegmented_bound(*arguments)


def placed(problem: Problem, machine: Machine) -> Problem:
    """The problem with the placement of a machine with levels; unchanged for other machines."""
    if not isinstance(machine, Levels):
        return problem
    return replace(problem, placement=machine.placement)
