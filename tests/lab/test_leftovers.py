"""Keepers whose maker is gone are found, and only those."""

from pathlib import Path

from collwise.lab import leftovers

_STAT = "{} (a (strange) name) {} " + "0 " * 18 + "{} 0 0\n"


def _process(folder: Path, number: int, born: int, *words: str, state: str = "S") -> None:
    place = folder / str(number)
    place.mkdir()
    (place / "cmdline").write_text("".join(f"{word}\0" for word in words))
    (place / "stat").write_text(_STAT.format(number, state, born))


def test_orphans_are_found(tmp_path: Path) -> None:
    keeper = ("python", "-c", f"from {leftovers.MARK} import main", "5")
    (tmp_path / "self").mkdir()
    _process(tmp_path, 100, 10, "python")
    _process(tmp_path, 101, 20, *keeper, "100")  # its maker runs
    _process(tmp_path, 102, 20, *keeper, "99")  # its maker is gone
    _process(tmp_path, 103, 50, "python")
    _process(tmp_path, 104, 20, *keeper, "103")  # another process has its maker's number
    _process(tmp_path, 105, 10, "python", state="Z")
    _process(tmp_path, 106, 20, *keeper, "105")  # its maker is dead, and not yet reaped
    _process(tmp_path, 107, 20, "grep", leftovers.MARK, "x")
    found = leftovers.find(tmp_path)
    assert sorted(found) == [
        leftovers.Leftover(102, 99),
        leftovers.Leftover(104, 103),
        leftovers.Leftover(106, 105),
    ]


def test_none_are_left_here() -> None:
    assert leftovers.find() == []
