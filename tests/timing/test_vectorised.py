"""The vectorised engine: the same times as event by event, to the last fraction."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.algorithms.examples import (
    COMBINES,
    HOCKNEY,
    MEASURED,
    VAN_DE_GEIJN,
    fitting,
    root_of,
    roots,
    settings_of,
)
from tests.case import in_case

from collwise.algorithms import ALGORITHMS, Algorithm
from collwise.errors import InvalidSchedule
from collwise.model import postal
from collwise.model.exact import seconds
from collwise.model.machine import Machine
from collwise.model.topology import Complete
from collwise.schedule.exchange import Exchange
from collwise.schedule.operations import Block, Message, Operation, Recv, Send
from collwise.schedule.problem import Problem
from collwise.schedule.program import Columns, Program, Schedule, Written
from collwise.schedule.reduction import UpTree
from collwise.simulator import simulate
from collwise.timing import Timing, ideal
from collwise.timing.port_queues import port_queues
from collwise.timing.trace import VECTORISED_FROM
from collwise.timing.vectorised import AlikeTiming, Vectorised, VectorisedTiming, vectorised_timing

LATENCIES = [Fraction(lam) for lam in ("1", "3/2", "9/5", "2", "5/2", "3", "4", "7")]
POSTAL = [Machine.postal(t0_s=Fraction(1, 1000), lam=lam) for lam in LATENCIES]
MACHINES = [*POSTAL, HOCKNEY, MEASURED, COMBINES]
LOGGP = [
    Machine.loggp(L_s=L, o_s=o, g_s=g, G_s=G)
    for L, o, g, G in (("3e-6", "1e-6", "2e-6", "1e-9"), (10, 4, "1/3", "1/7"), (0, 0, 1, 0))
]
FINE = Machine.postal(t0_s="1.7234567891234e-3", lam="3.14159265358979323846")
"""One message takes more ticks than int64 holds."""
EXCHANGE_ONLY = Machine.hockney(alpha_s=1, beta_s=1, exchange_only=True)
COMBINING = [a for a in ALGORITHMS.values() if a.kind.combines and not a.levels]
SENDING = [a for a in ALGORITHMS.values() if not a.kind.combines]
TREES = [a for a in SENDING if a.collective == "broadcast" and not a.segmented]
A, B = (Block(0, 0, 4),), (Block(0, 4, 4),)


def schedule_of(
    algorithm: Algorithm, p: int, nbytes: int, root: int = 0, **wanted: Any
) -> Schedule:
    """A schedule with some value for every parameter; where ranks gather, of a few sources."""
    chosen = settings_of(algorithm, p, **wanted)
    if not algorithm.kind.has_sources:
        return algorithm.schedule(p, nbytes, root, **chosen)
    sources = sorted({0, p // 3, p - 1, root})
    lengths = [nbytes // (1 + i) for i in range(len(sources))]
    return algorithm.schedule(p, lengths, sources=sources, **chosen)


def vectorised(schedule: Schedule, machine: Machine) -> Vectorised:
    timing = vectorised_timing(schedule, machine)
    assert timing is not None, schedule
    return timing


def assert_same(timing: Vectorised, expected: Timing) -> None:
    assert timing.finish == expected.finish
    assert timing.completion == expected.completion
    assert timing.completion_s == expected.completion_s
    assert timing.finish_s == expected.finish_s
    assert sorted(timing.transfers) == sorted(expected.transfers)


def sampled(algorithm: Algorithm) -> Iterator[tuple[int, Machine, int]]:
    """Numbers of ranks from 1 to 65, with machines and lengths in turn.

    Up to 5 with every algorithm; beyond, each with a twelfth of them, of the trees with a fourth.
    """
    lengths, place = [700, 64, 1, 333, 0], SENDING.index(algorithm)
    for p in range(1, 66):
        if p < 6 or (p + place) % (4 if algorithm in TREES else 12) == 0:
            i = 2 * p + place
            yield p, MACHINES[i % len(MACHINES)], lengths[i % len(lengths)]


@pytest.mark.no_cover
@pytest.mark.parametrize("algorithm", SENDING, ids=lambda a: a.name)
def test_the_ideal_times_for_every_p(algorithm: Algorithm) -> None:
    for p, machine, nbytes in sampled(algorithm):
        schedule = schedule_of(
            algorithm, p, nbytes, 7 * p // 3 % p, segment=17, lam=LATENCIES[p % 8]
        )
        assert_same(vectorised(schedule, machine), ideal(schedule, machine))


@pytest.mark.no_cover
@pytest.mark.parametrize("algorithm", SENDING, ids=lambda a: a.name)
def test_the_choices_of_the_planner(algorithm: Algorithm) -> None:
    """Where there are any; machines take turns, and so do kinds of roots."""
    p, nbytes = 23, 3000
    kinds = roots(algorithm, p)
    for i, machine in enumerate(MACHINES[SENDING.index(algorithm) % 3 :: 3]):
        problem = schedule_of(algorithm, p, nbytes, kinds[i % len(kinds)]).problem
        for chosen in algorithm.choices(problem, machine):
            schedule = algorithm.solve(problem, chosen)
            assert_same(vectorised(schedule, machine), ideal(schedule, machine))


@pytest.mark.no_cover
@pytest.mark.parametrize("machine", [POSTAL[2], HOCKNEY, MEASURED, LOGGP[0]])
def test_every_root(machine: Machine) -> None:
    for algorithm in TREES:
        for p in (2, 7):
            for root in range(p):
                schedule = schedule_of(algorithm, p, 300, root)
                assert_same(vectorised(schedule, machine), ideal(schedule, machine))


@pytest.mark.no_cover
@pytest.mark.parametrize("algorithm", SENDING, ids=lambda a: a.name)
def test_some_hundred_ranks(algorithm: Algorithm) -> None:
    """Long queues: hundreds of messages at one port."""
    quadratic = algorithm.name == "broadcast/scatter_ring" or algorithm.kind.has_sources
    p = 40 if quadratic else 200
    machine = (POSTAL[2], HOCKNEY)[SENDING.index(algorithm) % 2]
    schedule = schedule_of(algorithm, p, 1000, p // 2, segment=250)
    assert_same(vectorised(schedule, machine), ideal(schedule, machine))


@pytest.mark.no_cover
@pytest.mark.parametrize("machine", LOGGP, ids=str)
@pytest.mark.parametrize("algorithm", TREES, ids=lambda a: a.name)
def test_loggp_down_trees(algorithm: Algorithm, machine: Machine) -> None:
    for p in range(1 + TREES.index(algorithm) % 8, 66, 8):
        schedule = schedule_of(algorithm, p, (512, 1, 7)[p % 3], p // 2)
        assert_same(vectorised(schedule, machine), ideal(schedule, machine))


def test_loggp_otherwise_is_simulated_event_by_event() -> None:
    """The order of arrival would matter: said by None, and done by `simulate`."""
    schedule = ALGORITHMS["broadcast/chain_segmented"].schedule(VECTORISED_FROM, 40, segment=20)
    assert vectorised_timing(schedule, LOGGP[0]) is None
    trace = simulate(schedule, LOGGP[0])
    assert isinstance(trace.simulated, Timing)
    assert trace.finish == ideal(schedule, LOGGP[0]).finish


def forwarded(random: Random, ranks: int, cuts: int) -> list[list[Message]]:
    """A broadcast made at random: pieces, several in a message, from whoever has them."""
    ends = sorted(random.sample(range(1, 40), cuts))
    pieces = [Block(0, a, b - a) for a, b in zip([0, *ends], ends, strict=False)]
    held = [set(pieces), *(set[Block]() for _ in range(ranks - 1))]
    lists: list[list[Message]] = [[] for _ in range(ranks)]
    for _ in range(ranks * cuts):
        source, target = random.randrange(ranks), random.randrange(ranks)
        new = sorted(held[source] - held[target])
        if new:
            blocks = tuple(random.sample(new, random.randint(1, len(new))))
            lists[source].append(Send(target, blocks))
            lists[target].append(Recv(source, blocks))
            held[target] |= set(blocks)
    return lists


@pytest.mark.no_cover
@given(st.integers(0, 10**9), st.integers(2, 9), st.integers(1, 6), st.sampled_from(MACHINES))
def test_any_broadcast(seed: int, ranks: int, cuts: int, machine: Machine) -> None:
    """Every rank's list in the order in which it was made up: nothing to refuse."""
    lists = forwarded(Random(seed), ranks, cuts)
    schedule = Schedule(Problem("broadcast", ranks, 40), Written(tuple(map(tuple, lists))))
    assert_same(vectorised(schedule, machine), ideal(schedule, machine))


@given(st.integers(0, 10**9), st.integers(2, 6), st.integers(1, 5), st.sampled_from(MACHINES))
def test_any_order(seed: int, ranks: int, cuts: int, machine: Machine) -> None:
    """Lists out of order: the same times, or refused as they hang or send what is not there yet."""
    random = Random(seed)
    lists = forwarded(random, ranks, cuts)
    for operations in lists:
        for _ in range(random.randrange(3)):
            i = random.randrange(max(len(operations) - 1, 1))
            pair = operations[i : i + 2]
            if len({(type(op), op.peer) for op in pair}) == 2:  # or they would be mixed up
                operations[i : i + 2] = reversed(pair)
    schedule = Schedule(Problem("broadcast", ranks, 40), Written(tuple(map(tuple, lists))))
    try:
        expected = ideal(schedule, machine)
    except InvalidSchedule:
        assert vectorised_timing(schedule, machine) is None
        return
    timing = vectorised_timing(schedule, machine)
    if timing is None:
        assert any(map(sends_too_early, lists))
    else:
        assert_same(timing, expected)


def sends_too_early(operations: Sequence[Message]) -> bool:
    """Whether a send is listed before a receive of some of its blocks."""
    sent: set[Block] = set()
    for op in operations:
        if isinstance(op, Send):
            sent |= set(op.blocks)
        elif sent & set(op.blocks):
            return True
    return False


def written(*lists: Sequence[Operation]) -> Schedule:
    return Schedule(Problem("broadcast", len(lists), 8), Written(tuple(map(tuple, lists))))


@pytest.mark.parametrize("machine", [POSTAL[0], HOCKNEY, LOGGP[0]], ids=lambda m: m.kind)
@pytest.mark.parametrize(
    "schedule",
    [
        written([Send(1, A), Recv(1, A)], [Recv(0, A), Send(0, A), Recv(0, A)]),
        written([Send(1, A), Send(1, A)], [Recv(0, A), Recv(0, A)]),
        written([Send(1, A)], [Send(2, A), Recv(0, A)], [Recv(1, A)]),
        written([Recv(1, A), Send(1, A)], [Recv(0, A), Send(0, A)]),
        written([Recv(1, A), Send(2, A)], [Recv(2, A), Send(0, A)], [Recv(0, A), Send(1, A)]),
        written(
            [Send(1, A)],
            [Recv(2, B), Recv(0, A), Send(3, B)],
            [Recv(3, B), Send(1, B)],
            [Recv(1, B), Send(2, B)],
        ),
    ],
    ids=["there and back", "twice", "too early", "a circle of two", "of three", "behind a circle"],
)
def test_what_is_refused(schedule: Schedule, machine: Machine) -> None:
    assert vectorised_timing(schedule, machine) is None


@pytest.mark.parametrize("machine", MACHINES, ids=lambda m: m.describe())
def test_empty_messages_wait_for_nothing(machine: Machine) -> None:
    """Rank 1 need not wait with the first; that it lies inside what rank 2 gets is no matter."""
    nothing = (Block(0, 2, 0),)
    early = written(
        [Send(1, A)],
        [Send(2, nothing), Recv(0, A), Send(3, A)],
        [Recv(1, nothing)],
        [Recv(1, A)],
    )
    assert_same(vectorised(early, machine), ideal(early, machine))
    assert vectorised_timing(early, LOGGP[0]) is None
    inside = written(
        [Send(1, A), Send(2, A)],
        [Recv(0, A), Send(2, nothing), Send(3, nothing)],
        [Recv(0, A), Recv(1, nothing)],
        [Recv(1, nothing)],
    )
    assert_same(vectorised(inside, machine), ideal(inside, machine))


def combining(algorithm: Algorithm, p: int, itemsize: int, root: int = 0) -> Schedule:
    """A schedule of whole elements, whose blocks are equally long where itemsize is 1."""
    nbytes = fitting(algorithm, p, 64 * itemsize, itemsize) * (1 if itemsize > 1 else p)
    settings = settings_of(algorithm, p, lam=LATENCIES[p % 8], segment=1 << 20)
    return algorithm.schedule(p, nbytes, root_of(algorithm, root), itemsize=itemsize, **settings)


@pytest.mark.no_cover
@pytest.mark.parametrize("algorithm", COMBINING, ids=lambda a: a.name)
def test_combining(algorithm: Algorithm) -> None:
    """Up trees, exchanges, and where all ranks are alike, as event by event; else it is refused."""
    machines = (*MACHINES, VAN_DE_GEIJN, FINE)
    for turn, p in enumerate((1, 2, 3, 4, 5, 7, 8, 16, 27, 33), COMBINING.index(algorithm)):
        machine = machines[turn % len(machines)]
        schedule = combining(algorithm, p, (1, 8)[p % 3 == 0], 7 * p // 3 % p)
        timing = vectorised_timing(schedule, machine)
        known = isinstance(schedule.program, UpTree | Exchange)
        assert (timing is not None) == (known or schedule.program.is_alike())
        if timing is not None:
            assert_same(timing, ideal(schedule, machine))
        for machine in (*LOGGP, EXCHANGE_ONLY):
            assert vectorised_timing(schedule, machine) is None


def test_segments_up_a_tree() -> None:
    """Every message's times and every rank's end are those of the event engine."""
    random, machines = Random(5), (*MACHINES, VAN_DE_GEIJN, COMBINES, FINE)
    for turn in range(90):
        p, nbytes, segment = random.randint(2, 24), random.randint(1, 600), random.randint(20, 300)
        name, settings = "chain_segmented", dict[str, Any](segment=segment)
        if turn % 3:
            name, settings["lam"] = "postal_tree_segmented", random.choice((1, 2, 4, 30))
        schedule = ALGORITHMS[f"reduce/{name}"].schedule(p, nbytes, turn % p, **settings)
        machine = machines[turn % len(machines)]
        with in_case(schedule.algorithm, p, nbytes, machine.describe()):
            assert_same(vectorised(schedule, machine), ideal(schedule, machine))
    segmented = ALGORITHMS["reduce/chain_segmented"].schedule(9, 64, segment=16)
    assert vectorised_timing(segmented, LOGGP[0]) is None


def test_nothing_up_a_tree() -> None:
    nothing = ALGORITHMS["reduce/binomial"].schedule(9, 0)
    assert vectorised_timing(nothing, POSTAL[0]) is None


def test_many_ranks_combine() -> None:
    """What a trace says of them, pictures included, is what the event engine says."""
    for name, kind in (
        ("reduce/postal_tree", VectorisedTiming),
        ("allreduce/recursive_doubling", AlikeTiming),
    ):
        algorithm = ALGORITHMS[name]
        settings = settings_of(algorithm, VECTORISED_FROM)
        schedule = algorithm.schedule(VECTORISED_FROM, 512, itemsize=8, **settings)
        trace, expected = simulate(schedule, VAN_DE_GEIJN), ideal(schedule, VAN_DE_GEIJN)
        assert isinstance(trace.simulated, kind)
        assert_same(trace.simulated, expected)
        assert trace.timing.combines == expected.combines
        assert (trace.passages, trace.link_busy()) == ((), {})
        sizes, times = trace.simulated.sizes
        assert len(sizes) * times == len(expected.transfers)
        assert set(sizes.tolist()) == {512}


@pytest.mark.no_cover
@pytest.mark.parametrize("algorithm", SENDING, ids=lambda a: a.name)
def test_times_too_fine_for_64_bits(algorithm: Algorithm) -> None:
    for p in (2, 11):
        schedule = schedule_of(algorithm, p, 100, segment=60)
        assert_same(vectorised(schedule, FINE), ideal(schedule, FINE))


@pytest.mark.no_cover
@pytest.mark.parametrize("name", ["chain", "flat", "chain_segmented", "scatter_allgather"])
@pytest.mark.parametrize("bits", range(55, 65))
def test_times_that_only_add_up_to_more_than_64_bits(name: str, bits: int) -> None:
    """Never a wrong time, wherever int64 ceases to do: each message takes 2^bits ticks and more."""
    algorithm = ALGORITHMS[f"broadcast/{name}"]
    lam = 1 + Fraction(1, 2**bits)
    schedule = schedule_of(algorithm, 50, 2 * 50, segment=50)
    fine = Machine.postal(t0_s=1, lam=lam)
    assert_same(vectorised(schedule, fine), ideal(schedule, fine))
    coarse = Machine.hockney(alpha_s=1, beta_s=Fraction(1, 2**bits))
    assert_same(vectorised(schedule, coarse), ideal(schedule, coarse))


def test_more_bytes_than_fit_beside_a_rank() -> None:
    algorithm = ALGORITHMS["broadcast/scatter_allgather"]
    for p in (3, 5, 8):
        schedule = algorithm.schedule(p, 2**61 + 5, 1)
        assert_same(vectorised(schedule, POSTAL[2]), ideal(schedule, POSTAL[2]))


class Told(Program):
    """Places so far apart in their lists that rank and place do not fit in one number."""

    def operations(self, rank: int) -> list[Operation]:
        raise AssertionError("never asked for")

    def columns(self) -> Columns:
        rows = [
            (0, 1, 2**62, 0, 0, 4),
            (0, 2, 7, 3, 4, 4),
            (1, 2, 2**62, 2**62 + 1, 0, 4),
        ]
        table = np.array(rows, dtype=np.int64)
        return Columns(*(table[:, i] for i in range(6)))


def test_long_lists_are_ordered_all_the_same() -> None:
    """Rank 0 serves rank 2 at first, then rank 1, which passes it on."""
    timing = vectorised(Schedule(Problem("broadcast", 3, 8), Told()), Machine.postal(t0_s=1, lam=2))
    assert list(timing.finish) == [2, 4, 5]


def test_what_waits_for_what() -> None:
    """Rank 1 sends its first half when it has that, then both halves when it has the other."""
    schedule = written(
        [Send(1, A), Send(1, B)],
        [Recv(0, A), Send(2, A), Recv(0, B), Send(3, (*B, *A)), Send(2, B)],
        [Recv(1, A), Recv(1, B)],
        [Recv(1, (*B, *A))],
    )
    queues = port_queues(schedule)
    assert queues is not None
    rows = np.column_stack((queues.source, queues.place_at_source, queues.ready_at))
    assert rows.tolist() == [[0, 0, 0], [0, 1, 0], [1, 1, 1], [1, 3, 2], [1, 4, 2]]
    assert queues.nbytes.tolist() == [4, 4, 4, 8, 4]


@pytest.mark.parametrize("machine", [POSTAL[2], HOCKNEY, LOGGP[0], FINE], ids=lambda m: m.kind)
def test_many_ranks_are_vectorised(machine: Machine) -> None:
    algorithm = ALGORITHMS["broadcast/knomial"]
    for p, kind in ((VECTORISED_FROM - 1, Timing), (VECTORISED_FROM, VectorisedTiming)):
        schedule = algorithm.schedule(p, 512, 3, k=3)
        trace, expected = simulate(schedule, machine), ideal(schedule, machine)
        assert isinstance(trace.simulated, kind)
        assert trace.finish == expected.finish
        assert trace.finish_s == expected.finish_s
        assert trace.completion == expected.completion
        assert trace.completion_s == expected.completion_s
        assert sorted(trace.transfers) == sorted(expected.transfers)
        assert trace.timing.finish == trace.finish
        assert trace.timing.transfers == trace.transfers
        assert (trace.passages, trace.link_busy()) == ((), {})


@pytest.mark.no_cover
def test_what_cannot_be_vectorised_is_simulated_event_by_event() -> None:
    flat = ALGORITHMS["broadcast/flat"].schedule(VECTORISED_FROM, 64)
    by_hand = Schedule(flat.problem, Written(flat.lists))
    wormhole = Machine.wormhole(send_s=1, receive_s=1, hop_s=0, beta_s=0)
    for schedule, machine, topology in (
        (by_hand, POSTAL[2], None),
        (flat, POSTAL[2], Complete(VECTORISED_FROM)),
        (flat, wormhole, None),
    ):
        trace = simulate(schedule, machine, topology)
        assert isinstance(trace.simulated, Timing)
        assert trace.timing == ideal(schedule, machine, topology)


def test_a_receive_that_nobody_answers_is_found_among_many() -> None:
    lists = [[Recv(1, A)], *([] for _ in range(VECTORISED_FROM - 1))]
    with pytest.raises(InvalidSchedule, match="rank 0, step 0"):
        simulate(written(*lists), POSTAL[0])


@pytest.mark.no_cover
def test_a_million_ranks() -> None:
    """The λ-tree ends at T_λ(p) · t0, and never has more than N_λ(t) ranks informed at t · t0."""
    lam, t0 = Fraction(9, 5), Fraction(1, 1000)
    schedule = ALGORITHMS["broadcast/postal_tree"].schedule(1 << 20, 512, 5, lam=lam)
    trace = simulate(schedule, Machine.postal(t0_s=t0, lam=lam))
    assert trace.completion == postal.broadcast_time(1 << 20, lam) * t0
    assert len(trace.finish_s) == 1 << 20
    assert max(trace.finish_s) == trace.completion_s == seconds(trace.completion)
    assert isinstance(trace.simulated, VectorisedTiming)
    times, counts = np.unique(trace.simulated.received, return_counts=True)
    informed = np.cumsum(counts) + 1
    for ticks, ranks in zip(times.tolist()[::20], informed.tolist()[::20], strict=True):
        assert ranks <= postal.reached(ticks * trace.simulated.unit / t0, lam)
