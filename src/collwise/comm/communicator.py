"""The communicator: mpi4py's, with collectives of ours in place of the library's where faster."""

from collections.abc import Callable, Mapping, Sequence, Set
from os import PathLike
from typing import Any

import numpy as np
from mpi4py import MPI

import collwise.mpi.world  # noqa: F401  (first: it explains a missing MPI library)
from collwise.comm.checking import check_calls
from collwise.comm.combining import Combiners
from collwise.comm.gathering import Gatherers, Known
from collwise.comm.planning import Decision, Plans, Vectors
from collwise.errors import UnknownName
from collwise.model.machine import Machine
from collwise.mpi.agreement import on_root
from collwise.mpi.buffers import Buffer
from collwise.mpi.channel import Private
from collwise.mpi.executor import persistent, persistent_combine, persistent_gather, runner
from collwise.mpi.gatherer import Read
from collwise.mpi.persistent import Persistent
from collwise.mpi.pieces import equal_key, equal_parts, vector_key, vector_parts
from collwise.mpi.progress import ENGINE
from collwise.mpi.sources import gather_sources
from collwise.mpi.world import describe
from collwise.planner.choose import problem_for
from collwise.planner.operator_order import DTYPE, OP
from collwise.planner.plans import Plan
from collwise.profiles.profile import Profile
from collwise.profiles.records import FORMS, Form
from collwise.schedule.problem import COMBINING, Order, Problem, Source

_BCAST, _REDUCE, _ALLREDUCE = MPI.Intracomm.Bcast, MPI.Intracomm.Reduce, MPI.Intracomm.Allreduce
_ALLGATHER, _ALLGATHERV = MPI.Intracomm.Allgather, MPI.Intracomm.Allgatherv
"""The library's own, called with as little between as can be."""


class Comm(MPI.Intracomm):
    """A drop-in for an mpi4py intracommunicator.  Wrapping is collective.

    comm: any intracommunicator.   profile: rank 0's counts, the others' are not looked at; a
    `Profile` or its file, None for the one that `collwise tune` saved for this machine, or False
    for none.
    machine: plan for this machine instead of a profile's.   effort: "measure" replaces the
    library's own only where a race was won (the profile knows); "estimate" goes by the model.
    algorithms: which algorithm to run, by collective, e.g. {"broadcast": "postal_tree"}; allgathers
    are "s_to_p".
    order: "rank" to combine vectors strictly in the order of the ranks, whatever the operator;
    "any" to give up that all ranks end with the same bits where that is faster.

    With COLLWISE_CHECK=1 in rank 0's environment the ranks compare what they ask for before every
    collective that is served here, and all raise InvalidArgument where they would wait for ever.

    Raises InvalidArgument, UnknownName, DamagedProfile or ForeignProfile on every rank alike.
    """

    # For communicators that MPI makes of this one (Dup, …): the library's own serves on them.
    _served: Set[str] = frozenset()
    """Collectives for which anything but the library's own may serve; equal on all ranks."""
    _vectors: Known | None = None
    _equals: Known | None = None
    """What serves allgathers, found before; None where the library's own always does."""

    def __new__(cls, comm: MPI.Intracomm | None = None, **_: Any) -> "Comm":  # noqa: D102
        return super().__new__(cls, comm)

    def __init__(
        self,
        comm: MPI.Intracomm | None = None,
        *,
        profile: Profile | str | PathLike[str] | bool | None = None,
        machine: Machine | None = None,
        effort: str = "measure",
        algorithms: Mapping[str, str] | None = None,
        order: Order | None = None,
    ) -> None:
        if comm is None or comm == MPI.COMM_NULL:
            return
        world = describe(MPI.Intracomm(comm))
        # Pickled objects travel here; the base class, so that wrapping uses no plan of its own.
        decision = on_root(
            MPI.Intracomm(comm),
            lambda: Decision.of(world, profile, machine, effort, algorithms, order),
        )
        ranks = self.Get_size()
        self._served = decision.served(ranks)
        self._plans = Plans(decision, ranks, helped=world.thread_multiple)
        self._private = Private(self)
        self._runners: dict[tuple[int, int], Callable[[Any], None] | None] = {}
        self._combiners = Combiners(self._plans, self._private, self.Get_rank())
        self._gatherers = Gatherers(self._plans, self._private)
        if "s_to_p" in self._served:
            self._vectors, self._equals = self._gatherers.vectors, self._gatherers.equals
        if decision.checking:
            check_calls(self)

    def plan(
        self,
        collective: str,
        nbytes: int | Sequence[int],
        root: int = 0,
        form: Form = "blocking",
        *,
        op: str | None = None,
        dtype: Any = None,
        sources: Sequence[int] | None = None,
    ) -> Plan | None:
        """The plan for a collective of so many bytes; None where the library's own serves.

        form: "blocking" (`Bcast`) or "persistent" (`Bcast_init`).   op, dtype: where vectors are
        combined, as `collwise.plan` takes them.   sources: of an allgather ("s_to_p"), the ranks
        that have data; nbytes is what each of them has, or a number for each.
        Equal on all ranks; not collective.
        Raises as `collwise.plan`, and UnknownName for an unknown form.
        """
        if form not in FORMS:
            raise UnknownName.of("form", form, FORMS)
        problem, _ = problem_for(
            collective,
            ranks=self.Get_size(),
            nbytes=nbytes,
            root=root,
            op=op,
            dtype=dtype,
            sources=sources,
        )
        if not self._served:
            return None
        if collective not in COMBINING:
            return self._plans.of(problem, form)
        name = np.dtype(DTYPE if dtype is None else dtype).name
        vectors = Vectors(OP if op is None else op, name, problem.item)
        return self._plans.combining(collective, problem.nbytes, problem.root, form, vectors)

    def sources(self, nbytes: int) -> tuple[Source, ...]:
        """The ranks that have data, and how many bytes each, where every rank knows its own only.

        One small allgather.  Collective; the same on all ranks, by rank.

            counts = [0] * comm.size
            for rank, nbytes in comm.sources(mine.nbytes):
                counts[rank] = nbytes
            comm.Allgatherv([mine, MPI.BYTE], [everything, counts, MPI.BYTE])

        nbytes: of this rank, >= 0.   Raises InvalidArgument, on all ranks, for any other value.
        """
        return gather_sources(MPI.Intracomm(self), nbytes)

    # -- broadcast ------------------------------------------------------------------------------

    def Bcast(self, buf: Any, root: int = 0) -> None:  # noqa: N802
        """Broadcast a buffer from `root`; semantics and errors are mpi4py's."""
        if ENGINE.running:
            ENGINE.advance()
        if "broadcast" in self._served:
            nbytes = getattr(buf, "nbytes", None)
            if nbytes is None or not 0 <= root < self.Get_size():
                nbytes = self._size_of(buf, root)
            if nbytes:
                key = nbytes, root
                if key not in self._runners:
                    self._runners[key] = self._runner(*key)
                run = self._runners[key]
                if run is not None:
                    run(buf)
                    return
        _BCAST(self, buf, root)

    def Bcast_init(  # type: ignore[override]  # noqa: N802  (our request is no MPI.Prequest)
        self, buf: Any, root: int = 0, info: MPI.Info = MPI.INFO_NULL
    ) -> "Persistent | MPI.Prequest":
        """Make a persistent broadcast: `Start`, `Wait`, and at the end `Free`.

        Collective, in the same order on all ranks.  Use `collwise.startall` and `collwise.waitall`
        for lists of such requests.
        """
        if "broadcast" in self._served:
            nbytes = self._size_of(buf, root)
            made = None
            if nbytes is not None:
                made = self._plans.of(self._broadcast(nbytes, root), "persistent")
            if made is not None:
                return persistent(made.schedule, self._private.channel(), buf)
        return super().Bcast_init(buf, root, info)

    def _runner(self, nbytes: int, root: int) -> Callable[[Any], None] | None:
        made = self._plans.of(self._broadcast(nbytes, root), "blocking")
        return None if made is None else runner(made.schedule, self._private.channel())

    def _broadcast(self, nbytes: int, root: int) -> Problem:
        return Problem("broadcast", self.Get_size(), nbytes, root)

    def _size_of(self, buf: Any, root: int) -> int | None:
        """Total bytes of a buffer; None where the library's own call shall raise the error."""
        if not 0 <= root < self.Get_size():
            return None
        try:
            return Buffer(buf, writable=self.Get_rank() != root).nbytes
        except MPI.Exception:  # a type that is none, or was never committed
            return None

    # -- reduce and allreduce -------------------------------------------------------------------

    def Reduce(  # noqa: N802
        self, sendbuf: Any, recvbuf: Any, op: MPI.Op = MPI.SUM, root: int = 0
    ) -> None:
        """Combine everybody's vectors into `root`'s recvbuf; semantics and errors are mpi4py's."""
        if ENGINE.running:
            ENGINE.advance()
        if "reduce" in self._served:
            run = self._combiners.find("reduce", sendbuf, recvbuf, op, root)
            if run is not None:
                run(sendbuf, recvbuf)
                return
        _REDUCE(self, sendbuf, recvbuf, op, root)

    def Allreduce(self, sendbuf: Any, recvbuf: Any, op: MPI.Op = MPI.SUM) -> None:  # noqa: N802
        """Combine everybody's vectors into everybody's recvbuf; semantics and errors are mpi4py's.

        All ranks end with the same bits.
        """
        if ENGINE.running:
            ENGINE.advance()
        if "allreduce" in self._served:
            run = self._combiners.find("allreduce", sendbuf, recvbuf, op, 0)
            if run is not None:
                run(sendbuf, recvbuf)
                return
        _ALLREDUCE(self, sendbuf, recvbuf, op)

    def Reduce_init(  # type: ignore[override]  # noqa: N802  (as Bcast_init)
        self,
        sendbuf: Any,
        recvbuf: Any,
        op: MPI.Op = MPI.SUM,
        root: int = 0,
        info: MPI.Info = MPI.INFO_NULL,
    ) -> "Persistent | MPI.Prequest":
        """Make a persistent reduce; as `Bcast_init`.  A user's `op` must live as long."""
        if "reduce" in self._served:
            made = self._combiners.plan("reduce", sendbuf, recvbuf, op, root)
            if made is not None:
                channel = self._private.channel()
                return persistent_combine(made.schedule, channel, sendbuf, recvbuf, op)
        return super().Reduce_init(sendbuf, recvbuf, op, root, info)

    def Allreduce_init(  # type: ignore[override]  # noqa: N802  (as Bcast_init)
        self, sendbuf: Any, recvbuf: Any, op: MPI.Op = MPI.SUM, info: MPI.Info = MPI.INFO_NULL
    ) -> "Persistent | MPI.Prequest":
        """Make a persistent allreduce; as `Bcast_init`.  A user's `op` must live as long."""
        if "allreduce" in self._served:
            made = self._combiners.plan("allreduce", sendbuf, recvbuf, op, 0)
            if made is not None:
                channel = self._private.channel()
                return persistent_combine(made.schedule, channel, sendbuf, recvbuf, op)
        return super().Allreduce_init(sendbuf, recvbuf, op, info)

    # -- allgather: everybody's data to everybody, an s-to-p broadcast --------------------------

    def Allgather(self, sendbuf: Any, recvbuf: Any) -> None:  # noqa: N802
        """Gather equally much of every rank on every rank; semantics and errors are mpi4py's."""
        if ENGINE.running:
            ENGINE.advance()
        if (known := self._equals) is not None:
            try:
                run = known[equal_key(recvbuf)]
            except Exception:  # not met before, or nothing that can be looked up
                run = self._gatherers.equal(recvbuf)
            if run is not None:
                run(sendbuf, recvbuf)
                return
        _ALLGATHER(self, sendbuf, recvbuf)

    def Allgatherv(self, sendbuf: Any, recvbuf: Any) -> None:  # noqa: N802
        """Gather what the ranks have, here or there, on every rank; semantics are mpi4py's.

        Who has a count of 0 is no source.  Where a plan of ours runs, a send buffer of another size
        than the counts say, and pieces of the receive buffer that overlap or reach beyond it, raise
        InvalidArgument before anything is sent.
        """
        if ENGINE.running:
            ENGINE.advance()
        if (known := self._vectors) is not None:
            try:
                run = known[vector_key(recvbuf)]
            except Exception:  # not met before, or nothing that can be looked up
                run = self._gatherers.vector(recvbuf)
            if run is not None:
                run(sendbuf, recvbuf)
                return
        _ALLGATHERV(self, sendbuf, recvbuf)

    def Allgather_init(  # type: ignore[override]  # noqa: N802  (as Bcast_init)
        self, sendbuf: Any, recvbuf: Any, info: MPI.Info = MPI.INFO_NULL
    ) -> "Persistent | MPI.Prequest":
        """Make a persistent allgather; as `Bcast_init`."""
        made = self._gathering(equal_parts, sendbuf, recvbuf)
        return super().Allgather_init(sendbuf, recvbuf, info) if made is None else made

    def Allgatherv_init(  # type: ignore[override]  # noqa: N802  (as Bcast_init)
        self, sendbuf: Any, recvbuf: Any, info: MPI.Info = MPI.INFO_NULL
    ) -> "Persistent | MPI.Prequest":
        """Make a persistent allgatherv; as `Bcast_init`, with the errors of `Allgatherv`."""
        made = self._gathering(vector_parts, sendbuf, recvbuf)
        return super().Allgatherv_init(sendbuf, recvbuf, info) if made is None else made

    def _gathering(self, read: Read, sendbuf: Any, recvbuf: Any) -> Persistent | None:
        """A persistent request of ours; None where the library's own serves."""
        if self._vectors is None:
            return None
        made = self._gatherers.plan(read, recvbuf, "persistent")
        if made is None:
            return None
        parts = read(recvbuf, self.Get_size())
        return persistent_gather(made.schedule, self._private.channel(), sendbuf, parts)

    # -- the end --------------------------------------------------------------------------------

    def Free(self) -> None:  # noqa: N802
        """Free the communicator and its private duplicate.  Collective.

        MPI keeps COMM_WORLD and COMM_SELF until it ends.  Of those only the duplicate is freed, and
        persistent requests with it; what is left is a plain communicator of the library's.
        """
        if self._served:
            self._private.free()
            self._served, self._vectors, self._equals = frozenset(), None, None
            # From here on the library's own says what is wrong.
        if self not in (MPI.COMM_WORLD, MPI.COMM_SELF):
            super().Free()
