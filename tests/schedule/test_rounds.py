"""Rounds of any kind: legal, the same for one rank and for all, and as short as they are said."""

from typing import Any

import numpy as np
import pytest

from collwise.algorithms import ALGORITHMS
from collwise.errors import InvalidArgument
from collwise.model import postal
from collwise.model.limits import ARRANGED_RANKS
from collwise.schedule.circulant import Circulant
from collwise.schedule.cyclic_trees import CyclicTrees, arrangement
from collwise.schedule.dependencies import dependencies
from collwise.schedule.free_rounds import FreeRounds
from collwise.schedule.operations import Block
from collwise.schedule.postal_rounds import PostalRounds, distances
from collwise.schedule.rounds import DownRounds, Rounds, UpRounds
from collwise.schedule.two_trees import TwoTrees
from collwise.verifier.deadlock import check_progress


def last_there(rounds: Rounds) -> int:
    """When the last piece is there, after checking every message, and every rank's own list."""
    sent: dict[tuple[int, int], tuple[int, int]] = {}
    received: dict[tuple[int, int], tuple[int, int]] = {}
    since = {(0, piece): -rounds.latency for piece in range(rounds.count)}
    for number, columns in enumerate(rounds.every()):
        news = list(zip(*(column.tolist() for column in columns), strict=True))
        for source, target, piece in news:
            assert since[source, piece] <= number - rounds.latency
            assert (target, piece) not in since
            assert (source, number) not in sent
            assert (target, number) not in received
            sent[source, number], received[target, number] = (target, piece), (source, piece)
        since |= {(target, piece): number for _, target, piece in news}
    assert len(since) == rounds.ranks * rounds.count
    own = [(rank, n, one) for rank in range(rounds.ranks) for n, one in enumerate(rounds.of(rank))]
    out = {(rank, n): (one.to, one.sent) for rank, n, one in own if one.sent is not None}
    got = {
        (rank, n): (one.source, one.received) for rank, n, one in own if one.received is not None
    }
    assert (out, got) == (sent, received)
    return max(since.values(), default=-rounds.latency) + rounds.latency


# --- around a circulant graph: tests/schedule/test_circulant.py has the paper's conditions ---


@pytest.mark.parametrize("ranks", [1, 2, 3, 7, 8, 9, 33])
def test_circulant_rounds(ranks: int) -> None:
    """All have all pieces after k − 1 + ⌈log2 p⌉ rounds."""
    for count in (1, 2, 5, 8):
        last = last_there(Circulant(ranks, count, 1))
        assert last == (count - 1 + (ranks - 1).bit_length()) * (ranks > 1)


# --- trees that turn with the pieces ---


@pytest.mark.parametrize(
    ("ranks", "latency", "more"),
    [(1, 3, 0), (2, 4, 0), (3, 20, 0), (8, 8, 0), (33, 8, 2), (64, 20, 1)],
)
def test_cyclic_trees(ranks: int, latency: int, more: int) -> None:
    """No root that sends each piece once is faster than with 0 rounds more."""
    for count in (0, 1, 5, 40):
        last = last_there(CyclicTrees(ranks, count, latency))
        if count and ranks > 1:
            assert last == count - 1 + latency + postal.broadcast_time(ranks - 1, latency) + more


def test_where_no_trees_fit() -> None:
    assert arrangement(0, 3) is None
    assert arrangement(3, 8) is None  # no sum of times can be a multiple of 3
    assert arrangement(ARRANGED_RANKS, 20) is None
    assert arrangement(12, 1) is not None  # after several attempts


# --- rounds of one distance each, and rounds with free choice ---


@pytest.mark.parametrize("latency", [1, 2, 4, 20])
@pytest.mark.parametrize("ranks", [1, 2, 3, 8, 17, 33])
def test_free_rounds(ranks: int, latency: int) -> None:
    """Hardly slower than rounds of one distance each, and mostly faster."""
    for count in (0, 1, 7, 30):
        free, played = FreeRounds(ranks, count, latency), PostalRounds(ranks, count, latency)
        last = last_there(free)
        assert last <= last_there(played) + (5 if latency == 1 else 2)
        if count == 1:
            assert last == postal.broadcast_time(ranks, latency)


def test_few_rounds_more_than_there_can_be() -> None:
    for ranks in (5, 13, 34, 65):
        for latency in (2, 4):
            last = len(PostalRounds(ranks, 16, latency).every()) - 1 + latency
            least = 16 - 1 + postal.broadcast_time(ranks, latency)
            assert least - 16 < last <= least + 7


def test_distances() -> None:
    assert distances(1, 3) == []
    assert distances(2, 1000) == [1]
    assert distances(14, 2) == [13, 8, 5, 3, 2, 1]
    assert distances(16, 1) == [8, 4, 2, 1]


def test_free_rounds_over_levels() -> None:
    """Every piece crosses once, and soon; nobody sends what is not there, or hears two at once."""
    sites = (0, 0, 0, 0, 1, 1, 1, 1)
    rounds = FreeRounds(8, 20, 2, (sites,), (2, 9))
    assert rounds.uneven
    since, heard = {(0, piece): 0 for piece in range(20)}, set[tuple[int, int]]()
    crossed: dict[int, int] = {}
    for number, messages in enumerate(rounds.messages):
        for source, target, piece, level in sorted(messages):
            assert level == (sites[source] != sites[target])
            assert since[source, piece] <= number
            there = number + (2, 9)[level]
            assert (target, there) not in heard
            assert (target, piece) not in since
            heard.add((target, there))
            since[target, piece] = there
            if level:
                assert piece not in crossed
                crossed[piece] = number
    assert len(since) == 8 * 20
    assert max(since.values()) == rounds.last <= 20 + 2 + 9 + 8
    assert all(number <= piece + 3 for piece, number in crossed.items())
    for rank in range(8):  # what comes from afar may be sent on as soon as what comes from near
        for number, one in enumerate(rounds.of(rank)):
            if one.received is not None:
                assert since[rank, one.received] == number + rounds.latency


def test_where_ranks_would_wait_in_a_circle() -> None:
    """Three levels: what takes longer is then received in the round in which it is sent."""
    racks = ((0, 0, 1, 1, 2, 2, 3, 3), (0, 0, 0, 0, 1, 1, 1, 1))
    rounds = FreeRounds(8, 12, 2, racks, (2, 5, 20))
    assert not rounds.uneven
    pieces = tuple(Block(0, number, 1) for number in range(12))
    for program in (DownRounds(rounds, pieces), UpRounds(rounds, pieces)):
        check_progress(lists := program.every(8), [dependencies(own) for own in lists])
    heard = [sum(one.received is not None for one in rounds.of(rank)) for rank in range(8)]
    assert heard == [0, *[12] * 7]


# --- two trees ---


@pytest.mark.parametrize("latency", [1, 2, 5])
def test_two_trees(latency: int) -> None:
    for ranks in (*range(1, 24), 31, 32, 33, 34, 66, 127, 128):
        for count in (0, 5):
            rounds = TwoTrees(ranks, count, latency)
            last = last_there(rounds)
            assert last == (count - 1 + rounds.later + latency if count and ranks > 1 else 0)


def test_a_rank_has_children_in_one_of_two_trees_and_they_are_not_deep() -> None:
    for ranks in (3, 40, 65):
        first, second = TwoTrees(ranks, 1, 1).places(np.arange(1, ranks))
        assert not set(first.parent.tolist()) & set(second.parent.tolist()) - {0}
        assert TwoTrees(ranks, 1, 1).later <= 2 * ranks.bit_length()


# --- what would take too long ---


@pytest.mark.parametrize("name", ["two_trees", "postal_rounds"])
def test_a_latency_that_leaves_rounds_empty_is_refused(name: str) -> None:
    """It would take minutes to pass 10^9 rounds."""
    for collective in ("broadcast", "reduce"):
        algorithm = ALGORITHMS[f"{collective}/{name}"]
        with pytest.raises(InvalidArgument, match="give a latency of at most 64"):
            algorithm.schedule(5, 40, latency=10**9, segment=8)
        algorithm.schedule(5, 40, latency=64, segment=8).rank(1)


@pytest.mark.parametrize("name", ["broadcast/postal_rounds", "allgatherv/postal_rounds"])
def test_rounds_that_would_be_played_too_long(name: str) -> None:
    more: dict[str, Any] = {"sources": [0, 5], "pieces": 4} if "allgatherv" in name else {}
    with pytest.raises(InvalidArgument, match="would be played on all of them; choose fewer"):
        ALGORITHMS[name].schedule(1 << 20, 512, latency=3, **more or {"segment": 128})
