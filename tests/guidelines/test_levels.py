"""A plan for a machine with levels is never slower there than one that knows a single level."""

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import pytest

import collwise as cw
from collwise.model.level_notation import parse_costs
from collwise.model.levels import Levels
from collwise.timing.trace import completion
from tests.case import in_case

COSTS = (
    "200ns,2,300ns; 1.7us+0.8ns/B,4",
    "5us+20ns/B,20us+20ns/B,1us+1us/B; 50us+20ns/B,10ms+1us/B",
    "0.3us+0.1ns/B,0.6us+0.1ns/B,0.1us+0.8ns/B; 3us+0.8ns/B,15us+0.8ns/B,0s+0.2ns/B;"
    " 3us+0.8ns/B,25us+0.8ns/B",
)
COLLECTIVES = ("broadcast", "reduce", "allreduce", "reduce_scatter_block", "allgatherv")


def problems(
    seed: int, most: int, among: Sequence[str]
) -> Iterator[tuple[Levels, str, dict[str, Any]]]:
    """Some collectives on nodes of any sizes, in two racks or sites now and then."""
    random = Random(seed)
    costs = random.choice(COSTS)
    laws, ports = parse_costs(costs)
    sizes = [random.randrange(1, most) for _ in range(2 * random.randrange(1, most))]
    if random.random() < 0.5:
        sizes = sizes[:1] * len(sizes)
    around = (2,) * (len(laws) - 2)
    placement = cw.Placement.nodes(sizes, around, round_robin=random.random() < 0.3)
    machine = cw.Machine.levels(laws, placement, ports=ports)
    for collective in among:
        nbytes = random.choice((8, 512, 4096, 1 << 16))
        given: dict[str, Any] = {"ranks": placement.ranks, "nbytes": nbytes}
        if collective == "reduce_scatter_block":
            given["nbytes"] = 8 * placement.ranks * max(nbytes // 64, 1)
        if collective == "allgatherv":
            sources = random.choice((1, 2, placement.ranks))
            given["sources"] = random.sample(range(placement.ranks), min(sources, placement.ranks))
        yield machine, collective, given


def check(seed: int, most: int, among: Sequence[str] = COLLECTIVES) -> None:
    for machine, collective, given in problems(seed, most, among):
        plan = cw.plan(collective, machine=machine, **given)
        assert not plan.choice.estimate
        for level in machine.by_level:
            flat = cw.plan(collective, machine=level.law, **given)
            with in_case(f"{seed}: {collective} {given}: {flat.choice.label}"):
                time = completion(flat.schedule, machine, None, plan.choice.predicted)
                assert time is None or time == plan.choice.predicted


@pytest.mark.no_cover
@pytest.mark.parametrize("seed", range(5))
def test_no_plan_for_one_level_is_faster(seed: int) -> None:
    check(seed, 3, COLLECTIVES[seed : seed + 1])


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(5, 100))
def test_no_plan_for_one_level_is_faster_on_more_ranks(seed: int) -> None:
    check(seed, 12)
