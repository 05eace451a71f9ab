"""Commands on real ranks, started by the command itself or by a launcher, on each MPI library."""

import csv
import json
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from collwise.algorithms.registry import collectives
from collwise.measure.race import ALWAYS_RACED
from collwise.profiles.profile import Profile
from collwise.schedule.collectives import kind_of
from tests.cli.running import (
    Ended,
    alone,
    await_none,
    check_schema,
    environment,
    launched,
    on_one,
    process,
    run,
)
from tests.mpi.launching import LIMIT_S, Library, mpich, openmpi
from tests.profiles.example import example

pytestmark = pytest.mark.mpi

QUICK = ("--budget", "1", "--bytes", "64,65536")
TUNED = {
    "mpich": ("--collective", "allgatherv", "--report", "new/report.html"),
    "openmpi": ("--json",),
}
RACE = ("bench", "--budget", "0.3", "--bytes", "64")
REFUSED = "reduce_scatter_allgather"
ATTEMPTS = 4
"""To show what noise of a busy machine hides for a while."""


@lru_cache
def tuned(library: Library) -> tuple[Ended, dict[str, str]]:
    """`tune` on 2 ranks without a launcher: how it ended, and the files that it wrote."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        ended = process(library, folder, "tune", "-n", "2", *QUICK, *TUNED[library.name])
        files = {str(f.relative_to(folder)): f.read_text() for f in folder.rglob("*.*")}
        assert "profile.json" in files, ended
        return ended, files


@pytest.fixture
def measured(mpi: Library, tmp_path: Path) -> Path:
    """A folder with the profile of this machine and library."""
    (tmp_path / "profile.json").write_text(tuned(mpi)[1]["profile.json"])
    return tmp_path


@on_one("openmpi")
def test_tune(mpi: Library) -> None:
    ended, files = tuned(mpi)
    found = ended.document("tune")
    tasks = [*found["races"], *found["unraced"]]  # a busy machine has no time for all
    races = [(task["collective"], task["nbytes"]) for task in tasks]
    assert found["races"]
    given = {name: 1 + kind_of(name).has_sources for name in collectives()}  # by each of 2 ranks
    wanted = [(name, given[name] * n) for name in collectives() for n in (64, 65536)]
    assert sorted(races) == sorted(wanted)
    assert all(race["ranks"] == 2 for race in found["races"])
    assert files.keys() == {"profile.json", "collwise-report.html"}
    assert found["profile"] == json.loads(files["profile.json"])
    assert Profile.from_json(files["profile.json"]).provenance.ranks == 2


@on_one("openmpi")
def test_measure_under_a_launcher(mpi: Library, tmp_path: Path) -> None:
    command = launched(mpi, "measure", *QUICK[2:], "--budget", "0.4", "--save", "here.json")
    ended = run(command, tmp_path, environment(mpi, tmp_path))
    assert ended.code == 0
    assert ended.err == "measuring t0 and λ on 2 ranks for at most 0.4 s\n"
    assert ended.out.startswith("t0 and λ on 2 ranks")
    assert ended.out.count("\nverdict  ") == 1, "one rank prints"
    assert "\x1b" not in ended.out
    assert ended.out.rstrip().endswith("profile  here.json")
    points = Profile.load(tmp_path / "here.json").points
    assert {point.nbytes for point in points} <= {64, 65536}  # noise may hide one of them
    assert [path.name for path in tmp_path.iterdir()] == ["here.json"]


@on_one("mpich")
def test_bench_under_a_launcher(mpi: Library, measured: Path) -> None:
    ended = run(launched(mpi, *RACE, "--json"), measured, environment(mpi, measured))
    [found] = ended.document("bench")["cells"]
    assert (found["nbytes"], found["ranks"], found["root"]) == (64, 2, 0)
    calls = [form["call"] for form in found["forms"].values()]
    assert [call for call in calls if call != "Ibcast"] == ["Bcast", "Bcast_init"]  # if time allows
    assert {c["label"] for c in found["competitors"]} >= {"library", found["algorithm"]}


@on_one("mpich")
def test_what_only_some_ranks_would_refuse(mpi: Library, measured: Path) -> None:
    """MPICH runs the algorithm on one rank of each of two nodes, which refuse one element."""
    asked = "--collective", "allreduce", "--bytes", "8", "--algorithm", f"library:{REFUSED}"
    nodes = environment(mpi, measured, MPIR_CVAR_NUM_CLIQUES="2")
    ended = run(alone(mpi, *RACE[:-2], "-n", "3", *asked, "--json"), measured, nodes)
    [race] = ended.document("bench")["cells"]
    assert f"allreduce/library:{REFUSED} (blocking)" in {c["label"] for c in race["competitors"]}


@on_one("openmpi")
def test_bench_of_sources_over_an_order_of_ranks(mpi: Library, measured: Path) -> None:
    """What rank 1 alone has; every byte is checked on every rank."""
    (measured / "order.txt").write_text("1, 0\n")
    asked = ("--collective", "allgatherv", "-n", "2", "--sources", "1,", "--order", "order.txt")
    found = process(mpi, measured, *RACE, *asked, "--json").document("bench")
    [race] = found["cells"]
    assert found["order"] == [1, 0]
    assert race["sources"] == [{"rank": 1, "nbytes": 64}]
    assert (race["nbytes"], race["shape"]) == (64, [1, 2])
    assert {c["label"] for c in race["competitors"]} >= {"library", race["algorithm"]}


def test_tuning_says_what_it_does() -> None:
    """In a pipe there is no bar: a line on standard error at the start, one before it races."""
    ended, files = tuned(mpich())
    assert ended.code == 0
    assert files.keys() == {"profile.json", "new/report.html"}
    assert files["new/report.html"].startswith("<!DOCTYPE html>")
    first, second = ended.err.splitlines()
    assert first == "measuring and racing on 2 ranks for about 1 s, then reporting"
    assert second.startswith("2 races: until all are decided takes about ")
    assert "2 × 64 B" in ended.out
    assert "report   new/report.html" in ended.out


@on_one("mpich")
def test_tuning_goes_on(mpi: Library, measured: Path) -> None:
    """What the profile knows is not raced again, and nothing is measured again."""
    asked = ("tune", "-n", "2", "--continue", "--budget", "1", "--collective", "broadcast")
    before = Profile.load(measured / "profile.json")
    for _ in range(ATTEMPTS):
        raced = process(mpi, measured, *asked, "--bytes", "64", "--json").document("tune")
        assert [race["nbytes"] for race in raced["races"]] == [64]
        after = Profile.load(measured / "profile.json")
        assert after.points == before.points  # the verdict may be another: races tell of them, too
        assert {r.key for r in before.race_results} <= {r.key for r in after.race_results}
        about = [r for r in after.race_results if (r.collective, r.nbytes) == ("broadcast", 64)]
        known = {result.form for result in about}
        if known >= {*ALWAYS_RACED}:
            break
    assert known >= {*ALWAYS_RACED}, "a busy machine was too slow for an interval"
    again = process(mpi, measured, *asked, "--bytes", "64", "--save", "new.json")
    assert again.out.startswith(f"note     t0 and λ are those of {measured / 'profile.json'}\n")
    assert "1 of 1 races are in the profile already\n" in again.out
    assert Profile.load(measured / "new.json").points == before.points


@on_one("mpich")
def test_doctor(mpi: Library, measured: Path) -> None:
    found = process(mpi, measured, "doctor", "--json").document("doctor")
    status = {one["what"]: one["status"] for one in found["findings"]}
    assert status["MPI library"] == status["launcher"] == "ok"
    assert status["profile"] != "wrong"
    assert "wrong" not in status.values()


def test_ranks_refuse_together(tmp_path: Path) -> None:
    """What only ranks can know is said once, with the exit code, and no banner of the launcher."""
    process(mpich(), tmp_path, *RACE, "-n", "2", "--on", "3").refused(
        "there are 2 ranks; start -n 3"
    )


@on_one("mpich")
def test_a_sweep(mpi: Library, measured: Path) -> None:
    """A row for each race as it ends, and in the CSV; what the record has is not raced again."""
    asked = (
        "bench", "--budget", "0.05", "-n", "2", "--collective", "broadcast,allreduce", "-b", "4",
        "-e", "16", "-f", "4", "--on", "1,2", "--record", "r.json", "--csv", "s.csv",
    )  # fmt: skip
    ended = process(mpi, measured, *asked, "--picture", "s.svg", "--report", "s.html")
    assert (ended.code, ended.err) == (0, "racing 8 times on 2 ranks for 0.4 s at most\n")
    with (measured / "s.csv").open() as file:
        rows = list(csv.DictReader(file))
    cells = [(row["collective"], int(row["ranks"]), int(row["nbytes"])) for row in rows]
    sizes = [("broadcast", 4), ("broadcast", 16), ("allreduce", 8), ("allreduce", 16)]
    assert cells == [(name, ranks, nbytes) for ranks in (1, 2) for name, nbytes in sizes]
    assert all(float(row["library_s"]) > 0 for row in rows)
    titles, *lines = ended.out.splitlines()[:9]
    assert titles.split()[:3] == ["collective", "ranks", "size"]
    assert [line.split()[0] for line in lines] == [name for name, *_ in cells]
    assert "<svg" in (measured / "s.svg").read_text()
    assert "Where and how" in (measured / "s.html").read_text()
    record = json.loads((measured / "r.json").read_text())
    check_schema("bench", record)
    made = record["provenance"]
    assert (made["ranks"], made["budget_s"]) == (2, pytest.approx(0.4))
    assert made["elapsed_s"] > 0
    before = record["cells"]
    record["cells"] = before[:4] + before[5:]
    (measured / "r.json").write_text(json.dumps(record))
    found = process(mpi, measured, *asked, "--resume", "--json").document("bench")
    assert found["cells"][:-1] == record["cells"]
    again = found["cells"][-1]
    assert (again["collective"], again["ranks"], again["nbytes"]) == cells[4]
    assert found["format"] == "collwise sweep"
    assert json.loads((measured / "r.json").read_text())["cells"] == found["cells"]


@on_one("mpich")
def test_a_scan(mpi: Library, measured: Path) -> None:
    """Of all collectives; what is not raced is named."""
    asked = ("scan", "-n", "2", "--budget", "1", "--bytes", "8,64")
    found = process(mpi, measured, *asked, "--json").document("scan")
    assert found["ranks"] == 2
    tasks = [*found["medians_s"], *found["left_out"]]
    assert {task.split()[0] for task in tasks} == {*collectives()}
    assert len(tasks) == len({*tasks}) == 2 * len(collectives())
    assert all(medians_s["library"] > 0 for medians_s in found["medians_s"].values())
    assert all(finding["takes_s"] > finding["instead_s"] for finding in found["findings"])


@pytest.mark.parametrize("mpi", ["openmpi"], indirect=True)
def test_a_scan_finds_a_bad_default(mpi: Library, measured: Path) -> None:
    """Somebody has chosen a chain in segments of 8 bytes; noise may hide it for a while."""
    planted = {
        "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
        "OMPI_MCA_coll_tuned_bcast_algorithm": "3",
        "OMPI_MCA_coll_tuned_bcast_algorithm_segmentsize": "8",
    }
    asked = alone(mpi, "scan", "-n", "3", "--budget", "8", "--bytes", "4k", "--collective", "bcast")
    for _ in range(ATTEMPTS):
        ended = run(asked, measured, environment(mpi, measured, **planted))
        assert ended.code == 0, ended
        if not ended.out.startswith("found    nothing"):
            break
    title, worst, *others = ended.out.splitlines()
    assert title == "Worst first: how many times as long, with its 95 % interval"
    assert "broadcast of 4096 bytes takes " in worst
    assert "messages allow" not in worst
    assert any(line.startswith("tried    1 call in ") for line in others)


def test_ranks_within_a_launcher_of_one(tmp_path: Path) -> None:
    """A batch system's shell often is a rank of its own: -n starts ranks all the same."""
    library = mpich()
    words = "measure", "-n", "2", "--budget", "0.4", "--json"
    command = library.command(1, "-m", "collwise", *words)
    found = run(command, tmp_path, environment(library, tmp_path)).document("measure")
    assert found["profile"]["provenance"]["ranks"] == 2


MPI_OF_SRUN = {"mpich": "pmi2", "openmpi": "pmix"}
WRAPS = """
import collwise as cw
from mpi4py import MPI
for comm in (MPI.COMM_WORLD, MPI.COMM_SELF):
    cw.Comm(comm, profile=False)
"""


@on_one("mpich")
@pytest.mark.parametrize("rank", [0, 1])
def test_srun_that_does_not_know_the_library(mpi: Library, tmp_path: Path, rank: int) -> None:
    """Every task is in a world of its own: commands refuse, `Comm` warns, once and on one rank."""
    step = {"SLURM_PROCID": str(rank), "SLURM_STEP_NUM_TASKS": "2"}
    variables = environment(mpi, tmp_path, **step)
    refused = run(alone(mpi, "measure"), tmp_path, variables)
    warned = run([mpi.python, "-c", WRAPS], tmp_path, variables)
    assert (refused.code, warned.code) == (2, 0)
    if rank == 0:
        words = "2 ranks, started by srun: ", f"by `srun --mpi={MPI_OF_SRUN[mpi.name]}`"
        refused.refused(*words)
        warned.explained(*words)
        assert len(warned.err.splitlines()) == 1
    else:
        assert (refused.out, refused.err, warned.out, warned.err) == ("", "", "", "")


def start_tuning(command: Sequence[str | Path], folder: Path) -> tuple[int, str, Profile]:
    """Start `tune`, and send it SIGTERM when a race is decided; how it ended, and the profile.

    The file is whole whenever one looks.
    """
    file = folder / "profile.json"
    process = subprocess.Popen(
        [str(word) for word in command],
        cwd=folder,
        env=environment(mpich(), folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        deadline = time.monotonic() + LIMIT_S
        while not (file.exists() and Profile.load(file).race_results):
            assert time.monotonic() < deadline, "rank 0 has saved no race"
            assert process.poll() is None, "it ended by itself"
            time.sleep(0.05)
        process.terminate()
        _, err = process.communicate(timeout=LIMIT_S)
    finally:
        process.kill()
        process.wait(10)
    assert await_none(f"XDG_DATA_HOME={folder}") == []
    assert [path.name for path in folder.iterdir()] == ["profile.json"]
    return process.returncode, err, Profile.load(file)


ENDED = "tune", "--budget", "6", "--bytes", "64,512"


def test_a_tuning_that_is_ended_keeps_what_was_decided(tmp_path: Path) -> None:
    """A time limit is how jobs on clusters end; the next tuning goes on from there."""
    code, err, kept = start_tuning(alone(mpich(), *ENDED, "-n", "2"), tmp_path)
    assert code == 128 + signal.SIGTERM
    saved = f" of races are saved in {tmp_path / 'profile.json'}"
    assert err.splitlines()[-1].startswith("collwise: ended by a signal; t0, λ and ")
    assert err.splitlines()[-1].endswith(saved)
    asked = ("tune", "-n", "2", "--continue", "--budget", "0.3", "--bytes", "64,512")
    went_on = process(mpich(), tmp_path, *asked, "--save", "profile.json").out
    assert "races are in the profile already" in went_on
    assert "replaced" not in went_on, "its own first parts are no older results"
    assert {race.key for race in kept.race_results} <= {
        race.key for race in Profile.load(tmp_path / "profile.json").race_results
    }


def test_ranks_of_a_launcher_that_are_ended_keep_what_was_decided(tmp_path: Path) -> None:
    """mpiexec and srun pass SIGTERM on; rank 1 ends at once, and rank 0 may be waiting for it."""
    code, err, _ = start_tuning(launched(mpich(), *ENDED), tmp_path)
    assert code != 0
    assert err.count("collwise: ended by SIGTERM; t0, λ and ") == 1


def test_no_mpi_library(tmp_path: Path) -> None:
    """Really none: mpi4py is told of a library that does not exist."""
    missing = {"MPI4PY_LIBMPI": str(tmp_path / "no-such-libmpi.so")}
    command = alone(mpich(), "measure", "-n", "2")
    run(command, tmp_path, environment(mpich(), tmp_path, **missing)).refused(
        "mpi4py found no MPI library", "pip install mpich"
    )


def test_a_profile_of_another_machine(tmp_path: Path) -> None:
    library = openmpi()
    example().save(tmp_path / "profile.json")
    process(library, tmp_path, *RACE, "-n", "2").refused(
        "this is another machine: ", "processor: 'Test CPU' there", "measure here: collwise measure"
    )


@on_one("mpich")
def test_nobody_reads_what_ranks_say(mpi: Library, measured: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    ended = process(mpi, measured, *RACE, "-n", "2", stdout=writing)
    os.close(writing)
    assert (ended.code, ended.err) == (
        0,
        "racing broadcast of 64 bytes on 2 ranks for 0.3 s at most\n",
    )
