"""One rank's part of a schedule, compiled into persistent requests and bound calls."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

from mpi4py import MPI

from collwise.errors import InvalidArgument
from collwise.mpi.channel import Channel
from collwise.mpi.memory import Act, in_turn
from collwise.mpi.progress import ENGINE, SINGLY, moving
from collwise.mpi.route import Route
from collwise.mpi.workspace import Workspace
from collwise.schedule.operations import Recv, Send


class _Step(NamedTuple):
    """A stage of the route, ready to do."""

    awaited: list[MPI.Prequest]
    wait: Act
    act: Act


class _Freed(Channel):
    """In place of the channel of a request that was freed; so starting one asks nothing more."""

    def __init__(self) -> None:
        self.broken = "freed"

    def check(self) -> None:
        """Raise InvalidArgument."""
        raise InvalidArgument(
            "a persistent collective",
            "it was freed, or the communicator that it was made on",
            "make a new one, or free it later",
        )


_FREED = _Freed()


class Persistent:
    """A collective that can be started again and again: `Start`, then `Wait` or `Test`.

    Made on all ranks in the same order.  Not an `MPI.Request`: use `collwise.startall` and
    `collwise.waitall` on lists that hold both kinds.
    """

    def __init__(self, channel: Channel, way: Route, work: Workspace, tag: int) -> None:
        self._channel, self._work = channel, work
        comm = channel.comm
        self._by_place: dict[int, MPI.Prequest] = {}
        for place, op in enumerate(way.operations):
            if isinstance(op, Send):
                self._by_place[place] = comm.Send_init(work.message(op), op.peer, tag)
            elif isinstance(op, Recv):
                self._by_place[place] = comm.Recv_init(work.message(op), op.peer, tag)
        self._requests = list(self._by_place.values())
        first = [self._by_place[place] for place in way.first]
        self._opening = in_turn([*work.before, *_starting(first), *self._acts(way.opening)])
        self._steps = [self._step(stage.awaited, stage.acts) for stage in way.stages]
        self._begin = self._begin_stages if self._steps else self._opening
        tail: list[Act] = []
        for stage in way.tail:
            tail += [self._step(stage.awaited, ()).wait, *self._acts(stage.acts)]
        awaited = {place for stage in (*way.stages, *way.tail) for place in stage.awaited}
        left = [request for place, request in self._by_place.items() if place not in awaited]
        self._finish = in_turn([*tail, *_completing(left), *work.after])
        self._at = len(self._steps)
        self._active = False
        channel.own(self)

    def _acts(self, places: Iterable[int]) -> list[Act]:
        acts: list[Act] = []
        sends: list[MPI.Prequest] = []
        for place in places:
            op = self._work.operations[place]
            if isinstance(op, Send | Recv):
                sends.append(self._by_place[place])
                continue
            acts += [*_starting(sends), *self._work.acts(op)]
            sends = []
        return acts + _starting(sends)

    def _step(self, awaited: Sequence[int], acts: Sequence[int]) -> _Step:
        requests = [self._by_place[place] for place in awaited]
        return _Step(requests, in_turn(_completing(requests)), in_turn(self._acts(acts)))

    @property
    def active(self) -> bool:
        """Whether it was started and not yet completed."""
        return self._active

    def Start(self) -> None:  # noqa: N802
        """Start the collective; its buffers belong to it until `Wait` returns.

        Raises BrokenCommunicator after an interrupted collective, RuntimeError if it is running,
        InvalidArgument if it was freed.
        """
        if self._active or self._channel.broken:
            self._refuse()
        self._active = True
        try:
            self._begin()
        except BaseException as problem:
            self._channel.mark_broken(problem)
            raise

    def Wait(self) -> None:  # noqa: N802
        """Return when this rank's part is complete; at once if it is not started, or was freed."""
        if not self._active:
            return
        try:
            if ENGINE.running:
                self._wait_moving()
            self._finish()
        except BaseException as problem:
            self._channel.mark_broken(problem)
            raise
        self._active = False

    def run(self) -> None:
        """Start and complete it; cheaper than `Start` and `Wait`, for nothing can come between."""
        if ENGINE.running or self._active or self._channel.broken:
            self.Start()
            self.Wait()
            return
        try:
            self._opening()
            for _, wait, act in self._steps:
                wait()
                act()
            self._finish()
        except BaseException as problem:
            self._channel.mark_broken(problem)
            raise

    def Test(self) -> bool:  # noqa: N802
        """Whether this rank's part is complete; completes it if so.  Never blocks.

        Raises InvalidArgument if it was freed.
        """
        ENGINE.advance()
        if not self._active:
            return True
        if self._at < len(self._steps) or not MPI.Request.Testall(self._requests):
            return False
        self.Wait()
        return True

    def advance(self) -> bool:
        """Do what waited for messages that are here (called under the engine's lock)."""
        while self._at < len(self._steps):
            step = self._steps[self._at]
            if not MPI.Request.Testall(step.awaited):
                return False
            step.act()
            self._at += 1
        return True

    def _begin_stages(self) -> None:
        self._opening()
        self._at = 0
        ENGINE.add(self)

    def _wait_moving(self) -> None:
        """Do this rank's part of what others wait for, moving others on if there are any."""
        with ENGINE.lock:
            if ENGINE.running == [self]:  # nobody else to care for: MPI may block for us
                for step in self._steps[self._at :]:
                    step.wait()
                    step.act()
                    self._at += 1
                ENGINE.running = []
        if ENGINE.running:
            while self._at < len(self._steps):  # only then are all its sends started
                ENGINE.advance()
            moving(*self._requests)
            ENGINE.remove(self)

    def Free(self) -> None:  # noqa: N802
        """Give the requests back to MPI; a running collective is completed first.

        Once more changes nothing.
        """
        if self._active and not self._channel.broken:
            self.Wait()
        ENGINE.remove(self)
        for request in self._requests:
            if request != MPI.REQUEST_NULL:
                request.Free()
        self._work.free()
        self._requests, self._by_place, self._steps = [], {}, []
        self._begin = self._opening = self._finish = _nothing
        self._channel, self._active = _FREED, False

    def _refuse(self) -> None:
        self._channel.check()
        raise RuntimeError("this collective is running: Wait for it before you start it again")


def _nothing() -> None:
    """What there is to do for a message of no bytes."""


def _starting(requests: Sequence[MPI.Prequest]) -> list[Act]:
    if len(requests) <= SINGLY:
        return [request.Start for request in requests]
    return [partial(MPI.Prequest.Startall, list(requests))]


def _completing(requests: Sequence[MPI.Prequest]) -> list[Act]:
    if len(requests) <= SINGLY:
        return [request.Wait for request in requests]
    return [partial(MPI.Request.Waitall, list(requests))]


def startall(requests: Any) -> None:
    """Start every request of a list, collwise's and MPI's persistent ones alike."""
    for request in requests:
        request.Start()


def waitall(requests: Any) -> None:
    """Complete every request of a list, collwise's and MPI's alike."""
    ours = [r for r in requests if isinstance(r, Persistent)]
    theirs = [r for r in requests if not isinstance(r, Persistent)]
    moving(*theirs)
    for request in ours:
        request.Wait()
