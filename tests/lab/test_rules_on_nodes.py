"""Exported rules for several ranks on each of several hosts: in force, by `export --check`."""

from pathlib import Path

import msgspec
import pytest

from collwise.system.files import save_text
from tests.cli.running import alone, run
from tests.mpi.launching import LIMIT_S, Library
from tests.planner.machines import race
from tests.profiles.example import PROVENANCE, of_library

VERSIONS = {"mpich": "MPICH 5.0.2", "openmpi": "Open MPI 5.0.11"}
WON: dict[str, list[tuple[int, str, dict[str, int]]]] = {
    "mpich": [
        (512, "allreduce/library:ring", {}),
        (16384, "allreduce/library:recexch", {"composition": 2, "k": 4}),
        (4096, "reduce_scatter_block/library:pairwise", {}),
        (512, "broadcast/library:scatter_ring_allgather", {}),
    ],
    "openmpi": [
        (512, "allreduce/library:basic_linear", {}),
        (16384, "allreduce/library:ring", {}),
        (512, "broadcast/library:basic_linear", {}),
        (4096, "reduce_scatter_block/library:recursive_doubling", {}),
    ],
}
"""Winners whose fingerprints differ from the default's: bytes, algorithm, settings."""
HOSTS = {"mpich": 4, "openmpi": 2}
"""Of two ranks each: among two leaders all of MPICH's algorithms do the same."""
MPIEXEC = """#!/bin/sh
# Takes -n RANKS COMMAND, as mpiexec does, and starts the ranks on emulated hosts.
[ "$1" = "--version" ] && exit
shift 2
unset COLLWISE_MPIEXEC
exec {python} -m collwise lab --hosts {hosts} --ranks-per-host 2 --latency 1ms --rate 100mbit \\
    --timeout {limit_s} --mpi {library} -- "$@"
"""


@pytest.mark.mpi
@pytest.mark.exhaustive
@pytest.mark.usefixtures("allowed")
def test_rules_are_in_force_on_hosts_of_two_ranks(mpi: Library, tmp_path: Path) -> None:
    hosts = HOSTS[mpi.name]
    races = [
        race(ranks=2 * hosts, nbytes=nbytes, algorithm=algorithm, settings=settings,
             collective=algorithm.partition("/")[0], ranks_per_node=f"{hosts}x2")
        for nbytes, algorithm, settings in WON[mpi.name]
    ]  # fmt: skip
    there = msgspec.structs.replace(PROVENANCE, hosts={f"h{number}": 2 for number in range(hosts)})
    made = of_library(VERSIONS[mpi.name], race_results=tuple(races), provenance=there)
    path = made.save(tmp_path / "profile.json")
    mpiexec = tmp_path / "mpiexec"
    save_text(
        mpiexec,
        MPIEXEC.format(python=mpi.python, hosts=hosts, library=mpi.name, limit_s=LIMIT_S),
        "the launcher",
    )
    mpiexec.chmod(0o755)
    words = ["--profile", path, "--out", tmp_path / "rules", "--check", "--commuting", "--json"]
    for where, found in (
        ({"COLLWISE_MPIEXEC": str(mpiexec)}, (True, True, "")),
        ({}, (None, True, f"1x{2 * hosts}")),
    ):
        command = alone(mpi, "export", mpi.name, *map(str, words))
        ended = run(command, tmp_path, mpi.environment(**where), 3 * LIMIT_S)
        document = ended.document("export-rules")
        assert not any(" bytes on " in line for line in document["cannot_say"])
        told = {one["rule"]: (one["in_force"], one["elsewhere"], one["here"])
                for one in document["checked"]}  # fmt: skip
        assert len(told) == len(races)
        assert set(told.values()) == {found}, told
