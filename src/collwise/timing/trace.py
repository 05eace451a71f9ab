"""A trace: a schedule, a machine, perhaps a network, and when everything happens on it."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from collwise.model.machine import Machine
from collwise.model.topology import Topology
from collwise.schedule.program import Schedule, Written
from collwise.timing.events import (
    Passage,
    Timing,
    Transfer,
    check_simulable,
    ideal,
    ideal_completion,
)
from collwise.timing.rank_state import PastLimit
from collwise.timing.vectorised import Vectorised, vectorised_timing

QUICKER_FROM = 24
"""Ranks from which on the vectorised engine is quicker, if only the times are wanted."""
VECTORISED_FROM = 1024
"""From so many ranks on, `simulate` takes the vectorised engine where it can."""


@dataclass(frozen=True)
class Trace:
    """What happened when: seconds from a common start, exact and as floats (`…_s`)."""

    schedule: Schedule
    machine: Machine
    simulated: Timing | Vectorised
    topology: Topology | None = None
    """The network's shape; None if every pair of ranks had a link of its own."""

    @cached_property
    def timing(self) -> Timing:
        """All of it, message by message, as `ideal` gives it; for pictures."""
        if isinstance(self.simulated, Timing):
            return self.simulated
        if self.schedule.problem.kind.combines:
            return ideal(self.schedule, self.machine)
        return Timing(self.simulated.finish, self.simulated.transfers)

    @property
    def finish(self) -> tuple[Fraction, ...]:
        """Per rank: when its last operation completes."""
        return self.simulated.finish

    @property
    def finish_s(self) -> tuple[float, ...]:
        """`finish` as floats."""
        return self.simulated.finish_s

    @property
    def completion(self) -> Fraction:
        """When the last rank finishes."""
        return self.simulated.completion

    @property
    def completion_s(self) -> float:
        """`completion` as a float."""
        return self.simulated.completion_s

    @property
    def transfers(self) -> tuple[Transfer, ...]:
        """Every message: when its send started, the sender was free, the receiver had it.

        For very many ranks they are made when asked for: some microseconds for each message.
        """
        return self.simulated.transfers

    @property
    def passages(self) -> tuple[Passage, ...]:
        """The same messages on the links, if there are any: route, header, link wait."""
        return self.simulated.passages

    def link_busy(self) -> dict[int, Fraction]:
        """For how long each link of the topology was held in all, in exact seconds."""
        return self.simulated.link_busy()


def fastest_timing(
    schedule: Schedule,
    machine: Machine,
    topology: Topology | None = None,
    *,
    vectorised_from: int = QUICKER_FROM,
) -> Timing | Vectorised:
    """The ideal times by the faster engine; arguments and errors are those of `ideal`.

    vectorised_from: from so many ranks on, the vectorised engine is tried first.
    """
    # A list written by hand may do what that engine does not see: copies, unanswered receives.
    written = isinstance(schedule.program, Written)
    if schedule.ranks >= vectorised_from and topology is None and not written:
        timing = vectorised_timing(schedule, machine)
        if timing is not None:
            return timing
    return ideal(schedule, machine, topology)


def completion(
    schedule: Schedule,
    machine: Machine,
    topology: Topology | None = None,
    limit: Fraction | None = None,
) -> Fraction | None:
    """When the last rank finishes, by the faster engine; None if that is after the limit.

    Arguments and errors are those of `ideal_completion`.
    """
    if schedule.ranks >= QUICKER_FROM and topology is None:
        try:
            timing = vectorised_timing(schedule, machine, limit)
        except PastLimit:
            return None
        if timing is not None:
            return timing.completion
    return ideal_completion(schedule, machine, topology, limit)


def simulate(schedule: Schedule, machine: Machine, topology: Topology | None = None) -> Trace:
    """Run a schedule on an assumed machine: every rank goes on as early as it can.

    topology: the network, on whose links messages wait for each other.
    From 1,024 ranks on, schedules without links take the vectorised engine: about a second for 10^6
    messages (`vectorised_timing` says what is slower, and what of those that combine it does not
    know).  All others are simulated event by event: 10 to 60 µs for each message.
    Raises InvalidSchedule if ranks wait for each other in a circle; InvalidArgument for a topology
    of another size than the schedule, or on a machine that knows no links.
    """
    check_simulable("a simulation", schedule, machine, topology)
    times = fastest_timing(schedule, machine, topology, vectorised_from=VECTORISED_FROM)
    return Trace(schedule, machine, times, topology)
