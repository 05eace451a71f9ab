"""The bound of allreduces that counts ways against bytes: nothing is faster, by brute force."""

from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import cache
from heapq import heappop, heappush
from itertools import product
from math import floor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collwise.model import chains, postal
from collwise.model.chains import all_chained
from collwise.model.machine import Machine
from collwise.model.measured_machine import measured
from collwise.model.pace import Line, lines_below
from collwise.schedule.problem import Problem

F = Fraction


def bound(ranks: int, nbytes: int, byte: Fraction, lam: Fraction | int = 1) -> Fraction:
    """In units of a message's start, as is byte."""
    return all_chained([Line(F(1), byte, F(lam))], ranks, nbytes, F(0))


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


LONG = pytest.mark.exhaustive


@pytest.mark.no_cover
@pytest.mark.parametrize("byte", [F(1, 10), F(1), F(5), pytest.param(F(1, 100), marks=LONG)])
@pytest.mark.parametrize(
    ("ranks", "nbytes"),
    [(2, 1), (2, 2), (3, 1), pytest.param(3, 2, marks=LONG), pytest.param(4, 1, marks=LONG)],
)
def test_no_allreduce_in_rounds_is_faster(byte: Fraction, ranks: int, nbytes: int) -> None:
    shortest = soonest_in_rounds(ranks, nbytes, byte)
    assert bound(ranks, nbytes, byte) <= shortest
    assert bound(ranks, nbytes, byte) > 1 or byte < F(1, 10)


@pytest.mark.no_cover
@given(st.data())
@settings(max_examples=30)
def test_nothing_that_connects_all_is_faster(data: st.DataObject) -> None:
    """Messages of any bytes between any ranks, until all is known; each as soon as it can be."""
    ranks, nbytes = data.draw(st.integers(2, 5)), data.draw(st.integers(1, 4))
    byte = data.draw(st.builds(F, st.integers(1, 40), st.just(10)))
    lam = data.draw(st.sampled_from([F(1), F(3, 2), F(2), F(5)]))
    known = [[{rank} for _ in range(nbytes)] for rank in range(ranks)]
    there = [[F(0)] * nbytes for _ in range(ranks)]  # when it was
    send_free, received = [F(0)] * ranks, [F(-99)] * ranks
    while useful := [
        (source, target)
        for source, target in product(range(ranks), repeat=2)
        if any(known[source][k] - known[target][k] for k in range(nbytes))
    ]:
        source, target = data.draw(st.sampled_from(useful))
        news = [k for k in range(nbytes) if known[source][k] - known[target][k]]
        some = data.draw(st.lists(st.sampled_from(news), min_size=1, unique=True))
        start = max(send_free[source], *(there[source][k] for k in some))
        gap = 1 + byte * len(some)
        send_free[source] = start + gap
        received[target] = max(start + lam * gap, received[target] + gap)
        for k in some:
            known[target][k] |= known[source][k]
            there[target][k] = max(there[target][k], received[target])
    assert bound(ranks, nbytes, byte, lam) <= max(received)


@pytest.mark.parametrize("lam", [F(1), F(5, 2), F(8)])
def test_the_slow_twin_finds_the_same(lam: Fraction) -> None:
    """Chain by chain, as the argument says it."""
    gaps, shares, horizon = [4, 5, 7, 12], [0.1, 0.25, 0.5, 1.0], 90
    latencies = [floor(lam * gap) for gap in gaps]
    lengths = chains._lengths(horizon // latencies[0])
    messages = list(zip(gaps, shares, latencies, strict=True))

    @cache
    def most(last: int, number: int, time: int) -> float:
        """What chains of so many messages weigh whose exponent is that of the length `last`."""
        if time < 0:
            return 0.0
        best = most(last, number, time - 1) if number else 1.0
        for gap, share, latency in messages if number else []:
            went = share ** (1 / last) * most(last, number - 1, time - latency)
            best = max(best, went + most(last, number, time - gap))
        return best

    def weigh(time: int) -> float:
        rows = zip([0, *lengths], lengths, strict=False)
        return sum(most(high, g, time) for low, high in rows for g in range(low + 1, high + 1))

    for enough in (1, 3, 20, 200):
        first = next((t for t in range(horizon) if weigh(t) >= enough * (1 - 1e-9)), horizon)
        assert chains._first(gaps, np.array(shares), latencies, lengths, enough, horizon) == first


@pytest.mark.parametrize("lam", [F(1), F(2), F(7, 2), F(20)])
def test_it_is_near_what_equal_messages_would_take(lam: Fraction) -> None:
    """If each of the ranks that they reach in time had every byte that is in them."""
    for ranks, nbytes in ((4, 2400), (64, 512), (255, 2400), (100, 16384)):
        equal = min(
            (1 + F(x, 1000)) * postal.broadcast_time(-(-(ranks - 1) * nbytes // x) + 1, lam)
            for x in range(nbytes // 80, nbytes + 1, nbytes // 80)
        )
        assert F(3, 4) * equal < bound(ranks, nbytes, F(1, 1000), lam) <= equal


@pytest.mark.parametrize("ranks", [8, 64, 1 << 20])
@pytest.mark.parametrize("nbytes", [10, 100, 1000, 10_000])
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


def test_it_is_the_bound_where_it_is_the_largest() -> None:
    machine = measured([[(1, F(1, 10**6), 8), (1 << 21, F(1, 10**6) + F(1 << 21, 10**9), 8)]])
    found, _ = Problem("allreduce", 64, 2400, itemsize=8).lower_bounds(machine)
    assert found.argument.endswith("long messages leave time for few ways")
    (line,) = lines_below(machine, (1, 64 * 2400))
    assert found.time == all_chained([line], 64, 2400, F(1, 10**6)) > F(38, 10**6)


def test_it_is_left_to_the_other_bounds() -> None:
    """Vectors so short that their bytes cost nothing, or so long; latencies beyond counting."""
    assert bound(4, 10**9, F(1)) == bound(4, 1, F(1, 100)) == bound(4, 10, F(1), 10**9) == 0
    assert all_chained([], 4, 8, F(0)) == 0
    assert bound(1 << 20, 64, F(1)) == 0  # so many ranks that time cannot be counted
    hockney = Machine.hockney(alpha_s=F(1, 10**6), beta_s=F(1, 10**9))
    found, _ = Problem("allreduce", 64, 64, itemsize=8).lower_bounds(hockney)
    assert all_chained([Line(F(1), F(1, 1000), F(1))], 64, 64, 10 * found.time * 10**6) == 0
