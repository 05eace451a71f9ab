"""Where ranks do alike, few of them stand for all."""

from math import prod
from random import Random

import pytest
from tests.algorithms.examples import MACHINES, MEMORY, settings_of
from tests.case import in_case
from tests.timing.comparing import check as same_in_both_loops

from collwise.algorithms import ALGORITHMS, Algorithm
from collwise.algorithms.circulant_pieces import without_empty_parts
from collwise.model.machine import Machine
from collwise.model.topology import Mesh
from collwise.schedule.circulant_exchange import CirculantExchange
from collwise.schedule.exchange import Exchange, Stage
from collwise.schedule.problem import Problem
from collwise.schedule.program import Schedule, Written
from collwise.timing import completion, ideal, messages_played, simulate

HOCKNEY = Machine.hockney(alpha_s=1, beta_s="1/10", gamma_s="1/7")


def check(schedule: Schedule, machine: Machine) -> None:
    """Those who stand for others have their times; what is sent is told of everybody."""
    timing, trace = ideal(schedule, machine), simulate(schedule, machine)
    assert trace.finish == timing.finish
    assert trace.finish_s == timing.finish_s
    assert trace.completion == completion(schedule, machine) == timing.completion
    assert trace.completion_s == timing.completion_s
    assert trace.transfers == timing.transfers
    assert trace.timing.combines == timing.combines
    sizes, times = trace.sizes
    every = sorted(n for n, count in zip(sizes, times, strict=True) for _ in range(count))
    assert every == sorted(t.nbytes for t in timing.transfers)


def alike(algorithm: Algorithm) -> bool:
    """Whether all of four ranks do the same."""
    settings = settings_of(algorithm, 4, radix=2, stages="2d 2")
    sources = range(4) if algorithm.kind.has_sources else None
    schedule = algorithm.schedule(4, 192, itemsize=8, sources=sources, **settings)
    return schedule.program.is_alike()


def test_who_does_alike() -> None:
    """Their times are compared with those of all ranks in tests/algorithms/test_every_p.py."""
    names = {a.name for a in ALGORITHMS.values() if alike(a)}
    assert {"allreduce/ring", "allreduce/recursive_doubling", "allgatherv/census"} < names
    assert {"reduce_scatter_block/pairwise", "allreduce/census_in_order"} < names


@pytest.mark.parametrize("divided", [True, False])
def test_of_ranks_that_differ_none_stands_for_all(divided: bool) -> None:
    """With uneven parts, with ranks left over, or with the result at the root only."""
    stages = (Stage(2, divided), Stage(2, divided))
    for collective, ranks, nbytes, do_alike in (
        ("allreduce", 4, 16, True),
        ("allreduce", 4, 20, not divided),
        ("allreduce", 5, 16, False),
        ("reduce", 4, 16, False),
    ):
        problem = Problem(collective, ranks, nbytes, itemsize=4)
        schedule = Schedule(problem, Exchange(problem, stages))
        assert (schedule.program.classes() is not None) == do_alike
        assert len(set(ideal(schedule, HOCKNEY).finish)) == 1 or not do_alike
        assert completion(schedule, HOCKNEY) == ideal(schedule, HOCKNEY).completion


def random_exchange(random: Random) -> Schedule:
    """Any stages or radix, around a circle in pieces or with ranks left over."""
    collective = random.choice(("allreduce", "reduce", "reduce_scatter_block"))
    scatters, circulant = collective == "reduce_scatter_block", random.random() < 0.5
    stages = tuple(
        Stage(random.choice((2, 2, 3, 4)), scatters or random.random() < 0.6)
        for _ in range(random.randint(1, 3))
    )
    core = prod(stage.radix for stage in stages)
    ranks = random.randint(2, 30) if circulant else random.randint(core, 2 * core)
    items = random.choice((1, 2, ranks - 1, 12 * ranks, 1000)) * (ranks if scatters else 1)
    problem = Problem(collective, ranks, 4 * items, 0, 4, "same" if circulant else "rank")
    if not circulant:
        return Schedule(problem, Exchange(problem, stages))
    radix, pieces, latency = (random.choice(among) for among in ((2, 3, ranks), (1, 2, 5), (1, 2)))
    if pieces > 1 and collective != "reduce":
        return Schedule(problem, without_empty_parts(problem, radix, pieces, latency))
    stages = stages[: 0 if scatters else random.randrange(4)]
    return Schedule(problem, CirculantExchange(problem, radix, latency, stages=stages))


@pytest.mark.no_cover
@pytest.mark.parametrize(
    "seeds", [range(40), pytest.param(range(40, 4000), marks=pytest.mark.exhaustive)]
)
def test_any_exchange(seeds: range) -> None:
    for seed in seeds:
        random = Random(seed)
        schedule = random_exchange(random)
        with in_case(seed, schedule):
            machine = random.choice((*MACHINES, HOCKNEY, MEMORY))
            check(schedule, machine)
            same_in_both_loops(schedule, machine)


def test_messages_that_are_played() -> None:
    """As many as shapes where these tell the time, of one rank where all do alike."""
    postal, links = Machine.postal(t0_s=1, lam=2), Machine.hockney(alpha_s=1, beta_s=1)
    tree = ALGORITHMS["broadcast/binomial"].schedule(64, 8)
    assert messages_played(tree, postal) <= 64
    assert 63 <= messages_played(tree, links, Mesh(8, 8)) <= 3 * 64
    ring = ALGORITHMS["allreduce/ring"].schedule(64, 64)
    assert 2 * 63 <= messages_played(ring, postal) <= 16 * 126
    by_hand = Schedule(tree.problem, Written(tree.lists))
    assert messages_played(by_hand, postal) > messages_played(tree, links, Mesh(8, 8))
