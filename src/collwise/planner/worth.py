"""Estimates how many seconds tuning would save on the calls of a program, and gives reasons."""

from collections.abc import Iterable
from typing import NamedTuple

from collwise.algorithms.registry import ALGORITHMS
from collwise.errors import NothingApplies
from collwise.measure.race import LIBRARY
from collwise.model.machine import Machine
from collwise.planner.choose import plan_for
from collwise.planner.race_lookup import nearest_of_kind
from collwise.profiles.records import Form, RaceResult
from collwise.schedule.problem import Problem
from collwise.system import formatting


class Worth(NamedTuple):
    """The seconds that tuning may save on one call.

    seconds: None if unknown.   evidence: a clause that gives the reason for this estimate.
    """

    seconds: float | None = None
    evidence: str = ""


def worth(
    races: Iterable[RaceResult],
    machine: Machine | None,
    problem: Problem,
    form: Form,
    took_s: float | None,
) -> Worth:
    """Estimate the seconds that tuning may save on one call that no race decides.

    The MPI library runs such calls.   form: that of the call.   machine: None if nothing was
    measured.   took_s: mean seconds of the calls, which bound the saving; None if unknown.
    If `took_s` is known and other sizes were raced, the gain of the nearest race is assumed.
    Otherwise the model compares the fastest algorithm with the fastest that MPI libraries have.
    """
    race = nearest_of_kind(races, problem, form)
    if race is not None and took_s is not None:
        size = formatting.size(race.nbytes) + _distance(race.nbytes, problem.nbytes)
        if race.decision == LIBRARY:
            return Worth(0.0, f"nothing was clearly faster in the nearest race, of {size}")
        gain = f"{race.library_s / race.ours_s:.2f}" if race.ours_s else "∞"
        part = max(0.0, 1 - race.ours_s / race.library_s) if race.library_s else 0.0
        return Worth(part * took_s, f"the nearest race, of {size}, was won {gain} times as fast")
    if machine is None:
        return Worth(None, "nothing was measured on this machine")
    try:
        plan = plan_for(problem, machine)
    except NothingApplies as nothing:
        return Worth(None, str(nothing))
    usual = [c for c in plan.candidates if ALGORITHMS[c.name].usual]
    if not usual:
        return Worth(None, "the model knows no time of what libraries have")
    ahead = usual[0].predicted_s - plan.predicted_s
    if not ahead:
        return Worth(
            0.0, f"by the model nothing is faster than {usual[0].label}, as libraries have"
        )
    reason = f"by the model {plan.choice.label} takes {plan.choice.time}"
    reason += f", and {usual[0].label}, the best that libraries have, {usual[0].time}"
    return Worth(ahead if took_s is None else min(ahead, took_s), reason)


def _distance(raced: int, nbytes: int) -> str:
    """How many times smaller or larger than `nbytes` the raced size is, in words.

    Empty if one size is less than twice the other.
    """
    times = max(raced, nbytes, 1) // max(min(raced, nbytes), 1)
    return f" ({times:,} times as {'small' if raced < nbytes else 'large'})" if times > 1 else ""
