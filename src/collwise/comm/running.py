"""`run`: runs a schedule that the user gives."""

from typing import Any

from mpi4py import MPI

from collwise.comm.communicator import Comm
from collwise.errors import InvalidArgument, shown
from collwise.schedule.program import Schedule


def run(schedule: Schedule, comm: Comm, *buffers: Any, op: MPI.Op = MPI.SUM) -> None:
    """Run a schedule once, an algorithm's or a user's own; `verify` can prove a schedule right.

        schedule = cw.ALGORITHMS["broadcast/chain"].schedule(comm.size, x.nbytes)
        cw.run(schedule, comm, x)

    buffers: as the MPI method takes them (`Bcast`, `Reduce`, `Allreduce`, `Allgatherv`,
    `Reduce_scatter_block`), with the bytes that the schedule's problem says.   op: the operator of
    collectives that combine.
    Collective: all ranks run the same schedule.  To run a schedule again, keep the object: its
    executor is cached for this object.
    Raises the MPI method's errors, and InvalidArgument if ranks or bytes differ from the
    schedule's, or if an argument is no schedule or no communicator of collwise.
    """
    asked = "run a schedule"
    if not isinstance(schedule, Schedule):
        raise InvalidArgument(asked, f"it is {shown(schedule)}", "give a collwise.Schedule")
    if not isinstance(comm, Comm):
        raise InvalidArgument(asked, f"on {shown(comm)}", "wrap the communicator in collwise.Comm")
    kind = schedule.problem.kind
    wanted = 1 if not (kind.combines or kind.has_sources) else 2
    if len(buffers) != wanted:
        seen = f"{len(buffers)} buffers for {kind.methods[0]}"
        raise InvalidArgument(asked, seen, f"give {wanted}, as to the MPI method")
    if kind.combines and not isinstance(op, MPI.Op):
        raise InvalidArgument(asked, f"op = {shown(op)}", "give an MPI.Op, such as MPI.SUM")
    comm._dispatch.run(schedule, op if kind.combines else None, buffers)
