"""Allreduces around a circle, in pieces."""

from fractions import Fraction as F
from random import Random
from typing import Any

import pytest

from collwise.algorithms import ALGORITHMS
from collwise.algorithms.circulant_pieces import without_empty_parts
from collwise.algorithms.reductions import circular_time, simulated_time
from collwise.model.machine import Machine
from collwise.model.measured_machine import measured
from collwise.planner.choose import plan


@pytest.mark.parametrize("seed", range(12))
def test_no_estimate_is_too_low(seed: int) -> None:
    """Whatever settings are asked for, however short the vector is, and where blocks differ."""
    random = Random(seed)
    ranks, itemsize = random.randint(5, 60), random.choice([4, 8, 16])
    nbytes = random.randint(1, 12 * ranks) * itemsize
    problem = ALGORITHMS["allreduce/circulant_pieces"].problem(ranks, nbytes, itemsize=itemsize)
    machine = Machine.hockney(
        alpha_s=random.choice([1e-7, 1e-6]), beta_s=1e-9, gamma_s=random.choice([0, 1e-9])
    )
    program = without_empty_parts(
        problem, random.choice([2, 3, 4, ranks]), random.randint(1, 8), random.choice([1, 3, 8])
    )
    assert circular_time(program, machine) >= simulated_time(problem, machine, program)


def test_pieces_under_way_pay_where_messages_travel_for_long() -> None:
    points = [(1, F(1001, 10**9), 20), (1 << 21, F(1000 + (1 << 21), 10**9), 20)]
    made = plan("allreduce", ranks=4, nbytes=1 << 17, machine=measured([points]))
    (pieces,) = (c for c in made.candidates if c.name == "allreduce/circulant_pieces")
    others = [c for c in made.candidates if not c.name.endswith("_pieces")]
    assert pieces.settings["pieces"] > 1
    assert 3 * pieces.predicted < min(c.predicted for c in others)


def test_pieces_are_not_tried_for_one_rank_very_many_or_few_items() -> None:
    algorithm = ALGORITHMS["allreduce/circulant_pieces"]
    machine = Machine.postal(t0_s=1, lam=4)
    for ranks, tried in ((1, 0), (2, 1), (4096, 1), (4097, 0)):
        settings = list(algorithm.choices(algorithm.problem(ranks, 8 * ranks, itemsize=8), machine))
        assert len(settings) == tried
    assert not list(algorithm.choices(algorithm.problem(9, 64, itemsize=8), machine))


def test_the_rounds_of_radix_two_are_those_of_the_circulant() -> None:
    for p, nbytes in ((2, 8), (7, 24), (12, 960)):
        plain = ALGORITHMS["allreduce/circulant"].schedule(p, nbytes, itemsize=8)
        settings: dict[str, Any] = {"radix": 2, "pieces": 1, "latency": 1}
        pieces = ALGORITHMS["allreduce/circulant_pieces"].schedule(
            p, nbytes, itemsize=8, **settings
        )
        assert plain.lists == pieces.lists
