"""The building stones of programs, each written out by hand for a few ranks."""

import pytest
from tests.algorithms.examples import told

from collwise.algorithms.broadcast import binomial
from collwise.schedule.combinators import Then
from collwise.schedule.data_movement import DownTree, Scatter, ScatterCollect, pieces
from collwise.schedule.operations import Block, Operation, Recv, Send
from collwise.schedule.program import Program
from collwise.schedule.rows import of_lists
from collwise.schedule.trees import HeapTree


def operations(program: Program, ranks: int) -> list[list[Operation]]:
    lists = [program.operations(rank) for rank in range(ranks)]
    rows = program.rows(combines=False)
    assert rows is None or told(rows) == told(of_lists(lists, combines=False))
    return lists


def block(offset: int, length: int) -> tuple[Block, ...]:
    return (Block(0, offset, length),)


def test_pieces() -> None:
    assert pieces(10, 4) == [Block(0, 0, 4), Block(0, 4, 4), Block(0, 8, 2)]
    assert pieces(8, 4) == [Block(0, 0, 4), Block(0, 4, 4)]
    assert pieces(3, 100) == [Block(0, 0, 3)]
    assert pieces(0, 4) == []


def test_down_a_tree() -> None:
    """Segment after segment; a rank passes each on before it takes the next."""
    assert operations(DownTree(HeapTree(4, 2), 5, 3), 4) == [
        [Send(1, block(0, 3)), Send(2, block(0, 3)), Send(1, block(3, 2)), Send(2, block(3, 2))],
        [Recv(0, block(0, 3)), Send(3, block(0, 3)), Recv(0, block(3, 2)), Send(3, block(3, 2))],
        [Recv(0, block(0, 3)), Recv(0, block(3, 2))],
        [Recv(1, block(0, 3)), Recv(1, block(3, 2))],
    ]


@pytest.mark.parametrize("ranks", [1, 4])
def test_nothing_down_a_tree(ranks: int) -> None:
    assert operations(DownTree(HeapTree(ranks, 2), 0, 3), ranks) == [[]] * ranks


def test_scatter() -> None:
    """5 ranks, pieces of 2 of 7 bytes: 2, 2, 2, 1, 0; nobody is sent nothing."""
    scatter = Scatter(binomial.tree(5), 7, 2)  # 0 → 3 (→ 4), 2, 1
    assert operations(scatter, 5) == [
        [Send(3, block(6, 1)), Send(2, block(4, 2)), Send(1, block(2, 2))],
        [Recv(0, block(2, 2))],
        [Recv(0, block(4, 2))],
        [Recv(0, block(6, 1))],
        [],
    ]


def test_collect() -> None:
    """4 ranks, pieces of 2 of 8 bytes, after the scatter 0 → 2 (→ 3), 1: rank 2 has two pieces."""
    tree = binomial.tree(4)
    collect, scatter = (
        ScatterCollect(tree, 8, 2, (1, 2), ring=False),
        Scatter(tree, 8, 2),
    )
    both = operations(collect, 4)
    assert [ops[: len(scatter.operations(rank))] for rank, ops in enumerate(both)] == operations(
        scatter, 4
    )
    assert [ops[len(scatter.operations(rank)) :] for rank, ops in enumerate(both)] == [
        # The root has everything.  To its left is rank 3.
        [Send(3, block(0, 2)), Send(2, block(0, 4))],
        [Recv(2, block(4, 2)), Send(3, block(2, 4)), Recv(3, (Block(0, 6, 2), Block(0, 0, 2)))],
        # Rank 2 has the pieces 2 and 3 already, and gets nothing in the first step.
        [Send(1, block(4, 2)), Recv(0, block(0, 4))],
        [Recv(0, block(0, 2)), Send(1, (Block(0, 6, 2), Block(0, 0, 2))), Recv(1, block(2, 4))],
    ]


def test_one_after_another() -> None:
    down, up = DownTree(HeapTree(3, 1), 4, 4), DownTree(HeapTree(3, 2), 4, 2)
    chained = operations(Then((down, up)), 3)
    assert chained == [down.operations(rank) + up.operations(rank) for rank in range(3)]
