"""Buffers in every notation, against plain mpi4py.

Ours must leave the same bytes, or raise an error of the same type.
"""

from functools import partial
from itertools import islice
from random import Random
from typing import Any

import numpy as np
from mpi4py import MPI

import collwise as cw
from collwise.comm.recording import Calls
from collwise.measure.race import LIBRARY
from tests.mpi.programs.alike import ALGORITHMS, MACHINE, accepts
from tests.mpi.programs.checks import check, drawn, raises
from tests.mpi.programs.written import COUNT, FORMS, TYPES, Case, cases, outcome

SHARES = 3 if MPI.get_vendor()[0] == "MPICH" else 2
"""So many numbers of ranks take turns with the cases: with MPICH 2, 3 and 4 run by default."""


def is_pythons(outcome: Any) -> bool:
    """Whether it is an error that mpi4py raises before it calls MPI."""
    return isinstance(outcome, type) and not issubclass(outcome, MPI.Exception)


def alike(ours: Any, right: Any) -> bool:
    """Errors of ours may be of a class of our own, derived from mpi4py's."""
    if isinstance(right, type) and isinstance(ours, type):
        return issubclass(ours, right)
    return bool(ours == right)


@check
def no_elements_of_no_type_are_the_librarys(comm: MPI.Intracomm) -> None:
    """MPICH takes them; in other calls than this one it aborts plain mpi4py, too."""
    plain = comm.Dup()
    planned = cw.Comm(comm.Dup(), machine=MACHINE, algorithms=ALGORITHMS[0])
    for spec in ([None, MPI.DATATYPE_NULL], [np.zeros(3), 0, MPI.DATATYPE_NULL]):
        assert accepts(planned.Bcast, spec) == accepts(plain.Bcast, spec), spec
    with raises(MPI.Exception):
        planned.Allgather([np.zeros(3), 3, MPI.DATATYPE_NULL], np.zeros(3 * comm.size))
    plain.Free()
    planned.Free()


@check
def buffers_in_all_notations(comm: MPI.Intracomm) -> None:
    plain = comm.Dup()
    planned = cw.Comm(comm.Dup(), machine=MACHINE, algorithms=ALGORITHMS[0])
    every = planned, cw.Comm(comm.Dup(), profile=False)
    different = []
    for number, case in enumerate(filter(Case.legal, cases())):
        if (number + comm.size) % SHARES:
            continue
        root = number % comm.size
        form = FORMS[(number // SHARES + comm.size) % len(FORMS)]
        right = outcome(plain, form, case, root)
        refused = comm.allreduce(not isinstance(right, list) or not right, MPI.LOR)
        for one in (case,) if refused or case.other_size else (case, case.on_the_last(comm)):
            right = outcome(plain, form, one, root)
            for ours in every:
                got = [outcome(ours, form, one, root) for _ in range(2)]
                if refused and comm.rank == comm.size - 1 and is_pythons(right):  # once more, alone
                    got.append(outcome(ours, form, one, root))
                if not all(alike(mine, right) for mine in got):
                    different.append(f"{form} {one}: {right}, ours {got}")
    while TYPES:
        TYPES.pop().Free()
    for used in (plain, *every):
        used.Free()
    assert not different, "\n".join(islice(different, 200))


COUNTS = 1, COUNT, 100, 5000
"""Elements of a block; the longest are cut.  If some ranks call those bytes, Open MPI hangs."""
ON_EACH = 150
"""Operations on each communicator."""


def applies(algorithm: cw.Algorithm, ranks: int, machine: cw.Machine) -> bool:
    """Whether it serves long messages."""
    collective, name = algorithm.collective, algorithm.name
    sources = [*range(ranks)] if algorithm.kind.has_sources else None
    nbytes = 8 * COUNTS[-1] * (1 if sources else ranks)
    about: dict[str, Any] = {"ranks": ranks, "nbytes": nbytes, "sources": sources}
    return accepts(partial(cw.plan, collective, machine=machine, algorithm=name, **about))


def planned_on(comm: MPI.Intracomm, chance: Random) -> cw.Comm:
    """A communicator with an algorithm drawn for each collective; half of them know levels."""
    names: dict[str, str] = {}
    machine: cw.Machine = MACHINE
    if levels := comm.size > 2 and chance.random() < 0.5:
        nodes = chance.randrange(2, comm.size)
        groups = chance.sample([rank % nodes for rank in range(comm.size)], comm.size)
        near, far = (cw.Machine.postal(t0_s=1e-6, lam=lam) for lam in (2, 20))
        machine = cw.Machine.levels([near, far], cw.Placement.of(groups))
    for one in chance.sample([*cw.ALGORITHMS.values()], len(cw.ALGORITHMS)):
        fits = one.collective not in names and (levels or not one.levels)
        if fits and applies(one, comm.size, machine):
            names[one.collective] = one.short_name
    record = chance.random() < 0.3  # calls take other ways
    return cw.Comm(comm.Dup(), machine=machine, algorithms=names, record=record)


@check
def drawn_operations(comm: MPI.Intracomm) -> None:
    """Any notations, forms and lengths, served by any algorithm."""
    plain, chance = comm.Dup(), Random(comm.size)
    every = [case for case in cases() if case.legal()]
    different, calls, ours = list[str](), list[Calls](), planned_on(comm, chance)
    for number in drawn(40):
        if number % ON_EACH == ON_EACH - 1:
            calls += ours.calls()
            ours.Free()
            ours = planned_on(comm, chance)
        case = chance.choice(every)._replace(elements=chance.choice(COUNTS))
        form, root = chance.choice(FORMS), chance.randrange(comm.size)
        right = outcome(plain, form, case, root)
        refused = comm.allreduce(not isinstance(right, list), MPI.LOR)
        mixed = chance.random() < 0.3 and case.elements < COUNTS[-1]
        if mixed and not refused and not case.other_size:
            case = case.on_the_last(comm)
            right = outcome(plain, form, case, root)
        got = outcome(ours, form, case, root)
        if not alike(got, right):
            said = f"{number}: {form} {case} from {root}: "
            different.append(said + f"{str(right)[:200]}, ours {str(got)[:200]}")
    calls += ours.calls()  # of communicators with a record
    by_plans = sum(one.times for one in calls if one.algorithm != LIBRARY)
    recorded = sum(one.times for one in calls)
    while TYPES:
        TYPES.pop().Free()
    for one in (plain, ours):
        one.Free()
    assert not different, "\n".join(islice(different, 200))
    assert comm.size == 1 or by_plans >= recorded / 2, (by_plans, recorded)
