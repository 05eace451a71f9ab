"""Collwise's persistent requests, and functions for lists of them and of MPI's requests."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, Self

from mpi4py import MPI

from collwise.errors import InvalidArgument
from collwise.mpi.engine.compiled_plan import CompiledPlan
from collwise.mpi.engine.loading import COMPILED
from collwise.mpi.runtime.private_communicator import PrivateCommunicator
from collwise.mpi.runtime.progress import advance, wait_with_progress

if TYPE_CHECKING:
    from collwise.mpi.execution.executor import Bound

_NAME = "a request of collwise's (lists need collwise.startall and collwise.waitall)"
"""The name of the classes: mpi4py's methods for lists show it in their TypeError."""


class PersistentCollective:
    """A collective that can be started again and again: `Start`, then `Wait` or `Test`.

    Made on all ranks in the same order.  It has most methods of mpi4py's persistent requests but
    is not one of them: use `collwise.startall` and `collwise.waitall` on lists of requests.
    A status passed to its methods is not changed.
    """

    def __init_subclass__(cls) -> None:
        cls.__name__ = _NAME

    def __init__(self, private: PrivateCommunicator, bound: "Bound") -> None:
        self._private = private
        self._bound = bound
        self._begin, self._end = bound.begin, bound.end
        self._active: bool | None = False  # None: it was freed
        private.own(self)

    @property
    def active(self) -> bool:
        """Whether the collective was started and not yet completed."""
        return bool(self._active)

    def __bool__(self) -> bool:
        """False once the request is freed."""
        return self._active is not None

    def __eq__(self, other: object) -> bool:
        """Whether it is the same request; once freed, it equals MPI.REQUEST_NULL, as in mpi4py."""
        freed = self._active is None and isinstance(other, MPI.Request | PersistentCollective)
        return self is other or (freed and not other)

    __hash__ = object.__hash__

    def Start(self) -> None:  # noqa: N802
        """Start the collective; the program must leave its buffers alone until `Wait` returns.

        Raises BrokenCommunicator after an interrupted collective, RuntimeError if it is running,
        InvalidArgument if it was freed.
        """
        if self._active is not False or self._private.broken:
            self._refuse()
        self._active = True
        try:
            self._begin()
        except BaseException as problem:
            self._failed(problem)
            raise

    def Wait(self, status: MPI.Status | None = None) -> Literal[True]:  # noqa: N802
        """Return when this rank's part is complete; at once if it is not active."""
        if self._active:
            self._private.check()
            try:
                self._end()
            except BaseException as problem:
                self._failed(problem)
                raise
            self._active = False
        return True

    def Test(self, status: MPI.Status | None = None) -> bool:  # noqa: N802
        """Whether this rank's part is complete; completes it if so.  Never blocks."""
        return self.Get_status() and self.Wait()

    def Get_status(self, status: MPI.Status | None = None) -> bool:  # noqa: N802
        """Whether `Wait` would return at once."""
        advance()
        if self._active:
            self._private.check()
        return not self._active or self._bound.complete()

    complete = Get_status

    def Free(self) -> None:  # noqa: N802
        """Free MPI's requests; a running collective is completed first.

        Freeing it again has no effect.
        """
        try:
            if not self._private.broken:
                self.Wait()
        finally:
            self._bound.Free()
            self._active = None

    def wait(self, status: MPI.Status | None = None) -> None:
        """Call `Wait`; returns None where mpi4py's `wait` returns an object."""
        self.Wait()

    def test(self, status: MPI.Status | None = None) -> tuple[bool, None]:
        """Call `Test`; returns its result, and None where mpi4py returns an object."""
        return self.Test(), None

    get_status, free = Get_status, Free

    def __del__(self) -> None:
        """Free a request that the program dropped; a running collective continues, as in MPI."""
        if self._active is not None and not MPI.Is_finalized():
            self._private.leave(self._bound, running=self.active)

    def refuse(self) -> None:
        """Do nothing, since `Start` checks whether the communicator is broken."""

    def _failed(self, problem: BaseException) -> None:
        self._active = False
        self._private.judge(self._bound, problem)

    def _refuse(self) -> None:
        if self._active is None:
            raise InvalidArgument(
                "a persistent collective",
                "it was freed, or the communicator that it was made on",
                "make a new one, or free it later",
            )
        self._private.check()
        raise RuntimeError("this collective is running: Wait for it before you start it again")


PersistentCollective.__name__ = _NAME


class _Completing:
    """A mixin that frees a request when it is complete."""

    def Wait(self, status: MPI.Status | None = None) -> Literal[True]:  # noqa: N802
        """Return when this rank's part is complete."""
        if not self.active:  # type: ignore[attr-defined]
            return True
        try:
            super().Wait(status)  # type: ignore[misc]
        finally:
            self.Free()  # type: ignore[attr-defined]
        return True

    def Test(self, status: MPI.Status | None = None) -> bool:  # noqa: N802
        """Whether this rank's part is complete; completes it if so.  Never blocks."""
        return not self or (self.Get_status() and self.Wait())  # type: ignore[attr-defined]


class NonblockingCollective(_Completing, PersistentCollective):
    """A non-blocking collective on the Python engine; not an `MPI.Request`.

    Use `collwise.waitall` on lists that hold such requests.
    """


_compiled: tuple[type[PersistentCollective], type[PersistentCollective]] | None = None
"""The classes of persistent and of non-blocking requests on the compiled engine, if it serves."""
if COMPILED is not None:
    _Persistent: Any = COMPILED.Persistent

    class CompiledCollective(_Persistent, PersistentCollective):  # type: ignore[misc]
        """A persistent request with `Start`, `Wait` and `Test` in C."""

        _freed = False
        get_status = complete = _Persistent.Get_status

        def __new__(cls, _: PrivateCommunicator, bound: CompiledPlan) -> Self:  # noqa: D102
            made: Self = super().__new__(cls, bound.program)
            return made

        @property
        def _active(self) -> bool | None:
            return None if self._freed else self.active

        @_active.setter
        def _active(self, state: bool | None) -> None:
            if state is None:  # C keeps track of the other states
                self._freed = True
                self.refuse()

    class CompiledNonblockingCollective(_Completing, CompiledCollective):
        """A non-blocking collective on the compiled engine; not an `MPI.Request`."""

    _compiled = CompiledCollective, CompiledNonblockingCollective


def request_of(
    private: PrivateCommunicator, bound: "Bound", *, once: bool = False
) -> PersistentCollective:
    """A request for a bound plan, on the plan's engine.

    once: whether it is started now, and freed when it is complete; otherwise it is persistent.
    """
    compiled = isinstance(bound, CompiledPlan) and _compiled
    request = (compiled or (PersistentCollective, NonblockingCollective))[once](private, bound)
    if once:
        request.Start()
    return request


def startall(requests: Iterable[Any]) -> None:
    """Start every request of a list, collwise's and MPI's persistent ones alike."""
    for request in requests:
        request.Start()


def waitall(requests: Iterable[Any]) -> None:
    """Complete every request of a list, collwise's and MPI's alike."""
    every = list(requests)
    for request in every:
        if not isinstance(request, PersistentCollective):
            wait_with_progress([request])
    for request in every:
        if isinstance(request, PersistentCollective):
            request.Wait()
