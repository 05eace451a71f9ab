"""Rounds through a circulant graph: the conditions under which they are right."""

from random import Random

import pytest

from collwise.schedule.circulant import received, sent, skips


@pytest.mark.parametrize("ranks", [*range(2, 34), 63, 65, 100, 127, 129, 1000])
def test_the_conditions_of_the_paper(ranks: int) -> None:
    """[Traeff2024b] §2: a rank sends what it has, and gets one block of each residue."""
    numbers = skips(ranks)
    q = len(numbers) - 1
    assert q == (ranks - 1).bit_length()
    for rank in range(1, ranks) if ranks < 1000 else range(1, ranks, 37):
        own = received(ranks, rank)
        assert sorted(block % q for block in own) == [*range(q)]
        (first,) = [block for block in own if block >= 0]  # the others are of the phase before
        assert all(-q <= block < 0 for block in own if block != first)
        for k, skip in enumerate(numbers[:-1]):
            if end := (rank + skip) % ranks:
                assert received(ranks, end)[k] in (first - q, *own[:k])
    for k, skip in enumerate(numbers[:-1]):
        assert received(ranks, skip)[k] == k, "the root sends block k in round k"


def test_what_is_sent_is_what_the_other_end_receives() -> None:
    random = Random(5)
    many = [random.randrange(2, 1 << bits) for bits in (20, 40, 62) for _ in range(20)]
    cases = [(p, rank) for p in range(1, 66) for rank in range(p)]
    for ranks, rank in cases + [(p, random.randrange(p)) for p in many]:
        blocks, steps = sent(ranks, rank), skips(ranks)[:-1]
        assert len(blocks) == len(steps)
        for k, step in enumerate(steps):
            if end := (rank + step) % ranks:
                assert blocks[k] == received(ranks, end)[k], (ranks, rank, k)
