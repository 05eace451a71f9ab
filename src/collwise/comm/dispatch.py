"""Dispatch: which executor of ours serves a call, or none, where the library's own does.

A call that was met before is one lookup, by what MPI guarantees to be equal on all ranks, or
determines it.  Methods return None when the call should fall through to MPI.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from mpi4py import MPI

from collwise.comm.decision import Asked, Decision, Elements
from collwise.errors import InvalidArgument
from collwise.mpi.buffers.buffer import UNREADABLE, Buffer, is_in_place
from collwise.mpi.buffers.operators import can_combine, planning_name, planning_type
from collwise.mpi.buffers.vector_layout import FORMS, lengths_of
from collwise.mpi.execution.combine_executor import result_parts
from collwise.mpi.execution.executor import BoundedCache, Executor
from collwise.mpi.execution.executor_choice import executor_for
from collwise.mpi.execution.interpreter import PersistentCollective
from collwise.mpi.runtime.private_communicator import PrivateCommunicator
from collwise.planner.plans import Plan
from collwise.profiles.records import Form
from collwise.schedule.collectives import COLLECTIVES
from collwise.schedule.problem import Problem, Source

MOST = 2048
"""Entries of the cache: calls, plans and executors, some of which have memory of their own."""
_BY_METHOD = {method: c for c in COLLECTIVES.values() for method in c.methods}
Run: TypeAlias = Callable[..., None]
"""Runs a collective once on the buffers of a call."""


class _Call(NamedTuple):
    """What serves a call; no `run`: the library's own.   op: kept alive, for its id is in a key."""

    run: Run | None
    op: MPI.Op | None = None


class Dispatch:
    """What serves the calls on one communicator."""

    def __init__(self, decision: Decision, comm: MPI.Intracomm) -> None:
        self._decision, self._comm = decision, MPI.Intracomm(comm)
        self._rank, self._ranks = comm.Get_rank(), comm.Get_size()
        self._private: PrivateCommunicator | None = None
        self._cache: BoundedCache[Hashable, Any] = BoundedCache(MOST)

    def broadcast(self, buf: Any, root: int) -> Run | None:
        """What runs a Bcast of such a buffer."""
        nbytes = getattr(buf, "nbytes", None)
        key = "Bcast", nbytes, root
        if (known := self._cache.get(key)) is not None:
            return known.run  # type: ignore[no-any-return]
        return self._serve("Bcast", key if nbytes else None, self._broadcast(buf, root))

    def combine(
        self, method: str, sendbuf: Any, recvbuf: Any, op: MPI.Op, root: int = 0
    ) -> Run | None:
        """What runs a collective that combines on such buffers."""
        vector = recvbuf if is_in_place(sendbuf) else sendbuf
        key = None
        if type(vector) is np.ndarray:
            other = recvbuf if type(recvbuf) is np.ndarray else vector
            if other is vector or other.dtype == vector.dtype:
                key = method, vector.dtype, vector.nbytes, other.nbytes, root, id(op)
                if (known := self._cache.get(key)) is not None:
                    return known.run  # type: ignore[no-any-return]
        return self._serve(method, key, self._combine(method, sendbuf, recvbuf, op, root), op)

    def gather(self, method: str, recvbuf: Any) -> Run | None:
        """What runs an Allgather or an Allgatherv into such a buffer."""
        key = FORMS[method].key(recvbuf)
        if key is not None:
            key = method, key
            if (known := self._cache.get(key)) is not None:
                return known.run  # type: ignore[no-any-return]
        return self._serve(method, key, self._gather(method, recvbuf))

    def broadcast_init(self, buf: Any, root: int) -> PersistentCollective | None:
        """A persistent request for a Bcast."""
        return self._make("Bcast", self._broadcast(buf, root), (buf,))

    def combine_init(
        self, method: str, sendbuf: Any, recvbuf: Any, op: MPI.Op, root: int = 0
    ) -> PersistentCollective | None:
        """A persistent request for a collective that combines."""
        asked = self._combine(method, sendbuf, recvbuf, op, root)
        return self._make(method, asked, (sendbuf, recvbuf), op)

    def gather_init(self, method: str, sendbuf: Any, recvbuf: Any) -> PersistentCollective | None:
        """A persistent request for an Allgather or an Allgatherv."""
        return self._make(method, self._gather(method, recvbuf), (sendbuf, recvbuf))

    def plan(self, asked: Asked, form: Form, *, timed: bool = True) -> Plan | None:
        """The plan for what a call asks for.   timed: see `Decision.plan`."""
        key = asked, form, timed
        if key not in self._cache:
            self._cache.remember(key, self._decision.plan(asked, form, timed=timed))
        plan: Plan | None = self._cache[key]
        return plan

    def free(self) -> None:
        """Free the private communicator, and all requests made on it.  Collective."""
        self._cache.forget()
        if self._private is not None:
            self._private.free()
            self._private = None

    # -- serving --------------------------------------------------------------------------------

    def _serve(
        self, method: str, key: Hashable, asked: Asked | None, op: MPI.Op | None = None
    ) -> Run | None:
        """What runs a call; remembered by the call's key, if it has one."""
        if asked is None:
            return None
        plan = self.plan(asked, "blocking", timed=False)
        run = None if plan is None else self._executor(method, plan, op).run
        if key is not None:
            self._cache.remember(key, _Call(run, op))
        return run

    def _make(
        self, method: str, asked: Asked | None, buffers: Sequence[Any], op: MPI.Op | None = None
    ) -> PersistentCollective | None:
        plan = None if asked is None else self.plan(asked, "persistent", timed=False)
        return None if plan is None else self._executor(method, plan, op).persistent(*buffers)

    def _executor(self, method: str, plan: Plan, op: MPI.Op | None) -> Executor:
        """The executor for a plan; collective at the first planned call, which makes the duplicate.

        MPI libraries have few communicators, so none is duplicated before it is needed.
        """
        if self._private is None:
            self._private = PrivateCommunicator(self._comm)
        self._private.check()
        key = method, plan.problem, plan.choice.label, id(op)
        if (known := self._cache.get(key)) is None:
            known = executor_for(plan.schedule, self._private, op, method)
            self._cache.remember(key, known)
        executor: Executor = known
        return executor

    # -- what a call asks for; None where the library's own call shall raise the error ------------

    def _broadcast(self, buf: Any, root: int) -> Asked | None:
        if not 0 <= root < self._ranks:
            return None
        try:
            nbytes = Buffer(buf, writable=self._rank != root).nbytes
        except UNREADABLE:
            return None
        return Asked(Problem("broadcast", self._ranks, nbytes, root)) if nbytes else None

    def _combine(
        self, method: str, sendbuf: Any, recvbuf: Any, op: MPI.Op, root: int
    ) -> Asked | None:
        if not (isinstance(op, MPI.Op) and 0 <= root < self._ranks) or op == MPI.OP_NULL:
            return None
        collective = _BY_METHOD[method]
        owed = collective.has_output(self._rank, root)
        try:
            received = Buffer(recvbuf, writable=True) if owed else None
            in_place = owed and is_in_place(sendbuf)
            sent = received if in_place else Buffer(sendbuf, writable=False)
        except UNREADABLE:
            return None
        assert sent is not None
        datatype = sent.unit.datatype
        parts = result_parts(collective.name, self._ranks)
        if sent.count % parts or not sent.nbytes or not can_combine(op, datatype):
            return None
        if in_place or received is None:
            pass
        elif (received.count * parts, received.unit.datatype) != (sent.count, datatype):
            return None
        elements = Elements(planning_name(op), planning_type(datatype), sent.unit.size)
        return self._decision.combine(collective.name, self._ranks, sent.nbytes, root, elements)

    def _gather(self, method: str, recvbuf: Any) -> Asked | None:
        """Raises InvalidArgument for negative counts, which Open MPI would take."""
        try:
            lengths = lengths_of(FORMS[method].read(recvbuf, self._ranks), self._ranks)
        except InvalidArgument:
            raise
        except UNREADABLE:
            return None
        if not any(lengths):
            return None
        sources = tuple(Source(rank, nbytes) for rank, nbytes in enumerate(lengths) if nbytes)
        name = _BY_METHOD[method].name
        return Asked(Problem(name, self._ranks, sum(lengths), sources=sources))
