"""Sizes up to 2^61 and beyond, and machines with odd numbers: exact, or refused with a sentence."""

from fractions import Fraction
from itertools import product
from typing import Any

import pytest

import collwise as cw
from collwise.algorithms.search import settings_to_try
from collwise.errors import BeyondLimits, NothingApplies
from collwise.model.measured_machine import measured
from collwise.planner.choose import problem_for
from collwise.schedule.collectives import COLLECTIVES
from collwise.timing import completion
from tests.algorithms.examples import settings_of

PRIMES = 1000003, 998244353, 2147483647
MACHINES = {
    "short": cw.Machine.postal(t0_s="1e-30", lam=10**9),
    "far": cw.Machine.postal(t0_s="1e-30", lam=10**98),
    "primes": cw.Machine.hockney(
        alpha_s=Fraction(1, PRIMES[0]),
        beta_s=Fraction(1, PRIMES[1] * PRIMES[2]),
        gamma_s=Fraction(1, PRIMES[0] * PRIMES[2]),
    ),
    "free": cw.Machine.hockney(alpha_s=0, beta_s=0, gamma_s=Fraction(1, PRIMES[2])),
    "measured": measured(
        [[(8, Fraction(1, PRIMES[0]), 10**9), (1 << 40, Fraction(PRIMES[2], 7), "7/3")]]
    ),
}


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("law", "collective"),
    [
        pytest.param(*pair, marks=[pytest.mark.exhaustive] * (turn % 3 != 1))
        for turn, pair in enumerate(product(MACHINES, COLLECTIVES))
    ],
)
def test_every_candidate_takes_what_is_predicted(law: str, collective: str) -> None:
    """Collectives take turns on the machines; `-m exhaustive` has the others."""
    machine, ranks = MACHINES[law], 3
    nbytes = 2**61 // (8 * ranks) * 8 * ranks
    more: dict[str, Any] = {}
    if COLLECTIVES[collective].has_sources:
        more, nbytes = {"sources": range(ranks)}, nbytes // ranks
    if COLLECTIVES[collective].combines:
        more = {"op": "max", "dtype": "int64"}
    plan = cw.plan(collective, ranks=ranks, nbytes=nbytes, machine=machine, **more)
    assert plan.bound.time <= plan.choice.predicted
    for candidate in plan.candidates:
        schedule = candidate.schedule(plan.problem)
        if len(schedule.rank(0)) < 100:
            assert cw.ideal(schedule, machine).completion == candidate.predicted


@pytest.mark.no_cover
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_nothing_costs_anything(collective: str) -> None:
    more: dict[str, Any] = {"sources": range(3)} if COLLECTIVES[collective].has_sources else {}
    for machine in (
        cw.Machine.hockney(alpha_s=0, beta_s=0),
        cw.Machine.loggp(L_s=0, o_s=0, g_s=0, G_s=0),
        cw.Machine.wormhole(send_s=0, receive_s=0, hop_s=0, beta_s=0),
    ):
        plan = cw.plan(collective, ranks=3, nbytes=72, machine=machine, **more)
        assert plan.choice.predicted == plan.bound.time == 0


def test_everybody_sends_to_everybody_where_the_latency_is_beyond_the_ranks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The time is known; what would have to be played for very many ranks is refused."""
    problem, _ = problem_for("allreduce", ranks=500, nbytes=8, op="max", dtype="uint8")
    monkeypatch.setattr("collwise.algorithms.allreduce.census.MAX_SENT", 400)
    monkeypatch.setattr("collwise.algorithms.registry.MAX_PLAYED", 400)
    for name in ("receive", "send"):
        census = cw.ALGORITHMS[f"allreduce/census_delay_{name}"]
        for ranks in (2, 3, 9):
            for lam in (ranks, ranks + Fraction(1, 3), 10**9):
                machine = cw.Machine.postal(t0_s=Fraction(1, PRIMES[0]), lam=lam)
                schedule = census.schedule(ranks, 8, lam=lam)
                time = cw.ideal(schedule, machine).completion
                assert census.predict(machine, ranks, 8, lam=lam) == time
                assert time == Fraction(ranks - 2 + lam) / PRIMES[0]
        machine = cw.Machine.postal(t0_s=1, lam=10**9)
        (choice,) = settings_to_try(census, problem, machine)
        assert not settings_to_try(census, problem, cw.Machine.postal(t0_s=1, lam=450))
    with pytest.raises(BeyondLimits, match="messages would have to be simulated"):
        census.time_of(problem, machine, choice)


@pytest.mark.parametrize("collective", ["broadcast", "reduce"])
def test_latencies_beyond_what_rounds_over_levels_are_played_for(collective: str) -> None:
    for lam in (60, 425, Fraction(PRIMES[0], 1009)):
        laws = [cw.Machine.postal(t0_s=Fraction(1, PRIMES[0]), lam=lam) for _ in range(2)]
        machine = cw.Machine.levels(laws, cw.Placement.regular(2, 2))
        plan = cw.plan(collective, ranks=4, nbytes=64, machine=machine)
        assert plan.choice.predicted == cw.ideal(plan.schedule, machine).completion


def test_nothing_from_nobody_to_very_many_ranks() -> None:
    problem, _ = problem_for("allgatherv", ranks=1 << 20, nbytes=0, sources=[0])
    assert settings_to_try(cw.ALGORITHMS["allgatherv/census"], problem, MACHINES["short"]) == [
        {"latency": 1}
    ]


def test_one_source_of_very_many_bytes() -> None:
    """It is a broadcast, and segments of any length can be named."""
    machine = MACHINES["primes"]
    plan = cw.plan("allgatherv", ranks=2, sources=[0], nbytes=1 << 60, machine=machine)
    broadcast = cw.plan("broadcast", ranks=2, nbytes=1 << 60, machine=machine)
    assert plan.choice.predicted == broadcast.choice.predicted


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("nbytes", [2**61 * 5 + 40, 2**200 * 5])
def test_too_many_bytes_refuse_candidates_or_the_plan(collective: str, nbytes: int) -> None:
    """Whole vectors in trees have a time at any size."""
    more: dict[str, Any] = {"sources": range(5)} if COLLECTIVES[collective].has_sources else {}
    try:
        plan = cw.plan(collective, ranks=5, nbytes=nbytes, machine=MACHINES["primes"], **more)
    except (BeyondLimits, NothingApplies):  # a sentence, and no other error
        return
    assert plan.bound.time <= plan.choice.predicted
    assert any("2^61" in why for why in plan.excluded.values())


@pytest.mark.no_cover
@pytest.mark.parametrize("nbytes", [2**55, 2**61, 2**62, 2**63 - 1, 2**63, 2**200])
def test_no_time_is_wrong(nbytes: int) -> None:
    """It is that of all ranks' lists, or is refused."""
    for name, algorithm in cw.ALGORITHMS.items():
        if algorithm.levels or algorithm.collective == "reduce_scatter_block":
            continue
        wanted: dict[str, Any] = {"segment": nbytes // 5, "algorithm": "chain"}
        sources: dict[str, Any] = {"sources": range(5)} if algorithm.kind.has_sources else {}
        settings = settings_of(algorithm, 5, **wanted)
        schedule = algorithm.schedule(5, nbytes, **sources, **settings)
        try:
            blocks = [b for rank in schedule.lists for op in rank for b in op.blocks]
        except BeyondLimits:  # pieces side by side are ordered by what waits for what
            assert nbytes > 2**61, name
            continue
        most = max(b.offset for b in blocks)  # in scratch vectors lie behind one another
        try:
            time = cw.ideal(schedule, MACHINES["primes"]).completion
        except BeyondLimits:
            assert max(most, nbytes) >= 2**61, name
        else:
            assert completion(schedule, MACHINES["primes"]) == time, name


@pytest.mark.no_cover
@pytest.mark.parametrize("collective", [name for name in COLLECTIVES if name != "allgatherv"])
def test_what_no_stage_can_be_worse_than(collective: str) -> None:
    """37 ranks are no product of small groups, which counted as 2^200 seconds."""
    machine = cw.Machine.hockney(alpha_s=10**70, beta_s=1)
    plan = cw.plan(collective, ranks=37, nbytes=37 * 8, machine=machine)
    assert plan.bound.time <= plan.choice.predicted


def test_orders_of_sends_that_take_longer_than_integers_of_a_machine() -> None:
    laws = [cw.Machine.postal(t0_s="1e-6", lam=4), cw.Machine.postal(t0_s="1e-9", lam=10**18)]
    machine = cw.Machine.levels(laws, cw.Placement.regular(3, 2))
    plan = cw.plan("broadcast", ranks=6, nbytes=48, machine=machine, algorithm="multilevel_ordered")
    assert plan.choice.predicted == 10**9 + Fraction(3, 10**9)


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_a_latency_beyond_limits_refuses_only_what_is_built_for_it(collective: str) -> None:
    more: dict[str, Any] = {"sources": [0, 2]} if COLLECTIVES[collective].has_sources else {}
    machine = cw.Machine.loggp(L_s=10**98, o_s=1, g_s=Fraction(1, 10**98), G_s=0)
    plan = cw.plan(collective, ranks=6, nbytes=48, machine=machine, **more)
    beyond = [name for name, why in plan.excluded.items() if why == "not tried: λ is above 1e+98"]
    assert beyond
    assert plan.bound.time <= plan.choice.predicted
