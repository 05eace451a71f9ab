"""Blocks as sets: all data is cut at every boundary of every block, a set of pieces is an int."""

from collections.abc import Iterable, Sequence

from collwise.schedule.data import Block
from collwise.verifier.promises import Holding, Promise
from collwise.verifier.words import Lists


class Atlas:
    """Blocks as sets of pieces: all data is cut wherever any block begins or ends."""

    def __init__(self, lists: Lists, promises: Sequence[Promise]) -> None:
        blocks = {block for operations in lists for op in operations for block in op.blocks}
        blocks |= {block for promise in promises for held in promise[:2] for _, block in held}
        cuts = sorted({(b.owner, at) for b in blocks for at in (b.offset, b.end)})
        number = {cut: i for i, cut in enumerate(cuts)}
        self._cuts = cuts
        self._sets = {
            b: (1 << number[b.owner, b.end]) - (1 << number[b.owner, b.offset]) for b in blocks
        }
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
        found = 0
        for block in blocks:
            found |= self._sets[block]
        return found

    def first(self, pieces: int) -> Block:
        """The first run of pieces without a gap, as a block."""
        low = (pieces & -pieces).bit_length() - 1
        run = ~(pieces >> low)
        owner, offset = self._cuts[low]
        return Block(owner, offset, self._cuts[low + (run & -run).bit_length() - 1][1] - offset)

    def holding(self, held: Holding) -> dict[int, int]:
        """What lies in each slot."""
        found: dict[int, int] = {}
        for slot, block in held:
            found[slot] = found.get(slot, 0) | self._sets[block]
        return found
