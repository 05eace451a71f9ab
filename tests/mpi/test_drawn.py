"""What is drawn, in great numbers: programs, operations, and calls that nobody should make."""

import pytest

from tests.mpi.launching import Library, outcomes

DRAWN = {
    "legal": (667, (2, 3, 4)),
    "notations": (5000, (1, 2, 3, 4, 5)),
    "generated": (5000, (3,)),
    "node_memory": (16_000, (2, 3, 5, 8)),
}
"""By program, how many cases, and on how many ranks each.  A case of `node_memory` is a call that
is made in each of four turns: with both libraries and both engines, there are a million."""
LIMIT_S = 6000
"""A thousand generated programs take one to seven minutes, by how busy the machine is."""


@pytest.mark.mpi
@pytest.mark.exhaustive
@pytest.mark.parametrize("engine", ["compiled", "python"])
@pytest.mark.parametrize(
    ("program", "cases", "ranks"),
    [(program, cases, n) for program, (cases, numbers) in DRAWN.items() for n in numbers],
)
def test_very_many(mpi: Library, engine: str, program: str, cases: int, ranks: int) -> None:
    told = outcomes(mpi, engine, (ranks,), [program], limit_s=LIMIT_S, DRAWN=str(cases))
    assert told.end == ""
    assert told.complaints
    assert not any(told.complaints.values()), told.complaints
