"""One rank's part of a schedule, run once, on the buffers of this call."""

from collections.abc import Callable
from typing import Any

from mpi4py import MPI

from collwise.mpi.channel import BLOCKING_TAG, Channel
from collwise.mpi.progress import ENGINE, moving
from collwise.mpi.route import Route
from collwise.mpi.workspace import Workspace
from collwise.schedule.data import Recv, Send


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
        except BaseException as problem:
            channel.mark_broken(problem)
            raise

    return run
