"""What the verifier says of wrong schedules; and ranks that post their receives at once."""

from dataclasses import replace

import pytest

from collwise.errors import InvalidSchedule
from collwise.model.machine import Machine
from collwise.schedule.program import Schedule, Written
from collwise.verifier import verify


def violation(schedule: Schedule, machine: Machine | None = None) -> InvalidSchedule:
    """The first violation, which must be told in full."""
    with pytest.raises(InvalidSchedule) as caught:
        verify(schedule, machine)
    assert caught.value.asked
    assert caught.value.seen
    assert caught.value.remedy
    return caught.value


class Posted(Written):
    """Lists of ranks that post all their receives at once."""

    needs_posted_receives = True


def posted(schedule: Schedule) -> Schedule:
    """The same by such ranks."""
    return replace(schedule, program=Posted(tuple(map(tuple, schedule.lists))))
