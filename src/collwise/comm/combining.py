"""Serving reduces and allreduces: what runs on such buffers, found quickly at later calls."""

from collections.abc import Hashable
from typing import Any

import numpy as np
from mpi4py import MPI

from collwise.comm.planning import Plans, Vectors
from collwise.mpi.blocking import Combiner
from collwise.mpi.buffers import Buffer
from collwise.mpi.channel import Private
from collwise.mpi.combining import planning_name, planning_type, servable
from collwise.mpi.executor import combiner
from collwise.mpi.operands import is_in_place
from collwise.planner.plans import Plan

MOST = 512
"""Combiners that a communicator remembers before it starts anew; they have memory of their own."""


class Combiners:
    """What one communicator runs for its reduces and allreduces."""

    def __init__(self, plans: Plans, private: Private, rank: int) -> None:
        self._plans, self._private, self._rank = plans, private, rank
        self._known: dict[Hashable, tuple[MPI.Op, Combiner | None]] = {}

    def find(
        self, collective: str, sendbuf: Any, recvbuf: Any, op: MPI.Op, root: int
    ) -> Combiner | None:
        """What runs the collective on such buffers; None where the library's own serves."""
        one = recvbuf if is_in_place(sendbuf) else sendbuf
        key: Hashable = None
        if type(one) is np.ndarray:
            key = (collective, one.dtype, one.nbytes, root, id(op))
            known = self._known.get(key)
            if known is not None and _alike(one, recvbuf):
                return known[1]
        found = self._vectors(collective, sendbuf, recvbuf, op, root)
        if found is None:
            return None
        nbytes, vectors = found
        made = self._plans.combining(collective, nbytes, root, "blocking", vectors)
        if len(self._known) >= MOST:
            self._forget()
        run = None
        if made is not None:
            general = (made.problem, made.choice.label, id(op))
            run = self._known.get(general, (op, None))[1]
            run = run or combiner(made.schedule, self._private.channel(), op)
            self._known[general] = op, run
        if key is not None:
            self._known[key] = op, run  # an operator that lives shares its id with no other
        return run

    def _forget(self) -> None:
        for _, run in self._known.values():
            if run is not None:
                run.free()
        self._known.clear()

    def plan(
        self, collective: str, sendbuf: Any, recvbuf: Any, op: MPI.Op, root: int
    ) -> Plan | None:
        """The plan of a persistent form; None where the library's own serves."""
        found = self._vectors(collective, sendbuf, recvbuf, op, root)
        if found is None:
            return None
        nbytes, vectors = found
        return self._plans.combining(collective, nbytes, root, "persistent", vectors)

    def _vectors(
        self, collective: str, sendbuf: Any, recvbuf: Any, op: MPI.Op, root: int
    ) -> tuple[int, Vectors] | None:
        """Bytes and kind of such buffers; None where the library's own serves, or complains."""
        if not (isinstance(op, MPI.Op) and 0 <= root < self._plans.ranks) or op == MPI.OP_NULL:
            return None
        owed = collective != "reduce" or self._rank == root
        try:
            received = Buffer(recvbuf, writable=True) if owed else None
            in_place = owed and is_in_place(sendbuf)
            sent = received if in_place else Buffer(sendbuf, writable=False)
        except Exception:  # whatever it is: mpi4py meets the same
            return None
        assert sent is not None
        datatype = sent.datatype
        if received is not None and (received.count, received.datatype) != (sent.count, datatype):
            return None
        if not sent.nbytes or not servable(op, datatype):
            return None
        kind = Vectors(planning_name(op), planning_type(datatype), datatype.Get_size())
        return sent.nbytes, kind


def _alike(one: Any, other: Any) -> bool:
    """Whether the other buffer is no array, or one of the same type and size."""
    return type(other) is not np.ndarray or (
        one is other or (other.dtype == one.dtype and other.nbytes == one.nbytes)
    )
