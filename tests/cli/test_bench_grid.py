"""`bench --grid`: launches one after another, their record, and how a grid goes on."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.cli.running import check_schema, process
from tests.mpi.launching import mpich

GRID = """
sizes = ["8"]
race = "0.2s"
measure = "0.5s"
[networks]
here = { placements = ["1x2"] }
[[collectives]]
name = "broadcast"
[[collectives]]
name = "allgatherv"
counts = [1, 3]
"""
ASKED = ("bench", "--grid", "grid.toml", "--record", "r.json")


@pytest.mark.mpi
def test_a_grid_on_this_machine_goes_on_where_it_was(tmp_path: Path) -> None:
    """A launch that fails is told, and the others go on: a program that is no interpreter stands in
    for an environment that is broken."""
    libraries = '[libraries]\n"this library" = ""\nbroken = "/bin/false"\n'
    (tmp_path / "grid.toml").write_text(GRID.replace("[networks]", f"{libraries}[networks]"))
    ended = process(mpich(), tmp_path, *ASKED, "--report", "r.html")
    assert ended.code == 1, ended
    assert "2 launches" in ended.out
    assert "launch   this library on here, 1x2, round 1\n" in ended.out
    assert "failed   broken on here, 1x2, round 1" in ended.out
    assert "memory   " in ended.out
    assert "Traceback" not in ended.out + ended.err
    record = json.loads((tmp_path / "r.json").read_text())
    check_schema("bench-grid", record)
    assert [cell["nbytes"] for cell in record["cells"]] == [8, 8]
    assert record["wanted"] == 2
    page = (tmp_path / "r.html").read_text()
    assert "2 of 2 cells raced." in page
    assert page.count("<svg") == 4

    process(mpich(), tmp_path, *ASKED).refused("r-launches is there", "--resume")
    first = tmp_path / "r-launches" / "this-library-here-1x2-0-1.json"
    before = first.read_bytes()
    again = process(mpich(), tmp_path, *ASKED, "--resume", "--json")
    assert again.code == 1, again
    assert "1 of them done; the others take " in again.err
    assert first.read_bytes() == before
    assert json.loads(again.out)["cells"][0]["libraries"].keys() == {"this library"}

    ended_file = first.with_suffix(".ended")
    ended_file.write_text('["a')  # as if it had been cut off
    first.write_bytes(before[:-100])
    (tmp_path / "grid.toml").write_text(GRID + '[[collectives]]\nname = "reduce"\n')
    grown = process(mpich(), tmp_path, *ASKED, "--resume")
    assert grown.code == 0, grown
    assert "damaged" in grown.out
    assert first.with_suffix(".damaged").read_bytes() == before[:-100]
    assert len(json.loads((tmp_path / "r.json").read_text())["cells"]) == 3


def test_what_is_refused_before_anything_starts(
    collwise: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "grid.toml").write_text(GRID)
    collwise(*ASKED[:3]).refused("name a file for the grid's cells with --record")
    collwise(*ASKED, "--collective", "reduce", "-b", 8).refused("leave", "--collective", "-b")
    collwise("bench", "--cells", "1").refused("name its file, too")
    (folder / "grid.toml").write_text(GRID.replace("1x2", "1x5000"))
    collwise(*ASKED).refused("5000 ranks on this machine")
    (folder / "grid.toml").write_text(GRID)
    collwise("bench", "--grid", "grid.toml", "--record", "/dev/null").refused("/dev/null")
    with monkeypatch.context() as under_a_launcher:
        under_a_launcher.setattr("collwise.cli.bench_grid.launched", lambda: True)
        collwise(*ASKED).refused("run it without a launcher")
    (folder / "grid.toml").write_text(GRID.replace("[[", '[libraries]\nx = "no/python"\n[[', 1))
    collwise(*ASKED).refused("there is no program no/python")
    (folder / "grid.toml").write_text("sizes = 3")
    collwise(*ASKED).refused("the grid")
    (folder / "r.json").mkdir()
    collwise(*ASKED).refused("r.json")
    assert not (folder / "r-launches").exists()
