"""Ideal time of what combines: by hand for each model, and where one rank stands for all."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest
from tests.algorithms.examples import (
    COMBINES,
    LATENCIES,
    MACHINES,
    MEASURED,
    VAN_DE_GEIJN,
    WHERE_PORTS_BLOCK,
    settings_of,
    stages_for,
)

from collwise.algorithms import ALGORITHMS, Algorithm
from collwise.errors import InvalidSchedule
from collwise.model.machine import Machine
from collwise.model.measured_machine import measured
from collwise.schedule.exchange import Exchange, Stage
from collwise.schedule.operations import Block, Combine, Copy, Operation, Recv, Send, Slot, scratch
from collwise.schedule.problem import Problem
from collwise.schedule.program import Schedule, Written
from collwise.timing import Timing, events, ideal, ideal_alike
from collwise.timing.events import Combining
from collwise.verifier import check_flow, check_ports

F = Fraction
IN, OUT = int(Slot.INPUT), int(Slot.OUTPUT)
S0, S1, S2, S3 = map(scratch, range(4))
ALL, A, B = (Block(0, 0, 8),), (Block(0, 0, 4),), (Block(0, 4, 4),)
POSTAL = Machine.postal(t0_s=1, lam=2)
HOCKNEY = Machine.hockney(alpha_s=1, beta_s="1/4", gamma_s="1/2")  # 8 bytes: 3, combined in 4
LOGGP = Machine.loggp(L_s=10, o_s=2, g_s=3, G_s="1/2")
SLOW = measured([[(8, 1, 2)]]).with_combining([(4, 3), (8, 5)])


def schedule(*lists: Sequence[Operation], collective: str = "reduce") -> Schedule:
    problem = Problem(collective, len(lists), 8, itemsize=4)
    return Schedule(problem, Written(tuple(map(tuple, lists))))


def times(timing: Timing) -> dict[tuple[int, int], tuple[Any, ...]]:
    """By rank and place: when a send begins and is received; when a combine begins and ends."""
    times: dict[tuple[int, int], tuple[Any, ...]] = {}
    times |= {(t.source, t.place_at_source): (t.start, t.received) for t in timing.transfers}
    return times | {(c.rank, c.place): (c.start, c.end) for c in timing.combines}


# Rank 0 combines what 1 sends, then what 2 sends, then tells rank 1.
TWICE = schedule(
    [Recv(1, ALL, S0), Combine(IN, S0, S1, ALL), Recv(2, ALL, OUT), Combine(S1, OUT, OUT, ALL),
     Send(1, ALL)],
    [Send(0, ALL, IN), Recv(0, ALL, S0)],
    [Send(0, ALL, IN)],
)  # fmt: skip


def test_hockney_combining_keeps_both_ports_busy() -> None:
    """The second transfer cannot begin before the first combine is over, nor the answer."""
    timing = ideal(TWICE, HOCKNEY)
    assert times(timing) == {
        (1, 0): (0, 3),
        (0, 1): (3, 7),
        (2, 0): (7, 10),
        (0, 3): (10, 14),
        (0, 4): (14, 17),
    }
    assert list(timing.finish) == [17, 17, 10]
    assert timing.combines == (Combining(0, 1, 8, F(3), F(7)), Combining(0, 3, 8, F(10), F(14)))
    check_ports(TWICE, timing, HOCKNEY)


def test_hockney_the_send_port_is_busy_too() -> None:
    """Rank 0's own message, listed after the combine, waits for it although its data is here."""
    own = schedule(
        [Recv(1, ALL, S0), Combine(IN, S0, OUT, ALL), Send(1, ALL, IN)],
        [Send(0, ALL, IN), Recv(0, ALL, S0)],
    )
    assert times(ideal(own, HOCKNEY)) == {(1, 0): (0, 3), (0, 1): (3, 7), (0, 2): (7, 10)}
    # Listed before, it goes at once, and the combine waits until it is over.
    lists = [list(ops) for ops in own.lists]
    lists[0] = [lists[0][2], *lists[0][:2]]
    lists[0].insert(0, Send(2, ALL, IN))
    longer = schedule(*lists, [Recv(0, ALL, S0)])
    assert times(ideal(longer, HOCKNEY)) == {
        (0, 0): (0, 3),
        (0, 1): (3, 6),
        (1, 0): (0, 3),
        (0, 3): (6, 10),
    }


def test_measured_combining_keeps_both_ports_busy() -> None:
    """t0 = 1, λ = 2, 5 for 8 bytes: the second receipt is t0 after the combine at the earliest."""
    timing = ideal(TWICE, SLOW)
    assert times(timing) == {
        (1, 0): (0, 2),
        (0, 1): (2, 7),
        (2, 0): (0, 8),
        (0, 3): (8, 13),
        (0, 4): (13, 15),
    }
    check_ports(TWICE, timing, SLOW)


@pytest.mark.parametrize(
    ("machine", "expected"),
    [
        (POSTAL, {(1, 0): (0, 2), (2, 0): (0, 3), (0, 4): (3, 5)}),
        # 8 bytes: o' = 5.5, g' = 6.5: taken from 12 to 17.5; from 18.5 to 24; told at 24
        (LOGGP, {(1, 0): (0, F(35, 2)), (2, 0): (0, 24), (0, 4): (24, F(83, 2))}),
    ],
)
def test_elsewhere_combining_is_free(machine: Machine, expected: dict[Any, Any]) -> None:
    timing = ideal(TWICE, machine)
    assert times(timing) == expected
    assert timing.combines == ()
    check_ports(TWICE, timing, machine)


def test_what_is_free_is_done_when_its_data_is_here() -> None:
    """Whatever comes before it in the list: rank 0 passes on at 2 what it copied and combined."""
    early = schedule(
        [Recv(1, ALL, S0), Recv(2, ALL, S3), Combine(IN, S3, OUT, ALL), Combine(IN, S0, S1, ALL),
         Copy(S1, S2, ALL), Send(2, ALL, S2)],
        [Send(0, ALL, IN)],
        [Recv(1, B, S0), Send(0, ALL, IN), Recv(0, ALL, S1)],
    )  # fmt: skip
    lists = [list(ops) for ops in early.lists]
    lists[1].append(Send(2, B, IN))
    timing = ideal(schedule(*lists), POSTAL)
    assert times(timing) == {(1, 0): (0, 2), (1, 1): (1, 3), (2, 1): (0, 3), (0, 5): (2, 4)}
    assert list(timing.finish) == [3, 2, 4]


def test_what_ends_with_a_combine_or_a_copy_ends_then() -> None:
    lists: list[list[Operation]] = [
        [Recv(1, ALL, S0), Combine(IN, S0, S1, ALL), Copy(S1, OUT, ALL)],
        [Send(0, ALL, IN)],
    ]
    assert list(ideal(schedule(*lists), HOCKNEY).finish) == [7, 3]
    assert list(ideal(schedule(*lists), POSTAL).finish) == [2, 1]
    assert ideal(schedule([Copy(IN, OUT, ALL)]), HOCKNEY) == Timing((F(0),), ())


@pytest.mark.parametrize("machine", [POSTAL, HOCKNEY, LOGGP, SLOW])
def test_a_combine_of_what_never_comes(machine: Machine) -> None:
    """The list stands at the receive; nothing after it is done."""
    with pytest.raises(InvalidSchedule) as caught:
        ideal(
            schedule([Recv(1, ALL, S0), Combine(IN, S0, S1, ALL), Copy(S1, OUT, ALL)], []), machine
        )
    assert (caught.value.rank, caught.value.step) == (0, 0)
    assert caught.value.asked == "rank 0, step 0: recv with rank 1"


def around() -> Schedule:
    """All send twice before they combine; of both messages, the second is received after that."""
    lists: list[list[Operation]] = [
        [
            Send((r + 1) % 3, A, IN),
            Send((r + 1) % 3, B, IN),
            Recv((r - 1) % 3, A, S0),
            Combine(IN, S0, OUT, A),
            Recv((r - 1) % 3, B, S0),
            Combine(IN, S0, OUT, B),
        ]
        for r in range(3)
    ]
    return schedule(*lists, collective="allreduce")


def test_hockney_a_combine_overtakes_sends_whose_receivers_combine_first() -> None:
    """4 bytes: 2, combined in 2.  In strict list order all would wait for each other."""
    timing = ideal(around(), HOCKNEY)
    for r in range(3):
        assert {k: v for k, v in times(timing).items() if k[0] == r} == {
            (r, 0): (0, 2),
            (r, 3): (2, 4),
            (r, 1): (4, 6),
            (r, 5): (6, 8),
        }
    check_ports(around(), timing, HOCKNEY)
    assert ideal_alike(around().rank(0), HOCKNEY) == 8


def test_hockney_nothing_overtakes_where_all_can_go_on() -> None:
    """Rank 0's second message waits for its receiver, which is busy, not stuck."""
    lists: list[list[Operation]] = [
        [Send(1, ALL, IN), Send(1, ALL, IN), Recv(2, ALL, S0), Combine(IN, S0, OUT, ALL)],
        [Recv(0, ALL, S0), Combine(IN, S0, S1, ALL), Recv(0, ALL, S2)],
        [Send(0, ALL, IN)],
    ]
    assert times(ideal(schedule(*lists), HOCKNEY)) == {
        (0, 0): (0, 3),
        (2, 0): (0, 3),
        (1, 1): (3, 7),
        (0, 1): (7, 10),
        (0, 3): (10, 14),
    }


@pytest.mark.parametrize("p", [2, 3, 5, 8, 13, 21, 30])
def test_the_census_for_a_latency_that_is_not_the_machines(p: int) -> None:
    """It sends on before it combines: it completes where sends wait for their receivers, too."""
    for lam in (1, 2, 3, 7):
        census = ALGORITHMS["allreduce/census_delay_receive"].schedule(p, 12, itemsize=4, lam=lam)
        check_flow(census)
        for machine in (HOCKNEY, SLOW, POSTAL):
            timing = ideal(census, machine)
            check_ports(census, timing, machine)
            assert len(set(timing.finish)) == 1
            assert timing.completion == ideal_alike(census.rank(0), machine)


@pytest.mark.parametrize("machine", [MEASURED, COMBINES, VAN_DE_GEIJN], ids=lambda m: m.describe())
@pytest.mark.parametrize(
    "algorithm", [a for a in WHERE_PORTS_BLOCK if a.kind.combines], ids=lambda a: a.name
)
def test_in_a_known_order_the_times_are_those_of_the_simulation(
    algorithm: Algorithm, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slow twin: one event after another, whichever is possible next."""
    settings = settings_of(algorithm, 6, lam=3, segment=16)
    made = algorithm.schedule(6, 96, itemsize=8, **settings)
    timing = ideal(made, machine)
    monkeypatch.setattr(events, "_known_order", lambda *_: None)
    twin = ideal(made, machine)
    assert (timing.finish, timing.combines) == (twin.finish, twin.combines)
    assert sorted(timing.transfers) == sorted(twin.transfers)


# --- one rank for all ---

ALIKE = [
    a for a in ALGORITHMS.values()
    if a.collective == "allreduce" and not a.levels and "broadcast" not in a.short_name
]  # fmt: skip


@pytest.mark.no_cover
@pytest.mark.parametrize("machine", [*MACHINES, HOCKNEY, SLOW], ids=lambda m: m.describe())
@pytest.mark.parametrize("algorithm", ALIKE, ids=lambda a: a.name)
def test_where_all_ranks_are_alike_one_stands_for_all(
    algorithm: Algorithm, machine: Machine
) -> None:
    """Every rank has the time of one rank that exchanges with itself."""
    for p in (2, 4, 8):
        lam = LATENCIES[p % 7]
        settings = settings_of(algorithm, p, lam=lam, radix=2, stages=stages_for(p, 2))
        made = algorithm.schedule(p, 24 * p, itemsize=8, **settings)
        finish = ideal(made, machine).finish
        for rank in (0, p - 1):
            assert set(finish) == {ideal_alike(made.rank(rank), machine)}


def test_of_ranks_that_differ_one_stands_for_none() -> None:
    uneven = Exchange(Problem("allreduce", 4, 20, itemsize=4), (Stage(2, True), Stage(2, True)))
    assert not uneven.is_alike()
    assert len({ideal_alike(uneven.operations(rank), HOCKNEY) for rank in range(4)}) > 1
    even = Exchange(Problem("allreduce", 4, 16, itemsize=4), (Stage(2, True), Stage(2, True)))
    assert even.is_alike()
    left_over = Exchange(Problem("allreduce", 5, 16, itemsize=4), (Stage(2, True), Stage(2, True)))
    to_root = Exchange(Problem("reduce", 4, 16, itemsize=4), (Stage(2, True), Stage(2, True)))
    assert not left_over.is_alike()
    assert not to_root.is_alike()
