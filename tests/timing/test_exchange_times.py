"""Exchanges in which ranks differ, all ranks at once: what the event engine says of each."""

from fractions import Fraction
from math import prod
from random import Random
from typing import Any

import pytest
from tests.algorithms.examples import MACHINES, VAN_DE_GEIJN, settings_of

from collwise.algorithms import ALGORITHMS
from collwise.algorithms.reductions import LARGEST_SIMULATED
from collwise.model.machine import Machine
from collwise.schedule.exchange import Exchange, Stage
from collwise.schedule.problem import Problem
from collwise.schedule.program import Schedule
from collwise.timing import ideal
from collwise.timing.vectorised import VectorisedTiming, vectorised_timing

ODD = Machine.hockney(
    alpha_s=Fraction(1, 998244353), beta_s=Fraction(1, 2**61 - 1), gamma_s=Fraction(3, 1000003)
)


def random_exchange(seed: int) -> tuple[Schedule, Machine]:
    """Any stages, ranks left over or not, parts that are empty or nearly 2^200 bytes."""
    random = Random(seed)
    collective = random.choice(("allreduce", "reduce", "reduce_scatter_block"))
    scatters = collective == "reduce_scatter_block"
    radices = [random.choice((2, 2, 2, 3, 4, 5)) for _ in range(1 + seed % 3)]
    stages = tuple(Stage(radix, scatters or random.random() < 0.5) for radix in radices)
    core = prod(radices)
    ranks, itemsize = core + random.randint(0, core), random.choice((1, 4))
    items = random.choice((1, 2, ranks - 1, ranks, 1000, 2**61 + 1, 2**200))
    nbytes = items * itemsize * (ranks if scatters else 1)
    root = random.randrange(ranks) if collective == "reduce" else 0
    problem = Problem(collective, ranks, nbytes, root, itemsize)
    return Schedule(problem, Exchange(problem, stages)), random.choice((*MACHINES, ODD))


def check(schedule: Schedule, machine: Machine) -> None:
    timing, expected = vectorised_timing(schedule, machine), ideal(schedule, machine)
    assert timing is not None
    assert timing.finish == expected.finish, (schedule, machine)
    assert sorted(timing.transfers) == sorted(expected.transfers), (schedule, machine)


def test_any_exchange() -> None:
    for seed in range(60):
        check(*random_exchange(seed))


@pytest.mark.exhaustive
def test_many_exchanges() -> None:
    for seed in range(60, 6000):
        check(*random_exchange(seed))


EXCHANGES: list[tuple[str, dict[str, Any]]] = [
    ("allreduce/recursive_doubling", {}),
    ("allreduce/halving_doubling", {}),
    ("allreduce/hybrid", {}),
    ("allreduce/recursive_multiplying", {"radix": 5}),
    ("reduce/halving_gather", {}),
    ("reduce/mixed_radix", {"stages": "4d 3 12d"}),
    ("reduce_scatter_block/recursive_halving", {}),
]


@pytest.mark.parametrize(("name", "wanted"), EXCHANGES, ids=lambda one: str(one))
def test_predictions_of_more_ranks_than_are_simulated(name: str, wanted: dict[str, Any]) -> None:
    ranks, algorithm = LARGEST_SIMULATED + 20, ALGORITHMS[name]
    settings = settings_of(algorithm, ranks, **wanted)
    schedule = algorithm.schedule(ranks, 8 * ranks, itemsize=8, **settings)
    predicted = algorithm.predict(VAN_DE_GEIJN, ranks, 8 * ranks, itemsize=8, **settings)
    assert not algorithm.estimated(schedule.problem, algorithm.settings(settings))
    assert predicted == ideal(schedule, VAN_DE_GEIJN).completion
    assert isinstance(vectorised_timing(schedule, VAN_DE_GEIJN), VectorisedTiming)


def test_very_many_ranks_are_told_from_above() -> None:
    """The bound is no less than the time, which the simulation has."""
    algorithm, ranks = ALGORITHMS["allreduce/recursive_doubling"], (1 << 15) + 1
    problem = algorithm.problem(ranks, 512, itemsize=8)
    assert algorithm.estimated(problem, {})
    timing = vectorised_timing(algorithm.solve(problem, {}), VAN_DE_GEIJN)
    assert timing is not None
    assert timing.completion <= algorithm.predict(VAN_DE_GEIJN, ranks, 512, itemsize=8)
