"""Tables in the room that there is, and what is said where no terminal is."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial

import click
import pytest

from collwise.cli import output
from collwise.cli.failures import failing_clearly
from collwise.cli.output import PIPED
from collwise.comm.recording import Calls
from collwise.errors import InvalidArgument
from collwise.measure.race import LIBRARY
from collwise.report.call_summary import calls_table
from collwise.report.tables import Table
from tests.mpi.launching import LIMIT_S

TITLES = ("collective", "bytes", "λ", "algorithm", "speed-up", "verdict")
ROWS = [
    ("broadcast", "512", "1.9", "postal_tree(lam=9/5)", "1.50 (1.40 … 1.60)", "won " * 8 + "end"),
    ("reduce", "1048576", "1.2", "chain(segment=65536)", "0.90 (0.80 … 1.00)", "a tie"),
]
SPARE = ("λ", "verdict")
TABLE = Table("a title", [dict(zip(TITLES, row, strict=True)) for row in ROWS], SPARE)


Shown = Callable[[int, Callable[[], None]], list[str]]


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shown:
    """The lines that something prints on a terminal of some width, without colours."""

    def lines(width: int, show: Callable[[], None]) -> list[str]:
        monkeypatch.setenv("COLLWISE_TERMINAL", f"out {width}")
        monkeypatch.setenv("TERM", "xterm")
        show()
        return re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()

    return lines


def drawn(shown: Shown, width: int) -> tuple[list[str], str]:
    """The lines of the table, and what is said below about columns that are left out."""
    lines = shown(width, partial(output.table, TABLE))
    told = [i for i, line in enumerate(lines) if line.startswith("no room for ")]
    end = told[0] if told else len(lines)
    return lines[:end], " ".join(lines[end:])


@pytest.mark.parametrize("width", range(53, 140, 6))
def test_a_table_fits(shown: Shown, width: int) -> None:
    """It is never wider than the terminal, and no word or number of what is shown is broken."""
    table, told = drawn(shown, width)
    assert max(map(len, table)) <= width
    words = " ".join(table).split()
    for text in ("broadcast", "1048576", "postal_tree", "(lam=9/5)", "chain", "(segment=65536)"):
        assert any(text in word for word in words), text
    assert "(0.80" in words
    left_out = [name for name in SPARE if name in told.partition(":")[0]]
    assert left_out == list(SPARE[: len(left_out)])
    for name, value in (("λ", "1.9"), ("verdict", "end")):
        assert (name in left_out) == (value not in words)


def test_who_served_and_why_fit_into_80_columns(shown: Shown) -> None:
    """The reasons were left out before the forms, and there was room for them."""
    why = "the library's own: there is no profile of this machine: run `collwise tune`"
    calls = [Calls("Allreduce", "blocking", 2, None, 1234, LIBRARY, why, None, 1.25e-3)]
    lines = shown(80, partial(output.table, calls_table(calls)))
    assert max(map(len, lines[:-1])) <= 80
    assert {"Allreduce", "1234", "library", "profile", "`collwise"} <= {*" ".join(lines).split()}
    assert lines[-1].startswith("no room for form, ranks, a tuning is worth: ")


def test_too_narrow_for_anything(shown: Shown) -> None:
    """Then cells are folded; nothing of them is lost."""
    table, told = drawn(shown, 30)
    assert told == "no room for λ, verdict: widen the terminal, or take --json"
    assert max(map(len, table)) <= 30
    for text in ("broadcast", "1048576", "segment=65536"):
        assert not any(text in line for line in table)
    letters = set("".join(table))
    assert letters >= set("".join(cell for row in ROWS for cell in row[:2])) - {" "}


def test_brackets_within_sentences_stay(shown: Shown) -> None:
    """Labels break before what is in brackets, sentences where the line ends."""
    sentence = "a sentence (with a remark) that is longer than a label, and goes on (and on)"
    show = partial(output.table, Table("", [{"one": "label(k=1)", "two": sentence}]))
    one, *_ = (line for line in shown(60, show) if "label" in line)
    assert "label " in one
    assert "a sentence (with a remark)" in one


LONG_TEXT = "they go on, and on, " * 12


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize(
    ("line", "indent"),
    [
        (f"advice   {LONG_TEXT}", 9),
        (f"lower bound  250 µs  ({LONG_TEXT})", 21),
        (f"             {LONG_TEXT}", 13),
        (LONG_TEXT, 0),
        (f"  label(a=1)  {'-':>10}  {LONG_TEXT}", 26),
        (f"  a/label/that/is/much/too/long/for/this{'-':>60}  {LONG_TEXT}", 6),
    ],
)
def test_lines_wrap_below_their_text(shown: Shown, width: int, line: str, indent: int) -> None:
    """On a terminal nothing is wider than it, nothing is lost, and columns are kept."""
    margin = len(line) - len(line.lstrip())
    if indent > max(width - 30, margin):
        indent = margin + 4
    lines = shown(width, partial(output.write, line))
    assert len(lines) > 1
    if len(line) - len(LONG_TEXT) < width:
        assert max(map(len, lines)) <= width
    assert {len(one) - len(one.lstrip()) for one in lines[1:]} == {indent}
    assert " ".join(lines).split() == line.split()


def test_lines_that_are_left_as_they_are(
    shown: Shown, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Short ones; paths, which are copied; and all of them in a pipe, where programs read."""
    path = "profile  /" + "deep/" * 30
    for line in ("verdict  stable", "x" * 80, path):
        assert shown(80, partial(output.write, line)) == [line]
    monkeypatch.setenv("COLLWISE_TERMINAL", "80")
    output.write(f"advice   {LONG_TEXT}")
    assert capsys.readouterr().out == f"advice   {LONG_TEXT}\n"


@pytest.mark.parametrize(
    "problem",
    [
        InvalidArgument("something", LONG_TEXT, "do something else"),
        click.BadParameter(f"{LONG_TEXT} do something else"),
    ],
)
def test_errors_wrap_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], problem: Exception
) -> None:
    monkeypatch.setenv("COLLWISE_TERMINAL", "err 80")
    with pytest.raises(SystemExit), failing_clearly():
        raise problem
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) > 1
    assert max(map(len, lines)) <= 80
    assert " ".join(lines).split()[-3:] == ["do", "something", "else"]


def test_a_word_at_the_start(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Long work says so once, where no bar can be drawn; a bar needs no words."""
    monkeypatch.setenv("COLLWISE_TERMINAL", "80")
    with output.progress(False, "measuring for about 32 s") as progress:
        progress("racing", 0.5)
    assert capsys.readouterr() == ("", "measuring for about 32 s\n")
    with output.progress(True, "measuring") as progress:
        progress("racing", 0.5)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setenv("COLLWISE_TERMINAL", "err 80")
    with output.progress(False, "measuring") as progress:
        progress("racing", 0.5)
    assert "measuring" not in capsys.readouterr().err


def test_what_cannot_be_written_is_left_a_question_mark() -> None:
    """Terminals that know no λ get all the rest."""
    asked = [sys.executable, "-m", "collwise", "plan", "-n", "4", "--bytes", "4"]
    ended = subprocess.run(
        [*asked, "--t0", "1us", "--lam", "2"],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "latin-1"},
        timeout=LIMIT_S,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert b"? = 2" in ended.stdout


def test_a_pipe_is_as_wide_as_one_says(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without COLUMNS nothing is left out or broken; no line ends in blanks."""
    for terminal, columns, most in (
        ("80", "", PIPED),
        ("", "70", 70),
        ("", "0", PIPED),
        ("", "nonsense", PIPED),
    ):
        monkeypatch.setenv("COLLWISE_TERMINAL", terminal)
        monkeypatch.setenv("COLUMNS", columns)
        output.table(TABLE)
        out = capsys.readouterr().out
        assert "\x1b" not in out
        assert all(len(line) <= most and line == line.rstrip() for line in out.splitlines())
        if most == PIPED:
            for row in ROWS:
                (line,) = (line for line in out.splitlines() if f" {row[0]} " in line)
                assert all(cell in line for cell in row)


@pytest.mark.parametrize("wanted", [True, False])
def test_no_color(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], wanted: bool
) -> None:
    """Progress is shown in colours on a terminal, unless NO_COLOR is set."""
    monkeypatch.setenv("COLLWISE_TERMINAL", "err 80")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "" if wanted else "1")
    with output.progress(quiet=False) as progress:
        progress("racing", 0.5)
    err = capsys.readouterr().err
    assert "racing" in err
    assert bool(re.search(r"\x1b\[[0-9;]*(3|9)[0-7]m", err)) is wanted
