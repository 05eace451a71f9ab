"""What serves a call: a plan, the library's default, or another of the library's own algorithms."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from collwise.algorithms.registry import describe
from collwise.measure.race import LIBRARY, own_algorithm
from collwise.planner.by_hand import Choices
from collwise.planner.plans import Plan
from collwise.profiles.records import Form, RaceResult
from collwise.schedule.collectives import COLLECTIVES


class Own(NamedTuple):
    """One of the library's own algorithms, by its full name, such as "broadcast/library:tree".

    settings: (name, value) pairs.   form: that of the race that chose the algorithm, which says
    nothing about other forms; None if the algorithm was chosen by hand.   method: the MPI method
    that was raced, if any: other methods of the collective have other algorithms.
    """

    algorithm: str
    settings: tuple[tuple[str, Any], ...] = ()
    form: Form | None = None
    method: str = ""

    @classmethod
    def of(cls, race: RaceResult) -> "Own":
        """The winner of a race.  Its settings may be any JSON; wrong ones the library refuses."""
        settings = ((name, str(value)) for name, value in race.settings.items())
        methods = COLLECTIVES[race.collective].methods
        return cls(race.algorithm, tuple(settings), race.form, race.method or methods[0])

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
        """The library's default in place of what was chosen.   reason: why."""
        return Chosen(None, f"the library's own: not {self.label}, for {reason}")

    @property
    def label(self) -> str:
        """The full name of the chosen algorithm; LIBRARY for the library's default."""
        if self.own is not None:
            return self.own.label
        return LIBRARY if self.plan is None else self.plan.algorithm


def own_of(by_hand: Choices, won: Iterable[RaceResult]) -> list[Own]:
    """The library's own algorithms that were chosen by hand or won one of these races."""
    named = [Own(one.algorithm, one.settings) for every in by_hand.values() for one in every]
    named += map(Own.of, won)
    return [one for one in dict.fromkeys(named) if own_algorithm(one.algorithm) is not None]
