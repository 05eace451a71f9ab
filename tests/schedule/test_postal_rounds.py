"""Rounds played for a latency: what each round may be, and how many there are."""

import pytest

from collwise.model import postal
from collwise.schedule.postal_rounds import PostalRounds, distances


@pytest.mark.parametrize("latency", [1, 2, 3, 8, 20])
@pytest.mark.parametrize("ranks", [1, 2, 3, 7, 16, 33])
@pytest.mark.parametrize("count", [0, 1, 5, 12])
def test_rounds(ranks: int, count: int, latency: int) -> None:
    """Every rank gets every piece once, from one that had it, a latency before at least."""
    rounds = PostalRounds(ranks, count, latency)
    since = {(0, piece): -latency for piece in range(count)}
    for number, (sources, targets, pieces) in enumerate(rounds.every()):
        for source, target, piece in zip(sources, targets, pieces, strict=True):
            assert since[source, piece] <= number - latency
            assert (target, piece) not in since
        since |= dict.fromkeys(zip(targets, pieces, strict=True), number)
    assert len(since) == ranks * count


@pytest.mark.parametrize("latency", [2, 4])
def test_few_rounds_more_than_there_can_be(latency: int) -> None:
    for ranks in (5, 13, 34, 65):
        for count in (4, 16):
            last = len(PostalRounds(ranks, count, latency).every()) - 1 + latency
            least = count - 1 + postal.broadcast_time(ranks, latency)
            assert least - count < last <= least + 7


def test_distances() -> None:
    assert distances(1, 3) == []
    assert distances(2, 1000) == [1]
    assert distances(14, 2) == [13, 8, 5, 3, 2, 1]
    assert distances(16, 1) == [8, 4, 2, 1]
