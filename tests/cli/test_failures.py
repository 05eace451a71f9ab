"""How commands end early: nobody reads on, no room, Ctrl-C; no rank is left behind."""

import os
import re
import signal
import subprocess
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from collwise.cli.failures import failing_clearly
from tests.cli.running import (
    POSTAL,
    Ended,
    alone,
    await_none,
    environment,
    process,
    processes_with,
    run,
)
from tests.mpi.launching import LIMIT_S, Library, mpich

PLAN = ("plan", "-n", "8", "--bytes", "512", *POSTAL)


@pytest.mark.parametrize("arguments", [PLAN, ("--help",)])
def test_nobody_reads(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """What `collwise … | true` comes to: the pipe is closed before anything is written."""
    reading, writing = os.pipe()
    os.close(reading)
    ended = process(mpich(), tmp_path, *arguments, stdout=writing)
    os.close(writing)
    assert (ended.code, ended.err) == (0, "")


def test_no_room_for_the_result(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        ended = process(mpich(), tmp_path, *PLAN, "--json", stdout=full)
    assert ended.code == 1
    assert ended.err == "collwise: write the result: No space left on device; make room for it\n"


def test_without_standard_output(tmp_path: Path) -> None:
    command = ["bash", "-c", '"$@" >&-', "bash", *alone(mpich(), *PLAN)]
    assert run(command, tmp_path, environment(mpich(), tmp_path)) == (0, "", "")


def test_an_import_that_hides_an_interruption(capsys: pytest.CaptureFixture[str]) -> None:
    """Compiled modules turn Ctrl-C into an ImportError."""
    error = ImportError("initialization failed")
    error.__cause__ = KeyboardInterrupt()
    with pytest.raises(SystemExit) as end, failing_clearly():
        raise error
    assert end.value.code == 130
    assert capsys.readouterr().err == "collwise: interrupted\n"


def test_an_interruption_before_the_command_line_can_explain_it(tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    own = environment(mpich(), tmp_path, PYTHONPATH=str(tmp_path))
    ended = run(alone(mpich(), "doctor"), tmp_path, own)
    assert ended == (130, "", "collwise: interrupted\n")


def test_no_memory(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end, failing_clearly():
        np.empty(1 << 60, np.uint8)
    assert end.value.code == 1
    assert re.fullmatch(
        "collwise: no memory: Unable to allocate .*; ask for fewer bytes or ranks\n",
        capsys.readouterr().err,
    )


def test_a_bug_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end, failing_clearly():
        raise ZeroDivisionError("ours")
    assert end.value.code == 1
    error = capsys.readouterr().err
    assert error.startswith("collwise: unexpected error on rank 0; please report it:\nTraceback")
    assert "ZeroDivisionError: ours" in error


RANK_1 = {"mpich": "PMI_RANK=1", "openmpi": "OMPI_COMM_WORLD_RANK=1"}


def end_while_ranks_run(
    library: Library, folder: Path, send: Callable[[int, int], None], begun: str = "working"
) -> Ended:
    """Start a measurement, and end it; no process may be left, and nothing be saved.

    send: gets the process ids of the command and of rank 1.   begun: what ranks have told the
    command before; "" if they have only been started.
    """
    mark = f"collwise-test-{uuid.uuid4()}"
    process = subprocess.Popen(
        alone(library, "measure", "-n", "2", "--budget", "100", "--json"),
        cwd=folder,
        env=environment(library, folder, COLLWISE_TEST=mark),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + LIMIT_S
        while not (ranks := processes_with(mark, RANK_1[library.name])) or (
            begun not in status_of(ranks[0])
        ):
            assert time.monotonic() < deadline, "the ranks did not begin"
            time.sleep(0.05)
        send(process.pid, ranks[0])
        out, err = process.communicate(timeout=LIMIT_S)
        assert await_none(mark) == []
    finally:
        for left in processes_with(mark):
            os.kill(left, signal.SIGKILL)
        process.wait(10)
    assert list(folder.iterdir()) == [], "half a measurement was saved"
    return Ended(process.returncode, out, err)


def status_of(rank: int) -> str:
    """What the ranks have told the process that started them."""
    variables = Path(f"/proc/{rank}/environ").read_text(encoding="utf-8").split("\0")
    named = next(v for v in variables if v.startswith("COLLWISE_STATUS_FILE="))
    return Path(named.partition("=")[2].rpartition("@")[0]).read_text(encoding="utf-8")


@pytest.mark.mpi
def test_ctrl_c(mpi: Library, tmp_path: Path) -> None:
    ended = end_while_ranks_run(
        mpi, tmp_path, lambda command, rank: os.killpg(command, signal.SIGINT)
    )
    assert (ended.code, ended.out) == (130, "")
    assert ended.err.strip() == "collwise: interrupted"


@pytest.mark.mpi
def test_a_request_to_end(tmp_path: Path) -> None:
    ended = end_while_ranks_run(
        mpich(), tmp_path, lambda command, rank: os.kill(command, signal.SIGTERM)
    )
    assert ended == (128 + signal.SIGTERM, "", "")


@pytest.mark.mpi
@pytest.mark.parametrize("begun", ["", "working"])
def test_a_rank_that_is_killed(tmp_path: Path, begun: str) -> None:
    """It was called a wrong request, with the advice to try fewer ranks."""
    ended = end_while_ranks_run(
        mpich(), tmp_path, lambda command, rank: os.kill(rank, signal.SIGKILL), begun
    )
    assert ended.code == 1
    ended.explained("a rank was ended from outside")


@pytest.mark.mpi
@pytest.mark.parametrize("begun", ["", "working"])
def test_a_command_that_is_killed(tmp_path: Path, begun: str) -> None:
    """Its ranks worked on to the end, and saved what they measured."""
    ended = end_while_ranks_run(
        mpich(), tmp_path, lambda command, rank: os.kill(command, signal.SIGKILL), begun
    )
    assert ended.code == -signal.SIGKILL
