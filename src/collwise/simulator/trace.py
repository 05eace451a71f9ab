"""A schedule run on an assumed machine, in ideal time: exact, with or without a shaped network.

`collwise.schedule.timing` has two engines, for any schedule, and for very many ranks without
contention.  A trace is what one of them found, with what it was given.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from collwise.model.machine import Machine
from collwise.model.topology import Topology
from collwise.schedule.program import Schedule
from collwise.timing import ColumnTiming, Passage, Timing, Transfer, simulated
from collwise.timing.arguments import check_simulable

MANY = 1024
"""From so many ranks on, schedules are played in columns if they can be."""


@dataclass(frozen=True)
class Trace:
    """What happened when: seconds from a common start, exact and as floats (`…_s`)."""

    schedule: Schedule
    machine: Machine
    simulated: Timing | ColumnTiming
    topology: Topology | None = None
    """The network's shape; None if every pair of ranks had a link of its own."""

    @cached_property
    def timing(self) -> Timing:
        """All of it, message by message, as `ideal` gives it; for pictures."""
        if isinstance(self.simulated, Timing):
            return self.simulated
        return Timing(self.simulated.finish, self.simulated.transfers)

    @property
    def finish(self) -> tuple[Fraction, ...]:
        """Per rank: when its last operation is done."""
        return self.simulated.finish

    @property
    def finish_s(self) -> tuple[float, ...]:
        """`finish` as floats."""
        return self.simulated.finish_s

    @property
    def completion(self) -> Fraction:
        """When the last rank is done."""
        return self.simulated.completion

    @property
    def completion_s(self) -> float:
        """`completion` as a float."""
        return self.simulated.completion_s

    @property
    def transfers(self) -> tuple[Transfer, ...]:
        """Every message: when its send began, the sender was free, the receiver had it.

        Of very many ranks it is made when asked for: some microseconds for each message.
        """
        return self.simulated.transfers

    @property
    def passages(self) -> tuple[Passage, ...]:
        """The same messages on the links, if there are any: route, header, who waited for whom."""
        return self.simulated.passages

    def link_busy(self) -> dict[int, Fraction]:
        """For how long each link of the topology was held in all, in exact seconds."""
        return self.simulated.link_busy()


def simulate(schedule: Schedule, machine: Machine, topology: Topology | None = None) -> Trace:
    """Run a schedule on a machine: every rank goes on as early as it can.

    topology: the network, on whose links messages wait for each other.
    Many ranks that only send and receive, without links, are played in columns: about a second for
    10^6 messages (`column_timing` says what is slower, and what it leaves out).  All else is played
    event by event: some 50 µs for each message.
    Raises InvalidSchedule if ranks wait for each other in a circle; InvalidArgument for a topology
    of another size than the schedule, or on a machine that knows no links.
    """
    check_simulable("a simulation", schedule, machine, topology)
    return Trace(schedule, machine, simulated(schedule, machine, topology, many=MANY), topology)
