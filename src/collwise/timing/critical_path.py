"""Where the time of a schedule is spent: exact seconds per level, along its critical path."""

from fractions import Fraction

from collwise.model.levels import Levels
from collwise.timing.times import Timing, Transfer

COMBINING = 0
"""The key for time that is spent on combines; all other keys are levels."""


def time_by_level(timing: Timing, machine: Levels) -> dict[int, Fraction]:
    """Maps each level on the critical path to the exact seconds of this level's messages there.

    The seconds add up to the completion time.  The critical path goes from the last event back to
    the first: from each message or combine to the earlier row that it waited for, which brought the
    data, used the same port, or kept the group's shared port busy.  A message's time counts for the
    level at which its ends meet; a combine's time counts under COMBINING.
    """
    level = machine.placement.meeting
    ends: dict[tuple[int, Fraction], tuple[int, Fraction, int]] = {}
    for c in timing.combines:
        ends[c.rank, c.end] = (COMBINING, c.start, c.rank)
    for t in timing.transfers:
        ends[t.source, t.sent] = (level(t.source, t.target), t.start, t.source)
    for t in timing.transfers:
        ends[t.target, t.received] = (level(t.source, t.target), t.start, t.source)
    spent: dict[int, Fraction] = {}
    rank, time = max(enumerate(timing.finish), key=lambda row: (row[1], -row[0]))
    while time > 0:
        if (before := ends.get((rank, time))) is None:
            before = _at_shared_port(timing, machine, rank, time)
        at, start, rank = before
        spent[at] = spent.get(at, Fraction(0)) + time - start
        time = start
    return dict(sorted(spent.items()))


def _at_shared_port(
    timing: Timing, machine: Levels, rank: int, time: Fraction
) -> tuple[int, Fraction, int]:
    """Level, start and source of the message that held a shared port until `rank` could send.

    time: when the port became free, in seconds.
    """
    placement = machine.placement

    def frees_port(t: Transfer, level: int) -> bool:
        meeting = placement.meeting(t.source, t.target)
        same_group = placement.group(level, t.source) == placement.group(level, rank)
        busy = machine.port(level, t.nbytes)
        return meeting > level and same_group and busy > 0 and t.start + busy == time

    for level in range(placement.depth - 1, 0, -1):
        for t in timing.transfers:
            if frees_port(t, level):
                return placement.meeting(t.source, t.target), t.start, t.source
    raise AssertionError(f"nothing ends at rank {rank} when its message starts")
