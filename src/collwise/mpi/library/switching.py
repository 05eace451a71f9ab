"""Runs calls of the library's collectives by one of its own algorithms that is not its default.

A variable of the library chooses the algorithm for the whole process.  If a second thread made the
same collective meanwhile, on any communicator, it would run another algorithm than the other ranks
of that communicator.  So all ranks agree, when the first such call is made or when a communicator
is wrapped, that each of them has one Python thread, or MPI below MPI_THREAD_MULTIPLE, and that all
have the same variables.  A switched call holds a lock of the process, shared by all communicators
of collwise; after the first switched call, collwise's other calls of the library hold it, too.  Set
COLLWISE_SWITCH=always if no other thread makes collectives, and COLLWISE_SWITCH=never if threads
that start later do.  Where a duplicate of a communicator keeps the algorithm with which it was
made, the number of threads does not matter.
"""

import logging
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cached_property, partial
from hashlib import sha256
from time import monotonic, sleep
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from mpi4py import MPI

from collwise.errors import CollwiseError, InvalidArgument
from collwise.measure.race import method_name
from collwise.mpi.engine.loading import COMPILED
from collwise.mpi.library import own_algorithms
from collwise.mpi.library.own_algorithms import OwnAlgorithm, catalogue, where_made
from collwise.mpi.library.tool_interface import Variable
from collwise.mpi.runtime.agreement import everywhere, gathered
from collwise.mpi.runtime.private_communicator import MOST, free_duplicate, held, plain_duplicate
from collwise.profiles.records import Form
from collwise.schedule.collectives import COLLECTIVES

log = logging.getLogger("collwise")

SWITCH = "COLLWISE_SWITCH"
"""The environment variable that says whether the library's variables may be switched."""
LIMIT_S = 60.0
"""The most seconds that a call waits for a switched call of another thread."""
MOST_DUPLICATES = 10
"""Largest number of duplicates of a communicator, each made with other algorithms."""
_NO_DUPLICATE = "no duplicate could be made for it"

_lock = threading.Lock()
"""The lock of switched calls; unused with the compiled engine, which has a lock of its own."""
_guarded = threading.Event()
"""Set once a call may switch a variable of the whole process."""
Writes: TypeAlias = tuple[tuple[Variable, int], ...]


class Switched(NamedTuple):
    """A way to call the library's collective by one of the library's own algorithms.

    comm: the duplicate on which to call the collective; None for the user's communicator.
    writes: variables, with the values that they have during the call.
    """

    comm: MPI.Intracomm | None
    writes: Writes = ()

    @property
    def in_c(self) -> Any:
        """The duplicate, or (handle, value) of each variable, for the compiled engine."""
        return self.comm or tuple((one.handle, value) for one, value in self.writes)

    def call(self, library: "partial[Any]") -> Any:
        """Make the call `library`, whose first argument is the user's communicator."""
        if self.comm is not None:
            return library.func(self.comm, *library.args[1:])
        with changed(self.writes):
            return library()

    def alike(self, method: str, nbytes: int, comm: MPI.Intracomm, form: Form = "blocking") -> bool:
        """Whether an Allreduce of `nbytes` bytes leaves the same bits on all ranks, by a trial.

        True for other methods.   Collective.   comm: the communicator of the `OwnCalls`.
        """
        if method != "Allreduce":
            return True
        first, values = comm.Get_rank(), [1e16, 1.0, -1e16, 3.0, 1e-3]
        numbers = everywhere(comm, lambda: np.resize(values, first + max(nbytes // 8, 1))[first:])
        total = everywhere(comm, lambda: np.zeros_like(numbers))
        call = getattr(MPI.Intracomm, method_name(method, form))
        request = self.call(partial(call, comm, numbers, total, MPI.SUM))
        if form == "persistent":
            request.Start()
        if request is not None:
            request.Wait()
        if form == "persistent":
            request.Free()
        return len(set(comm.allgather(sha256(total.tobytes()).digest()))) == 1


class OwnCalls:
    """The library's own algorithms on one communicator.

    one_thread: whether it is known that no other thread of any rank makes collectives.
    """

    def __init__(self, comm: MPI.Intracomm, *, one_thread: bool = False) -> None:
        self.of, self._one_thread = MPI.Intracomm(comm), one_thread
        self.refused: str | None = None
        """Why no own algorithm may serve, equal on all ranks; empty if they may.

        None until the ranks have agreed.
        """
        self.when_changed: list[Callable[[], object]] = []
        """Functions to call once the ranks have agreed, and when a duplicate was made."""
        self._duplicates: dict[Writes, MPI.Intracomm | None] = {}

    def find(
        self, method: str, form: Form, name: str, settings: Mapping[str, Any], *, local: bool
    ) -> Switched | str:
        """How to call a method by one of the library's own algorithms, or why that is impossible.

        name: the library's name for the algorithm.   local: True in a call that must not wait
        for other ranks, so that nothing is agreed or duplicated.   Collective unless `local`.
        """
        if self.agree(local=local):
            return self.refused or "the ranks have not agreed on it yet"
        if reason := self.why_not(method, form, name, settings):
            return reason
        known = catalogue(method, form).algorithms[name]
        writes = known.writes(settings)
        if not known.duplicated:
            _guarded.set()
            if COMPILED is not None:
                COMPILED.guard()
            return Switched(None, writes)
        shared = _shared(known, writes)
        if shared not in self._duplicates:
            if local:
                return "no duplicate has been made for it yet"
            if len(self._duplicates) == MOST_DUPLICATES:
                return f"there are {MOST_DUPLICATES} duplicates for other algorithms"
            self._duplicates[shared] = self._duplicate(shared)
            for act in self.when_changed:  # ranks do not forget why there was none at one time
                act()
        made = self._duplicates[shared]
        return _NO_DUPLICATE if made is None else Switched(made)

    def composed(self, method: str, form: Form, name: str, settings: Mapping[str, Any]) -> bool:
        """Whether the library runs the algorithm on one rank per node, and other ones inside nodes.

        Collective.
        """
        flat = catalogue(method, form).algorithms[name].flat
        return flat is not None and str(settings.get("composition")) != str(flat) and self.nested

    @cached_property
    def nested(self) -> bool:
        """Whether there are several nodes, some of several ranks.  First access: collective."""
        node = self.of.Split_type(MPI.COMM_TYPE_SHARED)
        most: int = self.of.allreduce(node.Get_size(), MPI.MAX)
        node.Free()
        return 1 < most < self.of.Get_size()

    def why_not(self, method: str, form: Form, name: str, settings: Mapping[str, Any]) -> str:
        """Why an algorithm cannot serve, as far as this rank knows by itself; empty if it can."""
        if self.refused:
            return self.refused
        known = catalogue(method, form).find(name, self.of.Get_size())
        if isinstance(known, str):
            return known
        try:
            writes = known.writes(settings)
        except CollwiseError as problem:
            return str(problem)
        if not known.duplicated:
            return ""
        shared = _shared(known, writes)
        return _NO_DUPLICATE * (shared in self._duplicates and self._duplicates[shared] is None)

    def lacks(
        self, ways: Iterable[tuple[str, Form]], name: str, settings: Mapping[str, Any]
    ) -> str:
        """Why an algorithm serves none of these methods and forms; empty if it can serve one."""
        reasons = [self.why_not(*way, name, settings) for way in ways]
        return reasons[0] if all(reasons) else ""

    def agree(self, *, local: bool = False) -> bool:
        """Whether the library's own algorithms may not serve; equal on all ranks.

        Collective until the ranks have agreed; if `local`, True until then.  The call that agrees
        raises InvalidArgument on all ranks if COLLWISE_SWITCH of any rank has an unknown value.
        """
        if self.refused is None and not local:

            def here() -> tuple[bytes, str]:
                check_switch()
                known = sha256(own_algorithms.digest().encode()).digest()
                return known, _forbidden(os.environ.get(SWITCH, ""), self._one_thread)

            every = gathered(self.of, here)
            reasons = [f"rank {rank}: {why}" for rank, (_, why) in enumerate(every) if why]
            if len({known for known, _ in every}) > 1:
                reasons.append("ranks have different variables of the library")
            self.refused = "; ".join(reasons[:1])
            for act in self.when_changed:
                act()
        return self.refused != ""

    def _duplicate(self, writes: Writes) -> MPI.Intracomm | None:
        """A duplicate made while variables have these values; None if a rank fails.  Collective.

        Rank 0 logs why a rank failed.
        """
        made, here = None, ""
        with ExitStack() as former:
            try:
                wanted = (*where_made(), *writes)
                former.enter_context(alone())
                before = [(one, one.read()) for one, _ in wanted]
                former.callback(_written, reversed(before))
                here = _written(wanted) or "too many duplicates" * (len(held) >= MOST)
            except Exception as problem:  # whatever fails on one rank, all hear of it
                here = str(problem) or repr(problem)
            if not (failed := self._failure(here)):
                try:
                    made = plain_duplicate(self.of)
                    made.Set_errhandler(self.of.Get_errhandler())
                except Exception as problem:  # such as: no room for a communicator
                    here = f"no duplicate ({str(problem) or repr(problem)})"
        if failed := failed or self._failure(here):
            made = None  # if some ranks have made one, they cannot free it
            if self.of.Get_rank() == 0:
                log.warning("the library's default serves: %s", failed)
        return made

    def _failure(self, here: str) -> str:
        """The first rank's failure, equal on all ranks; empty if no rank has one.   Collective."""
        every = enumerate(self.of.allgather(here))
        return next((f"rank {rank}: {failed}" for rank, failed in every if failed), "")

    def free(self) -> None:
        """Free all duplicates.   Collective."""
        for made in self._duplicates.values():
            if made is not None:
                free_duplicate(made)
        self._duplicates.clear()


def check_switch() -> None:
    """Raise InvalidArgument for a wrong value of SWITCH in this rank's environment."""
    said = os.environ.get(SWITCH, "")
    if said not in ("", "always", "never"):
        remedy = "say always or never, or nothing"
        raise InvalidArgument(f"{SWITCH}={said}", "it is no such word", remedy)


def _forbidden(said: str, one_thread: bool) -> str:
    """Why this process may not switch algorithms; empty if it may.   said: the value of SWITCH."""
    if said == "never":
        return f"{SWITCH}=never"
    if one_thread or said == "always" or MPI.Query_thread() < MPI.THREAD_MULTIPLE:
        return ""
    if any(one.duplicated for one in catalogue("Bcast", "blocking").algorithms.values()):
        return ""
    others = [one.name for one in threading.enumerate() if one.name != "collwise"]
    if (count := len(others)) > 1:
        return f"it has {count} threads, and a choice is the whole process's (see {SWITCH})"
    return ""


@contextmanager
def alone() -> Iterator[None]:
    """Hold the lock of switched calls; raises InvalidArgument after waiting LIMIT_S for it."""
    latest = monotonic() + LIMIT_S
    while not (_lock.acquire(blocking=False) if COMPILED is None else COMPILED.hold()):
        if monotonic() > latest:
            raise InvalidArgument(
                f"a collective on rank {MPI.COMM_WORLD.Get_rank()}",
                f"a call in another thread has had the library's variables for {LIMIT_S:g} s",
                f"say {SWITCH}=never if several threads make collectives",
            )
        sleep(1e-4)
    try:
        yield
    finally:
        if COMPILED is None:
            _lock.release()
        else:
            COMPILED.release()


def by_default(library: "partial[Any]") -> Any:
    """Make the library's call by its default algorithm, while no variable is switched."""
    if not _guarded.is_set():
        return library()
    with alone():
        return library()


@contextmanager
def changed(writes: Writes) -> Iterator[None]:
    """Give variables these values inside the `with` block, and then their former values."""
    with alone():
        before = [(one, one.read()) for one, _ in writes]
        try:
            for one, value in writes:
                one.write(value)
            yield
        finally:
            for one, value in before:
                one.write(value)


def _shared(algorithm: OwnAlgorithm, writes: Writes) -> Writes:
    """What to write before a duplicate is made; `writes` itself if the algorithm has settings.

    Otherwise the (variable, value) pairs that choose algorithms whose value equals this one's, of
    all blocking collectives that have such an algorithm: the collectives share the duplicate.
    """
    if len(writes) > 1:
        return writes
    every = (
        one
        for collective in COLLECTIVES.values()
        for method in collective.methods
        for one in catalogue(method, "blocking").algorithms.values()
        if one.value == algorithm.value
    )
    return tuple((one.variable, one.value) for one in every)


def _written(wanted: Iterable[tuple[Variable, int]]) -> str:
    """Write these values; returns why the library refused one, empty if it took all."""
    try:
        for one, value in wanted:
            if one.read() != value:  # Open MPI 4 lets nobody write some that may be right already
                one.write(value)
    except CollwiseError as problem:
        return str(problem)
    return ""
