"""Blocks as sets of pieces; the pieces are the data between the boundaries of all blocks.

A set of pieces is an int, with a bit for each piece.
"""

from collections.abc import Iterable
from functools import reduce
from operator import or_

from collwise.schedule.operations import Block, Copy
from collwise.schedule.problem import Problem
from collwise.verifier.violations import Lists


class Partition:
    """The pieces into which the blocks of a problem and its operations cut the data."""

    def __init__(self, lists: Lists, problem: Problem) -> None:
        ranks = range(problem.ranks)
        inputs = [problem.input_of(rank) for rank in ranks]
        outputs = [problem.output_of(rank) for rank in ranks]
        # By identity: both ends of a message, and many other operations, often share one tuple.
        moved = (op.blocks for operations in lists for op in operations)
        distinct = {id(blocks): blocks for blocks in (*inputs, *outputs, *moved)}
        shifted = {
            (block, op.shift)
            for operations in lists
            for op in operations
            if isinstance(op, Copy) and op.shift
            for block in op.blocks
        }
        blocks = set().union(*distinct.values(), (_shifted(*one) for one in shifted))
        cuts = {(b.owner, at) for b in blocks for at in (b.offset, b.end)}
        self._cuts = sorted(_cut_alike(cuts, shifted) if shifted else cuts)
        number = {cut: i for i, cut in enumerate(self._cuts)}
        self._sets = {
            b: (1 << number[b.owner, b.end]) - (1 << number[b.owner, b.offset]) for b in blocks
        }
        pieces = {key: self.pieces(several) for key, several in distinct.items()}
        self.moved = [[pieces[id(op.blocks)] for op in operations] for operations in lists]
        """By rank and step, the set of pieces that an operation moves or combines."""
        self.inputs = [pieces[id(blocks)] for blocks in inputs]
        """By rank, the set of pieces that the rank has at the start."""
        self.outputs = [pieces[id(blocks)] for blocks in outputs]
        """By rank, the set of pieces that the rank must have in its output in the end."""

    def span(self, block: Block) -> range:
        """The numbers of the pieces of one block; they are consecutive."""
        pieces = self._sets[block]
        return range((pieces & -pieces).bit_length() - 1 if pieces else 0, pieces.bit_length())

    def piece(self, number: int) -> Block:
        """The piece with this number, as a block."""
        return self.first(1 << number)

    def pieces(self, blocks: Iterable[Block]) -> int:
        """The set of all pieces of the blocks."""
        return reduce(or_, map(self._sets.__getitem__, blocks), 0)

    def overlap(self, blocks: Iterable[Block]) -> bool:
        """Whether two of the blocks have a piece in common."""
        sets = [self._sets[block] for block in blocks]
        return sum(sets) != reduce(or_, sets, 0)

    def first(self, pieces: int) -> Block:
        """The first run of consecutive pieces in a set of pieces, as one block."""
        low = (pieces & -pieces).bit_length() - 1
        run = ~(pieces >> low)
        owner, offset = self._cuts[low]
        return Block(owner, offset, self._cuts[low + (run & -run).bit_length() - 1][1] - offset)


def _shifted(block: Block, shift: int) -> Block:
    return block._replace(offset=block.offset + shift)


def _cut_alike(cuts: set[tuple[int, int]], shifted: set[tuple[Block, int]]) -> set[tuple[int, int]]:
    """All cuts, and further ones so that a block and its shifted copy are cut at the same places.

    shifted: (block, shift) pairs of copies.
    """
    before = 0
    while before < len(cuts):
        before = len(cuts)
        for (owner, offset, length), shift in shifted:
            inside = [at - offset for o, at in cuts if o == owner and offset < at < offset + length]
            there = offset + shift
            inside += [at - there for o, at in cuts if o == owner and there < at < there + length]
            cuts |= {(owner, begin + at) for at in inside for begin in (offset, there)}
    return cuts
