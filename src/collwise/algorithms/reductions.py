"""What the collectives that combine share: trees upwards, exchanges, and their exact times."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache, lru_cache
from math import prod
from typing import Any, TypeAlias

from collwise.algorithms.registry import Algorithm, Build, Parameter, Settings, register
from collwise.model import hybrid
from collwise.model.machine import Machine
from collwise.schedule.exchange import Exchange, Stage
from collwise.schedule.problem import Order, Problem
from collwise.schedule.program import Program, Schedule
from collwise.schedule.reduction import Circular, SingleRank
from collwise.schedule.trees import Shape, Tree
from collwise.timing import ideal_alike, ideal_completion
from collwise.timing.exchange_times import exchange_times

LARGEST_SIMULATED = 130
"""Up to so many ranks, schedules in which ranks differ are simulated rank by rank."""
LARGEST_MESSAGES = 1 << 12
"""The same for programs in pieces, in messages."""

MOST_MESSAGES = 1 << 19
"""Messages of an exchange in which ranks differ, up to which its time is exact: some 0.3 s."""

Stages: TypeAlias = Callable[[Problem, Settings], tuple[Stage, ...]]


def register_combining(name: str, summary: str, time: str, build: Build, **more: Any) -> Algorithm:
    """Register an algorithm that combines.  more: other fields of `Algorithm`.

    A single rank's own contribution is the result; wrong settings are refused all the same.
    """

    def built(problem: Problem, settings: Settings) -> Program:
        program = build(problem, settings)
        return SingleRank(problem) if problem.ranks == 1 else program

    return register(Algorithm(name=name, summary=summary, time=time, build=built, **more))


def register_exchange(name: str, summary: str, time: str, stages: Stages, **more: Any) -> Algorithm:
    """Register an exchange in these stages; its time is that of `exchange_time`."""
    return register_combining(
        name,
        summary,
        time,
        lambda problem, settings: Exchange(problem, stages(problem, settings)),
        predicted=lambda problem, machine, settings: exchange_time(
            problem, machine, stages(problem, settings)
        ),
        simulated=lambda problem, settings: max(
            sum(stage.radix for stage in stages(problem, settings)),
            problem.ranks * (problem.kind.output == "own block"),  # it names every rank's block
        ),
        estimated=lambda problem, settings: is_estimated(
            Exchange(problem, stages(problem, settings))
        ),
        **more,
    )


def is_estimated(exchange: Exchange) -> bool:
    """Whether the time of an exchange is estimated from above, since too many ranks differ."""
    messages = exchange.problem.ranks * sum(stage.radix for stage in exchange.stages)
    return messages > MOST_MESSAGES and not exchange.is_alike()


def register_circular(
    name: str,
    summary: str,
    time: str,
    program: Callable[..., Circular],
    messages: Callable[[Problem, Settings], int] = lambda problem, settings: 0,
    **more: Any,
) -> Algorithm:
    """Register a program of p blocks around a circle; its time is that of `circular_time`.

    program: of a problem, with the algorithm's settings.   messages: about those of a rank; too
    many are not simulated for all ranks.
    """

    def estimated(problem: Problem, settings: Settings) -> bool:
        alike = program(problem, **settings).is_alike()
        many = problem.ranks * messages(problem, settings) > LARGEST_MESSAGES
        return not alike and (many or problem.ranks > LARGEST_SIMULATED)

    def predicted(problem: Problem, machine: Machine, settings: Settings) -> Fraction:
        made = program(problem, **settings)
        if made.is_alike() or estimated(problem, settings):
            return circular_time(made, machine)
        return simulated_time(problem, machine, made)

    facts: dict[str, Any] = {"estimated": estimated, "predicted": predicted, "simulated": messages}
    facts |= {"order": lambda problem: "same", "segmented": True, **more}
    return register_combining(
        name, summary, time, lambda problem, settings: program(problem, **settings), **facts
    )


def from_root_on(problem: Problem) -> Order:
    """The order of reduces that number the ranks from the root on: the ranks' own for root 0."""
    return "same" if problem.root else "rank"


def in_no_order(problem: Problem) -> Order:
    """The order of reduces to one rank that keep no order; two ranks have only two."""
    return from_root_on(problem) if problem.ranks == 2 else "same"


def up_tree_time(tree: Tree, nbytes: int, machine: Machine) -> Fraction:
    """Exact seconds of an `UpTree` without segments, by a recurrence over shapes of subtrees."""
    cost, combine = machine.message(nbytes), machine.combine(nbytes)

    @cache
    def value(shape: Shape) -> Fraction:
        """When the root of a subtree has combined all of it."""
        time: Fraction | None = None  # when its receive port was last used
        for child in reversed(tree.child_shapes(shape)):
            received = value(child) + cost.latency
            time = received if time is None else max(received, time + cost.gap)
            time += combine or 0
        return time or Fraction(0)

    return value(tree.root_shape)


@lru_cache(maxsize=64)
def simulated_time(problem: Problem, machine: Machine, program: Program) -> Fraction:
    """Exact seconds, from simulating every rank's list."""
    return ideal_completion(_schedule(problem, program), machine)


@lru_cache(maxsize=1)
def _schedule(problem: Problem, program: Program) -> Schedule:
    """The schedule; the same object, which keeps its lists, while only the machine changes."""
    return Schedule(problem, program)


def exchange_time(problem: Problem, machine: Machine, stages: tuple[Stage, ...]) -> Fraction:
    """Seconds of an exchange: exact up to MOST_MESSAGES, or where all ranks are alike."""
    exchange = Exchange(problem, stages)
    if exchange.is_alike() or is_estimated(exchange):
        return exchange_estimate(problem, machine, stages)
    if problem.ranks <= LARGEST_SIMULATED:
        return simulated_time(problem, machine, exchange)
    times, unit = exchange_times(exchange, machine)
    return int(times.finish.max()) * unit


def exchange_estimate(problem: Problem, machine: Machine, stages: tuple[Stage, ...]) -> Fraction:
    """Seconds of an exchange, from above, in O(messages of one rank); exact if ranks are alike.

    For a reduce it is the time of the allreduce; for lengths that do not divide, that of the next
    one that does; with ranks left over, what they take at most before and after.
    """
    core = prod(stage.radix for stage in stages)
    if problem.kind.output == "own block":  # a rank that has another's vector has its block as well
        block = problem.nbytes // problem.ranks
        nbytes = core * block * (1 + (core < problem.ranks))
        even = replace(problem, ranks=core, nbytes=nbytes, placement=None)
    else:
        unit = problem.itemsize * prod(stage.radix for stage in stages if stage.divided)
        nbytes = -(-problem.nbytes // unit) * unit
        even = replace(
            problem, collective="allreduce", root=0, ranks=core, nbytes=nbytes, placement=None
        )
    time = ideal_alike(Exchange(even, stages).one_for_all(), machine)
    if core < problem.ranks:
        time += 2 * machine.message(problem.nbytes).latency
        time += machine.combine(problem.nbytes) or 0
    return time


def circular_time(program: Circular, machine: Machine) -> Fraction:
    """Seconds of a program of p blocks around a circle, as if all blocks were equally long.

    Exact if they are; otherwise the time for the next larger length that splits evenly.
    """
    problem = program.problem
    even = replace(problem, nbytes=-(-problem.nbytes // program.unit) * program.unit)
    return ideal_alike(replace(program, problem=even).one_for_all(), machine)


def cube_dimension(ranks: int) -> int:
    """⌊log2 of the number of ranks⌋, the dimension of the largest cube among them."""
    return ranks.bit_length() - 1


def whole_vectors(problem: Problem, _: Settings) -> tuple[Stage, ...]:
    """Exchange whole vectors in every direction: Version 2 of [vandeGeijn1991]."""
    return (Stage(2, divided=False),) * cube_dimension(problem.ranks)


def halved(problem: Problem, _: Settings) -> tuple[Stage, ...]:
    """Halve vectors in every direction: Version 3."""
    return (Stage(2, divided=True),) * cube_dimension(problem.ranks)


def by_strategy(problem: Problem, settings: Settings) -> tuple[Stage, ...]:
    """The stages of a strategy S: Version 4, direction d − 1 first."""
    strategy = hybrid.checked_strategy(settings["strategy"], cube_dimension(problem.ranks))
    return tuple(Stage(2, bool(divided)) for divided in reversed(strategy))


def best_strategy(problem: Problem, machine: Machine) -> hybrid.Strategy:
    """The best strategy for the machine's costs, by dynamic programming over its cost curve."""
    itemsize = problem.itemsize
    return hybrid.best_for(
        lambda items: machine.message(items * itemsize).latency,
        lambda items: machine.combine(items * itemsize) or 0,
        problem.nbytes // itemsize,
        cube_dimension(problem.ranks),
        to_root=problem.kind.output == "root",
    )


def _strategy(value: Any) -> hybrid.Strategy:
    if isinstance(value, str):  # as a profile keeps it
        value = [int(c) if c in "01" else c for c in value if c not in "(), "]
    return hybrid.checked_strategy(value)


STRATEGY = Parameter(
    _strategy,
    "S_0, …, S_(d−1), 1 where vectors are halved, for the largest 2^d ranks, such as (0, 1)",
)
CHOSEN_STRATEGY: dict[str, Any] = {
    "choices": lambda problem, machine: [{"strategy": best_strategy(problem, machine)}],
    "parameters": {"strategy": STRATEGY},
}
"""The fields of an algorithm with the parameter `strategy`."""
