"""What is drawn: programs of communicators, forms and first calls in every order that MPI allows.

And operations in all notations, forms and lengths, served by any algorithm.
"""

import pytest

from tests.mpi.launching import Library, outcomes

PROGRAMS = 667
"""On each of 2, 3 and 4 ranks."""
OPERATIONS = 5000
"""On each of 2 to 5 ranks."""


@pytest.mark.mpi
@pytest.mark.exhaustive
@pytest.mark.parametrize("engine", ["compiled", "python"])
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_programs_in_every_legal_order_end(
    mpi: Library, engine: str, ranks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORDERS", str(PROGRAMS))
    told = outcomes(mpi, engine, (ranks,), ["legal"], limit_s=600)
    assert told.end == ""
    assert told.complaints[ranks, "legal", "programs_in_every_legal_order_end"] == []


@pytest.mark.mpi
@pytest.mark.exhaustive
@pytest.mark.parametrize("engine", ["compiled", "python"])
@pytest.mark.parametrize("ranks", [2, 3, 4, 5])
def test_operations_leave_what_mpi4pys_do(
    mpi: Library, engine: str, ranks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPERATIONS", str(OPERATIONS))
    told = outcomes(mpi, engine, (ranks,), ["notations"], limit_s=1800)
    assert told.end == ""
    assert told.complaints[ranks, "notations", "drawn_operations"] == []
