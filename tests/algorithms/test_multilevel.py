"""Algorithms for machines with levels: any placement, any root, any p; what they refuse."""

from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import pytest

import collwise as cw
from collwise.algorithms import ALGORITHMS, Algorithm
from collwise.algorithms.parts import part
from collwise.algorithms.search import settings_to_try
from collwise.errors import InvalidArgument, NothingApplies, UnknownName
from collwise.model.level_notation import parse
from collwise.model.levels import Levels
from collwise.model.machine import Machine
from collwise.model.placement import Placement
from collwise.planner.by_hand import Choice, planned
from collwise.planner.choose import plan_for, unpredicted
from collwise.schedule.problem import Problem
from collwise.schedule.rows import of_lists
from collwise.timing import ideal
from collwise.verifier import check_flow, check_ports
from tests.algorithms.examples import fitting, roots, settings_of, told
from tests.case import in_case
from tests.timing.schedules import random_levels, random_placement

F = Fraction
WITH_LEVELS = [algorithm for algorithm in ALGORITHMS.values() if algorithm.levels]
each = pytest.mark.parametrize("algorithm", WITH_LEVELS, ids=lambda a: a.name)
INSIDE, ACROSS = Machine.postal(t0_s="1e-6", lam=2), Machine.postal(t0_s="4e-6", lam=5)
TWO = Machine.levels([INSIDE, ACROSS], Placement.regular(4, 4), ports=["1e-6"])


def problem_on(
    algorithm: Algorithm, machine: Levels, random: Random, nbytes: int, itemsize: int = 8
) -> Problem:
    ranks = machine.placement.ranks
    given: dict[str, Any] = {"placement": machine.placement}
    if algorithm.kind.has_sources:
        given["sources"] = sorted(random.sample(range(ranks), random.randint(1, ranks)))
        itemsize = 1
    root = random.choice(roots(algorithm, ranks))
    nbytes = fitting(algorithm, ranks, nbytes, itemsize)
    return algorithm.problem(ranks, nbytes, root, itemsize=itemsize, **given)


def check(algorithm: Algorithm, problem: Problem, machine: Levels, settings: Any) -> None:
    """Proved, within the ports and bounds, predicted exactly, the same for one rank as for all."""
    schedule = algorithm.solve(problem, settings)
    check_flow(schedule)
    timing = ideal(schedule, machine)
    assert algorithm.time_of(problem, machine, settings) == timing.completion
    check_ports(schedule, timing, machine)
    assert timing.completion >= problem.lower_bounds(machine)[not algorithm.segmented].time
    for rank in {0, problem.root, problem.ranks - 1}:
        assert schedule.rank(rank) == schedule.lists[rank]


@pytest.mark.no_cover
@each
def test_any_placement(algorithm: Algorithm) -> None:
    for seed in range(6):
        with in_case("seed", seed):
            check_a_placement(algorithm, seed)


@pytest.mark.exhaustive
@each
def test_many_placements(algorithm: Algorithm) -> None:
    for seed in range(6, 200):
        with in_case("seed", seed):
            check_a_placement(algorithm, seed)


def check_a_placement(algorithm: Algorithm, seed: int) -> None:
    """With all settings that it would be tried with, and with some others."""
    random = Random(f"{algorithm.name} {seed}")
    ranks = random.randrange(2, 14)
    placement = random_placement(random, ranks, random.choice((2, 2, 3)))
    machine = random_levels(random, placement, combining=seed % 4 == 3)
    problem = problem_on(algorithm, machine, random, random.choice((8, 100, 1000)))
    if problem.placement is None:
        return
    choices = list(settings_to_try(algorithm, problem, machine))
    for settings in random.sample(choices, min(len(choices), 2)):
        check(algorithm, problem, machine, settings)
    check(algorithm, problem, machine, settings_of(algorithm, ranks))


@pytest.mark.parametrize("collective", ["reduce", "allreduce"])
def test_ranks_alone_on_their_nodes_combine_what_they_were_given(collective: str) -> None:
    """At two levels, after a level at which there is nothing to do."""
    placement = Placement.of(range(6), [0, 0, 0, 1, 1, 1])
    parts = {"reduces": "halving_gather", "across": "recursive_doubling", "broadcasts": "flat"}
    settings: Any = parts if collective == "allreduce" else {"algorithms": "halving_gather"}
    algorithm = ALGORITHMS[f"{collective}/multilevel"]
    check_flow(algorithm.schedule(6, 96, placement=placement, itemsize=8, **settings))


@pytest.mark.parametrize("broadcast", ["scatter_ring", "chain_segmented(segment=7)"])
def test_the_broadcast_of_an_allreduce_cuts_no_element(broadcast: str) -> None:
    parts: Any = {"reduces": "binomial", "across": "recursive_doubling", "broadcasts": broadcast}
    placement = Placement.nodes([3, 2])
    schedule = ALGORITHMS["allreduce/multilevel"].schedule(
        5, 44, placement=placement, itemsize=4, **parts
    )
    check_flow(schedule)


@pytest.mark.no_cover
@each
def test_it_is_tried_where_there_are_levels(algorithm: Algorithm) -> None:
    problem = problem_on(algorithm, TWO, Random(1), 1 << 14)
    if algorithm.kind.has_sources:  # what is made for one source, as a broadcast, too
        one = [problem.sources[0].rank]
        ranks, placement = problem.ranks, problem.placement
        problem = Problem.of("allgatherv", ranks, 1 << 14, sources=one, placement=placement)
    assert list(settings_to_try(algorithm, problem, TWO))
    assert not list(settings_to_try(algorithm, replace(problem, placement=None), TWO))
    assert not list(settings_to_try(algorithm, problem, ACROSS))
    assert not list(
        settings_to_try(
            algorithm,
            algorithm.problem(
                16, 0, sources=[0] if problem.kind.has_sources else None, placement=TWO.placement
            ),
            TWO,
        )
    )
    given: dict[str, Any] = {"ranks": 16, "nbytes": 1024}
    if problem.kind.has_sources:
        given["sources"] = [3]
    plain = cw.plan(algorithm.collective, machine=ACROSS, **given)
    assert algorithm.name not in {*plain.excluded, *(c.name for c in plain.candidates)}


@pytest.mark.parametrize(
    ("text", "error", "seen"),
    [
        ("binominal", UnknownName, "there is none"),
        ("4x", InvalidArgument, "it is '4x'"),
        ("multilevel(algorithms=binomial)", InvalidArgument, "it needs teams of its own"),
        ("postal_tree", InvalidArgument, "nothing says which to use"),
        ("postal_tree(mu=3)", InvalidArgument, "it has no such parameter"),
        ("postal_tree(lam=x)", InvalidArgument, "'x'"),
        (["binomial"], InvalidArgument, "it is ['binomial']"),
        ("binomial | binomial", InvalidArgument, "2 algorithms for 3 levels"),
    ],
)
def test_algorithms_of_levels_that_are_refused(text: Any, error: Any, seen: str) -> None:
    algorithm = ALGORITHMS["broadcast/multilevel"]
    with pytest.raises(error) as caught:
        algorithm.schedule(8, 100, placement=Placement.regular(2, 2, 2), algorithms=text)
    assert caught.value.seen == seen


@pytest.mark.parametrize(
    ("name", "sizes", "settings"),
    [
        ("reduce/multilevel", [4, 3, 1], {"algorithms": "mixed_radix(stages=4) | binomial"}),
        (
            "broadcast/multilevel_pipelined",
            [1, 2],
            {"trees": "two_trees(latency=1, segment=8) | chain", "segment": 8},
        ),
        ("allreduce/multilane", [2, 3], {"across": "mixed_radix(stages=2 4)", "gather": "bruck"}),
    ],
)
def test_settings_are_refused_on_all_ranks(
    name: str, sizes: list[int], settings: dict[str, Any]
) -> None:
    """Also by ranks whose own teams they suit: these would wait for the others."""
    placement = Placement.nodes(sizes)
    for rank in range(sum(sizes)):
        with in_case("rank", rank), pytest.raises(InvalidArgument):
            ALGORITHMS[name].schedule(sum(sizes), 24, placement=placement, **settings).rank(rank)


def test_rounds_over_levels_that_are_refused() -> None:
    algorithm = ALGORITHMS["broadcast/multilevel_rounds"]
    settings: dict[str, Any] = {"placement": Placement.regular(2, 4), "inside": "binomial"}
    with pytest.raises(InvalidArgument, match="500,000 pieces would be played on all of them"):
        algorithm.schedule(8, 500000, latencies="1 2", segment=1, **settings).lists  # noqa: B018
    with pytest.raises(
        InvalidArgument, match="messages travel for 1,000,000,000 rounds; give 4,096"
    ):
        algorithm.schedule(8, 64, latencies="1 1000000000", segment=8, **settings).lists  # noqa: B018
    far = Machine.levels(
        [Machine.postal(t0_s=1, lam=2), Machine.postal(t0_s=1, lam=10**9)], Placement.regular(2, 4)
    )
    problem = algorithm.problem(8, 64, placement=Placement.regular(2, 4))
    assert not list(settings_to_try(algorithm, problem, far))


def test_several_messages_of_a_round_to_one_rank() -> None:
    """From other levels; where ranks would wait in a circle, each is listed in its round."""
    placement = Placement.regular(2, 2, 2)
    settings: dict[str, Any] = {"latencies": "1 5 5", "segment": 8, "inside": "flat"}
    algorithm = ALGORITHMS["broadcast/multilevel_rounds"]
    schedule = algorithm.schedule(8, 24, 3, placement=placement, **settings)
    assert told(schedule.rows(combines=False)) == told(of_lists(schedule.lists, combines=False))


def test_only_trees_are_joined() -> None:
    algorithm = ALGORITHMS["broadcast/multilevel_pipelined"]
    with pytest.raises(InvalidArgument, match="scatter_ring is none; give one of "):
        algorithm.schedule(8, 100, trees="scatter_ring", segment=10).lists  # noqa: B018


def test_parts_are_written_as_they_are_read() -> None:
    for label in (
        "binomial",
        "postal_tree(lam=9/5)",
        "chain_segmented(segment=4096)",
        "knomial(k=4)",
    ):
        assert part(label, "broadcast").label == label
    assert (
        part(" chain_segmented( segment = 4k ) ", "broadcast").label
        == "chain_segmented(segment=4096)"
    )
    with_strategy = part("hybrid(strategy=(0, 1))", "allreduce")
    assert with_strategy.label == "hybrid(strategy=(0, 1))"


@each
def test_without_a_placement(algorithm: Algorithm) -> None:
    """A problem gets none that nobody gave; the one that `schedule` takes instead can be seen."""
    given: dict[str, Any] = {"sources": [3]} if algorithm.kind.has_sources else {}
    settings = settings_of(algorithm, 16, algorithm="multilevel(algorithms=binomial)")
    problem = Problem.of(algorithm.collective, 16, 640, **given)
    with pytest.raises(NothingApplies, match=r"share a node.*; give a placement, or a mach"):
        algorithm.solve(problem, settings)
    with pytest.raises(NothingApplies):
        planned(problem, ACROSS, Choice(algorithm.name), reason="", score=unpredicted)
    if algorithm.kind.combines:
        assert algorithm.order(problem) in ("same", "any")
    made = algorithm.schedule(16, 640, **given, **settings)
    assert made.problem.placement == Placement.regular(4, 4)
    with pytest.raises(NothingApplies):
        algorithm.schedule(16, 640, placement=Placement.regular(16), **given, **settings)


@pytest.mark.parametrize("every", [16, 1])
def test_allgatherv_on_many_ranks(every: int) -> None:
    machine = parse("16x16: 1us,2,2us; 9us,4")
    problem = Problem.of("allgatherv", 256, 64, sources=list(range(0, 256, every)))
    plan = plan_for(problem, machine, "multilevel")
    assert plan.problem.placement == machine.placement
    completion = cw.simulate(plan.schedule, machine=machine).completion
    assert completion <= plan.choice.predicted  # the sum of the levels' times
    assert plan.choice.estimate or completion == plan.choice.predicted


def test_a_placement_of_other_ranks() -> None:
    with pytest.raises(InvalidArgument, match="a placement of 6; place every rank"):
        ALGORITHMS["broadcast/binomial"].schedule(8, 100, placement=Placement.regular(2, 3))
    flat = ALGORITHMS["broadcast/binomial"].schedule(8, 100, placement=Placement.regular(8))
    assert flat.problem.placement is None


def test_slow_links_are_crossed_once() -> None:
    """Every node's leader gets one message from outside, every site's one from another site."""
    placement = Placement.regular(2, 3, 4, round_robin=True)
    schedule = ALGORITHMS["broadcast/multilevel"].schedule(
        24, 100, 5, placement=placement, algorithms="binomial | flat | chain"
    )
    rows = schedule.rows(combines=False)
    levels = placement.meetings(rows.source, rows.target).tolist()
    assert sorted(levels) == [1] * 18 + [2] * 4 + [3]


LANES = [ALGORITHMS["broadcast/multilane"], ALGORITHMS["allreduce/multilane"]]
IN_LANES = {
    "broadcast": ("binomial", "chain_segmented(segment=16)", "scatter_ring"),
    "allreduce": ("recursive_doubling", "ring", "mixed_radix(stages=2 2)"),
}


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("algorithm", LANES, ids=lambda a: a.name)
def test_any_algorithms_in_lanes(algorithm: Algorithm, seed: int) -> None:
    """Across, where they have teams of the same size, and inside; few elements, and few ranks."""
    random = Random(f"{algorithm.name} {seed}")
    ranks = 8 if seed % 3 == 0 else random.randrange(2, 14)
    placement = random_placement(random, ranks, random.choice((2, 3)))
    across = random.choice(IN_LANES[algorithm.collective])
    if "stages" in across:
        ranks, placement = 12, Placement.regular(4, 3, round_robin=True)
    machine = random_levels(random, placement, combining=seed % 2 == 0)
    problem = problem_on(algorithm, machine, random, random.choice((0, 8, 24, 1000)))
    gather = random.choice(("bruck", "ring", "xor", "two_step"))
    if problem.kind.combines:  # not in the ranks' own order, which some of these do not keep
        problem = replace(problem, order="same")
    check(algorithm, problem, machine, {"across": across, "gather": gather})


def test_a_lane_carries_its_part_only() -> None:
    """Of 4 nodes × 4 ranks: across, every message is a quarter; all four ranks of a node send."""
    for algorithm in LANES:
        schedule = algorithm.schedule(
            16,
            4096,
            placement=TWO.placement,
            across=IN_LANES[algorithm.collective][0],
            gather="bruck",
            itemsize=8,
        )
        rows = schedule.rows(combines=False)
        between = TWO.placement.meetings(rows.source, rows.target) == 2
        assert set(rows.nbytes[between].tolist()) == {1024}
        assert set(rows.source[between].tolist()) >= {0, 1, 2, 3}


@pytest.mark.no_cover
@pytest.mark.parametrize("algorithm", LANES, ids=lambda a: a.name)
@pytest.mark.parametrize("filled", [False, True])
def test_lanes_pay_where_a_rank_does_not_fill_the_card(algorithm: Algorithm, filled: bool) -> None:
    """Long messages: where a rank alone fills it, one lane is as good."""
    card = "1us+1ns/B" if filled else "200ns+0.2ns/B"
    machine = parse(f"4x4: 100ns+0.01ns/B,200ns+0.01ns/B,{card}; 1us+1ns/B,4us+1ns/B")
    given: dict[str, Any] = {"ranks": 16, "nbytes": 1 << 20, "machine": machine}
    lanes, one = (
        cw.plan(algorithm.collective, algorithm=name, **given)
        for name in ("multilane", "multilevel")
    )
    assert (lanes.choice.predicted * 2 < one.choice.predicted) is not filled


@pytest.mark.parametrize("algorithm", LANES, ids=lambda a: a.name)
def test_what_cuts_contributions_collects_in_no_node(algorithm: Algorithm) -> None:
    with pytest.raises(InvalidArgument, match="it cuts what ranks have; give one that does not"):
        algorithm.schedule(
            8,
            64,
            placement=Placement.regular(2, 4),
            across=IN_LANES[algorithm.collective][0],
            gather="circulant(pieces=2)",
        )


def test_what_cuts_contributions_does_not_go_across_groups() -> None:
    given: dict[str, Any] = {"sources": [1, 5], "placement": Placement.regular(3, 2)}
    with pytest.raises(InvalidArgument, match="across groups: it cuts what ranks have; give one"):
        ALGORITHMS["allgatherv/multilevel"].schedule(
            6, 8, **given, exchange="as_broadcast(algorithm=binomial)", trees="binomial"
        )
