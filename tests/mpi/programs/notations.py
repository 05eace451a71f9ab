"""Every way in which mpi4py lets a buffer be written, in every position, against plain mpi4py.

Ours must leave the same bytes, or raise an error of the same type.  mpi4py's libraries disagree on
one of these calls: MPI.IN_PLACE as both buffers moves nothing on MPICH, and raises on Open MPI.
"""

import faulthandler
import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from random import Random
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

import collwise as cw
from collwise.measure.race import LIBRARY
from tests.mpi.programs.alike import ALGORITHMS, MACHINE, accepts, run
from tests.mpi.programs.checks import LIMIT_S, check, raises

Array: TypeAlias = NDArray[Any]
DOUBLE = MPI.DOUBLE
SHARES = 3 if MPI.get_vendor()[0] == "MPICH" else 2
"""So many numbers of ranks take turns with the cases: with MPICH 2, 3 and 4 run by default."""
COUNT = 3
"""Elements of a block, if nothing else is said."""


class Written(NamedTuple):
    """A buffer as passed, and the memory behind it."""

    spec: Any
    memory: Array


Notation: TypeAlias = Callable[[Array, list[int]], Written]
"""Writes a buffer of these numbers, of which every rank has as many as the list says."""


def _absolute(x: Array, _: list[int]) -> Written:
    """The type lives as long as the memory."""
    made = DOUBLE.Create_hindexed([len(x)], [MPI.Get_address(x)]).Commit()
    TYPES.append(made)
    return Written([MPI.BOTTOM, 1, made], x)


def _uneven(x: Array, _: list[int]) -> Written:
    """Bytes whose sums do not overflow: Open MPI saturates some of them, which depend on counts."""
    memory = (x % 30).astype(np.uint8)[:-1]
    return Written(memory, memory)


def _between(x: Array) -> Array:
    """The numbers, between others that belong to nobody."""
    return np.concatenate([[-7.0, -8.0], x, [-9.0]])


TYPES: list[MPI.Datatype] = []
SIMPLE: Mapping[str, Notation] = {
    "bare": lambda x, each: Written(x, x),
    "memory": lambda x, each: Written(memoryview(x.data), x),
    "[b, t]": lambda x, each: Written([x, DOUBLE], x),
    "(b, t)": lambda x, each: Written((x, DOUBLE), x),
    "[b, 'd']": lambda x, each: Written([x, "d"], x),
    "[b, n]": lambda x, each: Written([x, each[0]], x),
    "[b, n, t]": lambda x, each: Written([x, each[0], DOUBLE], x),
    "(b, numpy n, t)": lambda x, each: Written((x, np.int64(each[0]), DOUBLE), x),
    "[b, n, 'd']": lambda x, each: Written([x, each[0], "d"], x),
    "[b, n, 'f8']": lambda x, each: Written([x.view(np.uint8), each[0], "f8"], x),
    "[b, None, t]": lambda x, each: Written([x, None, DOUBLE], x),
    "[b, n, None]": lambda x, each: Written([x, each[0], None], x),
    "[longer b, n, t]": lambda x, each: _longer(x, each[0], DOUBLE),
    "[first element, n, t]": lambda x, each: Written([x[:1], each[0], DOUBLE], x),
    "[b, (n, 2), t]": lambda x, each: _displaced(x, (each[0], 2), DOUBLE),
    "[b, [n, 2]]": lambda x, each: _displaced(x, [each[0], 2]),
    "[b, n, 2, t]": lambda x, each: _displaced(x, each[0], 2, DOUBLE),
    "[b, (None, None), t]": lambda x, each: Written([x, (None, None), DOUBLE], x),
    "[b, None, 0, 'd']": lambda x, each: Written([x, None, 0, "d"], x),
    "[b, (n,), t]": lambda x, each: Written([x, (each[0],), DOUBLE], x),
    "[b, n too large, t]": lambda x, each: Written([_between(x), each[0] + 1, DOUBLE], x),
    "[b, -1, t]": lambda x, each: Written([x, -1, DOUBLE], x),
    "[b, (n, -1), t]": lambda x, each: Written([x, (each[0], -1), DOUBLE], x),
    "[b, (n, far), t]": lambda x, each: Written([x, (each[0], 10**6), DOUBLE], x),
    "[b, 'nope']": lambda x, each: Written([x, "nope"], x),
    "[b, '3', t]": lambda x, each: Written([x, "3", DOUBLE], x),
    "[b, 'd', n]": lambda x, each: Written([x, "d", each[0]], x),
    "[b, 1.5, t]": lambda x, each: Written([x, 1.5, DOUBLE], x),
    "[b, 2**70, t]": lambda x, each: Written([x, 2**70, DOUBLE], x),
    "[b, other t]": lambda x, each: Written([x, MPI.FLOAT_INT], x),
    "[b, '>d']": lambda x, each: Written([x, ">d"], x),
    "[b, '3']": lambda x, each: Written([x, "3"], x),
    "[b, [], t]": lambda x, each: Written([x, [], DOUBLE], x),
    "[b, (1, 2, 3), t]": lambda x, each: Written([x, (1, 2, 3), DOUBLE], x),
    "[None, None]": lambda x, each: Written([None, None], x),
    "[b, 2, 3]": lambda x, each: Written([x, 2, 3], x),
    "bytes in another order": lambda x, each: Written(x.astype(">f8"), x),
    "objects": lambda x, each: Written(np.array([None]), x),
    "void": lambda x, each: Written(np.zeros(3, "V3"), x),
    "dates": lambda x, each: Written(np.zeros(3, "M8[s]"), x),
    "records": lambda x, each: Written(np.zeros(3, [("a", "i4")]), x),
    "[a broken element, t]": lambda x, each: Written([np.zeros(33, "u1"), DOUBLE], x),
    "[b]": lambda x, each: Written([x], x),
    "[]": lambda x, each: Written([], x),
    "[b, 1, 2, t, 3]": lambda x, each: Written([x, 1, 2, DOUBLE, 3], x),
    "[None, n, t]": lambda x, each: Written([None, each[0], DOUBLE], x),
    "[b, null]": lambda x, each: Written([x, MPI.DATATYPE_NULL], x),
    "{}": lambda x, each: Written({}, x),
    "text": lambda x, each: Written("text", x),
    "a number": lambda x, each: Written(7, x),
    "BOTTOM": lambda x, each: Written(MPI.BOTTOM, x),
    "IN_PLACE": lambda x, each: Written(MPI.IN_PLACE, x),
    "[absolute]": _absolute,
    "uneven": _uneven,
    "strided": lambda x, each: Written(np.repeat(x, 2)[::2], x),
    "read-only": lambda x, each: Written(x.tobytes(), x),
}
"""Of one block, or of equal blocks with the count of one."""
OTHER_SIZE = {"[b, n too large, t]", "uneven", "IN_PLACE"}
VECTOR: Mapping[str, Notation] = {
    **{name: SIMPLE[name] for name in (
        "bare", "memory", "[b, t]", "(b, t)", "[b, 'd']", "[b, None, t]", "[b, (None, None), t]",
        "[b, 'nope']", "[b, '3', t]", "[b, 1.5, t]", "[b, 2**70, t]", "[b]",
        "[]", "[b, 1, 2, t, 3]", "{}", "text", "a number", "BOTTOM", "IN_PLACE", "[b, null]",
        "[b, (n,), t]", "uneven", "strided", "read-only", "[b, '>d']", "[b, '3']", "[b, [], t]",
        "[b, (1, 2, 3), t]", "[None, None]", "[b, 2, 3]", "bytes in another order", "objects",
        "void", "dates", "records", "[a broken element, t]",
    )},
    "[b, counts]": lambda x, each: Written([x, each], x),
    "[b, counts, t]": lambda x, each: Written([x, each, DOUBLE], x),
    "(b, counts, 'd')": lambda x, each: Written((x, each, "d"), x),
    "[first element, counts, t]": lambda x, each: Written([x[:1], each, DOUBLE], x),
    "[b, array, t]": lambda x, each: Written([x, np.array(each, "i"), DOUBLE], x),
    "[b, n, t]": lambda x, each: Written([x, each[0], DOUBLE], x),
    "[b, n]": lambda x, each: Written([x, each[0]], x),
    "[b, (n, None)]": lambda x, each: Written([x, (each[0], None)], x),
    "[b, (n, n)]": lambda x, each: Written([x, (each[0], each[0])], x),
    "[b, memory of counts]": lambda x, each: Written([x, np.array(each).data], x),
    "(b, (counts as tuple, n))": lambda x, each: Written((x, (tuple(each), each[0])), x),
    "(b, counts as tuple, None, None)": lambda x, each: Written((x, tuple(each), None, None), x),
    "[b, (counts, starts)]": lambda x, each: _displaced(x, (each, _starts(each))),
    "[b, (counts, starts), t]": lambda x, each: _displaced(x, (each, _starts(each)), DOUBLE),
    "[b, (counts, None), t]": lambda x, each: Written([x, (each, None), DOUBLE], x),
    "[b, [counts, starts], t]": lambda x, each: _displaced(x, [each, _starts(each)], DOUBLE),
    "[b, counts, starts, t]": lambda x, each: _displaced(x, each, _starts(each), DOUBLE),
    "[b, counts, stride, t]": lambda x, each: Written([x, each, each[0], DOUBLE], x),
    "[b, a count too few, t]": lambda x, each: Written([x, [*each, 0], DOUBLE], x),
    "[b, words, t]": lambda x, each: Written([x, ["a"] * len(each), DOUBLE], x),
    "[b, {}, t]": lambda x, each: Written([x, {}, DOUBLE], x),
}  # fmt: skip
"""Of a block for every rank."""


def _longer(x: Array, *more: Any) -> Written:
    memory = np.concatenate([x, [-9.0] * len(x)])
    return Written([memory, *more], memory)


def _displaced(x: Array, *more: Any) -> Written:
    memory = _between(x)
    return Written([memory, *more], memory)


def _starts(each: list[int]) -> list[int]:
    return [2 + sum(each[:rank]) for rank in range(len(each))]


class Case(NamedTuple):
    """A call: its method, and how its buffers are written, None for IN_PLACE or none at all."""

    method: str
    sent: str | None
    received: str | None
    elements: int = COUNT

    def buffers(self, rank: int, ranks: int, root: int) -> tuple[list[Any], list[Array]]:
        """What this rank passes, and all the memory behind it."""
        whole, block = ranks * self.elements, self.elements
        gathers, own = self.method.startswith("Allgather"), self.method.endswith("block")
        one, every = np.arange(1.0, block + 1) * (rank + 1), np.arange(1.0, whole + 1) * (rank + 1)
        each = [self.elements] * ranks
        sending = every if own else one
        receiving = np.zeros(whole) if gathers else np.zeros(block)
        if self.sent is None and own:
            receiving = every
        elif self.sent is None:
            receiving[rank * block * gathers :][:block] = one
        written: list[Written] = []
        if self.method == "Bcast":
            assert self.sent is not None
            written.append(SIMPLE[self.sent](one, each))
            return [written[0].spec, root], [written[0].memory]
        specs: list[Any] = [None if rank % 2 else MPI.IN_PLACE]
        if self.sent is not None:
            written.append(SIMPLE[self.sent](sending, each))
            specs = [written[0].spec]
        if self.method == "Reduce" and rank != root:
            return [*specs, None, MPI.SUM, root], [one.memory for one in written]
        assert self.received is not None
        kinds = VECTOR if self.method == "Allgatherv" else SIMPLE
        written.append(kinds[self.received](receiving, each))
        specs.append(written[-1].spec)
        return specs + [MPI.SUM, root] * (self.method == "Reduce"), [w.memory for w in written]

    @property
    def other_size(self) -> bool:
        """Whether its buffers are not those of other cases."""
        return bool({self.sent, self.received} & OTHER_SIZE)

    def on_the_last(self, comm: MPI.Intracomm) -> "Case":
        """This on the last rank; on all others, the same call with plain buffers."""
        if comm.rank == comm.size - 1:
            return self
        return self._replace(sent=self.sent and "bare", received=self.received and "bare")

    def legal(self) -> bool:
        """Whether all ranks are refused or none, and agree on what is gathered."""
        wrong = {"Bcast": {"read-only"}, "Allgather": OTHER_SIZE, "Allgatherv": OTHER_SIZE}
        if {self.sent, self.received} & wrong.get(self.method, set()) or self.sent == "IN_PLACE":
            return False
        return (self.method, self.received) != ("Allgather", "[absolute]")

    def is_called(self, rank: int, ranks: int, root: int) -> bool:
        """Whether this rank calls: not where only the root is refused, and would leave others."""
        if self.method != "Reduce" or rank == root:
            return True
        (sent, *received), _ = self.buffers(root, ranks, root)
        return accepts(MPI.COMM_SELF.Reduce, sent, *received[:2]) or not accepts(
            MPI.COMM_SELF.Bcast, sent
        )


def cases() -> Iterator[Case]:
    """Every notation in every position; the other buffer's takes turns."""
    for name in SIMPLE:
        yield Case("Bcast", name, None)
    for method in ("Reduce", "Allreduce", "Reduce_scatter_block", "Allgather", "Allgatherv"):
        kinds = [*(VECTOR if method == "Allgatherv" else SIMPLE)]
        for number, sent in enumerate(SIMPLE):
            for received in ("bare", kinds[(5 * number) % len(kinds)]):
                yield Case(method, sent, received)
        for number, received in enumerate(kinds):
            for sent in ("bare", "[b, n, t]", [*SIMPLE][(7 * number) % len(SIMPLE)]):
                yield Case(method, sent, received)
            if method != "Reduce":
                yield Case(method, None, received)


FORMS: Mapping[str, Callable[[Any, str, list[Any]], Any]] = {
    "blocking": lambda comm, method, given: getattr(comm, method)(*given),
    "nonblocking": lambda comm, method, given: getattr(comm, f"I{method.lower()}")(*given).Wait(),
    "persistent": lambda comm, method, given: run(getattr(comm, f"{method}_init")(*given)),
}


def outcome(comm: MPI.Intracomm, form: str, case: Case, root: int) -> Any:
    """The bytes of all memory afterwards, or the class of the error."""
    if not case.is_called(comm.rank, comm.size, root):
        return []
    given, memory = case.buffers(comm.rank, comm.size, root)
    try:
        FORMS[form](comm, case.method, given)
    except Exception as problem:
        return type(problem)
    return [one.tobytes() for one in memory]


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
        form = [*FORMS][(number + comm.size) % len(FORMS)]
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
    """Any notations, forms and lengths, served by any algorithm; OPERATIONS says how many."""
    plain, chance = comm.Dup(), Random(comm.size)
    every = [case for case in cases() if case.legal()]
    different, by_plans, recorded = [], 0, 0
    operations = int(os.environ.get("OPERATIONS", "40"))
    for number in range(operations):
        if number % ON_EACH == 0:
            faulthandler.dump_traceback_later(LIMIT_S, exit=True)
            ours = planned_on(comm, chance)
        case = chance.choice(every)._replace(elements=chance.choice(COUNTS))
        form, root = chance.choice([*FORMS]), chance.randrange(comm.size)
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
        if number % ON_EACH == ON_EACH - 1 or number == operations - 1:
            calls = ours.calls()  # of those that are recorded
            recorded += sum(one.times for one in calls)
            by_plans += sum(one.times for one in calls if one.algorithm != LIBRARY)
            ours.Free()
    while TYPES:
        TYPES.pop().Free()
    plain.Free()
    assert not different, "\n".join(islice(different, 200))
    assert comm.size == 1 or by_plans >= recorded / 2, (by_plans, recorded)
