"""Allreduces around a circle, in pieces."""

from fractions import Fraction as F
from typing import Any

from collwise.algorithms import ALGORITHMS
from collwise.algorithms.search import settings_to_try
from collwise.model.machine import Machine
from collwise.model.measured_machine import measured
from collwise.planner.choose import plan


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
        settings = list(
            settings_to_try(algorithm, algorithm.problem(ranks, 8 * ranks, itemsize=8), machine)
        )
        assert len(settings) == tried
    assert not list(settings_to_try(algorithm, algorithm.problem(9, 64, itemsize=8), machine))


def test_the_rounds_of_radix_two_are_those_of_the_circulant() -> None:
    for p, nbytes in ((2, 8), (7, 24), (12, 960)):
        plain = ALGORITHMS["allreduce/circulant"].schedule(p, nbytes, itemsize=8)
        settings: dict[str, Any] = {"radix": 2, "pieces": 1, "latency": 1}
        pieces = ALGORITHMS["allreduce/circulant_pieces"].schedule(
            p, nbytes, itemsize=8, **settings
        )
        assert plain.lists == pieces.lists
