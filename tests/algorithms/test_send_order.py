"""The order of sends over levels: against all orders on few ranks, and never behind plain plans."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from random import Random

import pytest

import collwise as cw
from collwise.algorithms import ALGORITHMS
from collwise.algorithms.levels import send_order
from collwise.algorithms.levels.send_order import LevelCost, best_order
from collwise.errors import InvalidArgument
from collwise.model.levels import Levels
from collwise.model.machine import Machine
from collwise.model.placement import Placement
from collwise.schedule.operations import Block, Operation, Recv, Send
from collwise.schedule.problem import Problem
from collwise.schedule.program import Schedule, Written
from collwise.timing import ideal

COSTS = (
    (LevelCost(1, 2), LevelCost(2, 8)),
    (LevelCost(1, 2, 3), LevelCost(2, 8)),
    (LevelCost(2, 2, 9), LevelCost(3, 30)),
    (LevelCost(1, 9, 2), LevelCost(1, 10)),
)


def machine_of(placement: Placement, costs: tuple[LevelCost, ...]) -> Levels:
    laws = [Machine.postal(t0_s=c.gap, lam=Fraction(c.latency, c.gap)) for c in costs]
    return Machine.levels(laws, placement, ports=[c.port for c in costs[:-1]])


def ordered_trees(placement: Placement) -> Iterator[list[list[int]]]:
    """The children of every rank, in order, in every tree with root 0.

    Ranks of a group are alike: of trees that differ only in their numbers there is one.
    """
    groups = placement.groups[0]
    children: list[list[int]] = [[] for _ in groups]

    def grow(left: tuple[int, ...], active: tuple[int, ...]) -> Iterator[list[list[int]]]:
        if not left:
            yield children
        elif active:  # those who are told take turns: each takes a list
            rank, *rest = active
            for own in lists(left):
                children[rank] = list(own)
                yield from grow(tuple(r for r in left if r not in own), (*rest, *own))
            children[rank] = []

    def lists(left: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        yield ()
        for first in {groups[rank]: rank for rank in reversed(left)}.values():
            for others in lists(tuple(rank for rank in left if rank != first)):
                yield (first, *others)

    yield from grow(tuple(range(1, placement.ranks)), (0,))


def finish_of(children: list[list[int]], machine: Levels) -> Fraction:
    """The time of a tree, by the engine."""
    block = (Block(0, 0, 1),)
    lists: list[list[Operation]] = [[] for _ in children]
    for rank, own in enumerate(children):
        for child in own:
            lists[child].insert(0, Recv(rank, block))
            lists[rank].append(Send(child, block))
    problem = Problem("broadcast", len(children), 1)
    return ideal(Schedule(problem, Written(tuple(map(tuple, lists))), "all"), machine).completion


def placements(ranks: int) -> Iterator[Placement]:
    """Up to three groups of every size, each with the root."""
    for sizes in product(range(ranks + 1), repeat=3):
        if sum(sizes) == ranks and sizes[0] and sizes[1] >= sizes[2]:
            groups = [g for g, size in enumerate(sizes) for _ in range(size)]
            yield Placement.of(groups)


def compare(placement: Placement, costs: tuple[LevelCost, ...]) -> tuple[Fraction, Fraction]:
    """Ours and the best of all orders."""
    machine = machine_of(placement, costs)
    best = min(finish_of(tree, machine) for tree in ordered_trees(placement))
    text = ";".join(",".join(map(str, cost)) for cost in costs)
    algorithm = ALGORITHMS["broadcast/multilevel_ordered"]
    problem = Problem("broadcast", placement.ranks, 1, placement=placement)
    ours = ideal(algorithm.solve(problem, {"costs": text}), machine).completion
    return ours, best


def check(placement: Placement, costs: tuple[LevelCost, ...]) -> None:
    ours, best = compare(placement, costs)
    equal = len(set(placement.sizes(1))) == 1
    assert best <= ours <= best * (1 if equal else Fraction(105, 100)), (placement, costs)


@pytest.mark.parametrize("costs", COSTS)
def test_against_all_orders(costs: tuple[LevelCost, ...]) -> None:
    for ranks in range(2, 5):
        for placement in placements(ranks):
            check(placement, costs)


@pytest.mark.exhaustive
def test_against_all_orders_of_up_to_seven_ranks() -> None:
    for ranks in (5, 6, 7):
        for placement in placements(ranks):
            for costs in COSTS:
                check(placement, costs)


@pytest.mark.no_cover
@pytest.mark.parametrize("seed", range(4))
def test_it_is_what_the_engine_makes_of_it_and_no_plain_tree_is_faster(seed: int) -> None:
    """The search's own times are those of the law; the best plan for one level is never better."""
    random = Random(seed)
    ranks = random.randrange(8, 40)
    placement = Placement.of([random.randrange(4) for _ in range(ranks)])
    costs = COSTS[seed % len(COSTS)]
    machine = machine_of(placement, costs)
    plan = cw.plan("broadcast", ranks=ranks, nbytes=1, machine=machine)
    plain = [c.predicted for c in plan.candidates if not ALGORITHMS[c.name].levels]
    levels = [c.predicted for c in plan.candidates if ALGORITHMS[c.name].levels]
    assert min(levels) <= min(plain, default=min(levels))
    text = ";".join(",".join(map(str, cost)) for cost in costs)
    problem = Problem("broadcast", ranks, 1, placement=placement)
    schedule = ALGORITHMS["broadcast/multilevel_ordered"].solve(problem, {"costs": text})
    assert ideal(schedule, machine).completion == best_order(placement, costs).finish


def test_beyond_many_ranks_there_are_fewer_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    placement = Placement.regular(6, 9)
    every = best_order(placement, COSTS[1])
    monkeypatch.setattr(send_order, "MANY", 50)
    few = best_order(placement, COSTS[1])
    assert every.finish <= few.finish <= 2 * every.finish


@pytest.mark.parametrize("costs", ["", "1", "1,0", "0,0", "a,b", "1,2,3,4", "-1,2", 3])
def test_costs_are_checked(costs: object) -> None:
    with pytest.raises(InvalidArgument, match="the parameter costs"):
        ALGORITHMS["broadcast/multilevel_ordered"].settings({"costs": costs})


def test_costs_for_each_level_or_one_for_all() -> None:
    algorithm = ALGORITHMS["broadcast/multilevel_ordered"]
    problem = Problem("broadcast", 6, 1, placement=Placement.regular(3, 2))
    one = algorithm.solve(problem, {"costs": "1,2"})
    assert one.lists == algorithm.solve(problem, {"costs": "1,2; 1,2"}).lists
    with pytest.raises(InvalidArgument, match="3 costs for 2 levels"):
        algorithm.solve(problem, {"costs": "1,2; 1,2; 1,2"})
    alone = replace(problem, ranks=1, placement=Placement.regular(1, 1))
    assert not algorithm.solve(alone, {"costs": "1,2"}).lists[0]
