"""Predictions of the library's own algorithms that are constructed like ours."""

from collections.abc import Iterator
from typing import Any

import pytest

from collwise.algorithms.registry import ALGORITHMS
from collwise.model.machine import Machine
from collwise.model.placement import Placement
from collwise.planner.choose import plan_for, problem_for
from collwise.planner.own_times import OURS, ours_of, predicted_own
from collwise.schedule.collectives import COLLECTIVES
from collwise.schedule.problem import Problem

RANKS = 8
MACHINE = Machine.hockney(alpha_s="1e-6", beta_s="1e-9", gamma_s="1e-9")
SETTINGS = {"k": 2, "segment": 0}


def posed(method: str, ranks: int = RANKS, **more: Any) -> Problem:
    name = next(name for name, kind in COLLECTIVES.items() if method in kind.methods)
    given = {"sources": range(ranks), "nbytes": 64} if COLLECTIVES[name].has_sources else {}
    return problem_for(name, ranks=ranks, **{"nbytes": 4096, **given, **more})[0]


def entries() -> Iterator[tuple[str, str, str]]:
    for library, methods in OURS.items():
        for method, names in methods.items():
            for name in names:
                yield library, method, name


@pytest.mark.parametrize("entry", list(entries()), ids="-".join)
def test_every_entry_is_registered_and_has_a_time(entry: tuple[str, str, str]) -> None:
    problem = posed(entry[1])
    found = ours_of(*entry, problem, SETTINGS)
    assert found is not None
    name, settings = found
    estimated = plan_for(problem, MACHINE)
    time = predicted_own(estimated, *entry, SETTINGS)
    assert time == ALGORITHMS[name].time_of(estimated.problem, MACHINE, settings)
    assert time is not None
    assert time >= estimated.bound.time


@pytest.mark.parametrize(
    ("entry", "ranks", "settings"),
    [
        (("MPICH", "Reduce", "binomial"), 5, {}),
        (("MPICH", "Allgather", "tsp_brucks"), 8, {"k": 4}),
        (("MPICH", "Allreduce", "recexch"), 8, {"k": 4}),
        (("MPICH", "Allreduce", "recexch"), 8, {"k": 1}),
        (("MPICH", "Bcast", "tree"), 8, {"k": 2}),
        (("Open MPI", "Bcast", "binomial"), 8, {"segment": 64}),
        (("Open MPI", "Bcast", "knomial"), 8, {}),
        (("Another", "Bcast", "binomial"), 8, {}),
    ],
)
def test_what_is_constructed_otherwise_has_none(
    entry: tuple[str, str, str], ranks: int, settings: dict[str, int]
) -> None:
    assert ours_of(*entry, posed(entry[1], ranks), settings) is None


def test_settings_are_those_of_the_library() -> None:
    eight, nine = posed("Bcast"), posed("Allreduce", 9)
    assert ours_of("MPICH", "Bcast", "sched_binomial", eight, {}) == ("broadcast/knomial", {"k": 2})
    for segment, expected in ((0, 4096), (-1, 4096), (64, 64)):
        found = ours_of("Open MPI", "Bcast", "pipeline", eight, {"segment": segment})
        assert found == ("broadcast/chain_segmented", {"segment": expected})
    found = ours_of("MPICH", "Allreduce", "tsp_recexch_single_buffer", nine, {"k": 3})
    assert found == ("allreduce/recursive_multiplying", {"radix": 3})


def test_partners_in_another_order_count_where_there_are_nodes() -> None:
    for library, method, name in (
        ("Open MPI", "Bcast", "binomial"),
        ("MPICH", "Reduce_scatter_block", "recursive_halving"),
    ):
        assert ours_of(library, method, name, posed(method), {}) is not None
        nodes = posed(method, placement=Placement.of([0, 1] * 4))
        assert ours_of(library, method, name, nodes, {}) is None


def test_no_time_without_a_short_simulation() -> None:
    """Too many messages; and, for none, the plan's own time of the same candidate."""
    many = plan_for(posed("Allreduce", 1000), MACHINE)
    assert predicted_own(many, "MPICH", "Allreduce", "ring", {}) is None
    few = plan_for(posed("Bcast"), MACHINE)
    known = few.candidate("broadcast/scatter_ring").predicted
    assert predicted_own(few, "MPICH", "Bcast", "scatter_ring_allgather", {}) == known
