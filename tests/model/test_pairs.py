"""The bound of allreduces that weighs rounds against bytes: nothing is faster, by brute force."""

from collections.abc import Iterable, Iterator
from fractions import Fraction
from heapq import heappop, heappush
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collwise.model.machine import Machine
from collwise.model.pace import LARGEST, Line
from collwise.model.pairs import all_connected
from collwise.schedule.problem import Problem

F = Fraction


def bound(ranks: int, nbytes: int, byte: Fraction, combining: int = 0) -> Fraction:
    """In units of a message's start; combining: of a byte, in units of a 100th of that."""
    return all_connected([Line(F(1), byte, F(1))], ranks, nbytes, F(combining, 100))


Known = tuple[tuple[frozenset[int], ...], ...]
"""Of each rank and each byte, whose contributions are there."""


def rounds(ranks: int, nbytes: int) -> Iterator[tuple[tuple[int, tuple[int, ...]], ...]]:
    """All that ranks can send at once: each some bytes to another one, or nothing."""
    some = [s for s in product((0, 1), repeat=nbytes) if any(s)]
    to = [[(-1, ()), *product(set(range(ranks)) - {rank}, some)] for rank in range(ranks)]
    for sent in product(*to):
        targets = [target for target, _ in sent if target >= 0]
        if targets and len(set(targets)) == len(targets):
            yield sent


def after(known: Known, sent: Iterable[tuple[int, tuple[int, ...]]]) -> Known:
    later = [list(row) for row in known]
    for source, (target, some) in enumerate(sent):
        for byte, there in enumerate(some):
            if there:
                later[target][byte] |= known[source][byte]
    return tuple(map(tuple, later))


def soonest_in_rounds(ranks: int, nbytes: int, byte: Fraction) -> Fraction:
    """Of all allreduces in rounds, the least time: the shortest path through what is known."""
    every = list(rounds(ranks, nbytes))
    start: Known = tuple((frozenset([rank]),) * nbytes for rank in range(ranks))
    queue, number, done = [(F(0), 0, start)], 0, set[Known]()
    while True:
        time, _, known = heappop(queue)
        if all(len(who) == ranks for row in known for who in row):
            return time
        if known in done:
            continue
        done.add(known)
        for sent in every:
            if (later := after(known, sent)) not in done:
                number += 1
                took = 1 + byte * max(sum(some) for _, some in sent)
                heappush(queue, (time + took, number, later))


@pytest.mark.no_cover
@pytest.mark.parametrize("byte", [F(1, 10), F(1), F(5)])
def test_no_allreduce_in_rounds_is_faster(byte: Fraction) -> None:
    for ranks, nbytes in ((2, 1), (2, 2), (3, 1)):
        assert 1 < bound(ranks, nbytes, byte) <= soonest_in_rounds(ranks, nbytes, byte)


@pytest.mark.exhaustive
@pytest.mark.parametrize("byte", [F(1, 100), F(1, 10), F(1)])
@pytest.mark.parametrize(("ranks", "nbytes"), [(3, 2), (4, 1)])
def test_no_allreduce_of_more_ranks_is_faster(byte: Fraction, ranks: int, nbytes: int) -> None:
    assert bound(ranks, nbytes, byte) <= soonest_in_rounds(ranks, nbytes, byte)


@pytest.mark.no_cover
@given(st.data())
@settings(max_examples=60)
def test_nothing_that_connects_all_is_faster(data: st.DataObject) -> None:
    """Messages of any bytes between any ranks, until all is known; each as soon as it can be."""
    ranks, nbytes = data.draw(st.integers(2, 5)), data.draw(st.integers(1, 4))
    byte = data.draw(st.builds(F, st.integers(1, 40), st.just(10)))
    known = [[{rank} for _ in range(nbytes)] for rank in range(ranks)]
    there = [[F(0)] * nbytes for _ in range(ranks)]  # when it was
    send_free, receive_free = [F(0)] * ranks, [F(0)] * ranks
    while useful := [
        (source, target)
        for source, target in product(range(ranks), repeat=2)
        if any(known[source][k] - known[target][k] for k in range(nbytes))
    ]:
        source, target = data.draw(st.sampled_from(useful))
        news = [k for k in range(nbytes) if known[source][k] - known[target][k]]
        some = data.draw(st.lists(st.sampled_from(news), min_size=1, unique=True))
        start = max(send_free[source], receive_free[target], *(there[source][k] for k in some))
        end = start + 1 + byte * len(some)
        send_free[source] = receive_free[target] = end
        for k in some:
            known[target][k] |= known[source][k]
            there[target][k] = max(there[target][k], end)
    assert bound(ranks, nbytes, byte) <= max(receive_free)


@pytest.mark.parametrize("ranks", [8, 64, 1024, 1 << 20])
@pytest.mark.parametrize("nbytes", [1, 10, 100, 1000, 10_000])
def test_it_is_near_what_hybrids_take(ranks: int, nbytes: int) -> None:
    """Halve a vector j times, exchange what is left in all other directions, put it together."""
    byte, directions = F(1, 100), ranks.bit_length() - 1
    best = min(
        directions + j + nbytes * byte * (2 - F(2, 2**j) + F(directions - j, 2**j))
        for j in range(directions + 1)
    )
    others = F(2 * (ranks - 1), ranks) * nbytes * byte, directions + nbytes * byte
    assert F(1, 2) * best < max(bound(ranks, nbytes, byte), *others)
    assert bound(ranks, nbytes, byte) <= best


def test_combining_takes_time() -> None:
    """Of the bytes that ports can pass while they combine nothing."""
    times = [bound(64, 100, F(1, 10), share) for share in (0, 1, 50, 1000)]
    assert times == sorted(times)
    assert times[0] < times[2]
    assert times[3] > F(63, 64) * 100 * 10 * F(999, 1000)


def test_it_is_the_bound_where_it_is_the_largest() -> None:
    hockney = Machine.hockney(alpha_s=F(1, 10**6), beta_s=F(1, 10**9))
    found, _ = Problem("allreduce", 64, 2400, itemsize=8).lower_bounds(hockney)
    assert found.time == bound(64, 2400, F(1, 1000)) / 10**6 > F(10, 10**6)
    assert (
        found.argument == "every rank needs every byte of every rank: fewer rounds cost more bytes"
    )


def test_costs_beyond_floats_are_left_to_the_other_bounds() -> None:
    assert bound(4, 10**9, F(LARGEST)) == bound(4, 1, F(1, LARGEST**2)) == 0
    assert all_connected([], 4, 8, F(0)) == 0
