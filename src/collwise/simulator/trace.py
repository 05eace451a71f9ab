"""A schedule run on an assumed machine, in ideal time: exact, without contention.

There is one engine, `collwise.schedule.timing`; a trace is what it found, with what it was given.
"""

from dataclasses import dataclass
from fractions import Fraction

from collwise.model.machine import Machine
from collwise.schedule.data import Schedule
from collwise.schedule.timing import Timing, Transfer, ideal


@dataclass(frozen=True)
class Trace:
    """What happened when: seconds from a common start, exact and as floats (`…_s`)."""

    schedule: Schedule
    machine: Machine
    timing: Timing

    @property
    def finish(self) -> tuple[Fraction, ...]:
        """Per rank: when its last operation is done."""
        return self.timing.finish

    @property
    def finish_s(self) -> tuple[float, ...]:
        """`finish` as floats."""
        return self.timing.finish_s

    @property
    def completion(self) -> Fraction:
        """When the last rank is done."""
        return self.timing.completion

    @property
    def completion_s(self) -> float:
        """`completion` as a float."""
        return self.timing.completion_s

    @property
    def transfers(self) -> tuple[Transfer, ...]:
        """Every message: when its send began, the sender was free, the receiver had it."""
        return self.timing.transfers


def simulate(schedule: Schedule, machine: Machine) -> Trace:
    """Run a schedule on a machine: every rank goes on as early as it can.

    Raises InvalidSchedule if ranks wait for each other in a circle.
    """
    return Trace(schedule, machine, ideal(schedule, machine))
