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


@pytest.mark.parametrize("budget", ["0", "-1", "nan", "inf", "x", ""])
@pytest.mark.parametrize("name", ON_RANKS)
def test_no_budget(collwise: Run, name: str, budget: str) -> None:
    collwise(name, f"--budget={budget}").refused("'--budget'", "give seconds > 0")


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


@pytest.mark.parametrize("name", ON_RANKS)
def test_more_ranks_than_slots(collwise: Run, name: str) -> None:
    collwise(name, "-n", "10000").refused("10000 ranks on this machine (-n 10000)", "use fewer")


@pytest.mark.parametrize(("root", "seen"), [(4, "root 4: there are 4 ranks"), (-1, "root = -1")])
def test_root_out_of_range(collwise: Run, root: int, seen: str) -> None:
    collwise(*PLAN, *POSTAL, f"--root={root}").refused("broadcast from", seen, "; give ")


@pytest.mark.parametrize(
    "option", ["--t0", "--lam", "--alpha", "--beta", "--latency", "--per-byte"]
)
@pytest.mark.parametrize("value", ["x", "nan", "inf", "1/0", ""])
def test_no_number(collwise: Run, option: str, value: str) -> None:
    collwise(*PLAN, f"{option}={value}").refused(f"'{option}'", "is no number; give a finite")


@pytest.mark.parametrize("option", ["--t0", "--lam", "--alpha", "--gap"])
@pytest.mark.parametrize("value", ["1e999999999", "1e-999999999", "9" * 5000, "1e99", "1e-0100"])
def test_numbers_beyond_all_measure(collwise: Run, option: str, value: str) -> None:
    collwise(*PLAN, f"{option}={value}").refused(f"'{option}'", "beyond all measure")


@pytest.mark.parametrize("lam", ["0.99", "0", "-4", "98/99"])
def test_lambda_below_one(collwise: Run, lam: str) -> None:
    collwise(*PLAN, "--t0=1e-3", f"--lam={lam}").refused("give λ >= 1: a message cannot arrive")


@pytest.mark.parametrize("t0", ["0", "-1e-3"])
def test_no_time_for_a_send(collwise: Run, t0: str) -> None:
    collwise(*PLAN, f"--t0={t0}", "--lam=4").refused("give a time above 0, in seconds")


@pytest.mark.parametrize("machine", [("--alpha=-1", "--beta=0"), ("--alpha=0", "--beta=-1e-9")])
def test_negative_hockney(collwise: Run, machine: tuple[str, str]) -> None:
    collwise(*PLAN, *machine).refused("give a time of 0 or more, in seconds")


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
