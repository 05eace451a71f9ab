"""What races have taught, applied to sizes that were not raced."""

from collections.abc import Iterable
from fractions import Fraction

from collwise.measure.race import LIBRARY
from collwise.profiles.records import Form, RaceResult

REACH = 4
"""A race says something about sizes up to so many times larger or smaller; and about as many times
more or fewer sources, where a collective has sources."""


def learned_choice(
    races: Iterable[RaceResult],
    collective: str,
    form: Form,
    ranks: int,
    nbytes: int,
    sources: int = 0,
) -> str | None:
    """The algorithm that won the nearest race with as many ranks; None for the library's own.

    sources: their number, where the collective has any; nbytes is then all that they have.
    Nearest by the ratio of sizes times that of the sources' numbers, each at most REACH; of equally
    near ones, the smaller, then that of fewer sources.  What was raced where some ranks gave says
    nothing about all of them giving, nor the other way: the library runs another algorithm there.
    The same on every rank: it depends on nothing else.
    """
    near = []
    for race in races:
        alike = (race.sources == ranks) == (sources == ranks)
        if alike and (race.collective, race.form, race.ranks) == (collective, form, ranks):
            ratios = _ratio(race.nbytes, nbytes), _ratio(race.sources, sources)
            if max(ratios) <= REACH:
                near.append((ratios[0] * ratios[1], race.nbytes, race.sources, race))
    if not near:
        return None
    race = min(near, key=lambda row: row[:3])[3]
    return None if race.decision == LIBRARY else race.algorithm


def _ratio(one: int, other: int) -> Fraction:
    """How many times as large the larger one is, exactly; 0 counts as 1."""
    low, high = sorted((max(one, 1), max(other, 1)))
    return Fraction(high, low)
