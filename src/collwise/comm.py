"""The communicator: mpi4py's, with collwise's broadcast in place of the library's where faster.

Which plan runs is decided from data that all ranks share: the profile (rank 0's, given to all when
the communicator is wrapped), the number of ranks, the root and the total bytes.
"""

import logging
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

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
from collwise.mpi.buffers import Buffer
from collwise.mpi.channel import Channel
from collwise.mpi.executor import Persistent, persistent, runner
from collwise.mpi.progress import ENGINE
from collwise.mpi.world import describe
from collwise.planner.choose import plan
from collwise.planner.learned import learned_choice
from collwise.planner.plans import Plan

log = logging.getLogger("collwise")

EFFORTS = ("measure", "estimate")


class Comm(MPI.Intracomm):
    """A drop-in for an mpi4py intracommunicator.  Wrapping is collective.

    comm: any intracommunicator.   profile: rank 0's counts, the others' are not looked at; a
    `Profile`, None for the one that `collwise tune` saved for this machine, or False for none.
    machine: plan for this machine instead of a profile's.   effort: "measure" replaces the
    library's own only where a race was won (the profile knows); "estimate" goes by the model.
    algorithms: which algorithm to run, by collective, e.g. {"broadcast": "postal_tree"}.

    Raises InvalidArgument, UnknownName, DamagedProfile or ForeignProfile on every rank alike.
    """

    # For communicators that MPI makes of this one (Dup, …): the library's own serves on them.
    _channel: Channel | None = None
    _machine: Machine | None = None
    _profile: Profile | None = None
    _algorithms: Mapping[str, str] = MappingProxyType({})

    def __new__(cls, comm: MPI.Intracomm | None = None, **_: Any) -> "Comm":  # noqa: D102
        return super().__new__(cls, comm)

    def __init__(
        self,
        comm: MPI.Intracomm | None = None,
        *,
        profile: Profile | bool | None = None,
        machine: Machine | None = None,
        effort: str = "measure",
        algorithms: Mapping[str, str] | None = None,
    ) -> None:
        self._plans: dict[tuple[str, Form, int, int], Plan | None] = {}
        self._runners: dict[tuple[str, int, int], Callable[[Any], None] | None] = {}
        if comm is None or comm == MPI.COMM_NULL:
            return
        world = describe(MPI.Intracomm(comm))
        self._helped = world.thread_multiple

        def decide() -> tuple[Profile | None, Machine | None, str, dict[str, str]]:
            chosen = dict(algorithms or {})
            if effort not in EFFORTS:
                raise UnknownName.of("effort", effort, EFFORTS)
            for collective, name in chosen.items():
                if collective not in collectives():
                    raise UnknownName.of("collective", collective, collectives())
                chosen[collective] = name if name == LIBRARY else find(name, collective).name
            fingerprint = world.fingerprint()
            found: Profile | None = None
            if profile is None or profile is True:
                found = find_profile(fingerprint) if machine is None else None
            elif isinstance(profile, Profile):
                profile.check(fingerprint)
                found = profile
            planned_for = found.machine if machine is None and found is not None else machine
            return found, planned_for, effort, chosen

        # Pickled objects travel here; the base class, so that wrapping uses no plan of its own.
        decision = on_root(MPI.Intracomm(comm), decide)
        self._profile, self._machine, self._effort, self._algorithms = decision

    # -- planning -------------------------------------------------------------------------------

    def plan(
        self, collective: str, nbytes: int, root: int = 0, form: Form = "blocking"
    ) -> Plan | None:
        """The plan for a collective of so many bytes; None where the library's own serves.

        form: "blocking" (`Bcast`) or "persistent" (`Bcast_init`).  Equal on all ranks; not
        collective.
        """
        key = (collective, form, nbytes, root)
        if key not in self._plans:
            self._plans[key] = self._make_plan(*key)
        return self._plans[key]

    def _make_plan(self, collective: str, form: Form, nbytes: int, root: int) -> Plan | None:
        ranks, name = self.Get_size(), self._algorithms.get(collective)
        if name == LIBRARY or not self._helped or ranks == 1:
            return None
        if self._machine is None:
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
        made = plan(
            collective, ranks=ranks, nbytes=nbytes, machine=self._machine, root=root, algorithm=name
        )
        log.debug("rank %d: %s of %d bytes: %s", self.rank, collective, nbytes, made.choice.label)
        return made

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
        if self._serves("broadcast"):
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
        super().Bcast(buf, root)

    def Bcast_init(  # type: ignore[override]  # noqa: N802  (our request is no MPI.Prequest)
        self, buf: Any, root: int = 0, info: MPI.Info = MPI.INFO_NULL
    ) -> "Persistent | MPI.Prequest":
        """Make a persistent broadcast: `Start`, `Wait`, and at the end `Free`.

        Collective, in the same order on all ranks.  Use `collwise.startall` and `collwise.waitall`
        for lists of such requests.
        """
        if self._serves("broadcast"):
            nbytes = self._size_of(buf, root)
            made = None
            if nbytes is not None:
                made = self.plan("broadcast", nbytes, root, "persistent")
            if made is not None:
                channel = self._private()
                channel.check()
                return persistent(made.schedule, channel, buf)
        return super().Bcast_init(buf, root, info)

    def _runner(self, collective: str, nbytes: int, root: int) -> Callable[[Any], None] | None:
        made = self.plan(collective, nbytes, root)
        return None if made is None else runner(made.schedule, self._private())

    def _serves(self, collective: str) -> bool:
        """Whether anything but the library's own could serve: cheap, and equal on all ranks."""
        return self._machine is not None or collective in self._algorithms

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
