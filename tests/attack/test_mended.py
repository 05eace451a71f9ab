"""Odd inputs that once went wrong, one by one."""

import contextlib
import dataclasses
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import collwise as cw
from collwise import __main__ as entry
from collwise.cli.failures import failing_clearly
from collwise.errors import InvalidArgument, LabUnavailable, UnknownName
from collwise.lab import requirements
from collwise.system.host import LAB
from collwise.tuning.occurred import tasks_of
from tests.attack.test_public_api import soon
from tests.cli.conftest import Run, collwise, folder  # noqa: F401
from tests.profiles.example import example

MACHINE = cw.Machine.postal(t0_s="1/1000", lam=4)
MACHINES = [
    MACHINE,
    cw.Machine.hockney(alpha_s=1, beta_s=1),
    cw.Machine.loggp(L_s=4, o_s=1, g_s=1, G_s=1),
    cw.Machine.wormhole(send_s=1, receive_s=1, hop_s=1, beta_s=1),
    example().machine,
]


@pytest.mark.parametrize("nbytes", [-1, float("nan"), 1.5, None, "8"])
@pytest.mark.parametrize("machine", MACHINES)
def test_the_cost_of_no_message(machine: cw.Machine, nbytes: int) -> None:
    with pytest.raises(InvalidArgument, match="give an integer of at least 0"):
        machine.message(nbytes)


def test_a_rank_that_is_no_integer() -> None:
    """It ran for ever."""
    schedule = cw.plan("broadcast", ranks=8, nbytes=8, machine=MACHINE).schedule
    with pytest.raises(InvalidArgument, match=r"rank = 1\.5; give an integer from 0 to 7"):
        schedule.rank(1.5)  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", ["U3", "S5", "datetime64[s]", "timedelta64[ms]"])
def test_no_sum_of_text_or_dates(dtype: str) -> None:
    with pytest.raises(InvalidArgument, match="sum is for numbers"):
        cw.plan("reduce", ranks=4, nbytes=0, machine=MACHINE, dtype=dtype)


@pytest.mark.parametrize(
    ("op", "ours"),
    [("MPI_SUM", "sum"), ("MPI.SUM", "sum"), ("add", "sum"), ("Max", "max"), ("product", "prod")],
)
def test_operators_by_other_names(op: str, ours: str) -> None:
    with pytest.raises(UnknownName, match=f"write {ours}, as it is called here"):
        cw.plan("reduce", ranks=4, nbytes=8, machine=MACHINE, op=op)


def test_a_lab_in_a_lab(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LAB, "8 hosts")
    with pytest.raises(LabUnavailable, match=r"this is a host of a lab \(8 hosts\)"):
        requirements.check()


@pytest.mark.parametrize("seconds", ["nan", "inf", "0", "-1", "1e300"])
def test_a_lab_without_end(collwise: Run, seconds: str) -> None:  # noqa: F811
    collwise("lab", "--timeout", seconds, "true").refused("no time to spend")


def test_an_empty_name(collwise: Run) -> None:  # noqa: F811
    asked = ("plan", "-n", 8, "--bytes", 8, "--profile", "")
    collwise(*asked).refused("the name is empty; name a file")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", ["pipe", "/dev/zero"])
def test_a_profile_that_never_ends(collwise: Run, name: str) -> None:  # noqa: F811
    os.mkfifo("pipe")
    asked = ("plan", "-n", 8, "--bytes", 8, "--profile", name)
    collwise(*asked).refused("not a regular file")


def test_what_is_left_out_of_many_ranks(collwise: Run) -> None:  # noqa: F811
    asked = ("simulate", "-n", 65536, "--bytes", 8, "--t0", 1, "--lam", 4)
    out = collwise(*asked).out
    assert "left out     broadcast/chain: " in out
    assert "name it with --algorithm" in out


def test_interrupted_while_it_loads(tmp_path: Path) -> None:
    """Ctrl-C before the command line is there to explain it."""
    (tmp_path / "click.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    ran = subprocess.run(
        [sys.executable, "-m", "collwise", "doctor"],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "", "collwise: interrupted\n")
    assert callable(entry.main)


def test_every_public_name_is_there_without_mpi(tmp_path: Path) -> None:
    """Without an MPI library `Comm` says so, in our words first."""
    (tmp_path / "mpi4py").mkdir()
    (tmp_path / "mpi4py" / "__init__.py").touch()
    (tmp_path / "mpi4py" / "MPI.py").write_text("raise RuntimeError('cannot load MPI library')\n")
    script = (
        "import collwise as cw\n"
        "for name in sorted({*cw.__all__} - {'Comm', 'run', 'startall', 'waitall'}):\n"
        "    assert getattr(cw, name) is not None\n"
        "try:\n    cw.Comm\n"
        "except cw.errors.NoMPI as error:\n    print(error.asked, error.__cause__)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ran.stdout, ran.stderr) == ("running on MPI None\n", "")


SETTINGS = {
    "segment": 64,
    "lam": 4,
    "strategy": (0,) * 31,
    "radix": 4,
    "alpha": "1/2",
    "k": 3,
    "latency": 3,
}
FLAT = [one for one in cw.ALGORITHMS.values() if one.parameters.keys() <= SETTINGS.keys()]
"""All but those that are put together from others."""


@pytest.mark.parametrize("algorithm", FLAT, ids=lambda one: one.name)
def test_the_time_on_more_ranks_than_there_are(algorithm: cw.Algorithm) -> None:
    """A closed form, or a refusal: several took minutes, or all memory."""
    settings: dict[str, Any] = {name: SETTINGS[name] for name in algorithm.parameters}
    nbytes = 8 * 2**31 if algorithm.collective == "reduce_scatter_block" else 8
    if algorithm.collective == "s_to_p":
        settings["sources"] = [0, 5]
    with soon(algorithm.name):
        with contextlib.suppress(InvalidArgument):
            assert algorithm.schedule(2**31, nbytes, **settings)
        with contextlib.suppress(InvalidArgument):
            assert algorithm.predict(MACHINE, 2**31, nbytes, **settings) > 0


def test_too_many_segments(collwise: Run) -> None:  # noqa: F811
    """They were listed before they were counted."""
    asked = "simulate -n 8 --bytes 1G --t0 1 --lam 4 --algorithm chain_segmented --set segment=64"
    collwise(*asked.split()).refused("these are about 117,440,512 messages")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("tune -n 2 --report /", "/ is a folder"),
        ("reproduce bruck1996 table1 --out=", "the name is empty; name a folder"),
        (f"wisdom show {'x' * 5000}", "no saved profile matches"),
        ("run sub", "run sub: there is no such file"),
        (f"run {'x' * 5000}", "there is no such file"),
        ("bench -n 2 --bytes 1048576G", "bytes are more than the memory here"),
        (
            "plan -n 4 --bytes 8 --levels ethernet:999999x999999",
            "999998000001 ranks are too many; give at",
        ),
    ],
)
def test_refused(collwise: Run, words: str, told: str) -> None:  # noqa: F811
    Path("sub").mkdir()
    collwise(*words.split()).refused(told)


def test_a_race_of_a_program_that_does_not_fit(tmp_path: Path) -> None:
    """Whatever a file says that a program called."""
    call = '{"ranks": 2, "times": 1, "collective": "broadcast", "nbytes": 1000000000000000}'
    (tmp_path / "calls.json").write_text(
        f'{{"format": "collwise calls", "ranks": 2, "calls": [{call}]}}'
    )
    with pytest.raises(InvalidArgument, match="no calls on 2 ranks that plans could serve"):
        tasks_of(tmp_path / "calls.json", 2)


def test_no_memory(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end, failing_clearly():
        np.empty(1 << 60, np.uint8)
    assert end.value.code == 1
    assert re.fullmatch(
        "collwise: no memory: Unable to allocate .*; ask for fewer bytes or ranks\n",
        capsys.readouterr().err,
    )


ODD_NAMES = ["", "x", "nosuch/x", "broadcast/", "broadcast/a b", "broadcast/x/y", "s_to_p/library"]


@pytest.mark.parametrize("name", [*ODD_NAMES, "allgatherv/mine", "broadcast/chain", 5, None])
def test_an_algorithm_that_nobody_could_name(name: Any) -> None:
    one = dataclasses.replace(cw.ALGORITHMS["broadcast/chain"], name=name)
    with pytest.raises(InvalidArgument, match="register an algorithm"):
        cw.register(one)


def test_no_algorithm() -> None:
    with pytest.raises(InvalidArgument, match="it is 5; give a"):
        cw.register(5)  # type: ignore[arg-type]


@pytest.mark.parametrize("sizes", [(10**9, 10**9), (10**9,), (2, 3, 10**12)])
def test_a_placement_of_more_ranks_than_there_are(sizes: tuple[int, ...]) -> None:
    for make in (cw.Placement.regular, lambda *sizes: cw.Placement.nodes(sizes)):
        with pytest.raises(InvalidArgument, match="are too many; give at most 1048576"):
            make(*sizes)


@pytest.mark.parametrize("name", ["broadcast/multilevel", "allreduce/multilevel"])
def test_teams_of_more_ranks_than_there_are(name: str) -> None:
    settings: dict[str, Any] = dict.fromkeys(cw.ALGORITHMS[name].parameters, "flat")
    settings |= {"across": "census"} if "across" in settings else {}
    with soon(name), pytest.raises(InvalidArgument, match="are too many; give at most 1048576"):
        cw.ALGORITHMS[name].schedule(2**63, 512, **settings)


@pytest.mark.parametrize("name", ["broadcast/circulant", "reduce/postal_rounds"])
def test_more_pieces_than_there_are(name: str) -> None:
    more: dict[str, Any] = {"latency": 2} if "postal" in name else {}
    with soon(name), pytest.raises(InvalidArgument, match="pieces; choose longer ones"):
        cw.ALGORITHMS[name].predict(MACHINE, 8, 2**63, segment=1, **more)


def test_rows_that_are_no_list() -> None:
    with pytest.raises(InvalidArgument, match="give a list of rows"):
        cw.sources.rows_of((2, 4), 2, np.array("a"))
