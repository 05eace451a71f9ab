"""Chooses the executor for a schedule, by its collective."""

from mpi4py import MPI

from collwise.mpi.execution.broadcast_executor import BroadcastExecutor
from collwise.mpi.execution.combine_executor import CombineExecutor
from collwise.mpi.execution.executor import Executor
from collwise.mpi.execution.gather_executor import GatherExecutor
from collwise.mpi.runtime.private_communicator import PrivateCommunicator
from collwise.schedule.program import Schedule


def executor_for(
    schedule: Schedule,
    private: PrivateCommunicator,
    op: MPI.Op | None = None,
    method: str | None = None,
) -> Executor:
    """The executor for this rank's part of a schedule.

    op: for collectives that combine, an operator that fits the elements.   method: the MPI
    method, if the schedule serves several; by default the most general one.
    Raises InvalidArgument if the schedule is for another number of ranks.
    """
    kind = schedule.problem.kind
    if kind.combines:
        assert op is not None, "a collective that combines has an operator"
        return CombineExecutor(schedule, private, op)
    if kind.has_sources:
        return GatherExecutor(schedule, private, method or kind.methods[0])
    return BroadcastExecutor(schedule, private)
