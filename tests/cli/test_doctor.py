"""`collwise doctor`: exit code 1 and a remedy for each thing that is wrong."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from collwise.doctor import checks
from tests.cli.conftest import Run
from tests.profiles.example import example

SEEN: dict[str, Any] = {
    "library": "Test MPI 1.0", "standard": "4.1", "multiple": True, "persistent": True, "size": 1,
    "engine": "compiled", "why": "",
}  # fmt: skip


@pytest.fixture
def healthy(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A machine where all is well: what asking MPI alone, and on two ranks, answers."""
    answers: dict[str, Any] = {"alone": ([SEEN], ""), "ranks": ([{**SEEN, "size": 2}] * 2, "")}
    commands = iter(["alone", "ranks"])
    monkeypatch.setattr(checks, "_ask", lambda command: answers[next(commands)])
    monkeypatch.setattr(checks, "local_fingerprint", lambda library, layout: example().fingerprint)
    monkeypatch.setattr(checks, "usable_cores", lambda: 8)
    monkeypatch.setattr(checks, "command_line", lambda ranks, arguments: ["m"])
    monkeypatch.setattr(checks, "find_mpiexec", lambda: "the/mpiexec")
    lab = [checks.CheckResult("ok", "emulated hosts (lab)", "two hosts started and ended in 0.5 s")]
    monkeypatch.setattr(checks, "_lab", lambda: iter(lab))
    example().save(folder / "profile.json")
    return answers


def findings(collwise: Run, code: int) -> dict[str, dict[str, str]]:
    ended = collwise("doctor", "--json")
    assert (ended.code, ended.err) == (code, "")
    return {one["what"]: one for one in json.loads(ended.out)["findings"]}


def test_all_is_well(healthy: dict[str, Any], collwise: Run) -> None:
    found = findings(collwise, 0)
    assert {one["status"] for one in found.values()} == {"ok"}
    assert set(found) == {
        "collwise", "MPI library", "threads", "launcher", "engine", "cores", "profile",
        "permissions", "emulated hosts (lab)",
    }  # fmt: skip


def test_for_people(healthy: dict[str, Any], collwise: Run) -> None:
    healthy["ranks"] = ([], "no such host")
    ended = collwise("doctor")
    assert (ended.code, ended.err) == (1, "")
    assert "the/mpiexec did not start 2 ranks: no such host" in ended.out
    assert "→ try" in ended.out
    assert "\x1b" not in ended.out


@pytest.mark.parametrize(
    ("sizes", "said"),
    [([1, 1], "each a world of one"), ([], "did not start 2 ranks"), ([2], "did not start 2 rank")],
)
def test_a_launcher_of_another_mpi(
    healthy: dict[str, Any], collwise: Run, sizes: list[int], said: str
) -> None:
    healthy["ranks"] = ([{**SEEN, "size": size} for size in sizes], "trouble")
    launcher = findings(collwise, 1)["launcher"]
    assert launcher["status"] == "wrong"
    assert said in launcher["seen"]
    assert launcher["remedy"]


def test_a_library_with_less(healthy: dict[str, Any], collwise: Run) -> None:
    healthy["alone"] = ([{**SEEN, "multiple": False, "persistent": False}], "")
    found = findings(collwise, 0)
    assert found["threads"]["status"] == found["persistent collectives"]["status"] == "note"


@pytest.mark.parametrize("how", ["none", "damaged", "foreign"])
def test_profiles(healthy: dict[str, Any], collwise: Run, folder: Path, how: str) -> None:
    path = folder / "profile.json"
    if how == "none":
        path.unlink()
        assert findings(collwise, 0)["profile"]["status"] == "note"
        return
    if how == "damaged":
        path.write_text(path.read_text(encoding="utf-8")[:99], encoding="utf-8")
    else:
        example("Another MPI 2.0").save(path)
    found = findings(collwise, 1)["profile"]
    assert found["status"] == "wrong"
    assert str(path) in found["seen"]
    assert "collwise measure" in found["remedy"]


def test_profiles_that_could_not_be_saved(
    healthy: dict[str, Any], collwise: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "file").touch()
    monkeypatch.setenv("COLLWISE_PROFILE", str(folder / "file" / "deep" / "profile.json"))
    found = findings(collwise, 1)["permissions"]
    assert found["status"] == "wrong"
    assert found["seen"] == f"{folder / 'file'} cannot be written"


def test_a_launcher_that_is_named_and_missing(
    healthy: dict[str, Any], collwise: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("COLLWISE_MPIEXEC", "no-such-mpiexec")
    monkeypatch.setattr(checks, "_ask", lambda command: ([SEEN], ""))
    found = findings(collwise, 1)["launcher"]
    assert "COLLWISE_MPIEXEC=no-such-mpiexec: there is no such program" in found["seen"]


def test_no_mpi_library(collwise: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Really none: mpi4py is told of a library that does not exist."""
    monkeypatch.setenv("MPI4PY_LIBMPI", str(folder / "no-such-libmpi.so"))
    found = findings(collwise, 1)
    assert found["MPI library"]["status"] == "wrong"
    assert "no-such-libmpi.so" in found["MPI library"]["seen"]
    assert "pip install mpich" in found["MPI library"]["remedy"]
    assert "not tried" in found["launcher"]["seen"]


def test_an_mpi_that_hangs_or_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "LIMIT_S", 0.2)
    ask = checks._ask
    assert ask(["sleep", "20"]) == ([], "no answer within 0 s")
    assert ask([sys.executable, "-c", "raise SystemExit(3)"])[0] == []
    assert "No such file" in ask([os.path.join("no", "such", "program")])[1]  # noqa: PTH118
    monkeypatch.setattr(checks, "LIMIT_S", 30.0)
    assert ask(["sh", "-c", "exit 3"]) == ([], "exit code 3, no message")
    assert ask(["sh", "-c", "echo one >&2; echo two >&2"])[1] == "two"


def test_one_answer_under_a_launcher() -> None:
    command = [sys.executable, "-m", "collwise", "doctor"]
    environment = {**os.environ, "PMI_RANK": "1", "PMI_SIZE": "2"}
    ran = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
