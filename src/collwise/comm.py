"""The communicator: mpi4py's, with collwise's collectives in place of the library's where faster.

Which plan runs is decided from data that all ranks share: the profile (rank 0's, given to all when
the communicator is wrapped), the number of ranks, the root, the total bytes, and how vectors are
combined.
"""

import logging
from collections.abc import Callable, Hashable, Mapping, Set
from dataclasses import replace
from os import PathLike
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from mpi4py import MPI

import collwise.mpi.world  # noqa: F401  (first: it explains a missing MPI library)
from collwise.algorithms.registry import collectives, find
from collwise.errors import InvalidArgument, UnknownName
from collwise.measure.race import LIBRARY
from collwise.model.machine import Machine
from collwise.model.profile import Profile
from collwise.model.profile import find as find_profile
from collwise.model.records import Form
from collwise.mpi.agreement import on_root
from collwise.mpi.blocking import Combiner
from collwise.mpi.buffers import Buffer
from collwise.mpi.channel import Channel
from collwise.mpi.combining import planning_name, planning_type, servable
from collwise.mpi.executor import combiner, persistent, persistent_combine, runner
from collwise.mpi.persistent import Persistent
from collwise.mpi.progress import ENGINE
from collwise.mpi.world import describe
from collwise.planner.choose import plan_for
from collwise.planner.learned import learned_choice
from collwise.planner.legal import legal
from collwise.planner.plans import Plan
from collwise.schedule.data import COMBINING, ORDERS, Order, Problem, keeps

log = logging.getLogger("collwise")

_BCAST, _REDUCE, _ALLREDUCE = MPI.Intracomm.Bcast, MPI.Intracomm.Reduce, MPI.Intracomm.Allreduce
"""The library's own, called with as little between as can be."""
EFFORTS = ("measure", "estimate")
_MOST_PLANS = 4096
_MOST_COMBINERS = 512
"""What a communicator remembers before it starts anew; combiners have memory of their own."""


class _Vectors(NamedTuple):
    """How vectors are combined, as planning knows it."""

    op: str
    dtype: str
    item: int


def _loaded(profile: object) -> Profile:
    if isinstance(profile, str | PathLike):
        return Profile.load(profile)
    raise InvalidArgument(
        "a communicator with a profile",
        f"profile = {profile!r}",
        "give a collwise.Profile, the name of its file, None or False",
    )


class Comm(MPI.Intracomm):
    """A drop-in for an mpi4py intracommunicator.  Wrapping is collective.

    comm: any intracommunicator.   profile: rank 0's counts, the others' are not looked at; a
    `Profile` or its file, None for the one that `collwise tune` saved for this machine, or False
    for none.
    machine: plan for this machine instead of a profile's.   effort: "measure" replaces the
    library's own only where a race was won (the profile knows); "estimate" goes by the model.
    algorithms: which algorithm to run, by collective, e.g. {"broadcast": "postal_tree"}.
    order: "rank" to combine vectors strictly in the order of the ranks, whatever the operator;
    "any" to give up that all ranks end with the same bits where that is faster.

    Raises InvalidArgument, UnknownName, DamagedProfile or ForeignProfile on every rank alike.
    """

    # For communicators that MPI makes of this one (Dup, …): the library's own serves on them.
    _channel: Channel | None = None
    _machine: Machine | None = None
    _profile: Profile | None = None
    _algorithms: Mapping[str, str] = MappingProxyType({})
    _served: Set[str] = frozenset()
    """Collectives for which anything but the library's own may serve; equal on all ranks."""

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
        self._plans: dict[tuple[Problem, Form, _Vectors | None], Plan | None] = {}
        self._runners: dict[tuple[str, int, int], Callable[[Any], None] | None] = {}
        self._combiners: dict[Hashable, tuple[MPI.Op, Combiner | None]] = {}
        if comm is None or comm == MPI.COMM_NULL:
            return
        world = describe(MPI.Intracomm(comm))
        self._helped = world.thread_multiple

        def decide() -> tuple[Profile | None, Machine | None, str, dict[str, str], Order | None]:
            chosen = dict(algorithms or {})
            if effort not in EFFORTS:
                raise UnknownName.of("effort", effort, EFFORTS)
            if order is not None and order not in ORDERS:
                raise UnknownName.of("order", order, ORDERS)
            for collective, name in chosen.items():
                if collective not in collectives():
                    raise UnknownName.of("collective", collective, collectives())
                chosen[collective] = name if name == LIBRARY else find(name, collective).name
            fingerprint = world.fingerprint()
            found: Profile | None = None
            if profile is None or profile is True:
                found = find_profile(fingerprint) if machine is None else None
            elif profile is not False:
                found = profile if isinstance(profile, Profile) else _loaded(profile)
                found.check(fingerprint)
            return found, machine, effort, chosen, order

        # Pickled objects travel here; the base class, so that wrapping uses no plan of its own.
        decision = on_root(MPI.Intracomm(comm), decide)
        self._profile, self._machine, self._effort, self._algorithms, self._order = decision
        known = self._machine is not None or self._profile is not None
        self._served = frozenset(collectives() if known else self._algorithms)

    # -- planning -------------------------------------------------------------------------------

    def plan(
        self,
        collective: str,
        nbytes: int,
        root: int = 0,
        form: Form = "blocking",
        *,
        op: str = "sum",
        dtype: Any = "float64",
    ) -> Plan | None:
        """The plan for a collective of so many bytes; None where the library's own serves.

        form: "blocking" (`Bcast`) or "persistent" (`Bcast_init`).   op, dtype: where vectors are
        combined, as `collwise.plan` takes them.  Equal on all ranks; not collective.
        """
        vectors = None
        if collective in COMBINING:
            kind = np.dtype(dtype)
            vectors = _Vectors(op, kind.name, kind.itemsize)
        return self._plan(collective, nbytes, root, form, vectors)

    def _plan(
        self, collective: str, nbytes: int, root: int, form: Form, vectors: _Vectors | None
    ) -> Plan | None:
        ranks, reason = self.Get_size(), ""
        problem = Problem(collective, ranks, nbytes, root)
        if vectors is not None:
            allowed = legal(collective, vectors.op, vectors.dtype, self._order)
            problem = replace(problem, item=vectors.item, order=allowed.order)
            reason = allowed.reason
        key = (problem, form, vectors)
        if key not in self._plans:
            if len(self._plans) >= _MOST_PLANS:
                self._plans.clear()
            self._plans[key] = self._make_plan(*key, reason)
        return self._plans[key]

    def _make_plan(
        self, problem: Problem, form: Form, vectors: _Vectors | None, reason: str
    ) -> Plan | None:
        collective, ranks, nbytes = problem.collective, problem.ranks, problem.nbytes
        name, machine = self._algorithms.get(collective), self._machine_for(vectors)
        if name == LIBRARY or not self._helped or ranks == 1:
            return None
        if machine is None:
            if name is None:
                return None
            raise InvalidArgument(
                f"{name} on this communicator",
                "there is no profile of this machine to choose its settings by",
                "run `collwise tune` first, or give Comm a machine",
            )
        if name is None and self._effort == "measure":
            wins = self._profile.wins if self._profile is not None else ()
            name = learned_choice(wins, collective, form, ranks, nbytes)
            if name is None:
                return None
            if vectors and not keeps(find(name, collective).order(problem), problem.order):
                return None  # the race was won with another operator
        made = plan_for(problem, machine, name, reason=reason)
        log.debug("rank %d: %s: %s", self.rank, problem, made.choice.label)
        return made

    def _machine_for(self, vectors: _Vectors | None) -> Machine | None:
        if self._machine is not None or self._profile is None:
            return self._machine
        if vectors is None:
            return self._profile.machine
        return self._profile.machine_combining(vectors.op, vectors.dtype)

    def _private(self) -> Channel:
        """The private duplicate, made at the first planned use (a collective call)."""
        if self._channel is None:
            self._channel = Channel(self)
        return self._channel

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
                key = ("broadcast", nbytes, root)
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
                made = self.plan("broadcast", nbytes, root, "persistent")
            if made is not None:
                return persistent(made.schedule, self._checked(), buf)
        return super().Bcast_init(buf, root, info)

    def _runner(self, collective: str, nbytes: int, root: int) -> Callable[[Any], None] | None:
        made = self.plan(collective, nbytes, root)
        return None if made is None else runner(made.schedule, self._private())

    # -- reduce and allreduce -------------------------------------------------------------------

    def Reduce(  # noqa: N802
        self, sendbuf: Any, recvbuf: Any, op: MPI.Op = MPI.SUM, root: int = 0
    ) -> None:
        """Combine everybody's vectors into `root`'s recvbuf; semantics and errors are mpi4py's."""
        if ENGINE.running:
            ENGINE.advance()
        if "reduce" in self._served:
            run = self._combiner("reduce", sendbuf, recvbuf, op, root)
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
            run = self._combiner("allreduce", sendbuf, recvbuf, op, 0)
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
            made = self._combining_plan("reduce", sendbuf, recvbuf, op, root)
            if made is not None:
                return persistent_combine(made.schedule, self._checked(), sendbuf, recvbuf, op)
        return super().Reduce_init(sendbuf, recvbuf, op, root, info)

    def Allreduce_init(  # type: ignore[override]  # noqa: N802  (as Bcast_init)
        self, sendbuf: Any, recvbuf: Any, op: MPI.Op = MPI.SUM, info: MPI.Info = MPI.INFO_NULL
    ) -> "Persistent | MPI.Prequest":
        """Make a persistent allreduce; as `Bcast_init`.  A user's `op` must live as long."""
        if "allreduce" in self._served:
            made = self._combining_plan("allreduce", sendbuf, recvbuf, op, 0)
            if made is not None:
                return persistent_combine(made.schedule, self._checked(), sendbuf, recvbuf, op)
        return super().Allreduce_init(sendbuf, recvbuf, op, info)

    def _combiner(
        self, collective: str, sendbuf: Any, recvbuf: Any, op: MPI.Op, root: int
    ) -> Combiner | None:
        """What runs the collective on such buffers; None where the library's own serves."""
        one = recvbuf if sendbuf is MPI.IN_PLACE else sendbuf
        key: Hashable = None
        if type(one) is np.ndarray:
            key = (collective, one.dtype, one.nbytes, root, id(op))
            known = self._combiners.get(key)
            if known is not None and _alike(one, recvbuf):
                return known[1]
        found = self._vectors(collective, sendbuf, recvbuf, op, root)
        if found is None:
            return None
        nbytes, vectors = found
        made = self._plan(collective, nbytes, root, "blocking", vectors)
        if len(self._combiners) >= _MOST_COMBINERS:
            self._forget()
        run = None
        if made is not None:
            general = (made.problem, made.choice.label, id(op))
            run = self._combiners.get(general, (op, None))[1]
            run = run or combiner(made.schedule, self._checked(), op)
            self._combiners[general] = op, run
        if key is not None:
            self._combiners[key] = op, run  # an operator that lives shares its id with no other
        return run

    def _forget(self) -> None:
        for _, run in self._combiners.values():
            if run is not None:
                run.free()
        self._combiners.clear()

    def _combining_plan(
        self, collective: str, sendbuf: Any, recvbuf: Any, op: MPI.Op, root: int
    ) -> Plan | None:
        """The plan of a persistent form; None where the library's own serves."""
        found = self._vectors(collective, sendbuf, recvbuf, op, root)
        if found is None:
            return None
        nbytes, vectors = found
        return self._plan(collective, nbytes, root, "persistent", vectors)

    def _vectors(
        self, collective: str, sendbuf: Any, recvbuf: Any, op: MPI.Op, root: int
    ) -> tuple[int, _Vectors] | None:
        """Bytes and kind of such buffers; None where the library's own serves, or complains."""
        if not (isinstance(op, MPI.Op) and 0 <= root < self.Get_size()) or op == MPI.OP_NULL:
            return None
        owed = collective != "reduce" or self.Get_rank() == root
        try:
            received = Buffer(recvbuf, writable=True) if owed else None
            in_place = owed and sendbuf is MPI.IN_PLACE
            sent = received if in_place else Buffer(sendbuf, writable=False)
        except Exception:  # whatever it is: mpi4py meets the same
            return None
        assert sent is not None
        datatype = sent.datatype
        if received is not None and (received.count, received.datatype) != (sent.count, datatype):
            return None
        if not sent.nbytes or not servable(op, datatype):
            return None
        kind = _Vectors(planning_name(op), planning_type(datatype), datatype.Get_size())
        return sent.nbytes, kind

    def _checked(self) -> Channel:
        channel = self._private()
        channel.check()
        return channel

    # -- what they share ------------------------------------------------------------------------

    def _size_of(self, buf: Any, root: int) -> int | None:
        """Total bytes of a buffer; None where the library's own call shall raise the error."""
        if not 0 <= root < self.Get_size():
            return None
        return Buffer(buf, writable=self.Get_rank() != root).nbytes

    # -- the end --------------------------------------------------------------------------------

    def Free(self) -> None:  # noqa: N802
        """Free the communicator and its private duplicate.  Collective."""
        if self._channel is not None:
            self._channel.free()
            self._channel = None
        super().Free()


def _alike(one: Any, other: Any) -> bool:
    """Whether the other buffer is no array, or one of the same type and size."""
    return type(other) is not np.ndarray or (
        one is other or (other.dtype == one.dtype and other.nbytes == one.nbytes)
    )
