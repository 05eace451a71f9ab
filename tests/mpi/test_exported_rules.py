"""Files of rules in force: `collwise export … --check` on each library, and a plain program."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from collwise.profiles.records import RaceResult
from tests.cli.running import check_schema
from tests.mpi.launching import LIMIT_S, Library
from tests.planner.machines import race
from tests.profiles.example import profile

Won = tuple[int, int, str, dict[str, int]]
LIBRARIES = {
    "mpich": "MPICH 5.0.2",
    "openmpi": "Open MPI 5.0.11",
    "intel": "Intel MPI 2021.18.1",
}
WON: dict[str, list[Won]] = {
    "mpich": [
        (3, 64, "allreduce/library:tree", {}),
        (4, 512, "allreduce/library:recursive_multiplying", {"k": 4}),
        (4, 512, "broadcast/library:tree", {"k": 3}),
        (4, 4096, "broadcast/library:scatter_ring_allgather", {}),
        (4, 4096, "reduce_scatter_block/library:pairwise", {}),
        (4, 512, "allgatherv/library:k_brucks", {"k": 4}),
    ],
    "openmpi": [
        (3, 64, "allreduce/library:basic_linear", {}),
        (4, 64, "broadcast/library:basic_linear", {}),
        (4, 1024, "broadcast/library:chain", {"chains": 1, "segment": 256}),
        (4, 512, "reduce/library:chain", {}),
        (4, 4096, "reduce_scatter_block/library:recursive_doubling", {}),
        (4, 512, "allgatherv/library:ring", {}),
    ],
}
"""Winners whose fingerprints differ from the default's: ranks, bytes, algorithm, settings."""


def _saved(path: Path, name: str, won: list[Won]) -> Path:
    """A profile in which these won races."""
    races: list[RaceResult] = [
        race(ranks=ranks, nbytes=nbytes, algorithm=algorithm, settings=settings,
             collective=algorithm.partition("/")[0],
             **({"sources": ranks, "method": "Allgather"} if "gatherv" in algorithm else {}))
        for ranks, nbytes, algorithm, settings in won
    ]  # fmt: skip
    made = profile(race_results=tuple(races))
    machine = msgspec.structs.replace(made.fingerprint, mpi_library=LIBRARIES[name])
    return msgspec.structs.replace(made, fingerprint=machine).save(path)


def _export(mpi: Library, *words: object) -> str:
    """What `collwise export` prints."""
    command = "-m", "collwise", "export", mpi.name, *map(str, words)
    ended = mpi.run_alone(*command, limit_s=2 * LIMIT_S)
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout


@pytest.mark.mpi
def test_every_rule_is_in_force_and_other_sizes_keep_the_default(
    mpi: Library, tmp_path: Path
) -> None:
    path = _saved(tmp_path / "profile.json", mpi.name, WON[mpi.name])
    words = "--profile", path, "--out", tmp_path / "rules", "--check", "--commuting", "--json"
    document: dict[str, Any] = json.loads(_export(mpi, *words))
    check_schema("export-rules", document)
    assert not any(f" on {ranks} ranks" in line for line in document["cannot_say"]
                   for ranks in (3, 4))  # fmt: skip
    found = {one["rule"]: (one["in_force"], one["elsewhere"]) for one in document["checked"]}
    assert len(found) == len(WON[mpi.name])
    assert all(seen == (True, True) for seen in found.values()), found
    assert all(one["speedup"] for one in document["checked"])


METHODS = ("Bcast", "Reduce", "Allreduce", "Allgather", "Allgatherv", "Reduce_scatter_block")
REPEATED = """
from collwise.mpi.runtime import world as module
from collwise.tuning import export_check
world, calls = module.world(), []
class Counted:
    size = world.size
    def __getattr__(self, method):
        calls.append(method)
        return getattr(world, method)
module.world = Counted
for method in {}:
    calls.clear()
    export_check.repeat(method, (1, 64, 100))
    assert calls == [method] * 3 * export_check.REPEATS, calls
"""


@pytest.mark.mpi
def test_calls_that_counters_count(mpi: Library) -> None:
    ended = mpi.run(3, "-c", REPEATED.format(METHODS), limit_s=LIMIT_S)
    assert (ended.returncode, ended.stderr) == (0, "")


PLAIN = """
import sys
import numpy as np
from mpi4py import MPI
comm = MPI.COMM_WORLD
vector = np.random.default_rng(comm.rank).standard_normal(64)
sums = np.zeros_like(vector)
for items in (8, 64):
    comm.Allreduce(vector[:items], sums[:items])
    if comm.rank == 0:
        print(sums[:items].tobytes().hex())
assert "collwise" not in sys.modules
"""
BAD = {
    "mpich": {"MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM": "tree"},
    "openmpi": {
        "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
        "OMPI_MCA_coll_tuned_allreduce_algorithm": "1",
    },
}
GOOD = {"mpich": "ring", "openmpi": "recursive_doubling"}


@pytest.mark.mpi
def test_a_file_changes_a_plain_program(mpi: Library, tmp_path: Path) -> None:
    """It overrules what the job's own variables force."""
    won: list[Won] = [(4, 512, f"allreduce/library:{GOOD[mpi.name]}", {})]
    path = _saved(tmp_path / "profile.json", mpi.name, won)
    said = _export(mpi, "--profile", path, "--out", tmp_path / "rules", "--env")
    in_force = dict(line.removeprefix("export ").split("=") for line in said.splitlines())
    bad = BAD[mpi.name]
    environments: list[dict[str, str]] = [{}, bad, {**bad, **in_force}]
    ran = [mpi.run(4, "-c", PLAIN, limit_s=LIMIT_S, **more) for more in environments]
    assert [one.stderr for one in ran] == [""] * 3
    usual, forced, ruled = (one.stdout.split() for one in ran)
    assert ruled[0] == usual[0], "64 bytes were not raced"
    assert ruled[1] != forced[1]
    assert (ruled[1] == usual[1]) == (mpi.name == "openmpi")


@pytest.mark.exhaustive
@pytest.mark.parametrize("mpi", ["intel"], indirect=True)
def test_presets_of_intel_mpi(mpi: Library, tmp_path: Path) -> None:
    """The installed library is asked, though it says nothing of its presets."""
    path = _saved(tmp_path / "profile.json", mpi.name, [(4, 512, "broadcast/library:17", {})])
    said = _export(mpi, "--profile", path, "--out", tmp_path / "rules", "--env")
    assert said == "export I_MPI_ADJUST_BCAST=17:128-2048@4-4\n"
    other = _saved(tmp_path / "other.json", "mpich", [(4, 512, "broadcast/library:tree", {})])
    command = "-m", "collwise", "export", "mpich", "--profile", str(other)
    ended = mpi.run_alone(*command, limit_s=LIMIT_S)
    assert ended.returncode == 2
    assert "Intel MPI 2021.18.1 is installed here" in ended.stderr
