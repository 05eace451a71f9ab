"""Values that make no sense are refused before anything is started."""

import os
from pathlib import Path

import click
import pytest

from collwise.cli import COMMANDS
from collwise.cli.parameter_types import OUTPUT
from tests.cli.conftest import Run
from tests.cli.running import POSTAL

ON_RANKS = [name for name in COMMANDS if name in ("tune", "measure", "bench")]
ASSUMING = [name for name in COMMANDS if name in ("plan", "simulate")]
PLAN = ("plan", "-n", "4", "--bytes", "512")


@pytest.fixture(autouse=True)
def nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*_: object) -> int:
        raise AssertionError("ranks were started")

    monkeypatch.setattr("collwise.cli.ranks_option.start", start)


@pytest.mark.parametrize("size", ["x", "-5", "1.5", "4q", "", "²", "5_0", "0x10", "k", "1 2"])
@pytest.mark.parametrize("name", [*ASSUMING, *ON_RANKS])
def test_no_size(collwise: Run, name: str, size: str) -> None:
    ranks = ("-n", "4", *POSTAL) if name in ASSUMING else ()
    collwise(name, *ranks, f"--bytes={size}").refused("'--bytes'", "give ")


@pytest.mark.parametrize("size", ["10^21", "2**10", "1e6"])
def test_powers_are_not_worked_out(collwise: Run, size: str) -> None:
    """It is said, and what the largest size is."""
    collwise(*PLAN[:-2], *POSTAL, "--bytes", size).refused(
        f"{size!r} is no size", "0 to 1048576G", "powers are not worked out"
    )


@pytest.mark.parametrize("size", ["9" * 20 + "G", "9" * 5000, "1048577G", str(2**50 + 1)])
@pytest.mark.parametrize("name", [*ASSUMING, *ON_RANKS])
def test_too_large_a_size(collwise: Run, name: str, size: str) -> None:
    ranks = ("-n", "4", *POSTAL) if name in ASSUMING else ()
    collwise(name, *ranks, "--bytes", size).refused("'--bytes'", "too large; give at most 1048576G")


@pytest.mark.parametrize(
    ("size", "nbytes"),
    [
        ("0", 0),
        ("0" * 30 + "5", 5),
        ("512", 512),
        ("64k", 65536),
        ("64 KiB", 65536),
        ("1M", 1 << 20),
        ("2gb", 1 << 31),
    ],
)
def test_sizes(collwise: Run, size: str, nbytes: int) -> None:
    ended = collwise("plan", "-n", "4", "--bytes", size, *POSTAL)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith(f"broadcast of {nbytes} bytes ")


@pytest.mark.parametrize("budget", ["0", "-1", "nan", "inf", "x", "", "1e300"])
@pytest.mark.parametrize("name", [*ON_RANKS, "lab"])
def test_no_budget(collwise: Run, name: str, budget: str) -> None:
    option = "--timeout" if name == "lab" else "--budget"
    collwise(name, f"{option}={budget}").refused(f"'{option}'", "give seconds > 0")


@pytest.mark.parametrize("ranks", ["0", "-1", "x", "1.5"])
@pytest.mark.parametrize("name", [*ASSUMING, *ON_RANKS])
def test_no_number_of_ranks(collwise: Run, name: str, ranks: str) -> None:
    more = ("--bytes", "8", *POSTAL) if name in ASSUMING else ()
    collwise(name, "-n", ranks, *more).refused("'-n' / '--ranks'", "Error: ")


def test_more_ranks_than_mpi_can_number(collwise: Run) -> None:
    collwise("plan", "-n", 2**31, "--bytes", 8, *POSTAL).refused("1<=x<=2147483647")


def test_the_most_ranks_of_all(collwise: Run) -> None:
    ended = collwise("plan", "-n", 2**31 - 1, "--bytes", 8, *POSTAL)
    assert (ended.code, ended.err) == (0, "")


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
def test_digits_of_other_scripts(collwise: Run, line: str) -> None:
    collwise(*line.split()).refused("is no integer in plain digits")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        *((f"{name} -n 10000", "10000 ranks on this machine (-n 10000): ") for name in ON_RANKS),
        ("lab --ranks-per-host 0 true", "0 is not in the range"),
        ("plan -n 8 --bytes 8 --profile=", "the name is empty; name a file"),
        ("reproduce bruck1996 table1 --out=", "the name is empty; name a folder"),
        ("tune -n 2 --report /", "/ is a folder"),
    ],
)
def test_refused(collwise: Run, line: str, told: str) -> None:
    collwise(*line.split()).refused(told)


@pytest.mark.parametrize(("root", "seen"), [(4, "root 4: there are 4 ranks"), (-1, "root = -1")])
def test_root_out_of_range(collwise: Run, root: int, seen: str) -> None:
    collwise(*PLAN, *POSTAL, f"--root={root}").refused("broadcast from", seen, "; give ")


@pytest.mark.parametrize("lam", ["4", "9/5", "1.8", "1", "1E1"])
def test_exact_numbers(collwise: Run, lam: str) -> None:
    ended = collwise(*PLAN, "--t0", "1e-3", "--lam", lam)
    assert (ended.code, ended.err) == (0, "")


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (["bench", "--op", "max"], ["broadcast with --op", "it is for reduce, allreduce"]),
        (["bench", "--sources", "1,"], ["broadcast with --sources", "s_to_p only"]),
        (["bench", "--collective", "allreduce", "--root", "1"], ["allreduce with --root"]),
        (["bench", "--collective", "s_to_p", "--dtype", "int32"], ["s_to_p with --dtype"]),
        (["bench", "--collective", "s_to_p", "--sources", "3"], ["--sources 3, without a pattern"]),
        (["bench", "--collective", "s_to_p", "--pattern", "x"], ["source distribution 'x'"]),
        (["bench", "--collective", "s_to_q"], ["collective 's_to_q'", "mean s_to_p?"]),
        (["bench", "--algorithm", "brin"], ["algorithm 'brin'"]),
        (["tune", "--collective", "broadcast", "--pattern", "row"], ["broadcast with --pattern"]),
        (
            ["tune", "--collective", "s_to_p,broadcast", "--op", "max"],
            ["s_to_p and broadcast with"],
        ),
        (["tune", "--pattern", "row"], ["--pattern row without a number"]),
        (["tune", "--sources", "1,2", "--pattern", "row"], ["a list of ranks, and --pattern row"]),
    ],
)
def test_options_that_say_nothing(collwise: Run, asked: list[str], words: list[str]) -> None:
    """They are refused before any rank is started."""
    collwise(*asked, "-n", 2).refused(*words)


def test_summaries_that_cannot_be_read(collwise: Run, folder: Path) -> None:
    """They are refused before any rank is started, too."""
    (folder / "x.py").touch()
    collwise("tune", "-n", 2, "--from-summary", "x.py").refused("tune for the calls in x.py: ")
    (folder / "deep").write_text(f'{{"format": "collwise calls", "x": {"[" * 99_999}')
    collwise("tune", "-n", 2, "--from-summary", "deep").refused("in each other too deeply")
    collwise("tune", "-n", 2, "--from-summary", "absent").refused("No such file or directory")


@pytest.mark.parametrize("asked", [["--op", "max"], ["--sources", "1,"], ["--root", "1"]])
def test_options_for_some_of_all(collwise: Run, asked: list[str]) -> None:
    """What says something about one of several collectives is welcome, and ranks are started."""
    assert "AssertionError: ranks were started" in collwise("tune", "-n", 2, *asked).err


@pytest.mark.parametrize("word", ["all", "ALL", "All"])
def test_all_in_any_letters(collwise: Run, word: str) -> None:
    """As the help of some programs writes it."""
    found = collwise("plan", "s_to_p", "-n", 4, "--bytes", 8, "--sources", word, *POSTAL)
    assert (found.code, found.err) == (0, "")
    assert found.out.startswith("s_to_p of 32 bytes from 4 ")
    assert "ranks were started" in collwise("tune", "-n", 2, "--collective", word).err


def test_a_named_pipe_that_nobody_reads(tmp_path: Path) -> None:
    """It was noticed after measuring."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(click.BadParameter, match="is a named pipe that nobody reads; name another"):
        OUTPUT.convert(pipe, None, None)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    assert OUTPUT.convert(pipe, None, None) == pipe
    with pytest.raises(BlockingIOError):  # not the end: somebody will write
        os.read(reader, 1)
    os.close(reader)
