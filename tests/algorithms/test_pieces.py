"""Allreduces in several pieces, which are under way at once: around a circle, and by groups."""

from fractions import Fraction as F
from typing import Any

import pytest

import collwise as cw
from collwise.algorithms import ALGORITHMS
from collwise.algorithms.search import settings_to_try
from collwise.model.machine import Machine
from collwise.model.measured_machine import measured
from collwise.schedule.interleaved import Interleaved
from collwise.timing import ideal
from tests.algorithms.examples import COMBINES, MACHINES

GROUPS = ALGORITHMS["allreduce/mixed_radix_pieces"]
CIRCLE = ALGORITHMS["allreduce/circulant_pieces"]
POSTAL = Machine.postal(t0_s=1, lam=4)
FAR = measured([[(1, F(1001, 10**9), 20), (1 << 21, F(1000 + (1 << 21), 10**9), 20)]])
"""Messages travel for long."""


@pytest.mark.parametrize(
    ("ranks", "stages", "items"),
    [(4, "4", 9), (6, "3d 2", 40), (8, "2d 2d 2", 24), (12, "3 4d", 31)],
)
def test_pieces_are_combined_in_the_order_of_the_ranks(ranks: int, stages: str, items: int) -> None:
    """Whether parts are equally long or not; on machines that do not know of the latency, too."""
    for pieces, latency in ((2, 1), (3, 4)):
        more: dict[str, Any] = {"stages": stages, "pieces": pieces, "latency": latency}
        schedule = GROUPS.schedule(ranks, 8 * items, itemsize=8, order="rank", **more)
        assert isinstance(schedule.program, Interleaved)
        cw.verify(schedule)
        for machine in (*MACHINES[::4], COMBINES):
            predicted = GROUPS.predict(machine, ranks, 8 * items, itemsize=8, **more)
            assert predicted == ideal(schedule, machine).completion


def test_vectors_and_ranks_that_do_not_divide_go_whole() -> None:
    for ranks, items, stages in ((7, 40, "2 3d"), (6, 5, "2 3d"), (1, 3, "2")):
        given: dict[str, Any] = {"itemsize": 8, "stages": stages}
        pieces = GROUPS.schedule(ranks, 8 * items, pieces=9, latency=3, **given)
        whole = ALGORITHMS["allreduce/mixed_radix"].schedule(ranks, 8 * items, **given)
        assert pieces.lists == whole.lists


def test_one_piece_in_rounds_of_radix_two_is_the_circulant() -> None:
    for p, nbytes in ((2, 8), (7, 24), (12, 960)):
        pieces = CIRCLE.schedule(p, nbytes, itemsize=8, radix=2, pieces=1, latency=1)
        whole = ALGORITHMS["allreduce/circulant"].schedule(p, nbytes, itemsize=8)
        assert pieces.lists == whole.lists


def test_they_pay_where_messages_travel_for_long() -> None:
    made = cw.plan("allreduce", ranks=4, nbytes=2400, machine=FAR)
    assert made.choice.name == GROUPS.name
    others = [c.predicted for c in made.candidates if c.name != GROUPS.name]
    assert F(11, 10) * made.choice.predicted < min(others)
    made = cw.plan("allreduce", ranks=4, nbytes=1 << 17, machine=FAR)
    (circle,) = (c for c in made.candidates if c.name == CIRCLE.name)
    others = [c.predicted for c in made.candidates if not c.name.endswith("_pieces")]
    assert circle.settings["pieces"] > 1
    assert 3 * circle.predicted < min(others)


@pytest.mark.parametrize(
    ("algorithm", "ranks", "nbytes", "machine", "tried"),
    [
        (GROUPS, 8, 1 << 12, POSTAL, 1),
        (GROUPS, 8, 1 << 12, Machine.hockney(alpha_s=1, beta_s=1), 0),
        (GROUPS, 8, 1 << 12, Machine.loggp(L_s=9, o_s=1, g_s=1, G_s=0), 0),
        (GROUPS, 2, 1 << 12, POSTAL, 0),
        (GROUPS, 37, 1 << 12, POSTAL, 0),
        (GROUPS, 8, 8, POSTAL, 0),
        (CIRCLE, 2, 16, POSTAL, 1),
        (CIRCLE, 4096, 8 * 4096, POSTAL, 1),
        (CIRCLE, 1, 8, POSTAL, 0),
        (CIRCLE, 4097, 8 * 4097, POSTAL, 0),
        (CIRCLE, 9, 64, POSTAL, 0),
    ],
)
def test_where_they_are_tried(
    algorithm: cw.Algorithm, ranks: int, nbytes: int, machine: Machine, tried: int
) -> None:
    """Not where messages do not travel, on few or very many ranks, or for few items."""
    problem = algorithm.problem(ranks, nbytes, itemsize=8)
    assert len(list(settings_to_try(algorithm, problem, machine))) == tried
