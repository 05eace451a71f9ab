"""Runs one rank's part of a schedule on MPI: once, or compiled into persistent requests.

The executor never knows which algorithm made what it walks.  It posts all receives at once, starts
each send as soon as its data is here, in list order, and keeps other running schedules moving.
"""

from collections.abc import Callable
from typing import Any

from mpi4py import MPI

from collwise.mpi.blocking import Combiner, moving_whole, once
from collwise.mpi.channel import BLOCKING_TAG, Channel
from collwise.mpi.combining import Operator
from collwise.mpi.gatherer import Gatherer
from collwise.mpi.gathering import Gathering, compiled
from collwise.mpi.operands import Operands, Ways, fitting, for_ranks
from collwise.mpi.persistent import Persistent
from collwise.mpi.route import route_of
from collwise.mpi.workspace import for_combining, for_moving, whole_only
from collwise.schedule.program import Schedule


def persistent(schedule: Schedule, channel: Channel, spec: Any) -> Persistent:
    """Compile this rank's part of a broadcast for a buffer.  All ranks, in the same order.

    spec: the buffer in any form that mpi4py takes; its bytes must be the schedule's.
    Raises InvalidArgument for a buffer or a communicator of another size than the schedule's.
    """
    problem = for_ranks(schedule, channel)
    buffer = fitting(problem, channel, spec, writable=channel.rank != problem.root)
    way, tag = route_of(schedule, channel.rank), channel.take_tag()
    root = channel.rank == problem.root
    work = for_moving(way.operations, buffer, root, channel.comm, tag)
    return Persistent(channel, way, work, tag)


def runner(schedule: Schedule, channel: Channel) -> Callable[[Any], None]:
    """A function that runs this rank's part of a broadcast once on the buffer that it is given."""
    way, problem = route_of(schedule, channel.rank), for_ranks(schedule, channel)
    if whole_only(way.operations, problem.nbytes) and len(way.stages) <= 1:
        return moving_whole(way, channel)
    root = channel.rank == problem.root

    def run(spec: Any) -> None:
        channel.check()
        buffer = fitting(problem, channel, spec, writable=not root)
        try:
            once(way, for_moving(way.operations, buffer, root, channel.comm, BLOCKING_TAG))
        except BaseException as problem_:
            channel.mark_broken(problem_)
            raise

    return run


def persistent_combine(
    schedule: Schedule, channel: Channel, sendbuf: Any, recvbuf: Any, op: MPI.Op
) -> Persistent:
    """Compile this rank's part of a reduce or an allreduce.  All ranks, in the same order.

    sendbuf, recvbuf: as mpi4py takes them, `MPI.IN_PLACE` included; recvbuf counts only where there
    is an output.   op: an operator that fits the type; it must live as long as the request.
    Raises InvalidArgument for buffers or a communicator of another size than the schedule's, or
    elements of another size.
    """
    problem = for_ranks(schedule, channel)
    data = Operands(problem, channel, sendbuf, recvbuf)
    types = data.own_type()
    operator = Operator.of(op, data.datatype, data.slots.values())
    way, tag = Ways(schedule, channel.rank).of(data.in_place, operator), channel.take_tag()
    work = for_combining(
        way,
        operator,
        problem.nbytes,
        data.slots,
        channel.comm,
        tag,
        keep=[data],
        types=types,
    )
    return Persistent(channel, way.route, work, tag)


def combiner(schedule: Schedule, channel: Channel, op: MPI.Op) -> Combiner:
    """A function that runs this rank's part of a reduce or an allreduce once, on given buffers."""
    return Combiner(schedule, channel, op)


def persistent_gather(
    schedule: Schedule, channel: Channel, sendbuf: Any, recvbuf: Any
) -> Persistent:
    """Compile this rank's part of an s-to-p broadcast.  All ranks, in the same order.

    sendbuf, recvbuf: as mpi4py's `Allgatherv` takes them, `MPI.IN_PLACE` included; every rank's
    bytes must be the schedule's.  What ranks give lands where its displacement says, in elements of
    the receive buffer's type, whose holes and gaps stay as they are.
    Raises InvalidArgument for other sizes than the schedule's, and for pieces of the receive buffer
    that overlap or reach beyond it.
    """
    return compiled(Gathering(schedule, channel), sendbuf, recvbuf)


def gatherer(schedule: Schedule, channel: Channel) -> Gatherer:
    """A function that runs this rank's part of an s-to-p broadcast once, on given buffers."""
    return Gatherer(schedule, channel)
