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
from tests.cli.running import POSTAL, alone, await_none, environment, process, processes_with, run
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


def end_while_ranks_run(
    library: Library, folder: Path, send: Callable[[int], None]
) -> tuple[int, str, str]:
    """Start a measurement, end it as soon as its ranks have started; nothing may be left."""
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
        while ranks_on_mpi(mark) < 2 and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        assert ranks_on_mpi(mark) == 2
        send(process.pid)
        out, err = process.communicate(timeout=LIMIT_S)
        assert await_none(mark) == []
    finally:
        for left in processes_with(mark):
            os.kill(left, signal.SIGKILL)
        process.wait(10)
    assert list(folder.iterdir()) == [], "half a measurement was saved"
    return process.returncode, out, err


def ranks_on_mpi(mark: str) -> int:
    """How many of the processes are ranks that have loaded MPI."""
    count = 0
    for pid in processes_with(mark):
        try:
            loaded = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace")
            count += "mpi4py" in loaded
        except OSError:
            pass  # it has ended
    return count


@pytest.mark.mpi
def test_ctrl_c(mpi: Library, tmp_path: Path) -> None:
    code, out, err = end_while_ranks_run(
        mpi, tmp_path, lambda group: os.killpg(group, signal.SIGINT)
    )
    assert (code, out, err.strip()) == (130, "", "collwise: interrupted")


@pytest.mark.mpi
def test_a_request_to_end(tmp_path: Path) -> None:
    code, out, err = end_while_ranks_run(
        mpich(), tmp_path, lambda pid: os.kill(pid, signal.SIGTERM)
    )
    assert (code, out, err) == (128 + signal.SIGTERM, "", "")
