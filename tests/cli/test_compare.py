"""`collwise compare`: exit codes, for people who guard a cluster; documents; and nonsense."""

from pathlib import Path

import msgspec
import pytest

from tests.cli.conftest import Run
from tests.cli.running import document
from tests.profiles.example import example
from tests.tuning.examples import outcome
from tests.tuning.test_race_records import sweep


@pytest.fixture
def records(folder: Path) -> Path:
    sweep(outcome(4096, gain=1.5)).save(folder / "a.json")
    slower = sweep(outcome(4096, gain=1.2))
    other = msgspec.structs.replace(slower.fingerprint, mpi_library="MPI 9")
    msgspec.structs.replace(slower, fingerprint=other).save(folder / "b.json")
    return folder


def test_a_guard(collwise: Run, records: Path) -> None:
    for asked, code in (([], 0), (["--fail-above", "1.1"], 1), (["--fail-above", "1.4"], 0)):
        out = collwise("compare", "a.json", "b.json", *asked).printed(code)
        assert out.startswith("A: a.json, B: b.json\n")
        assert "compared 4 values: B is significantly worse in 1, better in 0" in out
        assert (" fails " in out) == bool(code)
        assert "machines MPI library: 'MPICH 5.0.2' in A, 'MPI 9' in B" in out
    assert "none is significantly worse by a ratio above 1.4" in out


def test_the_document(collwise: Run, records: Path) -> None:
    found = document(collwise, "compare", "a.json", "b.json", "--fail-above", "11/10", code=1)
    assert (found["fail_above"], found["failed"]) == (1.1, True)
    worst = found["cells"][0]
    assert worst["ratio"] == pytest.approx(worst["b"] / worst["a"])
    assert worst["interval"][0] < worst["ratio"] < worst["interval"][1]
    assert [cell["fails"] for cell in found["cells"]] == [True, False, False, False]
    profile = example().save(records / "profile.json")
    assert not document(collwise, "compare", profile, profile)["failed"]


def test_what_cannot_be_compared(collwise: Run, records: Path) -> None:
    (records / "calls.json").write_text('{"format": "collwise calls", "version": 1}')
    collwise("compare", "a.json", "calls.json").refused(
        "read the record calls.json: its format is 'collwise calls', not one of"
    )
    collwise("compare", "a.json").refused("Missing argument 'B'")
    collwise("compare", "a.json", "b.json", "--fail-above", "much").refused("'much' is no number")
