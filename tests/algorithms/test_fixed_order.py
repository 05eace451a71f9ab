"""The order "fixed": one expression for each number of ranks, whatever combines.

`tests.verifier.judge.doubled` is the obvious twin of `brackets`.  What always runs is a sample of
settings and numbers of ranks; `-m exhaustive` runs all settings for every p to 64.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from random import Random
from typing import Any

import pytest

import collwise as cw
from collwise.algorithms import ALGORITHMS, Algorithm
from collwise.algorithms.registry import Settings
from collwise.algorithms.search import settings_to_try
from collwise.errors import BeyondLimits, InvalidArgument, InvalidSchedule
from collwise.model.placement import Placement
from collwise.schedule.problem import Problem, brackets
from collwise.verifier import check_flow
from tests.algorithms.examples import COMBINES, VAN_DE_GEIJN, root_of, settings_of
from tests.case import in_case
from tests.verifier.judge import doubled

MOST = 64
FEW = range(1, 10)
"""On so many ranks the sample has three settings of each algorithm."""
SOME = (12, 15, 16, 17, 24, 31, 33, 48)
"""On so many it has one: powers of two, their neighbours, and halfway between them."""
POSTAL = cw.Machine.postal(t0_s=1, lam=4)
COMBINING = [a for a in ALGORITHMS.values() if a.kind.combines]
INSIDE, ACROSS = (cw.Machine.postal(t0_s=t0, lam=lam) for t0, lam in (("1e-6", 2), ("4e-6", 5)))
PLACEMENTS = {
    "even nodes": Placement.of([rank // 4 for rank in range(12)]),
    "nodes of two": Placement.of([rank // 2 for rank in range(8)]),
    "nodes of three": Placement.of([rank // 3 for rank in range(12)]),
    "uneven nodes": Placement.of([0, 0, 0, 0, 1, 1, 2, 2]),
    "scattered": Placement.of([rank % 3 for rank in range(12)]),
}


def asked(algorithm: Algorithm, p: int, items: int, root: int = 0) -> Problem:
    nbytes = 8 * items * (p if algorithm.kind.output == "own block" else 1)
    return Problem(algorithm.collective, p, nbytes, root, 8, "fixed")


KEEPS = [a for a in COMBINING if not a.levels and a.keeps_order(asked(a, 7, 1))]


def test_the_brackets_are_those_of_recursive_doubling() -> None:
    for p in range(1, 300):
        values: list[Any] = list(range(p))
        for left, right in brackets(p):
            values[right] = (values[left], values[right])
        assert values[-1] == doubled(p)
    assert doubled(1) == 0
    assert doubled(3) == ((0, 1), 2)
    assert doubled(5) == (((0, 1), 2), (3, 4))
    assert doubled(7) == (((0, 1), (2, 3)), ((4, 5), 6))


@pytest.mark.no_cover
def test_some_for_short_and_some_for_long_vectors_keep_it() -> None:
    """Every collective, any p, any root: neither is far from what an order of less costs."""
    for p in (2, 6, 12, 31):
        for collective in ("reduce", "allreduce", "reduce_scatter_block"):
            for nbytes in (8 * p, p << 16):
                root = p - 1 if collective == "reduce" else 0
                about: dict[str, Any] = {"ranks": p, "nbytes": nbytes, "root": root}
                plan = cw.plan(collective, **about, machine=VAN_DE_GEIJN, order="fixed")
                check_flow(plan.schedule)
                free = cw.plan(collective, **about, machine=VAN_DE_GEIJN, order="any")
                assert free.choice.predicted <= plan.choice.predicted
                assert plan.problem.order == "fixed"


def every_setting(algorithm: Algorithm, p: int) -> Iterator[tuple[Problem, Settings]]:
    """What plans try for short and long vectors on several machines, and what tests always try."""
    for items, machine in ((1, POSTAL), (3, COMBINES), (p + 1, POSTAL), (1000, VAN_DE_GEIJN)):
        problem = asked(algorithm, p, items, root_of(algorithm, (p * items) % p))
        try:
            yield from (
                (problem, settings) for settings in settings_to_try(algorithm, problem, machine)
            )
        except BeyondLimits:
            continue
    whole = 1 << p.bit_length() - 1
    inner = max(1 << k for k in range(7) if p % (1 << k) == 0)
    texts = [" ".join(["2d"] * (p.bit_length() - 1)), f"{whole}", f"{inner} {p // inner}d", f"{p}d"]
    for number, stages in enumerate(texts):
        if "1" not in stages.replace("d", "").split() and stages:
            settings = settings_of(algorithm, p, stages=stages, algorithm="gather_combine")
            yield asked(algorithm, p, 2 * number + 1, root_of(algorithm, number * p // 4)), settings


def check(algorithm: Algorithm, p: int, most: int | None = None) -> None:
    cases = list(every_setting(algorithm, p))
    for problem, settings in Random(p).sample(cases, len(cases))[:most]:
        with in_case(algorithm.name, problem, settings):
            check_flow(algorithm.solve(problem, settings))


@pytest.mark.no_cover
@pytest.mark.parametrize("algorithm", KEEPS, ids=lambda a: a.name)
def test_what_keeps_it_keeps_it_for_any_p(algorithm: Algorithm) -> None:
    for p in (*FEW, *SOME):
        check(algorithm, p, 3 if p in FEW else 1)


@pytest.mark.exhaustive
@pytest.mark.parametrize("algorithm", KEEPS, ids=lambda a: a.name)
def test_all_settings_keep_it_for_every_p(algorithm: Algorithm) -> None:
    for p in range(1, MOST + 1):
        check(algorithm, p)


@pytest.mark.parametrize(
    "algorithm", [a for a in COMBINING if not a.levels and a not in KEEPS], ids=lambda a: a.name
)
def test_what_does_not_keep_it_is_refused_and_breaks_it(algorithm: Algorithm) -> None:
    broken = set()
    for p in (5, 6, 7, 8):
        problem, settings = asked(algorithm, p, 2 * p), settings_of(algorithm, p, segment=16)
        with pytest.raises(InvalidArgument, match="in the order 'fixed'"):
            algorithm.solve(problem, settings)
        own = algorithm.solve(replace(problem, order="any"), settings)
        try:
            check_flow(replace(own, problem=problem))
        except InvalidSchedule as error:
            broken.add(error.seen)
    assert broken & {
        "it is combined with other brackets than those of the order 'fixed'",
        "it is not combined in the order of the ranks",
    }


@pytest.mark.parametrize("name", ["allreduce/mixed_radix", "allreduce/mixed_radix_pieces"])
def test_stages_with_other_brackets_are_refused(name: str) -> None:
    algorithm = ALGORITHMS[name]
    for p, stages in ((12, "3 4"), (12, "6d 2"), (7, "3 2"), (13, "6 2"), (36, "4 3 3")):
        settings = settings_of(algorithm, p, stages=stages)
        with pytest.raises(InvalidArgument, match="other brackets; give groups of 2, 4, 8"):
            algorithm.solve(asked(algorithm, p, 12), settings)
        schedule = algorithm.solve(replace(asked(algorithm, p, 12), order="rank"), settings)
        check_flow(schedule)
        stricter = replace(schedule.problem, order="fixed")
        with pytest.raises(InvalidSchedule, match="other brackets than those of the order 'fixed'"):
            check_flow(replace(schedule, problem=stricter))


@pytest.mark.parametrize("name", PLACEMENTS)
def test_over_levels(name: str) -> None:
    """All that plans try is right; algorithms for levels are legal where nodes are even."""
    placement = PLACEMENTS[name]
    machine = cw.Machine.levels([INSIDE, ACROSS], placement, ports=["1e-6"])
    tried = set()
    for collective, nbytes in product(("reduce", "allreduce"), (8, 8 << 12)):
        plan = cw.plan(
            collective, ranks=placement.ranks, nbytes=nbytes, machine=machine, order="fixed"
        )
        for one in plan.candidates:
            with in_case(one.label, nbytes):
                check_flow(ALGORITHMS[one.name].solve(plan.problem, one.settings))
        tried |= {one.name for one in plan.candidates}
    made_for_levels = {name for name in tried if ALGORITHMS[name].levels}
    expected = {"reduce/multilevel", "allreduce/multilevel"}
    lanes = {"allreduce/multilane", "allreduce/multilane_pieces"}
    if name == "nodes of two":
        expected |= made_for_levels & lanes
        assert made_for_levels & lanes
    assert made_for_levels == (expected if name in ("even nodes", "nodes of two") else set())
