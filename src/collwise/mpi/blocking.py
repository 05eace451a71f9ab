"""One rank's part of a schedule, run once, on the buffers of this call."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from collwise.mpi.channel import BLOCKING_TAG, Channel
from collwise.mpi.combining import Operator
from collwise.mpi.memory import LONG, Allocate, allocate
from collwise.mpi.operands import Operands, Way, Ways, for_ranks, has_output, is_in_place
from collwise.mpi.persistent import Persistent
from collwise.mpi.progress import ENGINE, moving
from collwise.mpi.route import Route
from collwise.mpi.workspace import Workspace, for_combining
from collwise.schedule.operations import Recv, Send
from collwise.schedule.program import Schedule

SHORT = 32768
"""Vectors of up to so many bytes are copied to and from buffers of our own: cheaper than making
requests anew."""


def once(way: Route, work: Workspace) -> None:
    """Run the list once and free what was made for it."""
    comm = work.comm
    requests: dict[int, MPI.Request] = {}

    def begin(place: int) -> None:
        op = way.operations[place]
        if isinstance(op, Send):
            requests[place] = comm.Isend(work.message(op), op.peer, work.tag)
        elif isinstance(op, Recv):
            requests[place] = comm.Irecv(work.message(op), op.peer, work.tag)
        else:
            for act in work.acts(op):
                act()

    for act in work.before:
        act()
    for place in (*way.first, *way.opening):
        begin(place)
    for stage in (*way.stages, *way.tail):
        moving(*[requests[place] for place in stage.awaited])
        for place in stage.acts:
            begin(place)
    moving(*requests.values())
    for act in work.after:
        act()
    work.free()


def moving_whole(way: Route, channel: Channel) -> Callable[[Any], None]:
    """The short way for trees without segments: the user's buffer as it is, no pieces to make."""
    comm = channel.comm
    parents = [op.peer for op in way.operations if isinstance(op, Recv)]
    children = [op.peer for op in way.operations if isinstance(op, Send)]

    def run(spec: Any) -> None:
        if channel.broken:
            channel.check()
        try:
            for parent in parents:
                if ENGINE.running:
                    moving(comm.Irecv(spec, parent, BLOCKING_TAG))
                else:
                    comm.Recv(spec, parent, BLOCKING_TAG)
            if len(children) == 1 and not ENGINE.running:
                comm.Send(spec, children[0], BLOCKING_TAG)
            elif children:
                moving(*[comm.Isend(spec, child, BLOCKING_TAG) for child in children])
        except (TypeError, ValueError, LookupError, BufferError):
            raise  # mpi4py does not understand the buffer: nothing was sent
        except BaseException as problem:
            channel.mark_broken(problem)
            raise

    return run


class _Short(NamedTuple):
    """Buffers of our own of one shape, and everything compiled for them."""

    given: NDArray[Any]
    result: NDArray[Any]
    run: Callable[[], None]
    words: np.dtype[Any] | None
    """What long vectors are copied in; see `LONG`."""

    def take(self, given: NDArray[Any]) -> None:
        """Copy what is given in."""
        if self.words is None:
            self.given[...] = given
        else:
            np.positive(given.view(self.words), self.given.view(self.words))

    def put(self, result: NDArray[Any]) -> None:
        """Copy the result out."""
        if self.words is None:
            result[...] = self.result
        else:
            np.positive(self.result.view(self.words), result.view(self.words))


class Combiner:
    """Runs this rank's part of a reduce or an allreduce once, on the buffers of each call.

    Short arrays go through buffers of our own, for which everything is compiled; other buffers are
    taken where they are.
    """

    def __init__(self, schedule: Schedule, channel: Channel, op: MPI.Op) -> None:
        self._problem, self._channel, self._op = for_ranks(schedule, channel), channel, op
        self._ways = Ways(schedule, channel.rank)
        self._owed = has_output(self._problem, channel.rank)
        self._compiled: dict[np.dtype[Any], tuple[NDArray[Any], NDArray[Any], Persistent]] = {}
        self._short: dict[tuple[np.dtype[Any], tuple[int, ...]], _Short] = {}

    def __call__(self, sendbuf: Any, recvbuf: Any) -> None:
        """Run it.  Raises as mpi4py does for odd buffers, InvalidArgument for other sizes."""
        given = recvbuf if is_in_place(sendbuf) else sendbuf
        if type(given) is np.ndarray:
            short = self._short.get((given.dtype, given.shape)) or self._shaped(given)
            if short is not None and given.flags.c_contiguous:
                if not self._owed:
                    if sendbuf is given:
                        short.take(given)
                        short.run()
                        return
                elif recvbuf is given or (
                    type(recvbuf) is np.ndarray
                    and recvbuf.dtype == given.dtype
                    and recvbuf.shape == given.shape
                ):
                    flags = recvbuf.flags
                    if flags.c_contiguous and flags.writeable:
                        short.take(given)
                        short.run()
                        short.put(recvbuf)
                        return
        self._anew(sendbuf, recvbuf)

    def _shaped(self, like: NDArray[Any]) -> _Short | None:
        """Buffers of a shape; None for long ones, or where the sizes are wrong."""
        dtype, nbytes = like.dtype, self._problem.nbytes
        if nbytes > SHORT or like.nbytes != nbytes:
            return None
        if dtype not in self._compiled:
            given, result = (allocate(nbytes).view(dtype) for _ in range(2))
            self._compiled[dtype] = given, result, self._request(given, result)
        given, result, request = self._compiled[dtype]
        words = np.dtype(f"u{dtype.itemsize}") if dtype.itemsize in (1, 2, 4, 8) else None
        made = self._short[dtype, like.shape] = _Short(
            given.reshape(like.shape),
            result.reshape(like.shape),
            request.run,
            words if nbytes >= LONG else None,
        )
        return made

    def _request(self, given: NDArray[Any], result: NDArray[Any]) -> Persistent:
        data = Operands(self._problem, self._channel, given, result)
        # All blocking calls have one tag: they come in the same order on all ranks.
        way, work = self._prepared(data, allocate)
        return Persistent(self._channel, way.route, work, BLOCKING_TAG)

    def _prepared(self, data: Operands, allocate: Allocate) -> tuple[Way, Workspace]:
        operator = Operator.of(self._op, data.datatype, data.slots.values())
        way = self._ways.of(data.in_place, operator)
        work = for_combining(
            way,
            operator,
            self._problem.nbytes,
            data.slots,
            self._channel.comm,
            BLOCKING_TAG,
            keep=[data],
            allocate=allocate,
        )
        return way, work

    def _anew(self, sendbuf: Any, recvbuf: Any) -> None:
        channel = self._channel
        channel.check()
        data = Operands(self._problem, channel, sendbuf, recvbuf)
        try:
            way, work = self._prepared(data, channel.arena.allocate)
            once(way.route, work)
        except BaseException as problem:
            channel.mark_broken(problem)
            raise

    def free(self) -> None:
        """Give back what MPI holds for it."""
        self._short.clear()
        while self._compiled:
            self._compiled.popitem()[1][2].Free()
