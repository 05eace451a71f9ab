"""`collwise inspect`: what a library does that was told what to do, and what was left out."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Ended, alone, environment, on_one, run
from tests.mpi.launching import Library

TOLD = {
    "mpich": {
        "MPIR_CVAR_BCAST_INTRA_ALGORITHM": "tree",
        "MPIR_CVAR_BCAST_TREE_TYPE": "kary",
        "MPIR_CVAR_BCAST_TREE_KVAL": "1",
        "MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM": "ring",
    },
    "openmpi": {
        "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
        "OMPI_MCA_coll_tuned_bcast_algorithm": "3",  # pipeline
        "OMPI_MCA_coll_tuned_allreduce_algorithm": "4",  # ring
    },
}
"""Variables by which a library broadcasts down a chain, and reduces around a ring."""


def inspected(mpi: Library, folder: Path, asked: str, **told: str) -> Ended:
    variables = environment(mpi, folder, **told, COLUMNS="250")
    del variables["COLLWISE_PROFILE"]
    return run(alone(mpi, "inspect", *asked.split()), folder, variables)


@pytest.mark.mpi
def test_the_algorithm_that_was_forced(mpi: Library, tmp_path: Path) -> None:
    asked = "-n 3 --collective bcast,allreduce --bytes 8,64 --budget 60 --json"
    found = inspected(mpi, tmp_path, asked, **TOLD[mpi.name]).document("inspect")
    assert (found["ranks"], found["left_out"], found["not_saved"]) == (3, [], [])
    (tree,) = (one for one in found["stretches"] if one["collective"] == "broadcast")
    assert (tree["first"], tree["last"], tree["shape"]) == (8, 64, "chain")
    assert (tree["example"], tree["parents"]) == ("0(1(2))", [None, 0, 1])
    assert (tree["ranks_agree"], tree["elements_agree"]) == (None, None)
    by_operator: dict[str, list[Any]] = {}
    for one in found["stretches"]:
        by_operator.setdefault(one["operator"], []).append(one)
    for operator in ("MPI.SUM", "user's, commuting"):
        last = by_operator[operator][-1]
        assert (last["shape"], last["last"]) == ("ring", 64)
        assert last["first"] <= 32, "Open MPI's needs an element for each rank"
        assert (last["ranks_agree"], last["elements_agree"]) == (True, False)


@pytest.mark.mpi
@on_one("mpich")
def test_table_and_pictures(mpi: Library, tmp_path: Path) -> None:
    """On three ranks; the change is narrowed down to a byte."""
    asked = "-n 3 --collective bcast,reduce --bytes 8,128k --budget 60 --picture t.svg"
    ended = inspected(mpi, tmp_path, asked)
    assert ended.code == 0, ended
    assert ended.err == "inspecting MPICH 5.0.2 on 3 ranks for at most 60 s\n"
    assert "MPICH 5.0.2 on 3 ranks, seen from outside" in ended.out
    trees = [line.split("│") for line in ended.out.splitlines() if "│ broadcast " in line]
    first, last = trees[0], trees[-1]
    assert "0(1 2)" in first[6]
    assert first[3].strip() == "8 B"
    assert "senders wait for receivers" in last[5]
    assert last[4].strip() == "128 KiB"
    assert "(2 (1 0))" in ended.out
    assert "left out" not in ended.out
    assert {path.name for path in tmp_path.glob("*.svg")} == {"t.svg", "t-ours.svg"}
    assert "MPICH 5.0.2, as seen" in (tmp_path / "t.svg").read_text(encoding="utf-8")


@pytest.mark.mpi
@on_one("openmpi")
def test_what_the_budget_leaves_out(mpi: Library, tmp_path: Path) -> None:
    asked = "-n 2 --collective allgather,bcast --bytes 8,32 --budget 1us --picture x.png"
    ended = inspected(mpi, tmp_path, asked)
    assert ended.code == 0, ended
    assert ended.out.splitlines() == [
        "left out  allgatherv: every rank waits for all others, whatever the library does",
        "left out  8 B … 32 B of broadcast",
        "picture  none: no tree was seen",
    ]
