"""Closed forms, and times by the shapes of trees, are those of the schedules, exactly."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.algorithms.examples import MACHINES, settings_of
from tests.case import in_case

from collwise.algorithms import ALGORITHMS
from collwise.model import postal
from collwise.model.exact import seconds
from collwise.model.machine import Machine
from collwise.schedule.data_movement import DownTree
from collwise.schedule.reduction import UpTree
from collwise.schedule.trees import HeapTree
from collwise.timing import completion, ideal, simulate
from collwise.timing.tree_times import about_shapes, tree_completion, tree_time, up_tree_time

RANKS = (2, 3, 8, 30)
SIZES = (8, 700, 3000)


def time(name: str, machine: Machine, ranks: int, nbytes: int, **settings: Any) -> Fraction:
    """Of the schedule, by the event loop; `completion` says the same."""
    schedule = ALGORITHMS[name].schedule(ranks, nbytes, ranks // 2, **settings)
    timing = ideal(schedule, machine)
    assert completion(schedule, machine) == timing.completion
    return timing.completion


@pytest.mark.parametrize("machine", MACHINES, ids=lambda m: m.describe())
def test_chains_and_flat_trees(machine: Machine) -> None:
    for p in RANKS:
        for n in SIZES:
            (gap, latency), combining = machine.message(n), machine.combine(n) or 0
            with in_case(p, n):
                assert time("broadcast/chain", machine, p, n) == (p - 1) * latency
                assert time("broadcast/flat", machine, p, n) == (p - 2) * gap + latency
                up = (p - 2) * gap + latency + (p - 1) * combining
                assert time("reduce/flat", machine, p, n) == up


def chain_in_segments(machine: Machine, hops: int, nbytes: int, segment: int) -> Fraction:
    """Full segments arrive t0 apart; after every hop the last one is `lag` behind the one before.

    Of equal segments this is hops·λ·t0 + (their number − 1)·t0.
    """
    count, rest = divmod(nbytes - 1, segment)  # full segments before the last one
    full, last = machine.message(segment), machine.message(rest + 1)
    if not count:
        return hops * last.latency
    lag = max(full.gap + last.latency - full.latency, last.gap)
    for _ in range(hops - 1):
        lag = max(max(lag, full.gap) + last.latency - full.latency, last.gap)
    return hops * full.latency + (count - 1) * full.gap + lag


@pytest.mark.no_cover
@pytest.mark.parametrize("machine", MACHINES, ids=lambda m: m.describe())
def test_chains_in_segments(machine: Machine) -> None:
    for p in RANKS:
        for n in SIZES:
            for segment in (7, 100, 1000):
                expected = chain_in_segments(machine, p - 1, n, segment)
                assert time("broadcast/chain_segmented", machine, p, n, segment=segment) == expected
                if n % segment == 0:
                    gap, latency = machine.message(segment)
                    assert expected == (p - 1) * latency + (n // segment - 1) * gap


def test_which_go_by_shapes() -> None:
    """Trees of broadcasts, of reduces in one message, and both one after the other.

    What is predicted with shapes is compared with the loop in tests/algorithms/test_every_p.py.
    """
    for name in ("broadcast/binomial", "reduce/postal_tree", "allreduce/reduce_broadcast"):
        algorithm = ALGORITHMS[name]
        program = algorithm.schedule(9, 72, **settings_of(algorithm, 9)).program
        assert about_shapes(program) is not None
        assert tree_completion(program, MACHINES[0]) is not None
    segmented = ALGORITHMS["reduce/chain_segmented"].schedule(9, 72, segment=40)
    assert tree_completion(segmented.program, MACHINES[0]) is None


@pytest.mark.no_cover
@pytest.mark.parametrize("degree", [1, 2])
def test_chains_of_thousands_of_ranks_are_no_deep_recursion(degree: int) -> None:
    machine, tree = Machine.postal(t0_s=1, lam=2), HeapTree(20_000, degree)
    down, up = tree_time(tree, 8, machine), up_tree_time(tree, 8, machine)
    assert tree_time(tree, 80, machine, 8) > down
    if degree == 1:
        assert down == up == 19_999 * 2
        assert tree_time(tree, 80, machine, 8) == 19_999 * 2 + 9
    assert tree_completion(DownTree(tree, 8, None), machine) == down
    assert tree_completion(UpTree(tree, 8), machine) == up


@pytest.mark.no_cover
def test_many_ranks() -> None:
    """The λ-tree ends at T_λ(p) · t0, and never has more than N_λ(t) ranks informed at t · t0."""
    lam, t0 = Fraction(9, 5), Fraction(1, 1000)
    schedule = ALGORITHMS["broadcast/postal_tree"].schedule(1 << 16, 512, 5, lam=lam)
    machine = Machine.postal(t0_s=t0, lam=lam)
    trace = simulate(schedule, machine)
    assert trace.completion == postal.broadcast_time(1 << 16, lam) * t0
    assert completion(schedule, machine) == trace.completion
    assert len(trace.finish_s) == 1 << 16
    assert max(trace.finish_s) == trace.completion_s == seconds(trace.completion)
    times, counts = np.unique(trace.played.received, return_counts=True)
    informed = np.cumsum(counts) + 1
    for ticks, ranks in zip(times.tolist()[::20], informed.tolist()[::20], strict=True):
        assert ranks <= postal.reached(ticks * trace.law.unit / t0, lam)
