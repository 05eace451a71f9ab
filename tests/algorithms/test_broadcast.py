"""Broadcast algorithms: the closed forms they claim, their choices, one rank of a million."""

import tracemalloc
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from typing import Any

import pytest

from collwise.algorithms import ALGORITHMS, Algorithm
from collwise.algorithms.registry import algorithms_for
from collwise.algorithms.search import settings_to_try
from collwise.model import postal
from collwise.model.machine import Machine
from collwise.model.measured_machine import measured
from collwise.schedule.operations import Recv, Send, size_of
from collwise.schedule.problem import Problem
from collwise.schedule.program import Schedule
from collwise.schedule.trees import HeapTree, SplitTree
from collwise.timing import ideal
from tests.algorithms.examples import LATENCIES

F = Fraction
BROADCASTS = algorithms_for("broadcast")
each = pytest.mark.parametrize("algorithm", BROADCASTS, ids=lambda a: a.name)
OPTIMAL = [a for a in BROADCASTS if a.time == "T_λ(p)·t0"]
MACHINES = {
    "postal": Machine.postal(t0_s=1e-5, lam="9/5"),
    "hockney": Machine.hockney(alpha_s="5.25e-4", beta_s="5e-7"),
    "loggp": Machine.loggp(L_s=1e-5, o_s=2e-6, g_s=3e-6, G_s=1e-9),
    "measured": measured(
        [[(8, 1e-6, 3), (1024, 2e-6, 2)], [(4096, 9e-6, "1.6"), (1 << 20, 2e-4, "1.1")]]
    ),
}


def time(name: str, p: int, lam: Fraction, nbytes: int = 8, /, **settings: Any) -> Fraction:
    """Ideal time in t0; equal to what the algorithm predicts."""
    algorithm, machine = ALGORITHMS[f"broadcast/{name}"], Machine.postal(t0_s=3, lam=lam)
    timing = ideal(algorithm.schedule(p, nbytes, p // 3, **settings), machine)
    assert timing.completion == algorithm.predict(machine, p, nbytes, p // 3, **settings)
    return timing.completion / 3


@pytest.mark.no_cover
@pytest.mark.parametrize("algorithm", OPTIMAL, ids=lambda a: a.name)
@pytest.mark.parametrize("lam", [F(27, 25), F(9, 5), F(4)], ids=str)
def test_the_optimal_ones_take_least_time(algorithm: Algorithm, lam: Fraction) -> None:
    """T_λ(p)·t0 for many p, and for great p; tests/algorithms/test_every_p.py has more λ."""
    machine = Machine.postal(t0_s="1.7e-3", lam=lam)
    for p in (*range(1, 20), *range(20, 131, 11), 1000, 1 << 20, 10**7 + 19):
        least = postal.broadcast_time(p, lam) * F(17, 10_000)
        assert algorithm.predict(machine, p, 100, p // 2, lam=lam) == least


@pytest.mark.no_cover
@pytest.mark.parametrize("lam", LATENCIES, ids=str)
def test_the_times_in_words(lam: Fraction) -> None:
    """The formulas of trees; tests/timing/test_closed_forms.py has those of chains."""
    for h in (1, 2, 3, 6):
        assert time("binomial", 2**h, lam) == h * lam
        for k in (2, 3, 4) if h < 6 else (2, 3):  # 4^6 ranks show no more
            assert time("knomial", k**h, lam, k=k) == h * (k - 2 + lam)
        for k in (1, 2, 5):
            p = 2 ** (h + 1) - 1
            segmented = time("binary_segmented", p, lam, 30, segment=30 // k)
            assert segmented == h * (1 + lam) + 2 * (k - 1)
    for p in (5, 20, 64, 100):
        schedule = ALGORITHMS["broadcast/postal_tree"].schedule(p, 8, lam=lam)
        d = len(schedule.rank(0))
        for k in (1, 2, 5):
            segmented = time("postal_tree_segmented", p, lam, 30, lam=lam, segment=30 // k)
            assert segmented == postal.broadcast_time(p, lam) + (k - 1) * d


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_scatter_and_allgather_of_two_to_the_d(d: int) -> None:
    """Twice d start-ups, and twice (p − 1)/p of the bytes, on a Hockney machine [Barnett1994]."""
    p, n = 2**d, 2**d * 10
    alpha, beta = F(7), F(1, 3)
    machine = Machine.hockney(alpha_s=alpha, beta_s=beta)
    time = ALGORITHMS["broadcast/scatter_allgather"].predict(machine, p, n)
    # Pieces that a rank has from the scatter are not sent again: the collect is never slower.
    assert time <= 2 * d * alpha + 2 * F(p - 1, p) * n * beta
    assert time >= d * alpha + F(p - 1, p) * n * beta


@pytest.mark.no_cover
@each
def test_choices_of_segments_are_the_best_of_some(algorithm: Algorithm) -> None:
    """No power of two is a better segment than the one proposed."""
    if "segment" not in algorithm.parameters:
        return
    for machine in (MACHINES["hockney"], MACHINES["measured"]):
        problem = Problem("broadcast", 16, 1 << 20)
        for settings in settings_to_try(algorithm, problem, machine):
            best = algorithm.predict(machine, 16, 1 << 20, **settings)
            for k in range(11, 20, 3):
                other = {**settings, "segment": 1 << k}
                assert best <= algorithm.predict(machine, 16, 1 << 20, **other)


def test_where_an_algorithm_does_not_apply() -> None:
    hockney = MACHINES["hockney"]
    ring, doubling = (
        ALGORITHMS[f"broadcast/{name}"] for name in ("scatter_ring", "scatter_allgather")
    )
    assert not list(settings_to_try(ring, Problem("broadcast", 2, 1000), hockney))
    assert not list(settings_to_try(ring, Problem("broadcast", 2000, 1 << 20), hockney))
    assert list(settings_to_try(doubling, Problem("broadcast", 2000, 1 << 20), hockney)) == [{}]
    assert not list(settings_to_try(doubling, Problem("broadcast", 8, 7), hockney))
    chain = ALGORITHMS["broadcast/chain_segmented"]
    assert not list(settings_to_try(chain, Problem("broadcast", 4, 1), hockney))


@pytest.mark.parametrize("lam", LATENCIES, ids=str)
def test_a_fixed_alpha_is_optimal_where_one_can_be(lam: Fraction) -> None:
    algorithm, machine = ALGORITHMS["broadcast/alpha"], Machine.postal(t0_s=1, lam=lam)
    for p in (2, 5, 20, 100):
        times = [
            algorithm.predict(machine, p, 8, **settings)
            for settings in settings_to_try(algorithm, Problem("broadcast", p, 8), machine)
        ]
        least = postal.broadcast_time(p, lam)
        assert min(times) >= least
        if postal.alpha_intersection(p, lam):
            assert times == [least]
        else:
            assert len(times) > 5


# --- one rank of 2^20 ---

MILLION = 1 << 20
SETTINGS: dict[str, Any] = {"segment": 300, "lam": F(9, 5), "alpha": F(3, 5), "k": 4}


@pytest.fixture
def _nothing_great(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever builds something of the size of the communicator fails."""

    def never(*_: object) -> None:
        raise AssertionError("built a whole tree for the schedule of one rank")

    for cls in (SplitTree, HeapTree):
        monkeypatch.setattr(cls, "edges", never)
    monkeypatch.setattr(SplitTree, "spans", never)
    monkeypatch.setattr(Schedule, "lists", property(never))
    monkeypatch.setattr(Schedule, "rows", never)
    tracemalloc.start()
    yield
    tracemalloc.stop()


def applies(algorithm: Algorithm) -> bool:
    """Whether it is meant for very many ranks (a ring is not).

    All processes that collect tests ask: segments of few bytes and ranks are quick to choose among.
    """
    cut = "segment" in algorithm.parameters
    problem = Problem("broadcast", *((1 << 14, 2) if cut else (1 << 16, 4 * MILLION)))
    return any(True for _ in settings_to_try(algorithm, problem, MACHINES["postal"]))


SCALABLE = [algorithm for algorithm in BROADCASTS if applies(algorithm)]


@pytest.mark.usefixtures("_nothing_great")
@pytest.mark.parametrize("algorithm", SCALABLE, ids=lambda a: a.name)
def test_one_rank_of_a_million(algorithm: Algorithm) -> None:
    """Its schedule is made without anything of the size of the communicator, for any root."""
    settings = {name: SETTINGS[name] for name in algorithm.parameters}
    nbytes = 1000 if algorithm.parameters.keys() & {"segment"} else 4 * MILLION
    root = 77
    for rank in (78, 76, 5, MILLION // 3, MILLION - 1):
        tracemalloc.clear_traces()
        tracemalloc.reset_peak()
        schedule = algorithm.schedule(MILLION, nbytes, root, **settings)
        operations = schedule.rank(rank)
        _, peak = tracemalloc.get_traced_memory()
        assert peak < 400_000, "bytes, which is less than one for every other rank"
        assert 1 <= len(operations) < 400
        received = [op for op in operations if isinstance(op, Recv)]
        assert sum(map(size_of, received)) == nbytes
        peers = {op.peer for op in operations if isinstance(op, Send | Recv)}
        assert all(0 <= peer < MILLION for peer in peers)
        assert rank not in peers


@pytest.mark.no_cover
@pytest.mark.usefixtures("_nothing_great")
@pytest.mark.parametrize("algorithm", SCALABLE, ids=lambda a: a.name)
def test_neighbours_of_a_million_agree(algorithm: Algorithm) -> None:
    """The peer's own list has the partner of every message, with the same blocks."""
    settings = {name: SETTINGS[name] for name in algorithm.parameters}
    schedule = algorithm.schedule(MILLION, 4 * MILLION if not settings else 600, 3, **settings)
    lists = cache(schedule.rank)
    todo = [500_000]  # grows while it is walked
    for rank in todo:
        for op in lists(rank):
            assert isinstance(op, Send | Recv)
            if op.peer == 3 and len(lists(4)) == 1:
                continue  # a flat root's list has a million sends
            back = Send if isinstance(op, Recv) else Recv
            theirs = [o for o in lists(op.peer) if isinstance(o, back) and o.peer == rank]
            assert op.blocks in [o.blocks for o in theirs]
            if op.peer not in todo and len(todo) < 7:
                todo.append(op.peer)
