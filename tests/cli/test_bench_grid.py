"""`bench --grid`: launches one after another, their record, and how a grid goes on."""

import json
from itertools import pairwise
from pathlib import Path

import pytest

from collwise.tuning.grid import Grid
from tests.cli.conftest import Run
from tests.cli.running import check_schema, process
from tests.mpi.launching import mpich
from tests.tuning.examples import outcome
from tests.tuning.test_race_records import sweep

GRID = """
sizes = ["40"]
race = "0.2s"
measure = "0.5s"
[networks]
here = { placements = ["1x5"] }
[[collectives]]
name = "allgatherv"
[[collectives]]
name = "allgatherv"
sources = 2
"""
ASKED = ("bench", "--grid", "grid.toml", "--record", "r.json")


@pytest.mark.mpi
def test_a_grid_on_this_machine(tmp_path: Path) -> None:
    (tmp_path / "grid.toml").write_text(GRID.replace("1x5", "1x2"))
    ended = process(mpich(), tmp_path, *ASKED)
    assert ended.code == 0, ended
    assert "launch   this library on here, 1x2, round 1\n" in ended.out
    record = json.loads((tmp_path / "r.json").read_text())
    check_schema("bench-grid", record)
    assert [cell["nbytes"] for cell in record["cells"]] == [40, 40]
    once_more = ("--cells", "0", "--first-launch", "first.json", "--record")
    (first,) = (tmp_path / "r-launches").glob("*-0-1.json")
    made = json.loads(first.read_text())
    for ours, raced in (("allgatherv/br_lin", {"br_lin"}), ("allgatherv/multilevel", set())):
        default, *_ = made["cells"][0]["competitors"]
        best = {**default, "label": ours, "samples_s": [1e-9] * len(default["samples_s"])}
        made["cells"][0]["competitors"] = [default, best]
        (tmp_path / "first.json").write_text(json.dumps(made))
        ended = process(mpich(), tmp_path, *ASKED[:3], *once_more, f"{ours[-2:]}.json")
        assert ended.code == 0, ended
        (again,) = json.loads((tmp_path / f"{ours[-2:]}.json").read_text())["cells"]
        labels = {one["label"].split(" (")[0] for one in again["competitors"]}
        planned = {one.partition("/")[2] for one in labels if "/" in one and "library:" not in one}
        assert planned == raced or (not raced and planned), labels


def raced(
    ranks: int, budget_s: float, words: list[str], python: str, *, quiet: bool = False
) -> int:
    """Stands in for ranks, which would race these cells; `false` is no interpreter."""
    if str(python) == "/bin/false":
        return 1
    options = dict(pairwise(words))
    cells, made = Grid.load(Path(options["--grid"])).cells, []
    for place in options["--cells"].split(","):
        collective, nbytes = cells[int(place)]
        sources = collective.task(ranks, nbytes).problem.sources
        made.append(outcome(sources[0].nbytes, sources=tuple(one.rank for one in sources)))
    sweep(*made).save(Path(options["--record"]))
    return 0


def test_a_grid_goes_on_where_it_was(
    collwise: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Launches that fail are told, and the others go on; the grid may grow, or lose a file."""
    monkeypatch.setattr("collwise.cli.bench_grid.start_ranks", raced)
    libraries = '[libraries]\n"this library" = ""\nbroken = "/bin/false"\n'
    (folder / "grid.toml").write_text(GRID.replace("[networks]", f"{libraries}[networks]"))
    out = collwise(*ASKED, "--report", "r.html").printed(1)
    assert "2 launches of 2 races on this library, broken, 0 of them done" in out
    assert "failed   broken on here, 1x5, round 1" in out
    assert "memory   " in out
    assert json.loads((folder / "r.json").read_text())["wanted"] == 2
    page = (folder / "r.html").read_text()
    assert "2 of 2 cells raced." in page
    assert page.count("<svg") == 4

    collwise(*ASKED).refused("r-launches is there", "--resume")
    first = folder / "r-launches" / "this-library-here-1x5-0-1.json"
    before = first.read_bytes()
    again = collwise(*ASKED, "--resume", "--json")
    assert again.code == 1, again
    assert "1 of them done; the others take " in again.err
    assert first.read_bytes() == before
    assert json.loads(again.out)["cells"][0]["libraries"].keys() == {"this library"}

    ended_file = first.with_suffix(".ended")
    ended_file.write_text('["a')  # as if it had been cut off
    first.write_bytes(before[:-100])
    (folder / "grid.toml").write_text(GRID + '[[collectives]]\nname = "allgatherv"\nsources = 1\n')
    assert "damaged" in collwise(*ASKED, "--resume").printed()
    assert first.with_suffix(".damaged").read_bytes() == before[:-100]
    assert len(json.loads((folder / "r.json").read_text())["cells"]) == 3


def test_what_is_refused_before_anything_starts(
    collwise: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "grid.toml").write_text(GRID)
    collwise(*ASKED[:3]).refused("name a file for the grid's cells with --record")
    collwise(*ASKED, "--collective", "reduce", "-b", 8).refused("leave", "--collective", "-b")
    collwise("bench", "--cells", "1").refused("name its file, too")
    collwise("bench", "--first-launch", "grid.toml").refused("name its file, too")
    (folder / "grid.toml").write_text(GRID.replace("1x5", "1x5000"))
    collwise(*ASKED).refused("5000 ranks on this machine")
    (folder / "grid.toml").write_text(GRID)
    collwise("bench", "--grid", "grid.toml", "--record", "/dev/null").refused("/dev/null")
    with monkeypatch.context() as under_a_launcher:
        under_a_launcher.setenv("SLURM_PROCID", "0")
        under_a_launcher.setenv("SLURM_STEP_NUM_TASKS", "2")
        collwise(*ASKED).refused("run it without a launcher")
    (folder / "grid.toml").write_text(GRID.replace("[[", '[libraries]\nx = "no/python"\n[[', 1))
    collwise(*ASKED).refused("there is no program no/python")
    (folder / "grid.toml").write_text("sizes = 3")
    collwise(*ASKED).refused("the grid")
    (folder / "r.json").mkdir()
    collwise(*ASKED).refused("r.json")
    assert not (folder / "r-launches").exists()
