"""MPI libraries that hinder collwise: in switching their algorithms, on all ranks or on one; or as
older ones do, MPICH 4.0 and Open MPI 4.1.

A small library in C (`hindering.c`) stands before the real one: a preloaded library of the same
name is what mpi4py's extension finds.
"""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from collwise.lab.poll_shim import compiler
from collwise.profiles.profile import Profile
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


_OLDER = """
import json, os
import numpy as np
from mpi4py import MPI
import collwise as cw
from collwise.errors import InvalidArgument
from collwise.mpi.library import own_algorithms, tool_interface
from collwise.mpi.library.switching import OwnCalls
from collwise.profiles.records import FORMS
from collwise.schedule.collectives import COLLECTIVES

comm, told = MPI.COMM_WORLD, {}

def known(how):
    "By method and form: the names of algorithms, and why others are left out."
    os.environ["HINDER"] = how
    tool_interface._found.cache_clear()
    own_algorithms.catalogue.cache_clear()
    methods = [method for one in COLLECTIVES.values() for method in one.methods]
    found = {f"{m} {f}": own_algorithms.catalogue(m, f) for m in methods for f in FORMS}
    return {way: [[*one.algorithms], dict(one.left_out)] for way, one in found.items()}

told["usual"], told["glued"] = known(""), known("glued")
told["rules"], told["before"] = known("rules"), own_algorithms.to_set_before()
calls = OwnCalls(comm, one_thread=True)
told["found"] = {
    name: str(calls.find("Bcast", "blocking", name, {}, local=False))
    for name in ("chain", "binomial")
}
os.environ["HINDER"] = "transient"
told["said"] = []
for ranks in (comm, MPI.COMM_SELF):
    try:
        cw.Comm(ranks, profile=False).Bcast_init(np.zeros(3), 0)
    except NotImplementedError as problem:
        told["said"].append(str(problem))
if comm.rank == 0:
    print(json.dumps(told))
"""


@pytest.mark.mpi
def test_what_older_libraries_do(mpi: Library, hindering: Path) -> None:
    """Descriptions on one line, a variable that nobody can write, no persistent collectives."""
    ran = mpi.run(2, "-c", _OLDER, limit_s=LIMIT_S, LD_PRELOAD=str(hindering))
    assert (ran.returncode, ran.stderr) == (0, "")
    told: dict[str, Any] = json.loads(ran.stdout)
    for said in told["said"]:
        assert re.search(r"^Bcast_init: .* has no persistent collectives, .*start Ibcast", said)
    assert len(told["said"]) == 2
    glued, unread = 0, 0
    for way, (names, left_out) in told["glued"].items():
        if [names, left_out] == told["usual"][way]:
            glued += bool(names)
        else:
            assert left_out[""].startswith("no algorithm's name can be read from the description")
            unread += 1
    if mpi.name == "mpich":
        assert glued, "none was read"
        assert unread, "a later MPICH has names that 4.0 had not: they were guessed"
        assert told["rules"] == told["usual"]
        assert not told["before"]
        return
    assert told["glued"] == told["usual"], "Open MPI enumerates the names"
    set_before = "the job must start with OMPI_MCA_coll_tuned_use_dynamic_rules=1"
    for way, (names, left_out) in told["rules"].items():
        if way.endswith(" blocking"):
            assert not names
            assert {one[: len(set_before)] for one in left_out.values()} == {set_before}
        else:
            assert [names, left_out] == told["usual"][way]
    assert told["before"].startswith(set_before)
    assert all(why.startswith(set_before) for why in told["found"].values())


@pytest.mark.mpi
def test_what_the_job_has_set_is_not_written(mpi: Library, hindering: Path) -> None:
    """Open MPI 4.1 refuses to write it, also where its value is right already."""
    if mpi.name != "openmpi":
        pytest.skip("it is Open MPI's")
    rules = {"HINDER": "rules", "OMPI_MCA_coll_tuned_use_dynamic_rules": "1"}
    ran = mpi.run(2, "-c", _OLDER, limit_s=LIMIT_S, LD_PRELOAD=str(hindering), **rules)
    assert (ran.returncode, ran.stderr) == (0, "")
    told: dict[str, Any] = json.loads(ran.stdout)
    assert told["rules"] == told["usual"]
    assert all(one.startswith("Switched(") for one in told["found"].values())


@pytest.mark.mpi
def test_a_type_that_the_library_does_not_know(mpi: Library, hindering: Path) -> None:
    """The compiled engine was off."""
    program = "from collwise.mpi.engine.loading import SERVING; print(SERVING.name, SERVING.why)"
    usual = mpi.run_alone("-c", program)
    hindered = mpi.run_alone("-c", program, LD_PRELOAD=str(hindering), HINDER="untyped")
    assert (hindered.returncode, hindered.stdout) == (0, usual.stdout)
    program = "from mpi4py import MPI; MPI.COUNT.Get_size()"
    raised = mpi.run_alone("-c", program, LD_PRELOAD=str(hindering), HINDER="untyped")
    assert "mpi4py.MPI.Exception" in raised.stderr


@pytest.mark.mpi
def test_a_call_of_the_library_that_leaves_wrong_bytes(
    mpi: Library, hindering: Path, tmp_path: Path
) -> None:
    """It ended the session, and all that had been raced was lost."""
    options = "--collective allgatherv --bytes 16,64 --budget 3"
    words = ["tune", *options.split(), "--save", str(tmp_path / "profile.json")]
    words += ["--report", str(tmp_path / "report.html")]
    words = ["-m", "collwise", *words]
    ran = mpi.run(2, *words, limit_s=LIMIT_S, LD_PRELOAD=str(hindering), HINDER="wrong")
    said = [line for line in ran.stderr.splitlines() if "leaves wrong data" in line]
    assert ran.returncode == 0, ran.stderr
    assert len(said) == 1, "once"
    assert "'s Allgather_init leaves wrong data, without collwise, too: all" in said[0]
    saved = Profile.load(tmp_path / "profile.json")
    assert "allgatherv" in {race.collective for race in saved.race_results}
