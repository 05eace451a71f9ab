"""Networks with links: each rule worked out by hand, and where links shape nothing."""

from fractions import Fraction
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.algorithms.examples import WHERE_PORTS_BLOCK
from tests.timing.comparing import check
from tests.timing.networks import equal_to_twin
from tests.timing.schedules import (
    OUT,
    S1,
    A,
    messages,
    random_run,
    recv,
    send,
    spelled,
    written,
)

from collwise.errors import InvalidArgument
from collwise.model.machine import Machine
from collwise.model.measured_machine import measured
from collwise.model.topology import Complete, Hypercube, Mesh, Topology
from collwise.schedule.operations import Block, Combine, Copy, Operation, Recv, Send, Slot, scratch
from collwise.schedule.program import Schedule
from collwise.timing import Timing, ideal
from collwise.timing.times import LinkWait
from collwise.verifier import check_ports

F = Fraction
B, LONG = Block(1, 0, 4), Block(0, 0, 16)
WORM = Machine.wormhole(send_s=3, receive_s=2, hop_s=1, beta_s="1/2")  # 4 bytes, h hops: 7 + h
COPYING = Machine.wormhole(send_s=3, receive_s=2, hop_s=1, beta_s="1/2", copy_s="1/4")
ALL_PORTS = Machine.wormhole(send_s=3, receive_s=2, hop_s=1, beta_s="1/2", all_port=True)
HOCKNEY = Machine.hockney(alpha_s=3, beta_s="1/2")  # 4 bytes: 5
LINE = Mesh(1, 5)


def EAST(node: int) -> int:
    return 4 * node


def WEST(node: int) -> int:
    return 4 * node + 1


def times_of(timing: Timing) -> dict[tuple[int, int], tuple[Any, ...]]:
    """By source and target: start, header, end, received, and what it waited for."""
    return {
        (t.source, t.target): (p.start, p.header, p.end, t.received, p.waited)
        for t, p in zip(timing.transfers, timing.passages, strict=True)
    }


RULES: dict[str, tuple[Machine, Topology, Schedule, dict[tuple[int, int], tuple[Any, ...]]]] = {
    # Software 3, three hops of 1, 4 bytes in 2, software 2.
    "a message over three links": (WORM, LINE, messages(5, (0, 3)), {(0, 3): (0, 6, 8, 10, None)}),
    "copying takes the sender's time": (
        COPYING,
        LINE,
        messages(5, (0, 1)),
        {(0, 1): (0, 5, 7, 9, None)},
    ),
    # 0 → 3 holds its links from 3 to 8.  1 → 2 wants the middle one: it is on it at 8, not before;
    # its software runs while the link is busy.  3 → 0 goes the other way.
    "links carry one message at a time, and software holds none": (
        WORM,
        LINE,
        messages(5, (0, 3), (1, 2), (3, 0)),
        {
            (0, 3): (0, 6, 8, 10, None),
            (1, 2): (5, 9, 11, 13, LinkWait(EAST(1), 0)),
            (3, 0): (0, 6, 8, 10, None),
        },
    ),
    # 1 → 4 waits for 0 → 2 and takes all its links from then on; 2 → 3 comes after it.
    "earlier gaps between reservations are not filled": (
        WORM,
        LINE,
        messages(5, (0, 2), (1, 4), (2, 3)),
        {
            (0, 2): (0, 5, 7, 9, None),
            (1, 4): (4, 10, 12, 14, LinkWait(EAST(1), 0)),
            (2, 3): (9, 13, 15, 17, LinkWait(EAST(2), 1)),
        },
    ),
    # Whatever the order in which they are written.
    "requests that are ready together are served by source": (
        HOCKNEY,
        LINE,
        messages(5, (2, 3), (1, 4), (0, 2)),
        {
            (0, 2): (0, 3, 5, 5, None),
            (1, 4): (5, 8, 10, 10, LinkWait(EAST(1), 0)),
            (2, 3): (10, 13, 15, 15, LinkWait(EAST(2), 1)),
        },
    ),
    # 0 → 3 is ready at 5, when 0 → 1 is over; 2 → 4, 16 bytes, was ready at 0 and goes first.
    "requests are served by the time when they are ready": (
        HOCKNEY,
        LINE,
        spelled(">1a >3a", "<0A", ">4d", "<0A", "<2D"),
        {
            (0, 1): (0, 3, 5, 5, None),
            (2, 4): (0, 3, 11, 11, None),
            (0, 3): (11, 14, 16, 16, LinkWait(EAST(2), 1)),
        },
    ),
    # Rank 1 has A at 8; 1 → 3 takes 3, 2 hops, 2 and 2.
    "data that is passed on comes first": (
        WORM,
        LINE,
        spelled(">1A", "<0A >3A", "", "<1A", ""),
        {(0, 1): (0, 4, 6, 8, None), (1, 3): (8, 13, 15, 17, None)},
    ),
    "Hockney: links are held as long as ports": (
        HOCKNEY,
        LINE,
        messages(5, (0, 3), (1, 2)),
        {(0, 3): (0, 3, 5, 5, None), (1, 2): (5, 8, 10, 10, LinkWait(EAST(1), 0))},
    ),
    # On 2 × 2 who shares a link shares a port: 0 → 3 and 1 → 3 meet at 3, which is busy until 9.
    "the receiver's port is busy from the start": (
        WORM,
        Mesh(2, 2),
        messages(4, (0, 3), (1, 3), (2, 1), (3, 0), (1, 2)),
        {
            (0, 3): (0, 5, 7, 9, None),
            (1, 3): (9, 13, 15, 17, None),
            (2, 1): (0, 5, 7, 9, None),
            (3, 0): (0, 5, 7, 9, None),
            (1, 2): (15, 20, 22, 24, None),
        },
    ),
    # 2 × 3, rows first: 0 → 5 goes east over 1 and 2; 1 → 2 waits, 3 → 4 does not.
    "two routes turn into one column": (
        WORM,
        Mesh(2, 3),
        messages(6, (0, 5), (1, 2), (3, 4)),
        {
            (0, 5): (0, 6, 8, 10, None),
            (1, 2): (5, 9, 11, 13, LinkWait(4, 0)),
            (3, 4): (0, 4, 6, 8, None),
        },
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_the_rules_by_hand(rule: str) -> None:
    machine, topology, schedule, expected = RULES[rule]
    assert times_of(ideal(schedule, machine, topology)) == expected
    check(schedule, machine, topology)
    equal_to_twin(schedule, machine, topology)
    check_ports(schedule, ideal(schedule, machine, topology), machine, topology)


def test_what_a_timing_tells_of_passages() -> None:
    timing = ideal(messages(5, (0, 3)), WORM, LINE)
    (passage,) = timing.passages
    assert list(passage) == [0, 0, 3, 6, 8, (EAST(0), EAST(1), EAST(2)), None]
    (transfer,) = timing.transfers
    assert [transfer.start, transfer.sent, transfer.received] == [0, 8, 10]
    assert list(timing.finish) == [8, 0, 0, 10, 0]
    timing = ideal(messages(5, (0, 3), (1, 2), (3, 0)), WORM, LINE)
    assert [p.route for p in timing.passages][2] == (WEST(3), WEST(2), WEST(1))
    assert [(t.source, t.target) for t in timing.transfers] == [(0, 3), (1, 2), (3, 0)]
    waited = ideal(messages(5, (0, 3), (1, 2)), HOCKNEY, LINE)
    assert all(p.ready == 0 and p.entry == p.start for p in waited.passages)
    assert waited.link_busy() == {EAST(0): 5, EAST(1): 10, EAST(2): 5}


def exchange(dimension: int, *, combined: bool = False) -> Schedule:
    """Every rank of a cube sends to all its neighbours; then, if asked, it combines twice."""
    size = 1 << dimension
    lists: list[list[Operation]] = [[] for _ in range(size)]
    for rank, operations in enumerate(lists):
        peers = [rank ^ 1 << bit for bit in range(dimension)]
        operations += [Send(peer, A, Slot.INPUT) for peer in peers]
        operations += [Recv(peer, A, scratch(bit)) for bit, peer in enumerate(peers)]
        if combined:
            operations += [Combine(Slot.INPUT, scratch(0), scratch(5), A)]
            operations += [Combine(scratch(1), scratch(5), Slot.OUTPUT, A)]
            operations += [Send(peers[0], A), Recv(peers[0], A, scratch(6))]
    return written(*lists)


@pytest.mark.parametrize("dimension", [1, 2, 3, 4])
def test_all_ports_exchange_in_all_directions_in_one_message_time(dimension: int) -> None:
    """[vandeGeijn1991] §7."""
    made, cube = exchange(dimension), Hypercube(dimension)
    assert set(ideal(made, ALL_PORTS, cube).finish) == {F(8)}
    assert ideal(made, WORM, cube).completion == 8 * dimension
    assert set(ideal(made, ALL_PORTS, Complete(cube.size)).finish) == {F(8)}
    assert set(ideal(made, ALL_PORTS).finish) == {F(8)}


def test_all_ports_are_busy_while_a_rank_combines() -> None:
    """Received at 8, combined until 10 and 12, and only then sent on, received at 20."""
    machine = Machine.wormhole(
        send_s=3, receive_s=2, hop_s=1, beta_s="1/2", gamma_s="1/2", all_port=True
    )
    timing = ideal(exchange(2, combined=True), machine, Hypercube(2))
    assert set(timing.finish) == {F(20)}
    assert [[c.start, c.end] for c in timing.combines] == 4 * [[8, 10], [10, 12]]
    equal_to_twin(exchange(2, combined=True), machine, Hypercube(2))


def test_all_ports_of_one_link_take_turns() -> None:
    """0 → 1 and 0 → 3 leave by the same link; 0 → 4 has one of its own."""
    timing = ideal(messages(8, (0, 1), (0, 3), (0, 4)), ALL_PORTS, Hypercube(3))
    first = {target: Hypercube(3).route(0, target)[0] for target in (1, 3, 4)}
    assert first[1] == first[3] != first[4]
    assert {t.target: t.start for t in timing.transfers} == {1: 0, 3: 6, 4: 0}


@pytest.mark.parametrize("copied", [False, True])
def test_all_ports_what_is_received_later_may_be_served_earlier(copied: bool) -> None:
    """Rank 1 has 16 bytes of rank 0 at 14, and 4 bytes of rank 3 at 8; it sends both on at 14."""
    both, slot = (LONG, B), S1 if copied else OUT
    lists = [
        [send(1, Slot.INPUT, LONG), recv(1, OUT, *both)],
        [recv(0, OUT, LONG), recv(3, OUT, B), send(0, slot, *both)],
        [],
        [send(1, Slot.INPUT, B)],
    ]
    if copied:
        lists[1].insert(2, Copy(OUT, S1, both))
    timing = ideal(written(*lists), ALL_PORTS, Hypercube(2))
    received = {(t.source, t.target): t.received for t in timing.transfers}
    assert received == {(0, 1): 14, (3, 1): 8, (1, 0): 30}
    assert timing.finish[1] == 28


# --- where nobody meets ---


@pytest.mark.no_cover
@given(
    st.integers(0, 2**32),
    st.integers(1, 17),
    *[st.fractions(0, 5, max_denominator=6) for _ in range(3)],
)
def test_on_the_complete_graph_it_is_hockneys_law(
    seed: int, p: int, alpha: Fraction, beta: Fraction, gamma: Fraction
) -> None:
    random = Random(seed)
    hockney = Machine.hockney(alpha_s=alpha, beta_s=beta, gamma_s=gamma)
    worm = Machine.wormhole(send_s=alpha, receive_s=0, hop_s=0, beta_s=beta, gamma_s=gamma)
    made = random_run(random, random.choice(WHERE_PORTS_BLOCK), p, hockney)
    expected = ideal(made, hockney)
    assert expected.passages == ()
    for timing in (
        ideal(made, hockney, Complete(p)),
        ideal(made, worm),
        ideal(made, worm, Complete(p)),
    ):
        assert timing.finish == expected.finish
        assert sorted(timing.transfers) == sorted(expected.transfers)
        assert sorted(timing.combines) == sorted(expected.combines)
        assert all(p.waited is None for p in timing.passages)


# --- errors ---


@pytest.mark.parametrize(
    "machine",
    [
        Machine.postal(t0_s=1, lam=2),
        Machine.loggp(L_s=1, o_s=1, g_s=1, G_s=1),
        measured([[(8, 1, 2)]]),
    ],
)
def test_some_machines_know_no_links(machine: Machine) -> None:
    made = messages(4, (0, 3))
    assert ideal(made, machine, Complete(4)).transfers == ideal(made, machine).transfers
    with pytest.raises(InvalidArgument, match="knows no links") as caught:
        ideal(made, machine, Mesh(2, 2))
    assert caught.value.asked == "the time of a schedule on a mesh of 2 × 2"
    assert "a wormhole machine" in caught.value.remedy


@pytest.mark.parametrize("machine", [WORM, HOCKNEY, Machine.postal(t0_s=1, lam=2)])
def test_a_topology_of_another_size(machine: Machine) -> None:
    with pytest.raises(
        InvalidArgument, match="there are 4 ranks, and a mesh of 2 × 3 has 6"
    ) as caught:
        ideal(messages(4, (0, 3)), machine, Mesh(2, 3))
    assert "every rank" in caught.value.remedy
