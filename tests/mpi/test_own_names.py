"""The library's own algorithms: the library reads their names itself, and follows every choice."""

import json
import re
from itertools import zip_longest

import pytest

from tests.mpi.launching import Library

_TELL = """
import json, os, sys
import mpi4py
mpi4py.rc.initialize = False
from mpi4py import MPI
from collwise.mpi.library.own_algorithms import catalogue
from collwise.profiles.records import FORMS
from collwise.schedule.collectives import COLLECTIVES

for chosen in json.loads(sys.argv[1]):
    if os.fork() == 0:
        os.environ.update(chosen)
        MPI.Init()
        print(json.dumps([
            [one.variable.name, one.name, one.value, one.variable.read()]
            for collective in COLLECTIVES.values() for method in collective.methods
            for form in FORMS for one in catalogue(method, form).algorithms.values()
        ]), flush=True)
        MPI.Finalize()
        os._exit(0)
    if os.wait()[1]:
        sys.exit(f"a process with {chosen} failed")
"""
"""A process for each choice begins MPI anew; what takes long is loaded once."""


def _told(mpi: Library, *choices: dict[str, str]) -> list[list[list[str]]]:
    ran = mpi.run_alone("-c", _TELL, json.dumps(choices))
    assert ran.returncode == 0, ran.stderr
    return [json.loads(line) for line in ran.stdout.splitlines()]


@pytest.mark.mpi
def test_every_name_has_the_number_that_the_library_gives_it(mpi: Library) -> None:
    """One name for each variable at a time, read by the library, until all names were read."""
    names: dict[str, dict[str, int]] = {}
    for variable, name, value, _ in _told(mpi, {})[0]:
        names.setdefault(variable, {})[name] = int(value)
    assert len(names) >= 8
    prefix = "OMPI_MCA_" if mpi.name == "openmpi" else ""
    turns = [
        {v: name for v, name in zip(names, turn, strict=True) if name is not None}
        for turn in zip_longest(*names.values())
    ]
    choices = [{f"{prefix}{v}": name for v, name in turn.items()} for turn in turns]
    for by_variable, told in zip(turns, _told(mpi, *choices), strict=True):
        read = {variable: int(now) for variable, _, _, now in told}
        for variable, name in by_variable.items():
            assert read[variable] == names[variable][name], (variable, name)


_IN_FORCE = """
import mpi4py
mpi4py.rc.thread_level = "serialized"
from functools import partial
import numpy as np
from mpi4py import MPI
from collwise.mpi.library.own_algorithms import catalogue
from collwise.mpi.library.switching import OwnCalls

comm = MPI.COMM_WORLD
own = OwnCalls(comm, one_thread=True)
mine, results = np.array([[1e16, 1.0, -1e16, 3.0, 1e-3][comm.rank]]), set()
for name in catalogue("Allreduce", "blocking").algorithms:
    total = np.zeros(1)
    found = own.find("Allreduce", "blocking", name, {}, local=False)
    found.call(partial(MPI.Intracomm.Allreduce, comm, mine, total, MPI.SUM))
    results.add(float(total[0]))
if comm.rank == 0:
    print(MPI.Query_thread() == MPI.THREAD_SERIALIZED, len(results))
own.free()
"""


@pytest.mark.mpi
@pytest.mark.parametrize("mpi", ["mpich"], indirect=True)
def test_a_choice_is_in_force_below_thread_multiple(mpi: Library) -> None:
    """There MPICH combines in shared memory, whatever algorithm is chosen, unless told not to."""
    ran = mpi.run(5, "-c", _IN_FORCE, limit_s=60)
    assert (ran.returncode, ran.stderr) == (0, "")
    level, different = ran.stdout.split()
    assert level == "True"
    assert int(different) >= 3


_COMPOSED = """
import json
import numpy as np
from mpi4py import MPI
import collwise as cw
from collwise.algorithms.registry import describe
from collwise.mpi.library.fingerprints import combined, sided
from collwise.mpi.library.own_algorithms import worth_racing

comm, told = cw.Comm(MPI.COMM_WORLD, profile=False, record=True), {}
composed = comm._dispatch.own.nested
for name, settings in worth_racing("Allreduce", comm.size, composed=composed):
    if name == "recursive_doubling":
        label = describe(f"library:{name}", settings)
        ours = comm.using(allreduce=label)
        seen = {sided(one) for one in combined(ours, "Allreduce", 64).values}
        told[label] = [*seen], ours.explain("allreduce", 64), ours.calls()[-1].algorithm
if comm.rank == 0:
    print(json.dumps(told))
comm.Free()
"""


@pytest.mark.mpi
@pytest.mark.parametrize("mpi", ["mpich"], indirect=True)
def test_labels_say_how_the_library_composes_over_nodes(mpi: Library) -> None:
    """Ranks 0 and 2 share a node, and 1 and 3: they combine first, but in the flat composition."""
    label, flat = (f"library:recursive_doubling(composition={n})" for n in (0, 2))
    for nodes, first in (("1", {"library:recursive_doubling": "(0 1)"}),
                         ("2", {label: "(0 2)", flat: "(0 1)"})):  # fmt: skip
        ran = mpi.run(4, "-c", _COMPOSED, limit_s=60, MPIR_CVAR_NUM_CLIQUES=nodes)
        assert (ran.returncode, ran.stderr) == (0, "")
        told = json.loads(ran.stdout)
        assert told.keys() == first.keys()
        for name, ([expression], why, recorded) in told.items():
            assert first[name] in expression, (name, expression)
            assert recorded == f"allreduce/{name}"
            number = re.search(r"composition=(\d)", name)
            words = {"0": "Auto selection", "2": "NM only composition"}
            ends = f"; composition {number[1]} is: {words[number[1]]}" if number else "by hand"
            assert why.endswith(ends), why
