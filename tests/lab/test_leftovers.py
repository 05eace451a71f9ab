"""Supervisors whose maker is gone are found, and only those."""

from pathlib import Path

from collwise.lab import leftovers

_STAT = "{} (a (strange) name) {} " + "0 " * 18 + "{} 0 0\n"


def _process(folder: Path, number: int, started: int, *command: str, state: str = "S") -> None:
    place = folder / str(number)
    place.mkdir()
    (place / "cmdline").write_text("".join(f"{argument}\0" for argument in command))
    (place / "stat").write_text(_STAT.format(number, state, started))


def test_orphans_are_found(tmp_path: Path) -> None:
    supervisor = ("python", "-c", f"from {leftovers.MARK} import main", "5")
    (tmp_path / "self").mkdir()
    _process(tmp_path, 100, 10, "python")
    _process(tmp_path, 101, 20, *supervisor, "100")  # its maker runs
    _process(tmp_path, 102, 20, *supervisor, "99")  # its maker is gone
    _process(tmp_path, 103, 50, "python")
    _process(tmp_path, 104, 20, *supervisor, "103")  # another process has its maker's number
    _process(tmp_path, 105, 10, "python", state="Z")
    _process(tmp_path, 106, 20, *supervisor, "105")  # its maker is dead, and not yet reaped
    _process(tmp_path, 107, 20, "grep", leftovers.MARK, "x")
    assert sorted(leftovers.find(tmp_path, grace_s=0.1)) == [
        leftovers.Leftover(102, 99),
        leftovers.Leftover(104, 103),
        leftovers.Leftover(106, 105),
    ]


def test_none_are_left_here() -> None:
    assert leftovers.find() == []
