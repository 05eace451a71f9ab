"""Blocks as sets: all data is cut at every boundary of every block, a set of pieces is an int."""

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import or_

from collwise.schedule.operations import Block
from collwise.verifier.postconditions import Holding, Postcondition
from collwise.verifier.wording import Lists


class Partition:
    """Blocks as sets of pieces: all data is cut wherever any block begins or ends."""

    def __init__(self, lists: Lists, promises: Sequence[Postcondition]) -> None:
        # By identity, for both ends of a message often have the same tuple, and so have many more.
        several = {id(op.blocks): op.blocks for operations in lists for op in operations}
        blocks = set().union(*several.values())
        holdings = {id(held): held for promise in promises for held in promise[:2]}
        blocks |= {block for held in holdings.values() for _, block in held}
        cuts = sorted({(b.owner, at) for b in blocks for at in (b.offset, b.end)})
        number = {cut: i for i, cut in enumerate(cuts)}
        self._cuts = cuts
        self._sets = {
            b: (1 << number[b.owner, b.end]) - (1 << number[b.owner, b.offset]) for b in blocks
        }
        self._held = {key: self._by_slot(held) for key, held in holdings.items()}
        known = {key: self.pieces(found) for key, found in several.items()}
        self.moved = [[known[id(op.blocks)] for op in operations] for operations in lists]
        """The pieces of every operation, by rank and step."""
        self.exists = 0
        """What any rank is given: there is no other data."""
        for promise in promises:
            for _, block in promise.given:
                self.exists |= self._sets[block]

    def __len__(self) -> int:
        """Number of pieces."""
        return len(self._cuts)

    def span(self, block: Block) -> slice:
        """The pieces of one block, which have consecutive numbers."""
        pieces = self._sets[block]
        return slice((pieces & -pieces).bit_length() - 1 if pieces else 0, pieces.bit_length())

    def piece(self, number: int) -> Block:
        """A piece as a block."""
        return self.first(1 << number)

    def pieces(self, blocks: Iterable[Block]) -> int:
        """The pieces of all the blocks."""
        return reduce(or_, map(self._sets.__getitem__, blocks), 0)

    def meet(self, blocks: Iterable[Block]) -> bool:
        """Whether two of the blocks have a piece in common: then their sum is not their union."""
        sets = [self._sets[block] for block in blocks]
        return sum(sets) != reduce(or_, sets, 0)

    def first(self, pieces: int) -> Block:
        """The first run of pieces without a gap, as a block."""
        low = (pieces & -pieces).bit_length() - 1
        run = ~(pieces >> low)
        owner, offset = self._cuts[low]
        return Block(owner, offset, self._cuts[low + (run & -run).bit_length() - 1][1] - offset)

    def holding(self, held: Holding) -> dict[int, int]:
        """What lies in each slot, of a promise."""
        return dict(self._held[id(held)])

    def _by_slot(self, held: Holding) -> dict[int, int]:
        found: dict[int, int] = {}
        for slot, block in held:
            found[slot] = found.get(slot, 0) | self._sets[block]
        return found
