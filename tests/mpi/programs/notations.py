"""Buffers in every notation, and odd arguments, against plain mpi4py.

Ours must leave the same bytes, or raise an error of the same type.
"""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import islice, product
from random import Random
from typing import Any

import numpy as np
from mpi4py import MPI

import collwise as cw
from collwise.comm.recording import Calls, Way
from collwise.errors import CollwiseError
from collwise.measure.race import LIBRARY
from collwise.profiles.records import FORMS
from tests.attack.odd_values import ODD
from tests.mpi.programs.alike import MACHINE, PLANNED, accepts, perform, works
from tests.mpi.programs.checks import check, drawn, raises
from tests.mpi.programs.written import COUNT, TYPES, Case, cases, outcome

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
    planned = cw.Comm(comm.Dup(), **PLANNED)
    for spec in ([None, MPI.DATATYPE_NULL], [np.zeros(3), 0, MPI.DATATYPE_NULL]):
        assert accepts(planned.Bcast, spec) == accepts(plain.Bcast, spec), spec
    with raises(MPI.Exception):
        planned.Allgather([np.zeros(3), 3, MPI.DATATYPE_NULL], np.zeros(3 * comm.size))
    plain.Free()
    planned.Free()


@check
def buffers_in_all_notations(comm: MPI.Intracomm) -> None:
    plain = comm.Dup()
    planned = cw.Comm(comm.Dup(), **PLANNED)
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


def arguments(case: Case, comm: MPI.Intracomm, random: Random) -> tuple[list[Any], dict[str, Any]]:
    """Of a call, some of them odd, left out or too many: by place, and by name."""
    given, _ = case.buffers(comm.rank, comm.size, 0)
    buffers = given[: 1 if case.method == "Bcast" else 2]
    if random.random() < 0.3:
        buffers[random.randrange(len(buffers))] = random.choice(ODD)
    elif random.random() < 0.1:
        del buffers[random.randrange(len(buffers))]
    named: dict[str, Any] = {}
    if case.method in ("Bcast", "Reduce") and random.random() < 0.5:
        named["root"] = random.choice([0, comm.size - 1, comm.size, *ODD])
    if "educe" in case.method and random.random() < 0.6:
        named["op"] = random.choice([MPI.MAX, MPI.MAXLOC, MPI.OP_NULL, MPI.BAND, *ODD])
    if random.random() < 0.05:
        named["no_such_argument"] = random.choice(ODD)
    return buffers, named


def fails_on_some_ranks(method: str, buffers: list[Any]) -> bool:
    """A broadcast of what cannot be written is refused on all ranks but the root."""
    try:
        return method == "Bcast" and memoryview(buffers[0]).readonly
    except (IndexError, TypeError, ValueError, BufferError):
        return False


def how_it_ends(way: Way, comm: MPI.Intracomm, method: str, buffers: list[Any], named: Any) -> str:
    """How a call ends: with nothing, or with which exception."""
    try:
        perform(way, comm, method, *buffers, **named)
    except Exception as error:
        if isinstance(error, CollwiseError) and not (error.asked and error.seen and error.remedy):
            raise AssertionError(f"a sentence with a gap: {error}") from error
        return f"{type(error).__name__}: {error}"
    return ""


@check
def odd_arguments_end_as_mpi4pys(comm: MPI.Intracomm) -> None:
    plain = comm.Dup()
    ours = cw.Comm(comm.Dup(), **PLANNED)
    # What a reduce refuses on its root alone leaves the others with half of it.  Alone, the
    # library gathers what does not fit without asking, and MPICH may abort.
    left_out = {"Reduce"} if comm.size > 1 else {"Allgather", "Allgatherv"}
    possible = [case for case in cases() if case.legal() and case.method not in left_out]
    problems, ended = list[str](), Counter[bool]()
    for number in drawn(40):
        random = Random(1000 * comm.size + number)
        case, way = random.choice(possible), random.choice(FORMS)
        buffers, named = arguments(case, comm, random)
        if fails_on_some_ranks(case.method, buffers):
            continue
        mine = how_it_ends(way, ours, case.method, buffers, named)
        ended[not mine] += 1
        if "its send buffer has" in mine:
            continue  # erroneous, as above
        theirs = how_it_ends(way, plain, case.method, buffers, named)
        if bool(theirs) != bool(mine):
            problems.append(f"{number} {way} {case}: mpi4py {theirs or 'returns'}; ours {mine}")
    assert not problems, "\n".join(problems)
    assert min(ended[True], ended[False]) > ended.total() // 20, ended
    works(ours)
    while TYPES:
        TYPES.pop().Free()
    for one in (ours, plain):
        one.Free()


@check
def odd_settings_are_refused(comm: MPI.Intracomm) -> None:
    """Of a communicator, and of `plan`: with a sentence, on all ranks."""
    ours = cw.Comm(comm.Dup(), **PLANNED)
    calls: tuple[Callable[[Random], Any], ...] = (
        lambda random: ours.plan(random.choice(["broadcast", *ODD]), random.choice(ODD)),
        lambda random: ours.plan("broadcast", 64, random.choice(ODD)),
        lambda random: ours.plan("reduce", 64, op=random.choice(ODD), dtype=random.choice(ODD)),
        lambda random: cw.Comm(comm, effort=random.choice(ODD)),
        lambda random: cw.Comm(comm, order=random.choice(ODD)),
        lambda random: cw.Comm(comm, profile=random.choice(ODD)),
        lambda random: cw.Comm(comm, machine=random.choice(ODD)),
        lambda random: cw.Comm(comm, algorithms=random.choice(ODD)),
        lambda random: cw.Comm(comm, algorithms={"broadcast": random.choice(ODD)}),
    )
    for number in drawn(40):
        with suppress(CollwiseError):
            calls[number % len(calls)](Random(1000 * comm.size + number))
    ours.Free()


@check
def displacements_are_one_number_or_one_for_each_rank(comm: MPI.Intracomm) -> None:
    """As in mpi4py: a row of them where one is wanted, or rows of rows, are of a wrong type."""
    plain, size = comm.Dup(), comm.size
    ours = cw.Comm(comm.Dup(), **PLANNED)
    data, one = np.zeros(4 * size), np.ones(1)
    rows = [np.ones((size + 1, 1), int), np.arange(2 * size + 1.0), [[0]] * size, [], (0,), {}, ""]
    for displacements in rows:
        specs = [[data, 1, displacements, MPI.DOUBLE], [data, (1, displacements), MPI.DOUBLE]]
        for method, spec in product(("Bcast", "Allgather"), specs):
            buffers = [one][: method != "Bcast"]
            ends = [
                how_it_ends("blocking", of, method, [*buffers, spec], {}).partition(":")[0]
                for of in (plain, ours)
            ]
            assert ends == ["TypeError"] * 2, (method, spec, ends)
    mine = [data, (1, np.array(1)), MPI.DOUBLE]
    if size > 1:
        ours.Allgatherv(one, mine)
        assert data[:size].all()
    for of in (ours, plain):
        of.Free()
