"""Hybrids of any radix in several pieces."""

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

PIECES = ALGORITHMS["allreduce/mixed_radix_pieces"]


@pytest.mark.parametrize(
    ("ranks", "stages", "items"),
    [(4, "4", 9), (6, "3d 2", 40), (8, "2d 2d 2", 24), (12, "3 4d", 31), (30, "5d 3 2", 41)],
)
def test_pieces_are_combined_in_the_order_of_the_ranks(ranks: int, stages: str, items: int) -> None:
    """Whether parts are equally long or not; on machines that do not know of the latency, too."""
    for pieces, latency in ((2, 1), (3, 4)):
        more: dict[str, Any] = {"stages": stages, "pieces": pieces, "latency": latency}
        schedule = PIECES.schedule(ranks, 8 * items, itemsize=8, order="rank", **more)
        assert isinstance(schedule.program, Interleaved)
        cw.verify(schedule)
        for machine in (*MACHINES[::4], COMBINES):
            predicted = PIECES.predict(machine, ranks, 8 * items, itemsize=8, **more)
            assert predicted == ideal(schedule, machine).completion


def test_vectors_and_ranks_that_do_not_divide_go_whole() -> None:
    whole = ALGORITHMS["allreduce/mixed_radix"]
    for ranks, items in ((7, 40), (6, 5), (1, 3)):
        made = PIECES.schedule(
            ranks, 8 * items, itemsize=8, stages="2 3d" if ranks > 1 else "2", pieces=9, latency=3
        )
        plain = whole.schedule(ranks, 8 * items, itemsize=8, stages="2 3d" if ranks > 1 else "2")
        assert made.lists == plain.lists


def test_they_pay_where_messages_travel_for_long() -> None:
    points = [(1, F(1001, 10**9), 20), (1 << 21, F(1000 + (1 << 21), 10**9), 20)]
    made = cw.plan("allreduce", ranks=4, nbytes=2400, machine=measured([points]))
    assert made.choice.name == PIECES.name
    others = [c.predicted for c in made.candidates if c.name != PIECES.name]
    assert F(11, 10) * made.choice.predicted < min(others)


def test_they_are_not_tried_where_messages_do_not_travel() -> None:
    for ranks, nbytes, machine, tried in (
        (8, 1 << 12, Machine.hockney(alpha_s=1, beta_s=1), 0),
        (2, 1 << 12, Machine.postal(t0_s=1, lam=4), 0),
        (8, 8, Machine.postal(t0_s=1, lam=4), 0),
        (37, 1 << 12, Machine.postal(t0_s=1, lam=4), 0),
        (8, 1 << 12, Machine.loggp(L_s=9, o_s=1, g_s=1, G_s=0), 0),
        (8, 1 << 12, Machine.postal(t0_s=1, lam=4), 1),
    ):
        problem = PIECES.problem(ranks, nbytes, itemsize=8)
        assert len(list(settings_to_try(PIECES, problem, machine))) == tried
