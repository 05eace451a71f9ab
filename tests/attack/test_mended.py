"""Odd inputs that once went wrong, one by one."""

import contextlib
import dataclasses
import json
import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import collwise as cw
from collwise import __main__ as entry
from collwise.cli.failures import failing_clearly
from collwise.errors import InvalidArgument, LabUnavailable, UnknownName
from collwise.lab import Cluster, requirements
from collwise.profiles import store
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
    assert "left out     broadcast/" in out
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


DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize(
    ("line", "name"),
    [("plan -n 8 --bytes 8 --profile", "profile"), ("tune -n 2 --from-summary", "calls")],
)
def test_json_nested_deeply(collwise: Run, folder: Path, line: str, name: str) -> None:  # noqa: F811
    (folder / "it").write_text(f'{{"format": "collwise {name}", "x": {DEEP}}}')
    collwise(*line.split(), "it").refused("it: its values are in each other too deeply")


def test_profiles_of_nobody_are_listed(
    collwise: Run,  # noqa: F811
    folder: Path,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    saved = store.folder
    monkeypatch.setenv("COLLWISE_PROFILE", "")
    saved().mkdir(parents=True)
    (saved() / "deep.json").write_text(f'{{"format": {DEEP}}}')
    assert "too deeply" in collwise("wisdom", "list").out
    collwise("plan", "-n", 8, "--bytes", 8).refused("there is none in", "1 other profile saved")
    monkeypatch.setenv("COLLWISE_PROFILE", "~nobodys_name/x")
    collwise("plan", "-n", 8, "--bytes", 8).refused("~nobodys_name/x: there is no such file")


RACE = {
    "collective": "broadcast", "form": "blocking", "ranks": 4, "nbytes": 8, "root": 0,
    "algorithm": "broadcast/chain", "settings": {}, "ours_s": 1e-6, "library_s": 2e-6,
    "speedup_low": 1.9, "speedup_high": 2.1, "decision": "collwise",
}  # fmt: skip


@pytest.mark.parametrize(
    ("place", "values"),
    [
        ("points", {"t0_s": 1e308}),
        ("points", {"lam": -4}),
        ("points", {"lam": 0}),
        ("points", {"lam": 1e300}),
        ("points", {"nbytes": 2**60}),
        ("wins", {"root": 99}),
        ("wins", {"ranks": 2**40}),
        ("wins", {"ranks": 2**70}),
        ("wins", {"collective": "nope"}),
    ],
)
def test_a_profile_of_nonsense(
    collwise: Run,  # noqa: F811
    folder: Path,  # noqa: F811
    place: str,
    values: dict[str, Any],
) -> None:
    document = json.loads(example().to_json()) | {"wins": [RACE.copy()]}
    (folder / "it").write_text(json.dumps(document))
    assert collwise("plan", "-n", 8, "--bytes", 8, "--profile", "it").code == 0
    document[place][0] |= values
    (folder / "it").write_text(json.dumps(document))
    for line in (("plan", "-n", 8, "--bytes", 8, "--profile", "it"), ("wisdom", "import", "it")):
        collwise(*line).refused("read the profile it: ", f"$.{place}[0]")


def test_races_of_unknown_algorithms_are_not_imported(collwise: Run, folder: Path) -> None:  # noqa: F811
    document = json.loads(example().to_json())
    document["wins"] = [RACE, {**RACE, "algorithm": "broadcast/nope", "nbytes": 16}]
    (folder / "it").write_text(json.dumps(document))
    said = collwise("wisdom", "import", "it").out
    assert "dropped  1 race on 4 ranks, whose algorithms there are no more" in said
    kept = cw.Profile.load(folder / "profile.json").race_results
    assert [race.algorithm for race in kept] == ["broadcast/chain"]


def test_a_file_that_has_nothing_yet(collwise: Run) -> None:  # noqa: F811
    """The kernel's log is a regular file that waits for the next message."""
    with soon("reading the kernel's log"):
        collwise("plan", "-n", 8, "--bytes", 8, "--profile", "/proc/kmsg").refused("/proc/kmsg")


@pytest.mark.parametrize("digits", [10, 19, 400, 5000])
def test_more_ranks_than_there_are(digits: int) -> None:
    ranks = 10**digits
    with soon("planning"), pytest.raises(InvalidArgument, match=f"from 1 to {2**31 - 1}"):
        cw.plan("broadcast", ranks=ranks, nbytes=8, machine=MACHINE)


@pytest.mark.parametrize("digits", [400, 5000])
def test_a_time_beyond_all_floats(digits: int) -> None:
    with pytest.raises(InvalidArgument, match=r"an integer of \d+ bits; give a finite number"):
        cw.Machine.postal(t0_s=10**digits, lam=4)


@pytest.mark.parametrize(
    "line",
    [
        "plan -n ٣ --bytes 8",
        "plan -n 1_0 --bytes 8",
        "plan -n 8 --bytes 8 --root ٣",
        "measure -n ٣",
        "measure --seed 1_0",
        "run -n ٣ x.py",
        "lab --hosts ٣ true",
        "explore --port ٣",
    ],
)
def test_digits_of_other_scripts(collwise: Run, line: str) -> None:  # noqa: F811
    collwise(*line.split()).refused("is no integer in plain digits")


def test_no_ranks_on_a_host(collwise: Run) -> None:  # noqa: F811
    collwise("lab", "--ranks-per-host", 0, "true").refused("0 is not in the range")
    with pytest.raises(InvalidArgument, match="at least one is needed"):
        Cluster(2, "1ms", "1mbit").check(["true"], None, 0)


@pytest.mark.parametrize(
    ("words", "variable", "seen"),
    [
        ("--learn 200%", "", "it is no share of the time"),
        ("", "COLLWISE_LEARN=much", "learning while running"),
        ("", "COLLWISE_ALGORITHMS=nonsense", "'nonsense' is no choice"),
        ("", "COLLWISE_ALGORITHMS=broadcast=binomal", "did you mean broadcast/binomial, "),
        ("--profile absent", "", "the profile absent: there is no such file"),
    ],
)
def test_what_is_known_is_refused_before_ranks_start(
    collwise: Run,  # noqa: F811
    folder: Path,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    words: str,
    variable: str,
    seen: str,
) -> None:
    """There is no launcher that could start any."""
    monkeypatch.setenv("COLLWISE_MPIEXEC", "no-such-launcher")
    (folder / "x.py").touch()
    name, _, value = variable.partition("=")
    monkeypatch.setenv(name or "UNUSED", value)
    collwise("run", "-n", 2, *words.split(), "x.py").refused(seen)
    collwise("tune", "-n", 2, "--from-summary", "x.py").refused("tune for the calls in x.py: ")
    collwise("tune", "-n", 2, "--from-summary", "absent").refused("No such file or directory")


def test_names_that_people_try_first() -> None:
    assert cw.__version__ == version("collwise")
    plan = cw.plan("broadcast", ranks=64, nbytes=8, machine=MACHINE)
    assert repr(plan) == f"<Plan of {plan.problem}: {plan.choice.label}, {plan.choice.time}>"
    with pytest.raises(KeyError, match=r"preset machine 'paragn': .* did you mean paragon\?"):
        cw.presets["paragn"]
    assert cw.presets.get("paragn") is None


def test_the_preset_of_the_commonest_cluster(collwise: Run) -> None:  # noqa: F811
    for size in ("8", "4k", "1M"):
        said = collwise("plan", "-n", 32, "--bytes", size, "--levels", "cluster:4x8").out
        assert "4 nodes × 8 ranks" in said
        assert "note  " not in said, "no outer level is faster than an inner one"
