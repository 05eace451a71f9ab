"""What serves a call: a plan, the library's default, or another of the library's own algorithms."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from collwise.algorithms.registry import describe
from collwise.measure.race import LIBRARY, own_algorithm
from collwise.planner.by_hand import Choices
from collwise.planner.plans import Plan
from collwise.profiles.records import RaceResult


class Own(NamedTuple):
    """One of the library's own algorithms, by its full name, such as "broadcast/library:tree".

    settings: (name, value) pairs.   raced: whether a race chose the algorithm; the race says
    nothing about other forms of the call.
    """

    algorithm: str
    settings: tuple[tuple[str, Any], ...] = ()
    raced: bool = False

    @property
    def asked(self) -> tuple[str, dict[str, Any]]:
        """The algorithm's name in the library, and its settings."""
        return own_algorithm(self.algorithm) or "", dict(self.settings)

    @property
    def label(self) -> str:
        """The algorithm's full name with its settings."""
        return describe(self.algorithm, dict(self.settings))


class Chosen(NamedTuple):
    """What serves a call: `plan`, the library's algorithm `own`, or its default if both are None.

    why: a sentence on the reason, for people.
    """

    plan: Plan | None
    why: str
    own: Own | None = None

    def by_default(self, reason: str) -> "Chosen":
        """The library's default in place of the library's algorithm `own`.   reason: why."""
        assert self.own is not None
        return Chosen(None, f"the library's own: not {self.own.label}, for {reason}")

    @property
    def label(self) -> str:
        """The full name of the chosen algorithm; LIBRARY for the library's default."""
        if self.own is not None:
            return self.own.label
        return LIBRARY if self.plan is None else self.plan.algorithm


def own_of(by_hand: Choices, races: Iterable[RaceResult]) -> list[Own]:
    """The library's own algorithms that were chosen by hand or won a race."""
    named = [Own(one.algorithm, one.settings) for every in by_hand.values() for one in every]
    won = [race for race in races if race.decision != LIBRARY]
    named += [Own(race.algorithm, tuple(race.settings.items()), raced=True) for race in won]
    return [one for one in dict.fromkeys(named) if own_algorithm(one.algorithm) is not None]
