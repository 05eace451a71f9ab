"""Networks with links: worked out by hand, against the slow twin, and where they shape nothing."""

from fractions import Fraction
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.algorithms.examples import WHERE_PORTS_BLOCK, fitting, settings_of
from tests.timing.networks import Twin
from tests.timing.schedules import A, messages, random_schedule, written

from collwise.errors import InvalidArgument, InvalidSchedule
from collwise.model.machine import Hockney, Machine, Wormhole
from collwise.model.measured_machine import measured
from collwise.model.topology import Complete, Embedded, Hypercube, Mesh, Topology, Torus
from collwise.schedule.operations import Block, Combine, Copy, Operation, Recv, Send, Slot, scratch
from collwise.schedule.program import Schedule
from collwise.timing import Timing, ideal
from collwise.timing.times import LinkWait
from collwise.verifier import check_ports

F = Fraction
B, LONG = (Block(1, 0, 4),), (Block(0, 0, 16),)
WORM = Machine.wormhole(send_s=3, receive_s=2, hop_s=1, beta_s="1/2")  # 4 bytes, h hops: 7 + h
ALL_PORTS = Machine.wormhole(send_s=3, receive_s=2, hop_s=1, beta_s="1/2", all_port=True)
HOCKNEY = Machine.hockney(alpha_s=3, beta_s="1/2")  # 4 bytes: 5
LINE = Mesh(1, 5)


def EAST(node: int) -> int:
    return 4 * node


def WEST(node: int) -> int:
    return 4 * node + 1


def cost(machine: Machine) -> tuple[Any, Any]:
    """Of 4 bytes between neighbours."""
    return machine.message(4)


def times_of(timing: Timing) -> dict[tuple[int, int], tuple[Any, ...]]:
    """By source and target: start, header, end, received, and what it waited for."""
    return {
        (t.source, t.target): (p.start, p.header, p.end, t.received, p.waited)
        for t, p in zip(timing.transfers, timing.passages, strict=True)
    }


# --- by hand ---


def test_one_message_over_three_links() -> None:
    """Software 3, three hops of 1, 4 bytes in 2, software 2."""
    timing = ideal(messages(5, (0, 3)), WORM, LINE)
    (passage,) = timing.passages
    assert list(passage) == [0, 0, 3, 6, 8, (EAST(0), EAST(1), EAST(2)), None]
    (transfer,) = timing.transfers
    assert [transfer.start, transfer.sent, transfer.received] == [0, 8, 10]
    assert list(timing.finish) == [8, 0, 0, 10, 0]
    assert timing.link_busy() == {EAST(0): 5, EAST(1): 5, EAST(2): 5}


def test_every_hop_costs_the_same() -> None:
    for target in range(1, 5):
        assert ideal(messages(5, (0, target)), WORM, LINE).completion == 8 + target - 1
    assert cost(WORM) == (6, 8)
    assert ideal(messages(5, (2, 1)), WORM, LINE).completion == 8


def test_copying_takes_the_senders_time_but_no_link() -> None:
    machine = Machine.wormhole(send_s=3, receive_s=2, hop_s=1, beta_s="1/2", copy_s="1/4")
    (p,) = ideal(messages(5, (0, 1)), machine, LINE).passages
    assert [p.entry, p.header, p.end] == [4, 5, 7]
    assert ideal(messages(5, (0, 1)), machine, LINE).completion == 9
    assert cost(machine) == (7, 9)


def test_who_waits_for_whom_on_a_line() -> None:
    """0 → 3 holds its links from 3 to 8.  1 → 2 wants the middle one: it is on it at 8, not before.

    Its software runs while the link is busy: it starts at 5.  3 → 0 goes the other way.
    """
    timing = ideal(messages(5, (0, 3), (1, 2), (3, 0)), WORM, LINE)
    assert times_of(timing) == {
        (0, 3): (0, 6, 8, 10, None),
        (1, 2): (5, 9, 11, 13, LinkWait(EAST(1), 0)),
        (3, 0): (0, 6, 8, 10, None),
    }
    assert [p.route for p in timing.passages][2] == (WEST(3), WEST(2), WEST(1))
    assert [(t.source, t.target) for t in timing.transfers] == [(0, 3), (1, 2), (3, 0)]
    assert timing.link_busy()[EAST(1)] == 8


def test_what_is_reserved_later_is_not_filled_in_front() -> None:
    """1 → 4 waits for 0 → 2 and takes all its links from then on; 2 → 3 comes after it."""
    timing = ideal(messages(5, (0, 2), (1, 4), (2, 3)), WORM, LINE)
    assert times_of(timing) == {
        (0, 2): (0, 5, 7, 9, None),
        (1, 4): (4, 10, 12, 14, LinkWait(EAST(1), 0)),
        (2, 3): (9, 13, 15, 17, LinkWait(EAST(2), 1)),
    }


def test_requests_that_are_ready_together_are_served_by_source() -> None:
    """Whatever the order in which they are written."""
    timing = ideal(messages(5, (2, 3), (1, 4), (0, 2)), HOCKNEY, LINE)
    assert times_of(timing) == {
        (0, 2): (0, 3, 5, 5, None),
        (1, 4): (5, 8, 10, 10, LinkWait(EAST(1), 0)),
        (2, 3): (10, 13, 15, 15, LinkWait(EAST(2), 1)),
    }


def test_requests_are_served_by_ready_time() -> None:
    """0 → 3 is ready at 5, when 0 → 1 is over; 2 → 4, 16 bytes, was ready at 0 and goes first."""
    made = written(
        [Send(1, A), Send(3, A)], [Recv(0, A)], [Send(4, LONG)], [Recv(0, A)], [Recv(2, LONG)]
    )
    timing = ideal(made, HOCKNEY, LINE)
    assert times_of(timing) == {
        (0, 1): (0, 3, 5, 5, None),
        (2, 4): (0, 3, 11, 11, None),
        (0, 3): (11, 14, 16, 16, LinkWait(EAST(2), 1)),
    }
    assert timing.passages[2].ready == 5


def test_data_that_is_passed_on_comes_first() -> None:
    """Rank 1 has A at 8; 1 → 3 takes 3, 2 hops, 2 and 2."""
    made = written([Send(1, A)], [Recv(0, A), Send(3, A)], [], [Recv(1, A)], [])
    assert times_of(ideal(made, WORM, LINE)) == {
        (0, 1): (0, 4, 6, 8, None),
        (1, 3): (8, 13, 15, 17, None),
    }


def test_hockney_holds_links_as_long_as_ports() -> None:
    timing = ideal(messages(5, (0, 3), (1, 2)), HOCKNEY, LINE)
    assert times_of(timing) == {
        (0, 3): (0, 3, 5, 5, None),
        (1, 2): (5, 8, 10, 10, LinkWait(EAST(1), 0)),
    }
    assert timing.passages[1].entry == timing.passages[1].start
    assert timing.link_busy() == {EAST(0): 5, EAST(1): 10, EAST(2): 5}


def test_a_square_has_too_few_nodes_for_contention() -> None:
    """On 2 × 2 who shares a link shares a port: 0 → 3 and 1 → 3 meet at 3, and nobody else."""
    pairs = [(0, 3), (1, 3), (2, 1), (3, 0), (1, 2)]
    timing = ideal(messages(4, *pairs), WORM, Mesh(2, 2))
    routes = {(t.source, t.target): p.route for t, p in zip(timing.transfers, timing.passages)}  # noqa: B905
    assert set(routes[0, 3]) & set(routes[1, 3]) == {4 * 1 + 2}
    assert all(p.waited is None and p.start == p.ready for p in timing.passages)
    assert times_of(timing)[1, 3][0] == 9  # rank 3 has the other one then


def test_a_mesh_where_two_routes_turn_into_one_column() -> None:
    """2 × 3, rows first: 0 → 5 goes east over 1 and 2; 1 → 2 waits, 3 → 4 does not."""
    timing = ideal(messages(6, (0, 5), (1, 2), (3, 4)), WORM, Mesh(2, 3))
    assert times_of(timing) == {
        (0, 5): (0, 6, 8, 10, None),
        (1, 2): (5, 9, 11, 13, LinkWait(4, 0)),
        (3, 4): (0, 4, 6, 8, None),
    }


def exchange(dimension: int, *, combine: bool = False) -> Schedule:
    """Every rank of a cube sends to all its neighbours; then, if asked, it combines twice."""
    size = 1 << dimension
    lists: list[list[Operation]] = [[] for _ in range(size)]
    for rank, operations in enumerate(lists):
        peers = [rank ^ 1 << bit for bit in range(dimension)]
        operations += [Send(peer, A, Slot.INPUT) for peer in peers]
        operations += [Recv(peer, A, scratch(bit)) for bit, peer in enumerate(peers)]
        if combine:
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
    made = exchange(2, combine=True)
    timing = ideal(made, machine, Hypercube(2))
    assert set(timing.finish) == {F(20)}
    assert [[c.start, c.end] for c in timing.combines] == 4 * [[8, 10], [10, 12]]
    check_ports(made, timing, machine, Hypercube(2))


def test_all_ports_of_one_link_take_turns() -> None:
    """0 → 1 and 0 → 3 leave by the same link; 0 → 4 has one of its own."""
    timing = ideal(messages(8, (0, 1), (0, 3), (0, 4)), ALL_PORTS, Hypercube(3))
    starts = {t.target: t.start for t in timing.transfers}
    first = {target: Hypercube(3).route(0, target)[0] for target in (1, 3, 4)}
    assert first[1] == first[3] != first[4]
    assert starts == {1: 0, 3: 6, 4: 0}


@pytest.mark.parametrize("copied", [False, True])
def test_all_ports_what_is_received_later_may_be_served_earlier(copied: bool) -> None:
    """Rank 1 has 16 bytes of rank 0 at 14, and 4 bytes of rank 3 at 8; it sends both on at 14."""
    both, slot = LONG + B, scratch(1) if copied else Slot.OUTPUT
    lists: list[list[Operation]] = [
        [Send(1, LONG, Slot.INPUT), Recv(1, both)],
        [Recv(0, LONG), Recv(3, B), Send(0, both, slot)],
        [],
        [Send(1, B, Slot.INPUT)],
    ]
    if copied:
        lists[1].insert(2, Copy(Slot.OUTPUT, scratch(1), both))
    timing = ideal(written(*lists), ALL_PORTS, Hypercube(2))
    received = {(t.source, t.target): t.received for t in timing.transfers}
    assert received == {(0, 1): 14, (3, 1): 8, (1, 0): 30}
    assert timing.finish[1] == 28


def test_combining_blocks_both_ports() -> None:
    lists: list[list[Operation]] = [
        [Recv(1, A, scratch(0)), Combine(Slot.INPUT, scratch(0), Slot.OUTPUT, A), Send(1, B)],
        [Send(0, A), Recv(0, B)],
    ]
    machine = Machine.wormhole(send_s=3, receive_s=2, hop_s=1, beta_s="1/2", gamma_s=1)
    timing = ideal(written(*lists), machine, Mesh(1, 2))
    assert [[c.start, c.end] for c in timing.combines] == [[8, 12]]
    assert [t.start for t in timing.transfers] == [0, 12]


# --- the slow twin ---

TOPOLOGIES: list[Topology | None] = [
    None,
    Complete(5),
    Mesh(1, 6),
    Mesh(2, 3),
    Mesh(3, 3),
    Hypercube(3),
    Torus(3, 3),
    Torus(2, 2, 2),
    Embedded(Mesh(3, 3), [4, 2, 0, 8, 7]),
]
NETWORKS: list[Hockney | Wormhole] = [
    HOCKNEY,
    Machine.hockney(alpha_s=0, beta_s=1, gamma_s="1/3"),
    WORM,
    Machine.wormhole(send_s=1, receive_s=0, hop_s="1/3", beta_s=1, gamma_s=2, copy_s="1/4"),
    Machine.wormhole(send_s=0, receive_s=4, hop_s=0, beta_s="1/5", gamma_s=1, all_port=True),
    Machine.wormhole(send_s=0, receive_s=0, hop_s=0, beta_s=0),
]


def equal_to_twin(made: Schedule, machine: Hockney | Wormhole, topology: Topology | None) -> None:
    timing, twin = ideal(made, machine, topology), Twin(made, machine, topology)
    if isinstance(machine, Wormhole) or topology is not None:
        passages = [
            (t.source, t.place_at_source, p.ready, t.start, p.header, t.sent, t.received, p.waited)
            for t, p in zip(timing.transfers, timing.passages, strict=True)
        ]
        if topology is None:  # the order of receipt
            assert sorted(passages) == sorted(twin.served)
        else:
            assert passages == twin.served
    assert sorted((s.source, s.place, s.start, s.sent, s.received) for s in twin.served) == sorted(
        (t.source, t.place_at_source, t.start, t.sent, t.received) for t in timing.transfers
    )
    assert sorted((c.rank, c.place, c.start, c.end) for c in timing.combines) == sorted(
        twin.combines
    )
    check_ports(made, timing, machine, topology)


@given(
    st.integers(0, 2**32),
    st.sampled_from(TOPOLOGIES),
    st.sampled_from(NETWORKS),
    st.integers(1, 25),
)
def test_random_messages_equal_the_slow_twin(
    seed: int, topology: Topology | None, machine: Hockney | Wormhole, count: int
) -> None:
    random = Random(seed)
    ranks = topology.size if topology is not None else random.randrange(2, 9)
    equal_to_twin(random_schedule(random, ranks, count), machine, topology)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**32), st.sampled_from(TOPOLOGIES[1:]), st.sampled_from(NETWORKS))
def test_algorithms_equal_the_slow_twin(
    seed: int, topology: Topology, machine: Hockney | Wormhole
) -> None:
    """Many of these wait for each other, and overtake."""
    random = Random(seed)
    equal_to_twin(some_schedule(random, topology.size), machine, topology)


# --- where nobody meets ---


def some_schedule(random: Random, p: int) -> Schedule:
    algorithm = random.choice(WHERE_PORTS_BLOCK)
    chosen = settings_of(algorithm, p, segment=16)
    sources = None
    if algorithm.kind.has_sources:
        sources = sorted(random.sample(range(p), random.randrange(1, p + 1)))
    nbytes = fitting(algorithm, p, 8 * random.randrange(1, 9), itemsize=4)
    return algorithm.schedule(p, nbytes, itemsize=4, sources=sources, **chosen)


@pytest.mark.no_cover
@given(
    st.integers(0, 2**32),
    st.integers(1, 17),
    *[st.fractions(0, 5, max_denominator=6) for _ in range(3)],
)
def test_on_the_complete_graph_it_is_hockneys_law(
    seed: int, p: int, alpha: Fraction, beta: Fraction, gamma: Fraction
) -> None:
    made = some_schedule(Random(seed), p)
    hockney = Machine.hockney(alpha_s=alpha, beta_s=beta, gamma_s=gamma)
    worm = Machine.wormhole(send_s=alpha, receive_s=0, hop_s=0, beta_s=beta, gamma_s=gamma)
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


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 2**32), st.sampled_from(NETWORKS), st.sampled_from(TOPOLOGIES[1:]))
def test_links_delay_and_nothing_is_faster_than_the_bound(
    seed: int, machine: Hockney | Wormhole, topology: Topology
) -> None:
    made = some_schedule(Random(seed), topology.size)
    alone = ideal(made, machine).completion
    assert ideal(made, machine, topology).completion >= alone
    problem = made.problem
    if not problem.kind.has_sources:
        assert problem.lower_bounds(machine)[0].time <= alone


@pytest.mark.parametrize("topology", [Complete(2), Mesh(1, 2)])
def test_where_no_schedule_is_there_is_no_time(topology: Topology) -> None:
    timing = ideal(written([], []), WORM, topology)
    assert list(timing.finish) == [0, 0]
    assert timing.passages == ()
    assert timing.link_busy() == {}


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


@pytest.mark.parametrize("all_port", [False, True])
def test_what_never_completes(all_port: bool) -> None:
    machine = Machine.wormhole(send_s=1, receive_s=1, hop_s=1, beta_s=1, all_port=all_port)
    with pytest.raises(
        InvalidSchedule, match="rank 1, step 0: recv with rank 0: it never"
    ) as caught:
        ideal(written([], [Recv(0, A)]), machine, Mesh(1, 2))
    assert (caught.value.rank, caught.value.step) == (1, 0)
    with pytest.raises(InvalidSchedule, match="rank 0, step 0: send with rank 1"):
        ideal(written([Send(1, A)], []), machine)
    circle = written([Recv(1, A), Send(1, A)], [Recv(0, A), Send(0, A)])
    with pytest.raises(InvalidSchedule, match="wait for each other"):
        ideal(circle, machine, Mesh(1, 2))
