"""Pieces side by side: what is sent first, and that it needs receives posted at once."""

import pytest

import collwise as cw
from collwise.algorithms import ALGORITHMS
from collwise.errors import InvalidArgument, InvalidSchedule
from collwise.model.placement import Placement
from collwise.schedule.interleaved import Interleaved
from collwise.schedule.operations import Send
from collwise.schedule.problem import Problem
from collwise.schedule.program import Schedule, Written
from collwise.timing import ideal

SITES = Placement.of([rank // 4 for rank in range(8)])
INSIDE, ACROSS = cw.Machine.postal(t0_s=1, lam=2), cw.Machine.postal(t0_s=1, lam=7)
MACHINE = cw.Machine.levels([INSIDE, ACROSS], SITES)
IN_PIECES = ALGORITHMS["allreduce/multilane_pieces"]


def schedule(pieces: int, latencies: str = "2 7", nbytes: int = 640) -> Schedule:
    problem = Problem("allreduce", 8, nbytes, itemsize=8, placement=SITES)
    settings = {"across": "gather_combine", "gather": "xor"}
    return IN_PIECES.solve(problem, {**settings, "pieces": pieces, "latencies": latencies})


def test_a_crossing_does_not_keep_the_ports_waiting() -> None:
    """What crosses is sent as soon as it is combined, before the second piece is all scattered.

    The first is combined at 4, across at 11 and collected by 15; the second, sent from 3 on, is
    combined at 8, across at 15 and collected by 19.
    """
    whole, two = schedule(1), schedule(2)
    assert ideal(whole, MACHINE).completion == 3 + 1 + 7 + 3 + 1
    assert ideal(two, MACHINE).completion == 8 + 7 + 3 + 1
    for rank, operations in enumerate(two.lists):
        crossing = [(op.peer < 4) != (rank < 4) for op in operations if isinstance(op, Send)]
        assert crossing.index(True) < 6
    cw.verify(two, MACHINE)


def test_ports_that_block_would_wait_in_a_circle() -> None:
    made = schedule(2)
    assert isinstance(made.program, Interleaved)
    cw.verify(made)
    as_written = Schedule(made.problem, Written(tuple(map(tuple, made.lists))))
    with pytest.raises(InvalidSchedule, match="if a send waits for its receiver"):
        cw.verify(as_written)
    with pytest.raises(InvalidArgument, match="ports block here"):
        ideal(made, cw.Machine.hockney(alpha_s="1e-6", beta_s="1e-9"))


@pytest.mark.parametrize(("pieces", "nbytes"), [(1, 640), (3, 8), (5, 16)])
def test_no_more_pieces_than_elements(pieces: int, nbytes: int) -> None:
    made = schedule(pieces, nbytes=nbytes)
    assert isinstance(made.program, Interleaved) == (min(pieces, nbytes // 8) > 1)
    cw.verify(made, MACHINE)


@pytest.mark.parametrize(
    ("pieces", "latencies", "seen"),
    [(1 << 15, "2 7", "would be played"), (2, "2 5000", "5,000 rounds")],
)
def test_what_would_take_too_long_is_refused(pieces: int, latencies: str, seen: str) -> None:
    with pytest.raises(InvalidArgument, match=seen):
        schedule(pieces, latencies, nbytes=1 << 20)
