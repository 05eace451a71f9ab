"""Every way in which mpi4py lets a buffer be written, right and wrong, in every position of a call.

mpi4py's libraries disagree on one of these calls: MPI.IN_PLACE as both buffers moves nothing on
MPICH, and raises on Open MPI.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from collwise.comm.recording import Way
from tests.mpi.programs.alike import accepts, perform

Array: TypeAlias = NDArray[Any]
DOUBLE = MPI.DOUBLE
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
    "None": lambda x, each: Written(None, x),
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
        "void", "dates", "records", "[a broken element, t]", "None",
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
        if self.sent == "None" and self.method != "Bcast":  # as MPI.IN_PLACE
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
            for sent in ("bare", [*SIMPLE][(7 * number) % len(SIMPLE)]):
                yield Case(method, sent, received)
            if method != "Reduce":
                yield Case(method, None, received)


def outcome(comm: MPI.Intracomm, form: Way, case: Case, root: int) -> Any:
    """The bytes of all memory afterwards, or the class of the error."""
    if not case.is_called(comm.rank, comm.size, root):
        return []
    given, memory = case.buffers(comm.rank, comm.size, root)
    try:
        perform(form, comm, case.method, *given)
    except Exception as problem:
        return type(problem)
    return [one.tobytes() for one in memory]
