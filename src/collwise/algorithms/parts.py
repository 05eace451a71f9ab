"""Algorithms that other algorithms use as parts: their labels, and the settings to try.

A label is an algorithm's short name with its settings, such as "chain_segmented(segment=4096)".
"""

from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

from collwise.algorithms.registry import (
    WRITTEN,
    Algorithm,
    Parameter,
    Settings,
    describe,
    parse_label,
)
from collwise.algorithms.search import settings_to_try
from collwise.errors import BeyondLimits, InvalidArgument
from collwise.model.machine import Machine
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program


class Configured(NamedTuple):
    """An algorithm with its settings, which are (name, value) pairs."""

    algorithm: Algorithm
    settings: tuple[tuple[str, Any], ...]

    @property
    def label(self) -> str:
        """The algorithm's short name with its settings."""
        return describe(self.algorithm.short_name, dict(self.settings))

    @classmethod
    def of(cls, algorithm: Algorithm, settings: Settings) -> "Configured":
        """An algorithm with checked settings; raises the errors of `Algorithm.settings`."""
        return cls(algorithm, tuple(algorithm.settings(settings).items()))

    def build(self, problem: Problem) -> Program:
        """The algorithm's program for a problem.

        Raises InvalidArgument if the algorithm combines in a weaker order than the problem needs.
        """
        if not self.algorithm.keeps_order(problem):
            raise InvalidArgument(
                f"{self.algorithm.name} as a part, in the order {problem.order!r}",
                f"it combines in the order {self.algorithm.order(problem)!r}",
                "choose an algorithm that keeps the order, or ask for another order",
            )
        return self.algorithm.build(problem, dict(self.settings))


@lru_cache(maxsize=4096)
def part(label: str, collective: str, *, levels: bool = False) -> Configured:
    """Parse a label into an algorithm of a collective and its settings.

    levels: whether to allow algorithms for machines with levels.
    Raises UnknownName for an unknown algorithm, and InvalidArgument for other errors in `label`.
    """
    algorithm, values = parse_label(label, collective)
    if algorithm.levels and not levels:
        remedy = "name one that knows no levels"
        raise InvalidArgument(f"{label} in a team", "it needs teams of its own", remedy)
    return Configured.of(algorithm, values)


def one_part(name: str, collective: str, example: str, *, levels: bool = True) -> Parameter:
    """A parameter whose value is the label of one algorithm of a collective.

    example: a label that errors suggest.   levels: whether to allow algorithms for levels.
    """
    meaning = f"an algorithm of {collective}, such as {example}"

    def read(value: Any) -> str:
        if not isinstance(value, str) or not WRITTEN.fullmatch(value):
            raise InvalidArgument(f"the parameter {name}", f"it is {value!r}", f"give {meaning}")
        return part(value, collective, levels=levels).label

    return Parameter(read, meaning)


def tried_labels(among: Iterable[Algorithm], problem: Problem, machine: Machine) -> list[str]:
    """Labels of the algorithms `among`, with all settings worth trying for a problem on a machine.

    Algorithms that raise BeyondLimits are left out.
    """
    labels = []
    for algorithm in among:
        with suppress(BeyondLimits):
            choices = settings_to_try(algorithm, problem, machine)
            labels += [Configured.of(algorithm, settings).label for settings in choices]
    return labels
