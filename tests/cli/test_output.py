"""Tables in the room that there is, and what is said where no terminal is."""

import os
import re
import subprocess
import sys

import pytest

from collwise.cli import output
from collwise.cli.output import PIPED

TITLES = ("collective", "bytes", "λ", "algorithm", "speed-up", "verdict")
ROWS = [
    ("broadcast", "512", "1.9", "postal_tree(lam=9/5)", "1.50 (1.40 … 1.60)", "won " * 8 + "end"),
    ("reduce", "1048576", "1.2", "chain(segment=65536)", "0.90 (0.80 … 1.00)", "a tie"),
]
SPARE = ("λ", "verdict")


def drawn(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], width: int
) -> list[str]:
    """The lines of the table on a terminal of this width, without colours."""
    monkeypatch.setenv("COLLWISE_TERMINAL", f"out {width}")
    monkeypatch.setenv("TERM", "xterm")
    output.table("a title", TITLES, ROWS, SPARE)
    return re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()


@pytest.mark.parametrize("width", range(53, 140, 6))
def test_a_table_fits(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], width: int
) -> None:
    """It is never wider than the terminal, and no word or number of what is shown is broken."""
    lines = drawn(monkeypatch, capsys, width)
    *table, last = lines
    told = last.startswith("no room for ")
    if not told:
        table.append(last)
    assert max(map(len, table)) <= width
    words = " ".join(table).split()
    for text in ("broadcast", "1048576", "postal_tree", "(lam=9/5)", "chain", "(segment=65536)"):
        assert any(text in word for word in words), text
    assert "(0.80" in words
    left_out = [name for name in SPARE if told and name in last]
    assert left_out == list(SPARE[: len(left_out)])
    for name, value in (("λ", "1.9"), ("verdict", "end")):
        assert (name in left_out) == (value not in words)


def test_nothing_is_left_out_of_a_pipe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLLWISE_TERMINAL", "80")
    output.table("a title", TITLES, ROWS, SPARE)
    out = capsys.readouterr().out
    assert "\x1b" not in out
    for row in ROWS:
        (line,) = (line for line in out.splitlines() if f" {row[0]} " in line)
        assert all(cell in line for cell in row)
        assert len(line) < PIPED


def test_too_narrow_for_anything(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Then cells are folded; nothing of them is lost."""
    *table, last = drawn(monkeypatch, capsys, 30)
    assert last.startswith("no room for λ, verdict: ")
    assert max(map(len, table)) <= 30
    for text in ("broadcast", "1048576", "segment=65536"):
        assert not any(text in line for line in table)
    told = set("".join(table))
    assert told >= set("".join(cell for row in ROWS for cell in row[:2])) - {" "}


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
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert b"? = 2" in ended.stdout
