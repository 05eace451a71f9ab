"""Finds the settings of an algorithm that are worth trying.

An algorithm with many possible settings states a rough time for each (`Rough`).  Only the few
settings with the least rough times are compared by simulation, within a budget.  The budget counts
messages, not seconds, so that all ranks compare the same settings and make the same choice.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import cache, lru_cache

from collwise.algorithms.registry import Algorithm, Rough, Settings
from collwise.model.limits import COMPARED, COMPARED_WORK
from collwise.model.machine import Machine
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program, Schedule
from collwise.schedule.reduction import UpTree
from collwise.timing.trace import completion, completion_of_one, messages_played
from collwise.timing.tree_times import time_by_pace, with_few_segments


def settings_to_try(algorithm: Algorithm, problem: Problem, machine: Machine) -> list[Settings]:
    """The settings of an algorithm that are worth trying for a problem on a machine.

    The result has all settings without a rough time; of those with one it has the fastest that the
    budget lets it find.  Empty if the algorithm does not apply.   Raises what `choices` raises.
    """
    offered = list(algorithm.choices(problem, machine))
    given = [settings for settings in offered if not isinstance(settings, Rough)]
    rough = [settings for settings in offered if isinstance(settings, Rough)]
    few = sorted(rough, key=lambda entry: entry.time)[:COMPARED]
    left, timed = COMPARED_WORK, list[tuple[Fraction, Settings]]()
    for _, settings, even in few if len(few) > 1 else ():
        seen = even or problem
        program = algorithm.build(seen, settings)
        simulated = with_few_segments(program) if isinstance(program, UpTree) else [program]
        left -= sum(messages_played(Schedule(seen, few), machine) for few in simulated)
        if left < 0:
            break
        timed.append((program_time(seen, program, machine), settings))
    if timed:
        return [*given, min(timed, key=lambda entry: entry[0])[1]]
    return [*given, *(entry.settings for entry in few[:1])]


@lru_cache(maxsize=1024)
def program_time(problem: Problem, program: Program, machine: Machine) -> Fraction:
    """Seconds that a program takes, used to choose an algorithm's settings.

    If a reduce sends many segments up a tree, the first few are simulated, the rest extrapolated.
    Other times are exact if only ranks' own ports delay messages, else estimates: one rank is
    simulated if all ranks do the same; if they do not, contention is left out.
    Results are cached, so all arguments have to be hashable.
    """
    if isinstance(program, UpTree):
        return time_by_pace(program, lambda few: _simulated(problem, few, machine))
    return _simulated(problem, program, machine)


def _simulated(problem: Problem, program: Program, machine: Machine) -> Fraction:
    schedule = Schedule(problem, program)
    if not machine.independent_ports and program.is_alike():
        return completion_of_one(schedule, machine)
    return completion(schedule, machine.ports_only())


def rough_costs(problem: Problem, machine: Machine) -> Callable[[int], tuple[float, float, float]]:
    """A function that maps the length of a message, in elements, to the message's costs.

    The costs are (gap, latency, time to combine the message), in seconds.
    """

    @cache
    def costs(items: int) -> tuple[float, float, float]:
        nbytes = items * problem.itemsize
        gap, latency = machine.message(nbytes)
        return float(gap), float(latency), float(machine.combine(nbytes) or 0)

    return costs
