"""Launchers that are missing, broken, or somebody else's."""

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from collwise.errors import NoMPI
from collwise.lab.mpi_launch import find_library
from collwise.system.launcher import (
    Launched,
    alone,
    command_line,
    find_mpiexec,
    launched,
    version_line,
)
from tests.cli.conftest import Run


def program(path: Path, script: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.fixture
def nowhere(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Python without a launcher beside it, and a PATH without one."""
    monkeypatch.setenv("PATH", str(folder / "path"))
    monkeypatch.setattr(sys, "executable", str(folder / "bin" / "python"))
    return folder


@pytest.mark.parametrize("name", ["tune", "measure", "bench", "inspect"])
def test_no_launcher(
    nowhere: Path, collwise: Run, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    collwise(name, "-n", 2).refused(
        "starting ranks (-n)", "no mpiexec was found beside Python or on the PATH", "pip install"
    )
    monkeypatch.setenv("COLLWISE_MPIEXEC", "no-such-mpiexec")
    collwise(name, "-n", 2).refused("COLLWISE_MPIEXEC=no-such-mpiexec", "correct the variable")


@pytest.mark.parametrize("option", ["--ranks", "--ranks-per-host"])
def test_a_lab_without_a_launcher_has_no_ranks(collwise: Run, option: str) -> None:
    collwise("lab", "--mpi", "none", option, 3, "--", "hostname").refused("it runs once")


def test_a_launcher_beside_python_before_those_on_the_path(nowhere: Path) -> None:
    with pytest.raises(NoMPI):
        find_mpiexec()
    on_path = program(nowhere / "path" / "mpirun", "exit 0")
    assert find_mpiexec() == str(on_path)
    better = program(nowhere / "path" / "mpiexec", "exit 0")
    assert find_mpiexec() == str(better)
    beside = program(nowhere / "bin" / "mpiexec", "exit 0")
    assert find_mpiexec() == str(beside)


def test_a_launcher_that_is_named(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(nowhere / "bin" / "mpiexec", "exit 0")
    named = program(nowhere / "path" / "other", "exit 0")
    for name in ("other", str(named)):
        monkeypatch.setenv("COLLWISE_MPIEXEC", name)
        assert find_mpiexec() == str(named)


@pytest.fixture
def launcher(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Makes a launcher out of a shell script."""

    def make(script: str) -> None:
        monkeypatch.setenv("COLLWISE_MPIEXEC", str(program(folder / "bin" / "m", script)))

    return make


def test_a_launcher_that_starts_nothing(collwise: Run, launcher: Callable[[str], None]) -> None:
    for code in (0, 1, 2, 77):
        launcher(f"exit {code}")
        collwise("measure", "-n", 2).refused(
            f"2 ranks: the launcher ended with code {code} ", "`collwise doctor` checks"
        )


def test_what_a_launcher_is_given(
    collwise: Run, folder: Path, launcher: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """This very command, on so many ranks; nothing to read, no marks of a launcher around us."""
    launcher('printf "%s\\n" "$*" "PMI_RANK=$PMI_RANK"; cat; echo 1 > "${COLLWISE_STATUS_FILE%@*}"')
    monkeypatch.setenv("PMI_RANK", "0")
    monkeypatch.setenv("PMI_SIZE", "1")
    (folder / "input").write_text("what a calling script reads\n", encoding="utf-8")
    before = os.dup(0)
    with (folder / "input").open() as given:
        os.dup2(given.fileno(), 0)
    try:
        ended = collwise("bench", "-n", 3, "--bytes", "64")
    finally:
        os.dup2(before, 0)
        os.close(before)
    assert (ended.code, ended.err) == (1, "")
    command = f"-n 3 {sys.executable} -m collwise bench -n 3 --bytes 64"
    assert ended.out == f"{command}\nPMI_RANK=\n"


def test_a_launcher_that_never_ends(
    collwise: Run, folder: Path, launcher: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher('case "$1" in --version) exit;; esac; echo $$ > pid; exec sleep 100')
    monkeypatch.setattr("collwise.cli.ranks_option.START_UP_S", 1.5)
    collwise("measure", "-n", 2, "--budget", 0.5).refused(
        "they did not finish within 2 s", "raise --budget"
    )
    with pytest.raises(ProcessLookupError):
        os.kill(int((folder / "pid").read_text(encoding="ascii")), 0)


@pytest.mark.parametrize("rank", [0, 1])
def test_another_number_of_ranks_than_the_launcher_started(
    collwise: Run, monkeypatch: pytest.MonkeyPatch, rank: int
) -> None:
    monkeypatch.setenv("PMI_RANK", str(rank))
    monkeypatch.setenv("PMI_SIZE", "2")
    monkeypatch.setitem(sys.modules, "mpi4py.MPI", None)  # other tests may have loaded it here
    ended = collwise("measure", "-n", 3)
    assert ended.code == 2
    if rank == 0:
        ended.refused("3 ranks (-n 3): a launcher has started 2", "leave out -n")
    else:
        assert (ended.out, ended.err) == ("", "")


def test_open_mpi_4(folder: Path, launcher: Callable[[str], None]) -> None:
    """Its mpiexec does not call itself Open MPI: its ranks had no slots, its labs no options."""
    for said in ("mpiexec (OpenRTE) 4.1.4", "mpirun (Open MPI) 4.1.4"):
        version_line.cache_clear()
        launcher(f"echo '{said}'")
        assert "--oversubscribe" in command_line(2, ["x"])
        with pytest.raises(NoMPI, match=re.escape("a lab with Open MPI 4.1.4")):
            find_library(None)
    version_line.cache_clear()
    for said in ("mpirun (Open MPI) 5.0.7", "prterun (PRRTE) 4.0.0"):
        version_line.cache_clear()
        launcher(f"echo '{said}'")
        assert find_library(None)[0] == "openmpi"
    version_line.cache_clear()


def test_who_started_us() -> None:
    for rank, size in (
        ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
        ("PMI_RANK", "PMI_SIZE"),
        ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
        ("FLUX_TASK_RANK", "FLUX_JOB_SIZE"),
        ("PALS_RANKID", "PMI_SIZE"),
    ):
        seen = launched({rank: "1", size: "4", "PATH": "x"})
        assert isinstance(seen, Launched)
        assert seen[1:] == (1, 4)
        assert launched({rank: "1"}) is None
        assert launched({rank: "one", size: "4"}) is None


PMI = {"PMI_RANK": "3", "PMI_SIZE": "4", "PMI_FD": "7"}
IN_STEP = {"SLURM_JOB_ID": "9", "SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2"}


@pytest.mark.parametrize(
    ("environment", "launcher", "rank", "size", "starter"),
    [
        ({**PMI, **IN_STEP, "PMI_RANK": "1", "PMI_SIZE": "2"}, "srun", 1, 2, "srun"),
        ({**PMI, **IN_STEP, "MPI_LOCALNRANKS": "2"}, "Intel MPI's or MPICH's mpiexec", 3, 4, ""),
        ({**PMI, "FLUX_TASK_RANK": "3", "FLUX_JOB_SIZE": "4"}, "Flux", 3, 4, "flux run"),
        ({**PMI, "PALS_RANKID": "3"}, "PALS", 3, 4, "mpiexec"),
    ],
    ids=["srun --mpi=pmi2", "Hydra, whose proxies srun has started", "Flux", "PALS"],
)
def test_which_of_two_launchers_started_us(
    environment: dict[str, str], launcher: str, rank: int, size: int, starter: str
) -> None:
    seen = launched(environment)
    assert seen == (launcher, rank, size)
    assert seen.starter == starter


@pytest.mark.parametrize("size", [None, "1"], ids=["a batch script", "a step of one task"])
@pytest.mark.parametrize("command", [("measure",), ("run",)])
def test_ranks_are_started_here_in_an_allocation(
    collwise: Run,
    folder: Path,
    launcher: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
    size: str | None,
) -> None:
    """Launchers that see an allocation start ranks on its nodes, or by an srun that waits."""
    launcher('env; [ -z "$COLLWISE_STATUS_FILE" ] || echo 0 > "${COLLWISE_STATUS_FILE%@*}"')
    monkeypatch.delenv("COLLWISE_PROFILE")
    (folder / "script.py").touch()
    dropped = "SLURM_NODELIST", "SLURM_JOB_NODELIST", "SLURM_JOBID", "FLUX_URI", "PALS_NODEID"
    kept = "SLURM_JOB_ID", "SLURM_ARRAY_TASK_ID", "SLURM_JOB_NAME", "SLURM_CONF", "OMPI_MCA_btl"
    for name in (*dropped, *(kept if size is None else kept[:-1])):
        monkeypatch.setenv(name, "1")
    if size is not None:
        monkeypatch.setenv("SLURM_PROCID", "0")
        monkeypatch.setenv("SLURM_STEP_NUM_TASKS", size)
    words = ("script.py",) if command == ("run",) else ()
    ended = collwise(*command, "-n", 2, *words)
    assert (ended.code, ended.err) == (0, "")
    given = {line.partition("=")[0] for line in ended.out.splitlines()}
    assert not given & {*dropped, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}
    assert given >= {*(kept if size is None else kept[:-1])}


@pytest.mark.parametrize("rank", [0, 1])
def test_a_lab_is_not_started_by_each_rank(
    collwise: Run, monkeypatch: pytest.MonkeyPatch, rank: int
) -> None:
    monkeypatch.setenv("SLURM_PROCID", str(rank))
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "2")
    monkeypatch.setitem(sys.modules, "mpi4py.MPI", None)  # other tests may have loaded it here
    ended = collwise("lab", "--", "hostname")
    if rank == 0:
        ended.refused("a lab: srun has started this command 2 times", "start it once")
    else:
        assert ended == (2, "", "")


def test_marks_of_a_launcher_are_not_inherited() -> None:
    kept = {"PATH": "x", "OMP_NUM_THREADS": "2"}
    marks = {"PMI_RANK": "0", "PMI_SIZE": "1", "PMI_FD": "5", "HYDI_CONTROL_FD": "6"}
    assert alone({**kept, **marks}) == kept
    own = {**kept, "OMPI_MCA_btl": "self"}
    assert alone(own) == own
