"""`collwise doctor`: what it prints, and exit code 1 if something is wrong.

What is found, and its remedy, is tested in `tests/doctor/`.
"""

import sys
from pathlib import Path

import pytest

from collwise.doctor import checks
from collwise.doctor.checks import CheckResult
from tests.cli.conftest import Run
from tests.cli.running import document

WELL = CheckResult("ok", "cores", "8 cores")
WRONG = CheckResult("wrong", "launcher", "the/mpiexec did not start 2 ranks", "try another")


@pytest.mark.parametrize(("findings", "code"), [([WELL], 0), ([WELL, WRONG], 1)])
def test_for_people_and_for_programs(
    collwise: Run, monkeypatch: pytest.MonkeyPatch, findings: list[CheckResult], code: int
) -> None:
    monkeypatch.setattr(checks, "checkup", lambda progress: iter(findings))
    told = document(collwise, "doctor", code=code)["findings"]
    assert [tuple(one.values()) for one in told] == [tuple(finding) for finding in findings]
    people = collwise("doctor").printed(code)
    assert "8 cores" in people
    assert ("→ try another" in people) == bool(code)
    assert "\x1b" not in people


def test_no_mpi_library(collwise: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Really none: mpi4py is told of a library that does not exist.  Nor is there a launcher."""
    monkeypatch.setenv("MPI4PY_LIBMPI", str(folder / "no-such-libmpi.so"))
    told = document(collwise, "doctor", code=1)["findings"]
    found = {one["what"]: one for one in told}
    assert found["MPI library"]["status"] == "wrong"
    assert "no-such-libmpi.so" in found["MPI library"]["seen"]
    assert "pip install mpich" in found["MPI library"]["remedy"]
    assert "not tried" in found["launcher"]["seen"]
    monkeypatch.setenv("COLLWISE_MPIEXEC", "no-such-mpiexec")
    monkeypatch.delenv("MPI4PY_LIBMPI")
    told = document(collwise, "doctor", code=1)["findings"]
    (launcher,) = (one for one in told if one["what"] == "launcher")
    assert "COLLWISE_MPIEXEC=no-such-mpiexec: there is no such program" in launcher["seen"]


def test_one_answer_under_a_launcher(collwise: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PMI_RANK", "1")
    monkeypatch.setenv("PMI_SIZE", "2")
    monkeypatch.setitem(sys.modules, "mpi4py.MPI", None)  # other tests may have loaded it here
    assert collwise("doctor") == (0, "", "")
