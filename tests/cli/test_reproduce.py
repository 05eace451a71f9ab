"""`collwise reproduce`: what it prints, writes and gives to programs."""

from pathlib import Path

from tests.cli.conftest import Run
from tests.cli.running import document


def test_the_command(collwise: Run, tmp_path: Path) -> None:
    asked = ("reproduce", "bruck1996", "table2", "B-c16", "--out", tmp_path)
    (found,) = document(collwise, *asked)["papers"]
    (claim,) = found["claims"]
    assert (claim["claim"], claim["verdict"]) == ("B-c16", "holds")
    assert found["verdicts"]["holds"] == 1
    assert len(found["exhibits"][0]["rows"]) == 9
    assert (tmp_path / "index.html").exists()


def test_only_claims(collwise: Run, tmp_path: Path) -> None:
    ended = collwise("reproduce", "bruck1996", "fig6", "B-c5", "--claims", "--out", tmp_path / "x")
    assert ended.code == 0
    assert "2 holds" in ended.out
    assert not (tmp_path / "x").exists()


def test_a_wrong_request(collwise: Run, tmp_path: Path) -> None:
    collwise("reproduce", "bruck1997").refused("bruck1997")
    collwise("reproduce", "bruck1996", "fig19").refused("fig19")
    (tmp_path / "file").touch()
    ended = collwise("reproduce", "bruck1996", "fig2", "--out", tmp_path / "file" / "x")
    ended.refused("file", "name another folder")
    assert "computing" not in ended.err  # it is refused at once
