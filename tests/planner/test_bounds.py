"""Lower bounds: nothing is faster, on any machine; and where they can be met, they are."""

from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collwise.algorithms.registry import ALGORITHMS
from collwise.errors import UnknownName
from collwise.model import postal
from collwise.model.levels import Levels
from collwise.model.machine import Machine
from collwise.model.measured_machine import measured
from collwise.model.pace import soonest
from collwise.planner.choose import plan
from collwise.schedule.operations import Block, Operation, Recv, Send, size_of
from collwise.schedule.problem import Problem
from collwise.schedule.program import Schedule
from collwise.timing import ideal
from collwise.verifier import verify
from tests.planner.machines import HOCKNEY, LOGGP, MEASURED, POSTAL, STEEP
from tests.timing.schedules import LAWS, random_broadcast, written

F = Fraction


def bound(machine: Machine, ranks: int, nbytes: int) -> Fraction:
    return Problem("broadcast", ranks, nbytes).lower_bounds(machine)[0].time


def unsegmented(machine: Machine, ranks: int, nbytes: int) -> Fraction:
    return Problem("broadcast", ranks, nbytes).lower_bounds(machine)[1].time


# --- no schedule whatever is faster ---


@pytest.mark.no_cover
@given(st.integers(0, 2**32), st.sampled_from(list(LAWS)))
def test_no_schedule_is_faster(seed: int, law: str) -> None:
    random = Random(seed)
    ranks = random.randint(2, 6)
    machine, topology = LAWS[law](random, ranks)
    schedule = random_broadcast(random, ranks, random.randint(1, 5))
    verify(schedule)
    time = ideal(schedule, machine, topology).completion
    assert bound(machine, ranks, schedule.problem.nbytes) <= time
    if all(size_of(op) == schedule.problem.nbytes for ops in schedule.lists for op in ops):
        assert unsegmented(machine, ranks, schedule.problem.nbytes) <= time


# --- where a bound can be met, it is ---


@cache
def trees(size: int) -> tuple[tuple[Any, ...], ...]:
    """Every ordered tree of so many ranks, as the tuple of its children's trees."""
    return tuple(forests(size - 1))


def forests(size: int) -> Iterator[tuple[Any, ...]]:
    if size == 0:
        yield ()
    for first in range(1, size + 1):
        for tree in trees(first):
            for rest in forests(size - first):
                yield (tree, *rest)


def down(tree: tuple[Any, ...], nbytes: int) -> Schedule:
    """The broadcast of whole messages down a tree, each rank serving its children in order."""
    lists: list[list[Operation]] = []
    message = (Block(0, 0, nbytes),)

    def grow(node: tuple[Any, ...]) -> int:
        rank = len(lists)
        lists.append([])
        for child in node:
            target = grow(child)
            lists[rank].append(Send(target, message))
            lists[target].insert(0, Recv(rank, message))
        return rank

    grow(tree)
    return written(*lists, nbytes=nbytes)


@pytest.mark.no_cover
@pytest.mark.parametrize(
    "machine",
    [
        Machine.postal(t0_s=3, lam=1),
        POSTAL,
        Machine.postal(t0_s="0.5", lam="7/2"),
        Machine.postal(t0_s=1, lam=9),
        HOCKNEY,
        MEASURED,
        STEEP,
        LOGGP,
        Machine.loggp(L_s=1, o_s=1, g_s=10, G_s="0.001"),
        Machine.loggp(L_s=2, o_s=5, g_s=1, G_s="0.001"),
    ],
    ids=lambda m: m.kind,
)
def test_the_best_tree_meets_the_unsegmented_bound(machine: Machine) -> None:
    """By brute force over all trees."""
    for ranks in range(1, 6):
        for nbytes in (1, 999, 5000):
            best = min(ideal(down(t, nbytes), machine).completion for t in trees(ranks))
            assert unsegmented(machine, ranks, nbytes) == best
            lam = machine.planning_lam(nbytes)
            tree = ALGORITHMS["broadcast/postal_tree"].schedule(ranks, nbytes, lam=lam)
            rounded = machine.kind == "measured"  # its λ is
            assert rounded or ideal(tree, machine).completion == best


MEMORY = Machine.memory(MEASURED, read=[(8, "5e-7"), (1 << 20, "1e-4")])


def test_in_shared_memory_a_flat_tree_meets_the_bound() -> None:
    """By brute force over all trees: one publication and one read, however many ranks."""
    for ranks in range(2, 7):
        for nbytes in (1, 999, 5000):
            best = min(ideal(down(t, nbytes), MEMORY).completion for t in trees(ranks))
            assert unsegmented(MEMORY, ranks, nbytes) == best == MEMORY.message(nbytes).latency
            made = plan("broadcast", ranks=ranks, nbytes=nbytes, machine=MEMORY, algorithm="flat")
            assert made.choice.predicted == best
            assert made.unsegmented_bound.argument.startswith("one publication and one read, if")


@pytest.mark.parametrize("lam", ["2", "5/2"])
def test_in_shared_memory_a_reduce_meets_the_bound(lam: str) -> None:
    """With one cost for every size.  A rank hears from another after each read: λ counts reads."""
    machine = Machine.memory(Machine.postal(t0_s=2, lam=lam), read=1)
    for ranks in (2, 3, 8):
        made = plan("reduce", ranks=ranks, nbytes=64, machine=machine)
        assert made.bound.time == made.choice.predicted == postal.broadcast_time(ranks, 2 * F(lam))
        assert made.bound.argument.startswith("T_λ(p)·t0, where t0 is a read, with the least")


@pytest.mark.no_cover
@pytest.mark.parametrize("lam", ["1", "9/5", "17/2"])
def test_the_postal_bound_is_met_by_the_tree(lam: str) -> None:
    """One t0 for every size: segments cannot help, and the λ-tree takes T_λ(p)·t0."""
    machine = Machine.postal(t0_s="1.7e-3", lam=lam)
    for ranks in (2, 5, 13, 34):
        made = plan("broadcast", ranks=ranks, nbytes=4096, machine=machine)
        least = postal.broadcast_time(ranks, lam) * F(17, 10_000)
        assert made.bound.time == made.unsegmented_bound.time == made.choice.predicted == least
        assert made.bound.argument.startswith("T_λ(p)·t0, with the least t0")
        assert made.unsegmented_bound.argument == "T_λ(p)·t0, if everything goes in one message"


SEGMENTED = ALGORITHMS["broadcast/chain_segmented"]


def test_the_best_size_just_before_a_protocol_ends() -> None:
    """Eager messages cost 1 up to 999 bytes: ten of them make the best of 9990 bytes."""
    machine = measured([[(8, 1, 1)], [(1000, 100, 1), (2000, 900, 1)]])
    times = [SEGMENTED.predict(machine, 2, 9990, segment=n) for n in range(900, 1100)]
    assert bound(machine, 2, 9990) == times[99] == min(times) == 10


def test_the_best_size_at_which_a_protocol_begins() -> None:
    """The line of the eager sizes would be far above the first point of the next protocol."""
    machine = measured([[(8, 1, 1), (16, 100, 1)], [(1000, 100, 1), (2000, 300, 1)]])
    assert machine.message(999).gap > 100 * machine.message(1000).gap > 0
    times = [SEGMENTED.predict(machine, 2, 10_000, segment=n) for n in range(900, 1100)]
    assert bound(machine, 2, 10_000) == times[100] == min(times) == 1000


@pytest.mark.no_cover
def test_a_size_between_two_measured_ones_is_never_needed() -> None:
    """The slow twin: the least of each cost over all sizes, one by one."""
    for machine in (POSTAL, HOCKNEY, MEASURED, STEEP):
        for nbytes in (1, 7, 15, 17, 998, 999, 1000, 1001):
            costs = {x: machine.message(x) for x in range(1, nbytes + 1)}
            gap = min(c.gap for c in costs.values())
            latency = min(c.latency for c in costs.values())
            rate = min(c.gap / x for x, c in costs.items())
            tail = min(c.latency - c.gap for c in costs.values())
            last = min(
                (nbytes - x) * rate + min(c.gap - gap, c.latency - latency)
                for x, c in costs.items()
            )
            for ranks in (2, 9):
                hops = postal.broadcast_time(ranks, latency / gap) * gap
                idle = hops + min(min(-gap, c.latency - latency - c.gap) for c in costs.values())
                paced = (soonest(machine, tuple(costs), F(nbytes), i) for i in (tail, idle))
                starts = [postal.broadcast_time(n, latency / gap) * gap for n in range(1, ranks)]
                busy = (ranks - 1) * nbytes * rate
                shared = min((busy + sum(starts[:n])) / n for n in range(1, ranks)) + tail
                expected = max(hops, nbytes * rate + tail, hops + last, *paced, shared)
                assert bound(machine, ranks, nbytes) == expected


@given(st.integers(0, 2**32), st.sampled_from(list(LAWS)), st.integers(1, 300), st.integers(2, 30))
def test_more_work_is_never_bounded_by_less(seed: int, law: str, nbytes: int, ranks: int) -> None:
    """More ranks take no less time; and a bound for all schedules is none above one for some."""
    machine, _ = LAWS[law](Random(seed), ranks)
    every, whole = Problem("broadcast", ranks, nbytes).lower_bounds(machine)
    if not isinstance(machine, Levels):  # which is for so many ranks only
        assert bound(machine, ranks + 1, nbytes) >= every.time
    assert every.time <= whole.time
    assert every.time_s == float(every.time)


# --- LogGP, where the gap can be longer than the latency, and the overhead than the gap ---


@pytest.mark.parametrize("nbytes", [1, 40])
def test_a_gap_longer_than_the_latency(nbytes: int) -> None:
    """The sender's gap delays its next message, not this one: a chain is faster than T_1(p)·t0."""
    machine = Machine.loggp(L_s=1, o_s=1, g_s=10, G_s=0)
    chain = ALGORITHMS["broadcast/chain"]
    for ranks in (2, 3, 4, 5, 9):
        best = min(
            ideal(chain.schedule(ranks, nbytes), machine).completion,
            ideal(ALGORITHMS["broadcast/binomial"].schedule(ranks, nbytes), machine).completion,
        )
        assert 0 < bound(machine, ranks, nbytes) <= best
        assert 0 < unsegmented(machine, ranks, nbytes) <= best
    assert bound(machine, 2, nbytes) == unsegmented(machine, 2, nbytes) == 3
    for collective in ("reduce", "allreduce"):
        assert {found.time for found in Problem(collective, 2, nbytes).lower_bounds(machine)} == {3}


def test_an_overhead_longer_than_the_gap() -> None:
    """Messages of 2 bytes leave the root best, but single bytes are received best."""
    machine = Machine.loggp(L_s=0, o_s=5, g_s=0, G_s=6)
    assert machine.message(2).gap / 2 < min(machine.message(1).gap, machine.message(20).gap / 20)
    times = {n: ideal(SEGMENTED.schedule(2, 20, segment=n), machine) for n in range(1, 21)}
    assert bound(machine, 2, 20) == times[1].completion == 105
    assert min(t.completion for t in times.values()) == 105


@pytest.mark.parametrize(
    ("machine", "latency"),
    [
        (Machine.hockney(alpha_s=0, beta_s=0), 0),
        (Machine.loggp(L_s=0, o_s=0, g_s=0, G_s=0), 0),
        (Machine.loggp(L_s=3, o_s=0, g_s=0, G_s=0), 3),
        (Machine.loggp(L_s=0, o_s=0, g_s=4, G_s=0), 0),
    ],
)
def test_messages_that_cost_nothing(machine: Machine, latency: int) -> None:
    for ranks in (2, 9):
        flat = ALGORITHMS["broadcast/flat"].schedule(ranks, 5)
        assert bound(machine, ranks, 5) == unsegmented(machine, ranks, 5) == latency
        assert ideal(flat, machine).completion >= latency


def test_nothing_to_send() -> None:
    for machine in (POSTAL, HOCKNEY, LOGGP, MEASURED):
        for ranks, nbytes in ((1, 8), (8, 0), (1, 0)):
            for found in Problem("broadcast", ranks, nbytes).lower_bounds(machine):
                assert tuple(found) == (0, "nothing has to be sent")


def test_a_collective_without_bounds() -> None:
    with pytest.raises(UnknownName, match="collective 'sort': there is none; known: all"):
        Problem("sort", 4, 8).lower_bounds(POSTAL)


def test_bounds_of_reduce_scatters_that_are_met() -> None:
    """By pairwise exchange where λ is high; by the ring where start-ups cost nothing."""
    made = plan("reduce_scatter_block", ranks=3, nbytes=24, machine=POSTAL, algorithm="pairwise")
    assert made.choice.predicted == made.bound.time
    line = Machine.hockney(alpha_s=0, beta_s=1, gamma_s=F(1, 2))
    made = plan("reduce_scatter_block", ranks=4, nbytes=32, machine=line, algorithm="ring")
    assert made.choice.predicted == made.bound.time == 24 * F(3, 2)
    assert made.bound.argument == (
        "some rank has its share: (p − 1)/p of the bytes, and of combining"
    )


# --- messages take as long as they are long ---


def orders(nbytes: int) -> Iterator[list[int]]:
    """All ways to cut so many bytes into messages, in order."""
    if not nbytes:
        yield []
    for first in range(1, nbytes + 1):
        for rest in orders(nbytes - first):
            yield [first, *rest]


@pytest.mark.parametrize("lam", ["1.2", "3.5", 9])
@pytest.mark.parametrize("alpha", ["0.1", 5])
@pytest.mark.parametrize("idle", [0, 7])
def test_nothing_is_received_sooner(lam: str, alpha: str, idle: int) -> None:
    """Of all ways to receive eleven bytes, the soonest; the bound is not far below it."""
    machine = measured([[(1, F(alpha) + 1, F(lam)), (12, F(alpha) + 12, F(lam))]])

    def received(sizes: list[int]) -> Fraction:
        time = F(0)
        for nbytes in sizes:
            cost = machine.message(nbytes)
            time = max(time + cost.gap, cost.latency)
        return time

    everything = [
        (received(sizes), sum(machine.message(x).gap for x in sizes)) for sizes in orders(11)
    ]
    best = min(max(last, busy + idle) for last, busy in everything)
    assert best * F(2, 3) < soonest(machine, (1, 12), F(11), F(idle)) <= best


def test_no_message_travels_for_nothing() -> None:
    """Four ranks, 128 KiB, λ = 20: without that, 233 µs are all that is left."""
    points = [(1, F(1001, 10**9), 20), (1 << 21, F(1000 + (1 << 21), 10**9), 20)]
    problem = Problem("allreduce", 4, 1 << 17, itemsize=8)
    time = problem.lower_bounds(measured([points]))[0].time
    assert time > 260 * F(1, 10**6)


def test_costs_beyond_floats_are_left_to_the_other_bounds() -> None:
    machine = measured([[(1, F(1, 10**30), 3), (1 << 62, F(1), 3)]])
    assert soonest(machine, (1, 1 << 62), F(1 << 61), F(0)) == 0
