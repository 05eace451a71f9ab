"""Lower bounds of one schedule each: what it would take if messages met nowhere."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any

from collwise.algorithms.registry import Algorithm
from collwise.model.levels import Levels, OneLevel
from collwise.model.machine import Cost, ExchangeOnly, Hockney, LogGP, Machine
from collwise.schedule.data_movement import DownTree
from collwise.schedule.operations import Combine, Recv, Send, size_of
from collwise.schedule.program import Schedule

QUICK = 1 << 10
"""Operations that are simulated for the time of a schedule if messages met nowhere."""


@dataclass(frozen=True)
class LowerBoundMachine(Machine):
    """A postal machine with another machine's costs: that one is never faster.

    On a wormhole network a message keeps both ports for as long as here, and may also wait for
    links.  In LogGP a rank's receipts and sends also delay each other.  But there messages are
    received as they arrive, not in list order; so this is a bound only where each rank has one
    sender.
    """

    machine: Machine
    kind = "relaxed"
    law = "postal"

    def message(self, nbytes: int) -> Cost:  # noqa: D102
        return self.machine.message(nbytes)

    def combine(self, nbytes: int) -> Fraction | None:  # noqa: D102
        return self.machine.combine(nbytes)


def _relaxed(machine: Machine, schedule: Schedule) -> Machine | None:
    """A machine with independent ports on which a schedule is not slower; None if none is known."""
    if isinstance(machine, Levels):
        return OneLevel(machine, 0)
    if isinstance(machine, ExchangeOnly):
        return Hockney(machine.alpha, machine.beta, machine.gamma)
    if isinstance(machine, Hockney):
        return machine
    if machine.all_port or (
        isinstance(machine, LogGP) and not isinstance(schedule.program, DownTree)
    ):
        return None
    return LowerBoundMachine(machine)


def least_time(
    algorithm: Algorithm,
    schedule: Schedule,
    machine: Machine,
    settings: Mapping[str, Any],
    bound: Fraction,
) -> Fraction:
    """A lower bound of the exact seconds that a schedule of an algorithm takes, with any links.

    bound: that of all schedules, or of all that cut nothing.
    """
    problem = replace(schedule.problem, placement=None)
    least = max(bound, load(schedule, machine))
    free = _relaxed(machine, schedule)
    simulated = algorithm.levels or len(problem.sources) > 1
    # Combines of a census may overtake sends, where ranks would wait for each other in a circle.
    overtaken = problem.kind.combines and problem.kind.output != "root" and problem.order == "any"
    in_line = isinstance(machine, Levels) or not overtaken
    formula = in_line and not simulated and algorithm.simulated(problem, settings) <= QUICK
    if free is not None and formula and not algorithm.estimated(problem, settings):
        least = max(least, algorithm.time_of(problem, free, algorithm.settings(settings)))
    return least


def about(
    algorithm: Algorithm, schedule: Schedule, machine: Levels, settings: Mapping[str, Any]
) -> Fraction:
    """Roughly the seconds on a machine with levels: no bound, but tells what to simulate first."""
    problem, read = schedule.problem, algorithm.settings(settings)
    if algorithm.levels:
        return algorithm.by_level(problem, machine, read) if algorithm.by_level else Fraction(0)
    if schedule.program.is_alike():  # what leaves a group at the same time passes one by one
        rank, total, placement = schedule.ranks - 1, Fraction(0), machine.placement
        for op in schedule.rank(rank):
            nbytes = size_of(op)
            if isinstance(op, Recv):
                level = placement.meeting(rank, op.peer)
                total += machine.at(level, nbytes).latency
                if level > 1:
                    crowd = len(placement.members[level - 2][placement.group(level - 1, rank)])
                    total += (crowd - 1) * machine.port(level - 1, nbytes)
            elif isinstance(op, Combine):
                total += machine.combine(nbytes) or 0
        return total
    plain = replace(problem, placement=None)
    if algorithm.simulated(plain, read) > QUICK:
        return Fraction(0)
    return algorithm.time_of(plain, OneLevel(machine, machine.placement.depth), read)


def load(schedule: Schedule, machine: Machine) -> Fraction:
    """For how long the ports of a few ranks are busy: no schedule is faster than its busiest port.

    Sends follow each other in list order.  Of receipts, all but the first wait for the one before.
    """
    p, least = schedule.ranks, Fraction(0)
    message, receipt = cache(machine.message), cache(machine.receipt)
    for rank in {0, 1 % p, p // 2, p - 1}:
        combining, sending = Fraction(0), Fraction(0)
        receiving: list[tuple[Fraction, Fraction]] = []
        last = Fraction(0)  # how much later than its port is free the last message arrives
        for op in schedule.program.operations(rank):
            nbytes = size_of(op)
            if isinstance(op, Combine):
                combining += machine.combine(nbytes) or 0
                last = min(last, Fraction(0))
            elif isinstance(op, Send):
                gap, latency = message(nbytes)
                gap = Fraction(0) if machine.all_port else gap
                sending, last = sending + gap, latency - gap
            elif isinstance(op, Recv):
                gap = Fraction(0) if machine.all_port else receipt(nbytes)
                receiving.append((gap, message(nbytes).latency - gap))
        received = sum((gap for gap, _ in receiving), combining)
        received += min((lag for _, lag in receiving), default=Fraction(0))
        least = max(least, sending + combining + last, received)
    return least
