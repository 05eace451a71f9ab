"""The building stones of what combines: spans, trees upwards, groups that exchange, by hand."""

from collections.abc import Iterable
from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from collwise.algorithms.broadcast import binomial
from collwise.schedule.operations import Block, Combine, Copy, Operation, Recv, Send, Slot, scratch
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program
from collwise.schedule.reduction import (
    SingleRank,
    UpTree,
    equal_parts,
    run_of_parts,
)

IN, OUT = Slot.INPUT, Slot.OUTPUT
S0, S1, S2, S3 = map(scratch, range(4))
ALL = Block(0, 0, 8)


def operations(program: Program, ranks: int) -> list[list[Operation]]:
    return [program.operations(rank) for rank in range(ranks)]


def block(offset: int, length: int) -> tuple[Block, ...]:
    return (Block(0, offset, length),)


vectors = st.builds(
    lambda start, items, itemsize: (Block(0, start, items * itemsize), itemsize),
    st.integers(0, 50),
    st.integers(0, 60),
    st.integers(1, 16),
)


def covered(blocks: Iterable[Block]) -> list[int]:
    return [byte for block in blocks for byte in range(block.offset, block.end)]


@given(vectors, st.integers(1, 40))
def test_parts_of_whole_elements_as_equal_as_can_be(vector: tuple[Block, int], count: int) -> None:
    whole, itemsize = vector
    parts = equal_parts(whole, count, itemsize)
    assert len(parts) == count
    assert covered(chain.from_iterable(parts)) == covered([whole])
    assert all(len(part) <= 1 for part in parts)
    lengths = [len(covered(part)) for part in parts]
    assert all(length % itemsize == 0 for length in lengths)
    assert max(lengths) - min(lengths) <= itemsize
    assert lengths[0] == max(lengths)  # the first keeps the larger half: rank 0 decides the time
    assert all(bool(part) == bool(length) for part, length in zip(parts, lengths, strict=True))


@given(vectors, st.integers(1, 20), st.integers(0, 60), st.data())
def test_around_the_circle(
    vector: tuple[Block, int], count: int, first: int, data: st.DataObject
) -> None:
    whole, itemsize = vector
    number = data.draw(st.integers(0, count))
    parts = equal_parts(whole, count, itemsize)
    blocks = run_of_parts(whole, first, number, count, itemsize)
    wanted = [parts[(first + i) % count] for i in range(number)]
    assert covered(blocks) == covered(chain.from_iterable(wanted))
    assert len(blocks) <= 2


def test_alone() -> None:
    assert operations(SingleRank(Problem("reduce", 1, 8)), 1) == [[Copy(IN, OUT, (ALL,))]]
    assert operations(SingleRank(Problem("reduce", 1, 0)), 1) == [[]]


def test_up_a_tree_in_segments() -> None:
    one, two = block(0, 5), block(5, 3)
    up = UpTree(binomial.tree(4), 8, 5)  # 0 hears 1, then 2, which has heard 3
    assert operations(up, 4) == [
        [
            Recv(1, one, S1), Combine(IN, S1, S1, one), Recv(2, one, OUT),
            Combine(S1, OUT, OUT, one),
            Recv(1, two, S1), Combine(IN, S1, S1, two), Recv(2, two, OUT),
            Combine(S1, OUT, OUT, two),
        ],
        [Send(0, one, IN), Send(0, two, IN)],
        [
            Recv(3, one, S1), Combine(IN, S1, S1, one), Send(0, one, S1),
            Recv(3, two, S1), Combine(IN, S1, S1, two), Send(0, two, S1),
        ],
        [Send(2, one, IN), Send(2, two, IN)],
    ]  # fmt: skip
    assert operations(UpTree(binomial.tree(3), 0, 5), 3) == [[]] * 3
