"""Grids of races: what a file asks for, in which turns, and what launches come to."""

from itertools import chain, combinations, product
from pathlib import Path

import pytest
from msgspec.structs import replace

from collwise.errors import InvalidArgument
from collwise.measure.race import Load
from collwise.measure.statistics import best_ratio_interval
from collwise.tuning.grid import Grid, Launch, ranks_per_host_of
from collwise.tuning.grid_results import LabNotes, Measured, cells, document, once_more
from collwise.tuning.race_records import Sweep
from tests.case import in_case
from tests.tuning.examples import outcome
from tests.tuning.test_race_records import sweep

FILE = """
sizes = ["8", "200", "16k"]
placements = ["4x2", "5+3", "8x1"]
libraries = { mpich = "", openmpi = "python" }

[networks]
slow = { latency = "5ms", rate = "10mbit" }
fast = { latency = "1ms", rate = "100mbit" }
sites = { file = "sites.toml", placements = ["5x1"] }
here = { placements = ["1x2"] }

[[collectives]]
name = "bcast"
[[collectives]]
name = "allreduce"
op = "max"
dtype = "int64"
[[collectives]]
name = "allgatherv"
[[collectives]]
name = "allgatherv"
sources = "p/4"
counts = [1, 3]
"""


def load(folder: Path, text: str = FILE) -> Grid:
    (folder / "grid.toml").write_text(text)
    return Grid.load(folder / "grid.toml")


def test_one_round_has_every_pair_and_all_rounds_have_everything(tmp_path: Path) -> None:
    grid = load(tmp_path)
    assert grid.rounds == 3
    first = [launch for launch in grid.launches(0) if launch.library == "mpich"]

    def raced(launch: Launch) -> list[tuple[str, ...]]:
        chosen = (grid.cells[place] for place in grid.cells_of(launch))
        return [(launch.network, launch.placement, str(c), str(n)) for c, n in chosen]

    found = [*chain.from_iterable(map(raced, first))]
    assert len(found) == 8 * 4
    uniform = [cell for cell in found if cell[0] in ("slow", "fast")]
    for one, other in combinations(range(4), 2):
        values = {cell[one] for cell in uniform}, {cell[other] for cell in uniform}
        assert {(cell[one], cell[other]) for cell in uniform} == set(product(*values))
    every = [
        cell
        for turn in range(3)
        for launch in grid.launches(turn)
        if launch.library == "openmpi"
        for cell in raced(launch)
    ]
    assert len(every) == len(set(every)) == grid.wanted == 8 * 4 * 3


def test_sizes_are_those_of_the_result(tmp_path: Path) -> None:
    _, _, all_give, some_give = load(tmp_path).collectives
    assert [str(one) for one in (all_give, some_give)] == [
        "allgatherv from all",
        "allgatherv from p/4, uneven",
    ]
    assert all_give.task(5, 200).problem.sources == tuple((rank, 40) for rank in range(5))
    assert [n for _, n in some_give.task(16, 16).problem.sources] == [2, 6, 2, 6]
    assert all_give.task(16, 8).problem.nbytes == 16  # a byte of each


@pytest.mark.parametrize(
    ("placement", "ranks_per_host"), [("4x2", (2, 2, 2, 2)), ("5+3+8", (5, 3, 8)), ("1x16", (16,))]
)
def test_placements(placement: str, ranks_per_host: tuple[int, ...]) -> None:
    assert ranks_per_host_of(placement) == ranks_per_host


def test_what_is_no_grid_is_refused_with_its_place(tmp_path: Path) -> None:
    wrong = {
        ('"4x2"', '"4x0"'): "'4x0' is none",
        ('"1x2"', '"2x1"'): "2x1 on here, which has neither latency nor file",
        ('"8", ', '"0", '): "are above 0",
        ('"8", ', '"200", '): "no size comes twice",
        ('"bcast"', '"barrier"'): "barrier",
        ('"5ms"', "5"): "networks",
        ("counts = [1, 3]", "counts = [0]"): "counts",
        ('"max"', '"most"'): "most",
        ('name = "bcast"', 'name = "bcast"\nsources = 3'): "it has no sources",
        ('name = "bcast"', 'name = "bcast"\nname = "reduce"'): "no TOML",
        ("fast =", '"slow!" ='): "name them apart",
        ("[[collectives]]", "[[colectives]]"): "colectives",
    }
    for (old, new), seen in wrong.items():
        with in_case(new), pytest.raises(InvalidArgument, match=seen):
            load(tmp_path, FILE.replace(old, new, 1) if new != "[[colectives]]" else FILE + new)
    with pytest.raises(InvalidArgument, match="it has no placements"):
        load(tmp_path, FILE.replace('placements = ["4x2", "5+3", "8x1"]', "").split("sites")[0]
             + '[[collectives]]\nname = "reduce"')  # fmt: skip


def test_cells_join_libraries_and_launches(tmp_path: Path) -> None:
    grid = load(tmp_path)
    sources = (0, 1, 2, 3, 4)
    slower = outcome(40, gain=1.2, blocking_gain=1.5, sources=sources)
    faster = outcome(40, gain=1.2, blocking_gain=3.0, nonblocking_gain=99.0, sources=sources)
    other = outcome(40, gain=1.2, blocking_gain=3.0, sources=(0, 3))
    launches = [one for one in grid.launches(0) if one.network == "sites"]
    again = launches[0]._replace(number=2)
    found = cells(
        grid,
        [
            Measured(launches[0], sweep(slower), LabNotes(("late",))),
            Measured(launches[1], sweep(faster, other)),
            Measured(again, sweep(slower), LabNotes(("late",))),
        ],
    )
    (cell,) = found  # nothing asks for the other sources
    assert (cell.network, cell.placement, cell.ranks, cell.nbytes) == ("sites", "5x1", 5, 200)
    assert cell.emulated
    assert cell.decided
    assert not cell.lost
    mpich, openmpi = cell.libraries.values()
    assert (mpich.launches, openmpi.launches) == (2, 1)
    assert mpich.repetitions == 2 * openmpi.repetitions
    assert mpich.warnings == ("late",)
    assert openmpi.ours_s < mpich.ours_s
    assert openmpi.ours.endswith(" (blocking)"), "grids compare forms that every race has"
    assert cell.fastest is openmpi
    better = min(mpich.default_s, openmpi.default_s)
    assert cell.speedup_over_better_default == pytest.approx(better / openmpi.ours_s)
    low, high = cell.speedup_over_better_default_interval or (0, 0)
    assert low <= cell.speedup_over_better_default <= high
    assert mpich.misprediction is not None
    assert mpich.misprediction >= 1
    made = document(grid, found)
    assert (made["wanted"], len(made["cells"])) == (8 * 4 * 3, 1)


def test_a_second_launch_races_the_winners_once_more(tmp_path: Path) -> None:
    """And all of the library's algorithms, if the first launch had no time for any."""
    made = outcome(40, gain=1.2, blocking_gain=3.0, sources=(0, 1, 2, 3, 4))
    without, ours = sweep(made), made.ours.partition("/")[2]
    assert once_more(without, made.task) == [ours, "library:"]

    def with_own(label: str, repetitions: int) -> Sweep:
        (race,) = without.cells
        about = {"label": f"allgatherv/library:{label}", "predicted_s": None}
        own = {**about, "samples_s": [1e-6] * repetitions}
        return replace(without, cells=({**race, "competitors": [*race["competitors"], own]},))

    assert once_more(with_own("ring(k=2) (blocking)", 30), made.task) == ["library:ring(k=2)", ours]
    assert once_more(with_own("tree", 5), made.task) == [ours], "it left the race early"

    grid = load(tmp_path)
    first = next(one for one in grid.launches(0) if one.network == "sites")
    second = first._replace(number=2)
    (cell,) = cells(grid, [Measured(first, without), Measured(second, with_own("tree", 30))])
    assert cell.libraries["mpich"].own == "allgatherv/library:tree"


def test_a_cell_tells_how_busy_cores_were_and_how_long_packets_came_late() -> None:
    worked_late = [(0.1, 0.0), (0.1, 1e-3), (0.3, 0.0), (0.4, 2e-3), (0.0, 3e-3)]
    windows = [(n, n + 1, *both) for n, both in enumerate(worked_late)]
    notes = LabNotes(windows=tuple(windows), cores=2)
    load = Load(began_s=0.9, ended_s=4.0, calls_s=1.0, worked_s=0.4)
    assert notes.cores_busy(load) == pytest.approx((0.4 + 0.1 + 0.3 + 0.4) / 2)
    assert notes.late(load) == pytest.approx(2 / 3)
    assert LabNotes().cores_busy(Load()) == LabNotes().late(Load()) == 0


def test_a_clear_loss_is_told() -> None:
    rival, ours = [1.0, 1.01, 0.99] * 5, [1.2, 1.21, 1.19] * 5
    ratio = best_ratio_interval([rival, [3.0] * 9], [ours])
    assert ratio.middle == pytest.approx(1 / 1.2)
    assert ratio.high < 0.9
    assert best_ratio_interval([rival[:5]], [ours])[1:] == (0.0, float("inf"))
