"""Plans of s-to-p broadcasts: the choice, whether moving pays, the bounds, the words."""

import gc
import pickle
import weakref
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from collwise.algorithms.registry import ALGORITHMS, algorithms_for
from collwise.errors import InvalidArgument, NothingApplies
from collwise.model import postal
from collwise.model.bounds import broadcast_unsegmented
from collwise.model.machine import Machine
from collwise.model.sources import DISTRIBUTIONS, distribute
from collwise.model.topology import Complete, Mesh
from collwise.planner.choose import plan, plan_for, unpredicted
from collwise.planner.plans import Plan
from collwise.planner.shortlist import shortlist
from collwise.schedule.problem import Problem
from collwise.timing import ideal
from tests.planner.machines import (
    HOCKNEY,
    LOGGP,
    MACHINES,
    POSTAL,
    STEEP,
    tried_on,
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
    sources = [7, 8, 250]
    made = allgatherv(300, sources, machine=HOCKNEY)
    for name in USUAL:
        schedule = ALGORITHMS[name].schedule(300, 1024, sources=sources)
        assert made.choice.predicted <= ideal(schedule, HOCKNEY).completion


@pytest.mark.no_cover
@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
def test_against_brute_force(machine: Machine) -> None:
    """What is tried is a candidate; each time is that of its schedule, the least is chosen."""
    for ranks, sources, nbytes in (
        (2, [1], 8),
        (9, [0, 4, 8], [700, 0, 3]),
        (12, range(12), 100),
        (16, [3, 2, 9, 15], 20_000),
    ):
        made = allgatherv(ranks, sources, nbytes, machine)
        others = (
            ["as_broadcast"] if len(made.problem.sources) > 1 else ["circulant", "postal_rounds"]
        )
        expected = tried_on(machine, "allgatherv").difference(
            f"allgatherv/{name}" for name in others
        )
        assert {candidate.name for candidate in made.candidates} == expected
        times = [ideal(c.schedule(made.problem), machine).completion for c in made.candidates]
        assert times == [candidate.predicted for candidate in made.candidates]
        assert made.choice.predicted == min(times)


def test_one_source_is_a_broadcast() -> None:
    for p in (2, 7, 32):
        made = allgatherv(p, [p // 3])
        assert made.choice.predicted == postal.broadcast_time(p, 4) == made.bound.time
        broadcast = plan("broadcast", ranks=p, root=p // 3, nbytes=1024, machine=FAR)
        assert made.bound.time == broadcast.bound.time


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
    with pytest.raises(InvalidArgument, match="the law of the machine knows no links"):
        allgatherv(24, sources, topology=Mesh(6, 4))


def test_a_short_list_has_no_two_names_of_one_schedule() -> None:
    """On a line both dimensions come to the same, and to the snake."""
    made = allgatherv(8, [0, 3], machine=LOGGP, shape=(1, 8))
    names = {candidate.name for candidate in shortlist(made, most=20, within=100)}
    assert (
        len(names & {"allgatherv/br_lin", "allgatherv/br_xy_source", "allgatherv/br_xy_dim"}) == 1
    )


# --- whether moving pays ---


@pytest.mark.no_cover
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.exhaustive] * bool(place % 3))
        for place, name in enumerate(DISTRIBUTIONS)
    ],
)
def test_it_is_said_whether_moving_pays(name: str) -> None:
    """By the times of the algorithm with and without: for every one that moves first."""
    sources = distribute(name, (8, 8), 20)
    made = allgatherv(64, sources, 6144, HOCKNEY, topology=Mesh(8, 8))
    times = {candidate.name: candidate.predicted for candidate in made.candidates}
    moving = {
        a.name: a.repositions for a in algorithms_for("allgatherv", levels=False) if a.repositions
    }
    assert len(made.remarks) == len(moving) == 4
    for first, plain in moving.items():
        short, than = first.partition("/")[2], plain.partition("/")[2]
        pays = "pays" if times[first] < times[plain] else "does not pay"
        ratio = float(times[first] / times[plain])
        assert f"{short} {pays}: {ratio:.2f} of the time of {than}" in made.remarks


@pytest.mark.no_cover
def test_where_moving_pays_and_where_it_does_not() -> None:
    """Sources oversubscribed in a corner, and sources that are at the ideal places already."""
    square = distribute("square", (10, 10), 25)
    made = allgatherv(100, square, 6144, HOCKNEY, topology=Mesh(10, 10))
    assert made.algorithm == "allgatherv/repos_xy_source"
    assert any(remark.startswith("repos_xy_source pays") for remark in made.remarks)
    ideal_rows = distribute("row", (8, 8), 8)
    there = allgatherv(64, ideal_rows, 6144, HOCKNEY, topology=Mesh(8, 8))
    assert any(remark.startswith("repos_xy_source does not pay: 1.00") for remark in there.remarks)


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
    unsegmented = allgatherv(8, [0, 1], 999, STEEP).unsegmented_bound
    least = [
        min(getattr(STEEP.message(x), n) for x in (999, 1000, 1998))
        for n in STEEP.message(1)._fields
    ]
    assert unsegmented.time == postal.broadcast_time(8, least[1] / least[0]) * least[0]
    alone = allgatherv(8, [0], 999, STEEP).unsegmented_bound
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


def test_equal_problems_are_planned_once() -> None:
    made = allgatherv(10, [7, 0, 3], [1, 2, 3], POSTAL)
    assert allgatherv(np.int64(10), (0, 3, 7), np.array([2, 3, 1]), POSTAL) is made  # type: ignore[arg-type]
    assert allgatherv(10, [7, 0, 3, 9], [1, 2, 3, 0], POSTAL) is made
    assert allgatherv(10, [7, 0, 3], [1, 2, 3], POSTAL, shape=(2, 5)) is made
    for other in (
        allgatherv(10, [7, 0, 3], [3, 2, 1], POSTAL),
        allgatherv(10, [7, 0, 3], [1, 2, 3], POSTAL, shape=(5, 2)),
        allgatherv(10, [7, 0, 3], [1, 2, 3], POSTAL, topology=Complete(10)),
        allgatherv(10, [7, 0, 3], [1, 2, 3], LOGGP),
    ):
        assert other is not made
        assert other != made


def test_plans_can_be_sent() -> None:
    for topology in (None, Mesh(4, 6)):
        made = allgatherv(24, [7, 0, 3], [1, 2, 3], HOCKNEY, topology=topology)
        sent = pickle.loads(pickle.dumps(made))
        assert sent == made
        assert sent.schedule.lists == made.schedule.lists
        assert hash(sent.problem) == hash(made.problem)


def test_a_plan_on_paper() -> None:
    made = allgatherv(32, [0, 11, 22], topology=Complete(32))
    assert made.predicted_s == made.choice.predicted == 13  # T_4(32)
    assert made.schedule.problem is made.problem
    lines = str(made).splitlines()
    assert lines[0] == "allgatherv of 3072 bytes from 3 to 32 ranks (4 × 8)"
    assert "machine      postal: t0 = 1 s, λ = 4" in lines
    assert "topology     complete graph of 32" in lines
    assert "choice       allgatherv/census(latency=4)" in lines
    assert "predicted    13.0 s" in lines
    assert lines[-4:] == [f"moving       {remark}" for remark in made.remarks]
    for candidate in made.candidates:
        assert any(candidate.label in line and candidate.verdict in line for line in lines)


@pytest.mark.parametrize(
    ("changes", "text"),
    [  # what is no problem at all: tests/schedule/test_problem.py
        ({"topology": Mesh(3, 3)}, "there are 10 ranks, and a mesh of 3 × 3"),
        ({"topology": Complete(9)}, "a complete graph of 9 has 9 nodes; give a"),
        ({"collective": "broadcast"}, "it has no sources, and no mesh; leave so"),
    ],
)
def test_errors(changes: dict[str, Any], text: str) -> None:
    good: dict[str, Any] = {"collective": "allgatherv", "ranks": 10, "nbytes": 8, "sources": [0, 3]}
    good["machine"] = POSTAL
    plan(**good)
    with pytest.raises(InvalidArgument, match=text) as caught:
        plan(**(good | changes))
    assert caught.value.exit_code == 2


def test_more_ranks_than_can_be_played() -> None:
    """Of one tree for all, there is a plan; elsewhere, a schedule by name."""
    with pytest.raises(InvalidArgument) as caught:
        allgatherv(1 << 20, [5, 77], machine=LOGGP)
    assert "none of its algorithms is tried at this size" in str(caught.value)
    made = allgatherv(1 << 17, [5, 77], algorithm="source_tree")
    assert made.algorithm == "allgatherv/source_tree"
    schedule = ALGORITHMS["allgatherv/br_lin"].schedule(1 << 20, 8, sources=[5, 77])
    assert schedule.rank(123_456)


@pytest.mark.no_cover
@pytest.mark.parametrize("nbytes", [64, 4096])
def test_all_of_very_many_are_planned_where_they_give_alike(nbytes: int) -> None:
    few, many = (allgatherv(p, range(p), nbytes, HOCKNEY) for p in (256, 2048))
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
