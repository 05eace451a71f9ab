"""Algorithms as parts of other algorithms: their labels, and the settings that are tried.

The label of a part includes its settings, as in "chain_segmented(segment=4096)".
"""

from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

from collwise.algorithms.registry import WRITTEN, Algorithm, Parameter, Settings, parse_label
from collwise.errors import BeyondLimits, InvalidArgument
from collwise.model.machine import Machine
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program


class Configured(NamedTuple):
    """An algorithm with settings, as (name, value) pairs."""

    algorithm: Algorithm
    settings: tuple[tuple[str, Any], ...]

    @property
    def label(self) -> str:
        """The algorithm's short name with its settings."""
        values = ", ".join(f"{name}={value}" for name, value in self.settings)
        return self.algorithm.short_name + (f"({values})" if values else "")

    @classmethod
    def of(cls, algorithm: Algorithm, settings: Settings) -> "Configured":
        """Read and check the settings of an algorithm."""
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
    """Parse the label of a part.

    levels: whether to allow algorithms for machines with levels.
    Raises UnknownName or InvalidArgument.
    """
    algorithm, values = parse_label(label, collective)
    if algorithm.levels and not levels:
        remedy = "name one that knows no levels"
        raise InvalidArgument(f"{label} in a team", "it needs teams of its own", remedy)
    return Configured.of(algorithm, values)


def one_part(name: str, collective: str, example: str) -> Parameter:
    """A parameter whose value is the label of one algorithm of a collective."""
    meaning = f"an algorithm of {collective}, such as {example}"

    def read(value: Any) -> str:
        if not isinstance(value, str) or not WRITTEN.fullmatch(value):
            raise InvalidArgument(f"the parameter {name}", f"it is {value!r}", f"give {meaning}")
        return part(value, collective, levels=True).label

    return Parameter(read, meaning)


def tried_labels(among: Iterable[Algorithm], problem: Problem, machine: Machine) -> list[str]:
    """Labels of algorithms with each of their settings worth trying on a machine."""
    labels = []
    for algorithm in among:
        with suppress(BeyondLimits):
            choices = algorithm.choices(problem, machine)
            labels += [Configured.of(algorithm, settings).label for settings in choices]
    return labels
