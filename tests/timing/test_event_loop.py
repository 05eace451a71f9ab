"""The loop in C and its plain twin: random schedules of every law, and both at their limits."""

from collections.abc import Callable
from fractions import Fraction
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.algorithms.examples import WHERE_PORTS_BLOCK, settings_of
from tests.case import in_case
from tests.timing.comparing import check
from tests.timing.networks import equal_to_twin
from tests.timing.schedules import (
    ALL,
    IN,
    LAWS,
    OUT,
    S0,
    S1,
    A,
    combine,
    messages,
    random_broadcast,
    random_run,
    random_schedule,
    recv,
    send,
    spelled,
    written,
)

from collwise.algorithms import ALGORITHMS
from collwise.errors import InvalidSchedule
from collwise.model.machine import Machine
from collwise.model.measured_machine import measured
from collwise.model.placement import Placement
from collwise.model.topology import Mesh, Topology
from collwise.schedule.operations import Copy, Operation, Recv
from collwise.schedule.program import Schedule
from collwise.timing import completion, event_loop, ideal, simulate
from collwise.timing.event_loop import NEVER
from collwise.verifier import check_ports

COMPILED: Any = vars(event_loop)["_event_loop"]
HOCKNEY = Machine.hockney(alpha_s=1, beta_s="1/4", gamma_s="1/2")
WORM = Machine.wormhole(send_s=3, receive_s=2, hop_s=1, beta_s="1/2")
POSTAL_COMBINING = measured([[(8, 1, 2)]]).with_combining([(8, 5)])
LEVELS = Machine.levels([Machine.postal(t0_s=1, lam=2)] * 2, Placement.regular(2, 2), ports=[1])
needs_compiler = pytest.mark.skipif(COMPILED is None, reason="the extension is not built")


Case = tuple[Schedule, Machine, Topology | None]


# --- random schedules ---


def some_algorithm(random: Random, law: str) -> Case:
    ranks = random.choice((1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17, 25, 26, 32))
    machine, topology = LAWS[law](random, ranks)
    usable = WHERE_PORTS_BLOCK if machine.ports_block else [*ALGORITHMS.values()]
    return random_run(random, random.choice(usable), ranks, machine), machine, topology


def some_lists(random: Random, law: str) -> Case:
    """Many of these ask for what never comes."""
    ranks = random.randrange(2, 9)
    machine, topology = LAWS[law](random, ranks)
    if random.random() < 0.5:
        return random_schedule(random, ranks, random.randrange(1, 25)), machine, topology
    made = random_broadcast(random, ranks, random.randint(1, 6), mixed=random.random() < 0.7)
    return made, machine, topology


@pytest.mark.no_cover
@pytest.mark.parametrize("some", [some_algorithm, some_lists])
@pytest.mark.parametrize(
    "seeds", [range(8), pytest.param(range(8, 500), marks=pytest.mark.exhaustive)]
)
def test_the_loop_and_its_twins(some: Callable[..., Case], seeds: range) -> None:
    """The plain one, and where ports block the obvious one; the verifier accepts what they say."""
    for seed in seeds:
        for law in LAWS:
            with in_case(seed, law):
                schedule, machine, topology = some(Random(f"{seed} {law}"), law)
                timing = check(schedule, machine, topology)
                if schedule.ranks < 10 and machine.ports_block:
                    equal_to_twin(schedule, machine, topology)
                if schedule.ranks < 10 and timing is not None:
                    check_ports(schedule, timing, machine, topology)


# --- times that int64 does not hold ---

PRIMES = Fraction(1, 998244353), Fraction(1, 2**61 - 1)
BEYOND = {
    "postal": Machine.postal(t0_s="1.7234567891234e-3", lam="3.14159265358979323846"),
    "Hockney": Machine.hockney(alpha_s=PRIMES[0], beta_s=PRIMES[1], gamma_s=3),
    "LogGP": Machine.loggp(L_s=PRIMES[1], o_s=PRIMES[0], g_s=1, G_s=1),
    "wormhole": Machine.wormhole(send_s=1, receive_s=0, hop_s=PRIMES[1], beta_s="1e-9"),
    "levels": Machine.levels(
        [Machine.postal(t0_s=PRIMES[0], lam=Fraction(2**62 + 1, 2**62))] * 2,
        Placement.regular(3, 2),
        ports=[PRIMES[1]],
    ),
}


@pytest.mark.parametrize("law", BEYOND)
def test_ticks_beyond_int64(law: str) -> None:
    """One message takes more ticks than int64 holds: only the plain loop has its time."""
    for name in ("allreduce/ring", "broadcast/chain_segmented", "reduce/binomial"):
        algorithm = ALGORITHMS[name]
        schedule = algorithm.schedule(6, 240, itemsize=8, **settings_of(algorithm, 6))
        check(schedule, BEYOND[law])
        check_ports(schedule, ideal(schedule, BEYOND[law]), BEYOND[law])


@pytest.mark.no_cover
@pytest.mark.parametrize("bits", [57, 59, 60, 61, 62])
def test_times_that_only_add_up_to_more_than_64_bits(bits: int) -> None:
    """Never a wrong time, wherever int64 ceases to do: each message takes 2^bits ticks and more."""
    tick = Fraction(1, 2**bits)
    for machine in (
        Machine.postal(t0_s=1, lam=1 + tick),
        Machine.hockney(alpha_s=1, beta_s=tick, gamma_s=tick),
        Machine.loggp(L_s=1, o_s=tick, g_s=0, G_s=tick),
        Machine.wormhole(send_s=1, receive_s=0, hop_s=0, beta_s=tick, all_port=True),
    ):
        for name in ("chain", "flat", "scatter_allgather"):
            check(ALGORITHMS[f"broadcast/{name}"].schedule(30, 100), machine)
    links = Machine.hockney(alpha_s=1, beta_s=tick)  # held for so long in all, not by any message
    check(ALGORITHMS["broadcast/flat"].schedule(16, 100), links, Mesh(2, 8))


# --- limits ---


@needs_compiler
@pytest.mark.parametrize(
    ("machine", "topology"), [(HOCKNEY, Mesh(1, 4)), (WORM, Mesh(1, 4)), (LEVELS, None)]
)
def test_it_ends_as_soon_as_what_a_rank_still_receives_takes_too_long(
    machine: Machine, topology: Topology | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten messages from 0 to 2, one by one: after the first it is known that the last is late."""
    made = messages(4, *[(0, 2)] * 10)
    whole = ideal(made, machine, topology).completion
    given = record(monkeypatch)
    assert completion(made, machine, topology, whole) == whole
    assert completion(made, machine, topology, whole - 1) is None
    assert [int((one[RESULTS].received != NEVER).sum()) for one in given] == [10, 1]


def test_limits_that_no_time_keeps() -> None:
    made = messages(2, (0, 1))
    for limit in (Fraction(-1), Fraction(-(10**30)), Fraction(0), Fraction(199, 100)):
        assert completion(made, HOCKNEY, None, limit) is None
    assert completion(made, HOCKNEY, None, Fraction(10**30)) == 2
    assert completion(written([], []), HOCKNEY, None, Fraction(0)) == 0


# --- what never ends ---


BOTH_COMBINE = ([recv(r, S0), combine(IN, S0), send(r, OUT)] for r in (1, 0))
NEVER_ENDS: list[tuple[Schedule, str]] = [
    (spelled("", "<0A"), "rank 1, step 0: recv with rank 0"),
    (spelled("<1A >1A", "<0A >0A"), "rank 0, step 0: recv with rank 1"),
    (written([send(1)], [recv(0), recv(0, S0)]), "rank 1, step 1: recv with rank 0"),
    (written(*BOTH_COMBINE), "rank 0, step 0: recv with rank 1"),
    # The list stands at the receive; nothing after it is done.
    (
        written([recv(1, S0), combine(IN, S0, S1), Copy(S1, OUT, (ALL,))], []),
        "rank 0, step 0: recv with rank 1",
    ),
]
LOGGP = Machine.loggp(L_s=1, o_s=1, g_s=1, G_s=1)
ALL_PORTS = Machine.wormhole(send_s=1, receive_s=1, hop_s=1, beta_s=1, all_port=True)
POSTAL = Machine.postal(t0_s=1, lam=2)


@pytest.mark.parametrize("machine", [POSTAL, POSTAL_COMBINING, HOCKNEY, LOGGP, WORM, ALL_PORTS])
def test_what_never_ends(machine: Machine) -> None:
    topology = Mesh(1, 2) if machine.kind == "wormhole" else None
    for schedule, first in NEVER_ENDS:
        with pytest.raises(InvalidSchedule) as caught:
            ideal(schedule, machine, topology)
        assert caught.value.asked == first
        assert first.startswith(f"rank {caught.value.rank}, step {caught.value.step}")
        assert caught.value.seen.startswith("it never completes: the ranks wait for each other")
        check(schedule, machine, topology)


@pytest.mark.parametrize("machine", [HOCKNEY, WORM, ALL_PORTS])
def test_a_send_that_nobody_receives_waits_where_ports_block(machine: Machine) -> None:
    with pytest.raises(InvalidSchedule, match="rank 0, step 0: send with rank 1"):
        ideal(spelled(">1A", ""), machine)
    assert ideal(spelled(">1A", ""), LOGGP).transfers == ()


def test_a_receive_that_nobody_answers_is_found_among_many() -> None:
    others = [list[Operation]() for _ in range(1023)]
    with pytest.raises(InvalidSchedule, match="rank 0, step 0"):
        simulate(written([Recv(1, A)], *others), Machine.postal(t0_s=1, lam=1))


# --- what the loop in C is given ---


def record(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What the loop in C is given from now on."""
    given: list[tuple[Any, ...]] = []

    def play(*arguments: Any) -> int:
        given.append(arguments)
        outcome: int = COMPILED.play(*arguments)
        return outcome

    monkeypatch.setattr(event_loop, "_event_loop", SimpleNamespace(play=play))
    return given


(ROWS, RANKS, RULES, LIMIT, COLUMNS, NEEDS, PORTS, ROUTES, SHARED, RESULTS) = range(10)
SOURCE, TARGET, SEND_PORT, RECEIVE_PORT, BEGINS, ALONG = 0, 1, 4, 5, 10, 11


def column(which: int, at: int, value: int, *, of: int = COLUMNS) -> Callable[[list[Any]], None]:
    """Change one number of a column."""

    def change(given: list[Any]) -> None:
        columns = list(given[of])
        columns[which] = columns[which].copy()
        columns[which][at] = value
        given[of] = tuple(columns)

    return change


def argument(which: int, value: Callable[[Any], Any]) -> Callable[[list[Any]], None]:
    def change(given: list[Any]) -> None:
        given[which] = value(given[which])

    return change


GROUPS = ((np.ones(3, np.int64), np.array([0, 0, 1, 2]), *np.zeros((2, 2), np.int64)),)
BAD: dict[str, tuple[str, Callable[[list[Any]], None]]] = {
    "a source": ("rows that name", column(SOURCE, 0, 4)),
    "a source below": ("rows that name", column(SOURCE, 0, -2)),
    "a target": ("rows that name", column(TARGET, 1, 4)),
    "a send port": ("rows that name", column(SEND_PORT, 0, 99)),
    "a receive port": ("rows that name", column(RECEIVE_PORT, 0, -2)),
    "a row of the same publication": ("rows that name", column(ALONG, 0, 3)),
    "a send without a port": ("rows that name", column(SEND_PORT, 0, -1)),
    "needs of too many": ("rows that name", column(BEGINS, -1, 7)),
    "needs that go back": ("rows that name", column(BEGINS, 1, 2)),
    "needs": ("rows that name", argument(NEEDS, lambda needs: needs + 3)),
    "ports": ("rows that name", column(0, 1, 9, of=PORTS)),
    "links": ("rows that name", argument(ROUTES, lambda routes: (*routes[:2], 1))),
    "routes": ("rows that name", column(0, 0, 1, of=ROUTES)),
    "a group": ("a group that is not there", argument(SHARED, lambda _: GROUPS)),
    "too few items": ("bytes for 3 items", argument(RESULTS, lambda r: (r[0][1:], *r[1:]))),
    "too few columns": ("3 rows of 4 ranks", argument(COLUMNS, lambda columns: columns[1:])),
    "fewer rows": ("24 bytes for 2 items", argument(ROWS, lambda rows: rows - 1)),
    "rows below 0": ("-1 rows of 4 ranks", argument(ROWS, lambda _: -1)),
    "too many ranks": ("rows of 4294967296 ranks", argument(RANKS, lambda _: 1 << 32)),
}


@needs_compiler
@pytest.mark.parametrize("case", BAD)
def test_columns_that_name_what_is_not_there(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop in C says so, and reads nothing there."""
    made = spelled(">2a", "<2A", "<0A >1A >3A", "<2A")
    given = record(monkeypatch)
    ideal(made, WORM, Mesh(2, 2))
    seen, change = BAD[case]
    arguments = list(given[0])
    change(arguments)
    with pytest.raises(ValueError, match=seen):
        COMPILED.play(*arguments)
