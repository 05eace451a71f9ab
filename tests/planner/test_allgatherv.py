"""Plans of s-to-p broadcasts: the choice, whether moving pays, the bounds, the words."""

import gc
import pickle
import weakref
from fractions import Fraction
from typing import Any

import pytest

from collwise.algorithms.registry import ALGORITHMS, algorithms_for
from collwise.errors import InvalidArgument, NothingApplies
from collwise.model import postal
from collwise.model.bounds import broadcast_unsegmented
from collwise.model.machine import Machine
from collwise.model.sources import distribute
from collwise.model.topology import Complete, Mesh
from collwise.planner.choose import plan, plan_for, unpredicted
from collwise.planner.plans import Plan
from collwise.schedule.problem import Problem
from collwise.timing import ideal
from tests.planner.machines import (
    HOCKNEY,
    LOGGP,
    POSTAL,
    STEEP,
)

FAR = Machine.postal(t0_s=1, lam=4)
USUAL = ("allgatherv/ring", "allgatherv/recursive_doubling")
"""What MPI libraries run, whoever has data."""


def allgatherv(
    ranks: int, sources: Any, nbytes: Any = 1024, machine: Machine = FAR, **more: Any
) -> Plan:
    return plan("allgatherv", ranks=ranks, sources=sources, nbytes=nbytes, machine=machine, **more)


# --- the choice ---


def test_few_sources_among_many_ranks_are_no_slower_than_usual() -> None:
    sources = [7, 8, 120]
    made = allgatherv(130, sources, machine=HOCKNEY)
    for name in USUAL:
        schedule = ALGORITHMS[name].schedule(130, 1024, sources=sources)
        assert made.choice.predicted <= ideal(schedule, HOCKNEY).completion


@pytest.mark.parametrize(("ranks", "nbytes"), [(1, 100), (5, 0)])
def test_nothing_to_send(ranks: int, nbytes: int) -> None:
    made = allgatherv(ranks, [0], nbytes, LOGGP)
    assert made.choice.predicted == made.bound.time == made.unsegmented_bound.time == 0
    assert not any(made.schedule.lists)
    assert len(made.remarks) == 4


def test_on_a_topology() -> None:
    """Its shape is the mesh of the algorithms; another may be given; and messages meet on links."""
    sources = distribute("square", (4, 6), 6)
    alone = allgatherv(24, sources, machine=HOCKNEY)
    mesh = allgatherv(24, sources, machine=HOCKNEY, topology=Mesh(6, 4))
    assert (alone.problem.shape, mesh.problem.shape) == ((4, 6), (6, 4))
    other = allgatherv(24, sources, machine=HOCKNEY, topology=Mesh(6, 4), shape=(3, 8))
    assert other.problem.shape == (3, 8)
    for candidate in mesh.candidates:
        schedule = candidate.schedule(mesh.problem)
        assert ideal(schedule, HOCKNEY, Mesh(6, 4)).completion == candidate.predicted
        assert ideal(schedule, HOCKNEY).completion <= candidate.predicted
    assert mesh.bound == alone.bound
    assert pickle.loads(pickle.dumps(mesh)) == mesh
    with pytest.raises(InvalidArgument, match="the law of the machine knows no links"):
        allgatherv(24, sources, topology=Mesh(6, 4))


# --- whether moving pays ---


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("distribution", "shape", "count", "pays"),
    [("square", (6, 6), 9, True), ("row", (4, 4), 4, False)],
)
def test_it_is_said_whether_moving_pays(
    distribution: str, shape: tuple[int, int], count: int, pays: bool
) -> None:
    """By the times of the algorithm with and without: sources in a corner, or at ideal places."""
    sources = distribute(distribution, shape, count)
    made = allgatherv(shape[0] * shape[1], sources, 6144, HOCKNEY, topology=Mesh(*shape))
    times = {candidate.name: candidate.predicted for candidate in made.candidates}
    moving = {a.name: a.repositions for a in algorithms_for("allgatherv") if a.repositions}
    expected = []
    for first, plain in moving.items():
        short, than = first.partition("/")[2], plain.partition("/")[2]
        ratio = times[first] / times[plain]
        words = "pays" if ratio < 1 else "does not pay"
        expected.append(f"{short} {words}: {float(ratio):.2f} of the time of {than}")
    assert sorted(made.remarks) == sorted(expected)
    assert (times["allgatherv/repos_xy_source"] < times["allgatherv/br_xy_source"]) == pays


# --- lower bounds ---


def test_bounds_that_are_met() -> None:
    """One source by a tree; two ranks by a swap; everybody's, on a ring of long messages."""
    assert allgatherv(21, [4]).choice.predicted == allgatherv(21, [4]).bound.time
    made = allgatherv(2, [0, 1], [5, 70], HOCKNEY)
    assert made.choice.predicted == made.bound.time == HOCKNEY.message(70).latency
    assert allgatherv(2, [0, 1], [70, 5], HOCKNEY).bound == made.bound
    line = Machine.hockney(alpha_s=0, beta_s=1)
    everybody = allgatherv(8, range(8), 100, line)
    assert everybody.choice.predicted == everybody.bound.time == 700


def test_contributions_may_be_cheaper_together() -> None:
    """On this machine 1000 bytes take less than 999: two of 999 travel together."""
    assert STEEP.message(1998).latency < STEEP.message(999).latency
    unsegmented = Problem.of("allgatherv", 8, 999, sources=[0, 1]).lower_bounds(STEEP)[1]
    least = [
        min(getattr(STEEP.message(x), n) for x in (999, 1000, 1998))
        for n in STEEP.message(1)._fields
    ]
    assert unsegmented.time == postal.broadcast_time(8, least[1] / least[0]) * least[0]
    alone = Problem.of("allgatherv", 8, 999, sources=[0]).lower_bounds(STEEP)[1]
    assert alone.time == broadcast_unsegmented(STEEP, 8, 999).time > unsegmented.time


def test_what_the_bounds_argue() -> None:
    machine = Machine.hockney(alpha_s=1, beta_s=1)
    made = allgatherv(4, [0, 1], [100, 200], machine)
    every, unsegmented = made.bound, made.unsegmented_bound
    assert every.time == 301
    assert every.argument == (
        "all bytes of others reach a rank at its best rate, and the last one arrives"
    )
    assert unsegmented.time == 2 * 201  # the larger one down a tree
    assert unsegmented.argument == "T_λ(p)·t0, if every contribution goes in one message"
    # If all give, each has its own: who gives least has to get most.
    assert allgatherv(2, [0, 1], [100, 200], machine).bound.time == 201
    assert allgatherv(4, [0], 0, machine).bound.argument == "nothing has to be sent"


# --- plans as things ---


def test_a_plan_on_paper() -> None:
    made = allgatherv(32, [0, 11, 22], topology=Complete(32))
    lines = str(made).splitlines()
    assert lines[0] == "allgatherv of 3072 bytes from 3 to 32 ranks (4 × 8)"
    assert "topology     complete graph of 32" in lines
    assert "choice       allgatherv/census(latency=4)" in lines
    assert "predicted    13.0 s" in lines  # T_4(32)
    assert lines[-4:] == [f"moving       {remark}" for remark in made.remarks]


@pytest.mark.no_cover
def test_more_ranks_than_can_be_played() -> None:
    """Of one tree for all, there is a plan; elsewhere, a schedule by name."""
    made = allgatherv(1 << 15, [5, 77], algorithm="source_tree")
    assert made.algorithm == "allgatherv/source_tree"
    schedule = ALGORITHMS["allgatherv/br_lin"].schedule(1 << 20, 8, sources=[5, 77])
    assert schedule.rank(123_456)


@pytest.mark.no_cover
def test_all_of_very_many_are_planned_where_they_give_alike() -> None:
    few, many = (allgatherv(p, range(p), 64, HOCKNEY) for p in (32, 256))
    assert many.algorithm == "allgatherv/bruck"
    assert not many.choice.estimate
    assert many.bound.time <= many.choice.predicted < 9 * few.choice.predicted


def test_where_nothing_is_tried_is_told_apart() -> None:
    """A communicator then leaves the call to the library; what is not legal stays an error."""
    many = Problem.of("allgatherv", 300, 8, sources=range(300))
    with pytest.raises(NothingApplies, match="too many messages"):
        plan_for(many, POSTAL, "br_lin")
    with pytest.raises(NothingApplies, match="none of its algorithms"):
        plan_for(Problem.of("allgatherv", 1 << 20, 8, sources=[0, 1]), LOGGP)
    with pytest.raises(InvalidArgument) as caught:
        plan("allreduce", ranks=8, nbytes=64, machine=POSTAL, order="rank", algorithm="ring")
    assert not isinstance(caught.value, NothingApplies)


def test_what_is_chosen_already_need_not_be_played() -> None:
    problem = Problem.of("allgatherv", 12, 8, sources=[1, 5])
    told = plan_for(problem, POSTAL, "br_lin")
    untold = plan_for(problem, POSTAL, "br_lin", score=unpredicted)
    assert told.predicted_s > untold.predicted_s == 0
    assert told.schedule.lists == untold.schedule.lists


def test_a_score_of_ones_own_is_not_kept() -> None:
    class Score:
        def __call__(self, *_: object) -> Fraction:
            return Fraction(1)

    score = Score()
    kept = weakref.ref(score)
    plan_for(Problem.of("allgatherv", 4, 8, sources=[1]), POSTAL, score=score)
    del score
    gc.collect()
    assert kept() is None


def test_rounds_go_by_a_latency_above_the_number_of_ranks() -> None:
    """With fewer rounds under way than messages take, ports would be idle most of the time."""
    far = Machine.postal(t0_s=1, lam=20)
    made = allgatherv(3, [0, 2], 1 << 10, far, algorithm="postal_rounds")
    assert made.choice.settings["latency"] == 20
