"""MPI libraries that do not let collwise switch their algorithms, on all ranks or on one.

A small library in C (`hindering.c`) stands before the real one: a preloaded library of the same
name is what mpi4py's extension finds.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from collwise.lab.poll_shim import compiler
from tests.mpi.launching import LIMIT_S, Library

_FILES = {"mpich": "libmpi.so.12", "openmpi": "libmpi.so.40"}
_PROGRAM = """
import json, os
import numpy as np
from mpi4py import MPI
import collwise as cw
from collwise.errors import InvalidArgument
from collwise.mpi.library import own_algorithms, tool_interface
from collwise.mpi.library.fingerprints import combined
from tests.mpi.programs.alike import wrapped
from tests.mpi.programs.checks import logged

comm, told = MPI.COMM_WORLD, {}
for name in ("HINDER", "HINDERED"):
    os.environ.pop(name, None)

def seen(comm):
    return combined(comm, "Allreduce", 64).by_rank

def hinder(how, last):
    os.environ["HINDER"] = how
    if last:
        os.environ["HINDERED"] = str(comm.size - 1)
    else:
        os.environ.pop("HINDERED", None)

def anew():
    tool_interface._found.cache_clear()
    own_algorithms.catalogue.cache_clear()

def tried(how, last):
    "What ranks log and explain, and whether the default serves."
    hinder(how, last)
    anew()
    with logged() as lines, wrapped(comm, algorithms={"allreduce": label}) as ours:
        served = [seen(ours) == usual for _ in range(3)]
        total = np.zeros(1)
        ours.Iallreduce(np.ones(1), total).Wait()
        about = ours.explain("allreduce", 64)
    hinder("", False)
    return comm.gather([lines, about, served, bool(total[0] == comm.size)])

usual = seen(comm)
for name in own_algorithms.catalogue("Allreduce", "blocking").algorithms:
    label = f"library:{name}"
    with wrapped(comm, algorithms={"allreduce": label}) as ours:
        if seen(ours) != usual:
            break
for how in ("none", "hidden", "renamed", "fixed", "crowded"):
    for last in (False, True):
        told[f"{how} {last}"] = tried(how, last)
anew()
told["nothing"] = tried("", False)

with wrapped(comm, algorithms={"allreduce": label}) as ours:
    ours.Allreduce(np.ones(1), np.zeros(1))
    hinder("fixed", False)  # from now on
    refused = ""
    try:
        ours.Allreduce(np.ones(1), np.zeros(1))
    except InvalidArgument as problem:
        refused = str(problem)
    hinder("", False)
    told["at a call"] = comm.gather([refused, seen(comm) == usual, seen(ours) == usual])
if comm.rank == 0:
    print(json.dumps(told))
"""
RANKS = 3


@pytest.fixture
def hindering(mpi: Library, tmp_path: Path) -> Path:
    """The library that stands before the real one."""
    if (program := compiler()) is None:
        pytest.skip("there is no C compiler")
    name = _FILES[mpi.name]
    made, stub = tmp_path / "hindering.so", tmp_path / "stub.so"
    real = mpi.python.parent.parent / "lib" / name
    (tmp_path / "nothing.c").touch()
    shared = [program, "-shared", "-fPIC", "-o"]
    # The stub has the real library's path as its name, so that this path is what is loaded.
    lines: list[list[str | Path]] = [
        [*shared, stub, f"-Wl,-soname,{real}", tmp_path / "nothing.c"],
        [*shared, made, *["-DINTEGERS"] * (mpi.name == "mpich"),
         Path(__file__).with_name("hindering.c"), f"-Wl,-soname,{name}",
         "-Wl,--no-as-needed", stub, "-ldl"],
    ]  # fmt: skip
    for line in lines:
        subprocess.run(line, check=True, timeout=LIMIT_S)
    return made


@pytest.mark.mpi
def test_the_default_serves_on_all_ranks_and_one_of_them_says_why(
    mpi: Library, hindering: Path
) -> None:
    ran = mpi.run(RANKS, "-c", _PROGRAM, limit_s=LIMIT_S, LD_PRELOAD=str(hindering))
    assert (ran.returncode, ran.stderr) == (0, "")
    told: dict[str, Any] = json.loads(ran.stdout)
    duplicates = mpi.name == "openmpi"
    whys = {
        "none": "the MPI library has no tool interface",
        "hidden": "says of no variable that it chooses for blocking calls of Allreduce",
        "renamed": "says of no variable that it chooses for blocking calls of Allreduce",
        "fixed": "a running program cannot change",
        "crowded": "no duplicate",
    }
    for how, why in whys.items():
        for last in (False, True):
            every = told[f"{how} {last}"]
            if how == "crowded" and not duplicates:  # nothing is duplicated
                assert all(served == [False] * 3 for _, _, served, _ in every)
                continue
            if last and how != "crowded":
                why = "ranks have different variables of the library"
            (line,) = every[0][0]
            assert line.startswith("the library's default serves"), line
            assert why in line
            assert all(lines == [] for lines, *_ in every[1:])
            assert all(about.startswith("the library's own: ") for _, about, *_ in every)
            assert how == "crowded" or len({about for _, about, *_ in every}) == 1
            assert all(served == [True] * 3 and right for *_, served, right in every)
    assert all(served == [False] * 3 for _, _, served, _ in told["nothing"])
    for refused, default, own in told["at a call"]:
        assert default
        assert not own
        assert duplicates or "MPI_T_cvar_write: error 1; use its default" in refused
