"""mpi4py's communicator, with planned collectives where they are faster than the library's."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np
from mpi4py import MPI

import collwise.mpi.runtime.world  # noqa: F401  (first: it explains a missing MPI library)
from collwise.comm.agreed_decision import Settings, agreed
from collwise.comm.decision import CallProblem, OpAndType
from collwise.comm.family import CONSTANTS, replaces_class, wrap_constructor
from collwise.comm.learning import Learning
from collwise.comm.objects import ObjectForms
from collwise.comm.recording import Calls, Record
from collwise.comm.served import add_request_forms, call
from collwise.comm.sharing import SharedArray, shared_array
from collwise.errors import UnknownName
from collwise.model.machine import Machine
from collwise.model.placement import Placement
from collwise.mpi.runtime.agreement import everywhere, gather_sources
from collwise.mpi.runtime.private_communicator import NO_ROOM
from collwise.planner.choose import problem_for
from collwise.planner.operator_order import DTYPE, OP
from collwise.planner.plans import Plan
from collwise.profiles.profile import Profile
from collwise.profiles.records import FORMS, Form
from collwise.schedule.collectives import find_collective
from collwise.schedule.problem import Order, Source


@replaces_class(MPI.Intracomm)
class Comm(ObjectForms):
    """A drop-in for an mpi4py intracommunicator.  Wrapping is collective.

    comm: any intracommunicator.
    profile: a `Profile`, the path of one, None for the profile that `collwise tune` saved for this
    machine, or False for no profile.  Only rank 0's setting counts.
    machine: plan with these costs instead of the profile's.   effort: "measure" runs a plan only
    where it won a race that is in the profile; "estimate" runs what the model predicts to be
    fastest, without comparing it with the library's own.  A machine comes without results of races,
    so give effort="estimate" or algorithms with it.
    algorithms: which algorithm to run, by collective, e.g. {"broadcast": "postal_tree"}, or with
    its settings and by size, {"broadcast": "binomial <= 4k, chain_segmented(segment=8k)"};
    the key for allgathers is "allgatherv".  For collectives that `algorithms` does not name, the
    environment chooses: COLLWISE_ALGORITHMS="allreduce=ring;allgatherv=bruck".
    placement: which ranks share a node, a rack, …, equal on all ranks that pass a placement.  The
    default is the placement of a machine with levels, else what MPI and the profile say.
    order: "rank" to combine vectors strictly in the order of the ranks, whatever the operator;
    "fixed" to do so with the same brackets in every call, so that results have the same bits for
    every count, plan and library (which then serves no reductions); "any" where the last bits may
    differ between ranks if that is faster.   Default: COLLWISE_ORDER, or what MPI allows.
    record: count every call, for `calls` and `last_call`.
    learn: the share of the time, such as "2%", for trying plans on the program's own blocking
    calls; the default is COLLWISE_LEARN, or 0.
    transport: what carries data inside a node: "messages" of MPI, or "memory" that the node's ranks
    share, if all of them can; the default is COLLWISE_NODE, else what a profile that is named was
    measured with, else "memory".

    With COLLWISE_CHECK=1 in rank 0's environment the ranks compare their arguments before every
    blocking call of these collectives, and when a persistent request is made.  All ranks raise
    InvalidArgument if the calls do not match, or if a rank is not there within a minute (or
    COLLWISE_CHECK_LIMIT, such as 90s).

    Unlike mpi4py's it accepts attributes of any name, since what serves its methods is kept there.
    Communicators that MPI derives from a `Comm` (Dup, Split, Create_cart, …) have its settings.
    Their non-blocking calls have plans after a blocking or persistent call of the same collective.

    Raises InvalidArgument, UnknownName, DamagedProfile or ForeignProfile on every rank alike.
    """

    def __init__(
        self,
        comm: MPI.Intracomm | None = None,
        *,
        profile: Profile | str | PathLike[str] | bool | None = None,
        machine: Machine | None = None,
        effort: str = "measure",
        algorithms: Mapping[str, str] | None = None,
        order: Order | None = None,
        placement: Placement | None = None,
        record: bool = False,
        learn: float | str | None = None,
        transport: str | None = None,
    ) -> None:
        if comm is None or comm == MPI.COMM_NULL:
            return
        settings = Settings(
            profile, machine, effort, algorithms, order, placement, learn, transport
        )
        decision, world = agreed(MPI.Intracomm(comm), settings)

        def serve() -> None:
            of_world = getattr(MPI.COMM_WORLD, "_record", None)  # `collwise run` records all calls
            self._record = of_world or (Record() if record or decision.learn else None)
            self._learning = Learning(decision.learn) if decision.learn else None
            self._serve(decision.on(world), world, self.Get_rank(), later=True)

        everywhere(MPI.Intracomm(comm), serve)
        if self._argument_exchange is not None:
            _ = self._argument_exchange.comm  # now, since the first call may lack ranks
        self._dispatch.agree_on_own()
        # A rank may record for itself: what is made here depends on what all ranks know.
        if decision.progress and len(world.hosts) > 1 and decision.served(len(world.hosts)):
            self._dispatch.duplicate.exists()  # so that non-blocking calls have plans at once

    @classmethod
    def Create_from_group(  # noqa: N802
        cls,
        group: MPI.Group,
        stringtag: str = "org.mpi4py",
        info: MPI.Info = MPI.INFO_NULL,
        errhandler: MPI.Errhandler | None = None,
        **settings: Any,
    ) -> "Comm":
        """Make a communicator of a group.  Collective over the group.   settings: as for `Comm`."""
        made = super().Create_from_group(group, stringtag, info, errhandler)
        ours = cls(made, **settings)
        ours._take_hint(info)
        return ours

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
        """The plan for a collective of `nbytes` bytes; None if the library's own collective serves.

        `explain` says why; so does the log (`logging`, "collwise", INFO).
        form: "blocking" (`Bcast`), "nonblocking" (`Ibcast`) or "persistent" (`Bcast_init`).
        op, dtype: where vectors are combined, as `collwise.plan` takes them.   sources: of an
        allgatherv, the ranks that have data, by default all; nbytes is what each of them has, or
        one number for each.
        Equal on all ranks; not collective.
        Raises the errors of `collwise.plan`, and UnknownName for an unknown form.
        """
        asked = self._asked(collective, nbytes, root, form, op, dtype, sources)
        by = self._dispatch
        serves = self._served and not (by.duplicate.refused or by.waits_for_duplicate(form))
        return by.chosen(asked, form).plan if serves else None

    def explain(
        self,
        collective: str,
        nbytes: int | Sequence[int],
        root: int = 0,
        form: Form = "blocking",
        **more: Any,
    ) -> str:
        """A sentence on what would serve a call, and why.   The arguments are those of `plan`.

        An allgatherv in which all ranks contribute alike is taken for an `Allgather`.
        """
        asked = self._asked(collective, nbytes, root, form, **more)
        if self._has_plans and self._dispatch.duplicate.refused:
            return f"the library's own: {NO_ROOM}"
        serves = self._has_plans and self._served
        by = self._dispatch.explained if serves else self._decision.explained
        return by(asked, form).why

    def _asked(
        self,
        collective: str,
        nbytes: int | Sequence[int],
        root: int,
        form: Form,
        op: str | None = None,
        dtype: Any = None,
        sources: Sequence[int] | None = None,
    ) -> CallProblem:
        if form not in FORMS:
            raise UnknownName.of("form", form, FORMS)
        ranks = self.Get_size()
        if sources is None and find_collective(collective).has_sources:
            sources = range(ranks)
        problem, _ = problem_for(
            collective, ranks=ranks, nbytes=nbytes, root=root, sources=sources, op=op, dtype=dtype
        )
        if not problem.kind.combines:
            return CallProblem(problem)
        name = np.dtype(DTYPE if dtype is None else dtype).name
        elements = OpAndType(OP if op is None else op, name, problem.itemsize)
        return self._decision.combine(
            problem.collective, ranks, problem.nbytes, problem.root, elements
        )

    def calls(self, *, worth: int = 0) -> list[Calls]:
        """The collective calls of this rank, on derived communicators too, and what served them.

        Equal calls are one item.   Empty without a record (record=True, learning, collwise run).
        worth: estimate what tuning would save for so many items, longest total time first; an
        estimate may make a plan.
        """
        return [] if self._record is None else self._record.calls(worth=worth)

    def last_call(self) -> Calls | None:
        """The last collective call of this rank; None before the first, or without a record."""
        return None if self._record is None else self._record.last()

    def sources(self, nbytes: int) -> tuple[Source, ...]:
        """Which ranks have data and how many bytes each, if every rank knows only its own.

        One small allgather.  Collective; the same on all ranks, in rank order.

            counts = [0] * comm.size
            for rank, nbytes in comm.sources(mine.nbytes):
                counts[rank] = nbytes
            comm.Allgatherv([mine, MPI.BYTE], [everything, counts, MPI.BYTE])

        nbytes: this rank's bytes, >= 0.   Raises InvalidArgument, on all ranks, for other values.
        """
        return gather_sources(MPI.Intracomm(self), nbytes)

    def share(self, array: Any, root: int = 0) -> SharedArray:
        """A read-only copy of `root`'s array; there is one copy on each node, not on each rank.

            table = comm.share(np.load("table.npy") if comm.rank == 0 else None)

        array: any shape and any type without Python objects; only `root`'s argument counts.
        The memory is given back when no view of it is left on the node.  `with comm.share(…) as
        table:` empties this rank's array at the end of the block.
        Collective.  If the ranks of a node cannot share memory, each rank gets its own copy, and a
        warning is logged.
        Raises InvalidArgument on all ranks for an array of Python objects, MPI.Exception for a root
        that does not exist.
        """
        return shared_array(self, array, root)

    def Bcast(self, buf: Any, root: int = 0) -> None:  # noqa: N802
        """Broadcast a buffer from `root`; semantics and errors are mpi4py's."""
        call(self, "blocking", "Bcast", None, buf, root)

    def Reduce(  # noqa: N802
        self, sendbuf: Any, recvbuf: Any, op: MPI.Op = MPI.SUM, root: int = 0
    ) -> None:
        """Combine everybody's vectors into `root`'s recvbuf; semantics and errors are mpi4py's."""
        call(self, "blocking", "Reduce", None, sendbuf, recvbuf, op, root)

    def Allreduce(self, sendbuf: Any, recvbuf: Any, op: MPI.Op = MPI.SUM) -> None:  # noqa: N802
        """Combine everybody's vectors into everybody's recvbuf; semantics and errors are mpi4py's.

        A plan of ours leaves the same bits on all ranks, except with order="any".
        """
        call(self, "blocking", "Allreduce", None, sendbuf, recvbuf, op)

    def Reduce_scatter_block(  # noqa: N802
        self, sendbuf: Any, recvbuf: Any, op: MPI.Op = MPI.SUM
    ) -> None:
        """Combine everybody's vectors; rank r's recvbuf gets the r-th of equal blocks.

        Semantics and errors are mpi4py's.  With MPI.IN_PLACE the vector is read from recvbuf, and
        the block is written to its beginning.
        """
        call(self, "blocking", "Reduce_scatter_block", None, sendbuf, recvbuf, op)

    def Allgather(self, sendbuf: Any, recvbuf: Any) -> None:  # noqa: N802
        """Gather contributions of equal length on every rank; semantics and errors are mpi4py's."""
        call(self, "blocking", "Allgather", None, sendbuf, recvbuf)

    def Allgatherv(self, sendbuf: Any, recvbuf: Any) -> None:  # noqa: N802
        """Gather contributions of different lengths on every rank; semantics are mpi4py's.

        A rank with a count of 0 contributes nothing.  Where a plan of ours runs, InvalidArgument is
        raised before anything is sent if the send buffer's size differs from this rank's count, or
        if parts of the receive buffer overlap.
        """
        call(self, "blocking", "Allgatherv", None, sendbuf, recvbuf)

    def Free(self) -> None:  # noqa: N802
        """Free the communicator and its private duplicate.  Collective.

        MPI keeps COMM_WORLD and COMM_SELF: for them only the duplicate and its persistent requests
        are freed, and the library's own collectives serve from then on.  A communicator that
        replaces MPI.COMM_WORLD raises the error that MPI.COMM_WORLD raises.
        """
        if self._replaces_world():
            super().Free()  # MPI raises the error
        self._end_service()
        if self not in (MPI.COMM_WORLD, MPI.COMM_SELF):
            super().Free()

    def free(self) -> None:
        """Free the communicator like mpi4py's `free`: null and predefined communicators are kept.

        An object for COMM_WORLD or COMM_SELF becomes null, unless it replaces mpi4py's constant.
        """
        if self != MPI.COMM_NULL and not self._replaces_world():
            self._end_service()
            super().free()

    def _replaces_world(self) -> bool:
        return any(self is getattr(MPI, name) for name in CONSTANTS)

    def Disconnect(self) -> None:  # noqa: N802
        """Complete all messages, then free the communicator and its duplicate.  Collective."""
        self._end_service()
        super().Disconnect()


add_request_forms(Comm)


@replaces_class(MPI.Cartcomm)
class Cartcomm(Comm, MPI.Cartcomm):
    """A Cartesian communicator; `Create_cart` makes it."""


@replaces_class(MPI.Graphcomm)
class Graphcomm(Comm, MPI.Graphcomm):
    """A communicator with a graph; `Create_graph` makes it."""


@replaces_class(MPI.Distgraphcomm)
class Distgraphcomm(Comm, MPI.Distgraphcomm):
    """A communicator with a distributed graph; `Create_dist_graph` makes it."""


wrap_constructor(Cartcomm, "Sub")
