"""Whether both loops, in C and in Python, say the same of a schedule, to the last fraction."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from collwise.errors import InvalidSchedule
from collwise.model.machine import Machine
from collwise.model.topology import Topology
from collwise.schedule.program import Schedule
from collwise.timing import Timing, completion, event_loop, ideal, simulate


def facts(timing: Any, topology: Topology | None) -> tuple[Any, ...]:
    """All that a timing says; with links also the order in which messages had them."""
    passages = [
        (
            *passage[:-1],
            passage.waited and (passage.waited.link, timing.transfers[passage.waited[1]]),
        )
        for passage in timing.passages
    ]
    in_order = (timing.transfers, timing.passages) if topology else ()
    times = timing.finish, timing.finish_s, timing.completion, timing.completion_s
    lists = sorted(timing.transfers), sorted(timing.combines), sorted(passages, key=repr)
    return *times, *lists, *in_order, timing.link_busy()


def outcome(play: Callable[..., Any], *asked: Any) -> Any:
    """What it says, or why it refuses."""
    try:
        return play(*asked)
    except InvalidSchedule as error:
        return str(error)


def outcomes(schedule: Schedule, machine: Machine, topology: Topology | None) -> Any:
    """What `ideal` says, or why it refuses; `simulate` and `completion` (with limits) agree."""
    asked = schedule, machine, topology
    timing, trace = outcome(ideal, *asked), outcome(simulate, *asked)
    time: Any = outcome(completion, *asked)
    if isinstance(timing, str):
        assert timing == trace == time
        return timing
    assert trace.finish == timing.finish
    assert time == timing.completion
    for limit in (time, time - Fraction(1, 10**15), time * Fraction(9, 10), time / 3, Fraction(-1)):
        assert completion(*asked, limit) == (time if time <= limit else None), limit
    return facts(timing, topology)


def check(schedule: Schedule, machine: Machine, topology: Topology | None = None) -> Timing | None:
    """The loop in C, if it is there, and its plain twin say the same: this, or that it is wrong."""
    expected = outcomes(schedule, machine, topology)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(event_loop, "_event_loop", None)
        assert outcomes(schedule, machine, topology) == expected
    return None if isinstance(expected, str) else ideal(schedule, machine, topology)
