"""When everything happens, if every rank goes on as early as it can: ideal time, exact.

A schedule never says when; this does.  Two engines for one time: `events` plays any schedule on any
machine, one event after another, and `columns` those without contention as arrays, fast for many
messages.
"""

from collwise.model.machine import Machine
from collwise.model.topology import Topology
from collwise.schedule.program import Schedule, Written
from collwise.timing.events import Combining, Passage, Timing, Transfer, Wait, ideal, ideal_alike
from collwise.timing.vectorised import ColumnTiming, column_timing

__all__ = [
    "ColumnTiming",
    "Combining",
    "Passage",
    "Timing",
    "Transfer",
    "Wait",
    "column_timing",
    "ideal",
    "ideal_alike",
    "simulated",
]


def simulated(
    schedule: Schedule, machine: Machine, topology: Topology | None = None, *, many: int
) -> Timing | ColumnTiming:
    """The ideal times, by whichever engine is the faster.

    many: from so many ranks on, columns are tried.   Otherwise as `ideal`.
    """
    # A list written by hand may do what columns do not tell: copies, scratch, unanswered receives.
    if schedule.ranks >= many and topology is None and not isinstance(schedule.program, Written):
        found = column_timing(schedule, machine)
        if found is not None:
            return found
    return ideal(schedule, machine, topology)
