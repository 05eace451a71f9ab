"""Two trees: no port is used twice in a round, whatever the number of ranks."""

import numpy as np
import pytest
from tests.case import in_case

from collwise.algorithms import ALGORITHMS
from collwise.errors import InvalidArgument
from collwise.schedule.two_trees import TwoTrees

RANKS = [*range(1, 24), 31, 32, 33, 34, 66, 127, 128, 257]


@pytest.mark.parametrize("latency", [1, 2, 5])
def test_everybody_gets_every_piece_once_and_ports_do_one_thing_at_a_time(latency: int) -> None:
    for p in RANKS:
        with in_case(p, "ranks"):
            rounds, count = TwoTrees(p, 5, latency), 5
            there = np.full((p, count), 10**6)  # the round in which a rank can send a piece on
            there[0] = 0
            for number, (source, target, piece) in enumerate(rounds.every()):
                assert len(np.unique(source)) == len(source)
                assert len(np.unique(target)) == len(target)
                assert (there[source, piece] <= number).all()
                assert (there[target, piece] == 10**6).all()
                there[target, piece] = number + latency
            assert there.max() < 10**6
            assert p == 1 or there.max() == count - 1 + rounds.later + latency


def test_one_rank_and_all_ranks_have_the_same_rounds() -> None:
    for p in RANKS[:-1]:
        with in_case(p, "ranks"):
            rounds = TwoTrees(p, 4, 2)
            every = [
                (number, *row)
                for number, columns in enumerate(rounds.every())
                for row in zip(*(column.tolist() for column in columns), strict=True)
            ]
            lists = [list(enumerate(rounds.of(rank))) for rank in range(p)]
            sent = [
                (number, rank, one.to, one.sent)
                for rank in range(p)
                for number, one in lists[rank]
                if one.sent is not None
            ]
            received = [
                (number, one.source, rank, one.received)
                for rank in range(p)
                for number, one in lists[rank]
                if one.received is not None
            ]
            assert sorted(sent) == sorted(received) == sorted(every)


def test_a_rank_has_children_in_one_tree_and_trees_are_not_deep() -> None:
    for p in (3, 40, 65):
        first, second = TwoTrees(p, 1, 1).places(np.arange(1, p))
        assert not set(first.parent.tolist()) & set(second.parent.tolist()) - {0}
        assert TwoTrees(p, 1, 1).later <= 2 * p.bit_length()


def test_nothing_to_send() -> None:
    for rounds in (TwoTrees(4, 0, 1), TwoTrees(1, 3, 1)):
        assert rounds.every() == []
        assert not list(rounds.of(0))
    assert TwoTrees(1, 3, 1).later == 0


@pytest.mark.parametrize("name", ["two_trees", "postal_rounds"])
def test_a_latency_that_leaves_rounds_empty_is_refused(name: str) -> None:
    """It would take minutes to pass 10^9 rounds."""
    for collective in ("broadcast", "reduce"):
        algorithm = ALGORITHMS[f"{collective}/{name}"]
        with pytest.raises(InvalidArgument, match="give a latency of at most 64"):
            algorithm.schedule(5, 40, latency=10**9, segment=8)
        algorithm.schedule(5, 40, latency=64, segment=8).rank(1)
