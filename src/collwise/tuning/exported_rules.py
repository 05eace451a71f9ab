"""Makes rules for an MPI library's own file from the races in a profile, without MPI.

A rule names the winner of a race if the winner is one of the library's own algorithms.  Otherwise
the rule names the library's fastest algorithm if it was clearly faster than the default.
"""

import sys
from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeAlias

import msgspec

from collwise.errors import InvalidArgument, NoMPI
from collwise.formats.selection_rules import Installed, Named, Rule, RuleFormat
from collwise.measure.race import is_clear, own_algorithm
from collwise.planner.race_lookup import REACH, sizes_decided
from collwise.profiles.profile import Profile
from collwise.profiles.records import RaceResult
from collwise.schedule.collectives import COLLECTIVES
from collwise.system import formatting
from collwise.system.launcher import INSTALL, ask

SIZES = (
    f"A rule counts for {REACH} times as many or as few bytes as were raced, at most halfway to a"
    " raced size with another winner, and between two sizes with the same winner."
)
"""For which sizes a rule counts: those for which `Comm` would follow the same races."""
_DESCRIBE = "collwise.mpi.library.description"

Chosen: TypeAlias = tuple[str, Mapping[str, int]]
"""The name of one of the library's algorithms, and its settings in a race."""


class Exported(NamedTuple):
    """The rules for a file, and one line for each result that the file cannot express."""

    rules: tuple[Rule, ...]
    unsaid: tuple[str, ...]


def installed_library() -> Installed:
    """The description of the installed MPI library.  Raises NoMPI if there is no answer."""
    answers, trouble = ask([sys.executable, "-m", _DESCRIBE])
    if not answers:
        raise NoMPI("asking the MPI library for its algorithms", trouble, INSTALL)
    return msgspec.convert(answers[0], Installed)


def exported(
    profile: Profile, form: RuleFormat, library: Installed, *, commuting: bool = False
) -> Exported:
    """The rules that the races of a profile give.

    form: the format of the library's file.   library: the installed library.   commuting: whether
    all operators that programs use commute.
    Raises InvalidArgument if there is no rule.
    """
    unsaid: list[str] = []
    rules: list[Rule] = []
    kinds: dict[tuple[str, int], dict[int, RaceResult]] = {}  # by method and number of ranks
    blocking = [race for race in profile.race_results if race.form == "blocking"]
    won = (race for race in profile.race_results if race.decision == "collwise")
    others = {race.form for race in won} - {"blocking"}
    unsaid += [f"what won races of {form} calls" for form in sorted(others)]
    for race in blocking:
        if reason := _not_for_files(race, profile):
            unsaid += [f"{_about(race)}: {reason}"] * (race.decision == "collwise")
        elif race.nbytes:
            races = kinds.setdefault((_method(race), race.ranks), {})
            known = races.setdefault(race.nbytes, race)
            if known.root != race.root:  # the default won with one of these roots
                if _chosen(known) is not None or _chosen(race) is not None:
                    unsaid.append(f"{_about(race)}: with another root the default won")
                races[race.nbytes] = known if _chosen(known) is None else race
    for races in kinds.values():
        for rule in _rules(races, form, library, unsaid):
            right = form.in_order.get(rule.method)
            reason = form.why_not(rule, library)
            beside = (form.clash(rule, other) for other in rules)
            if reason := reason or next(filter(None, beside), ""):
                unsaid.append(f"{rule}: {reason}")
            elif not commuting and right is not None and rule.name not in right:
                unsaid.append(f"{rule}: it is wrong for operators that do not commute")
            else:
                rules.append(rule)
    if not rules:
        count = formatting.count(len(profile.race_results), "race")
        raise InvalidArgument(
            f"rules for {form.vendor}",
            f"the profile has {count}, of which none gives a rule"
            + "".join(f"; {line}" for line in unsaid[:3]),
            "race more with collwise tune, or leave the library as it is",
        )
    return Exported(tuple(rules), tuple(unsaid))


def _not_for_files(race: RaceResult, profile: Profile) -> str:
    """Why a race's root, sources or placement fit no library's file; empty if they fit."""
    if race.root and _chosen(race) is not None:
        return f"the root is rank {race.root}"
    if race.sources not in (0, race.ranks):
        return f"only {race.sources} ranks have data"
    if race not in profile.races_at(race.ranks):
        return f"the ranks lay otherwise on nodes ({race.ranks_per_node})"
    return ""


def _rules(
    races: Mapping[int, RaceResult], form: RuleFormat, library: Installed, unsaid: list[str]
) -> Iterator[Rule]:
    """The rules from races of one collective on one number of ranks.

    races: maps the bytes of a race to the race.   unsaid: receives a line for each race won by what
    no rule can name, and for each rule with an algorithm that the installed library lacks.
    """
    winners: dict[int, Chosen | None] = {}
    for nbytes, race in races.items():
        chosen = _chosen(race)
        if isinstance(chosen, str):
            unsaid.append(f"{_about(race)}: {chosen}")
        winners[nbytes] = None if isinstance(chosen, str) else chosen
    for first, last, winner in sizes_decided(winners):
        if winner is None:
            continue
        name, settings = winner
        decisive = [races[n] for n in sorted(races) if first <= n <= last and winners[n] == winner]
        race = decisive[-1]
        named = library.algorithms.get(method := _method(race), {}).get(name, Named(0))
        rule = Rule(
            race.collective,
            method,
            race.ranks,
            max(first, 1),
            last,
            tuple(race.nbytes for race in decisive),
            name,
            named.number,
            {**named.settings, **settings},
            {key: value for key, value in settings.items() if named.settings.get(key) != value},
            tuple(map(_evidence, decisive)),
            max(race.ranks_per_node for race in decisive),
        )
        if any(library.algorithms.values()) and not named.number:
            unsaid.append(f"{rule}: the library does not offer it")
        else:
            yield rule


def _chosen(race: RaceResult) -> Chosen | str | None:
    """The algorithm that a rule is to name, None for the default, or why there is no algorithm."""
    if race.decision == "collwise" and (name := own_algorithm(race.algorithm)) is not None:
        return name, {key: int(value) for key, value in race.settings.items()}
    if race.own is not None and is_clear(race.own.speedup_low, race.own.speedup_high):
        return race.own.name, race.own.settings
    if race.decision == "library":
        return None
    seen = "was clearly faster" if race.own is not None else "was raced"
    return f"{race.algorithm} won, and nothing of the library's {seen}"


def _method(race: RaceResult) -> str:
    return race.method or COLLECTIVES[race.collective].methods[0]


def _about(race: RaceResult) -> str:
    return f"{race.collective} of {formatting.size(race.nbytes)} on {race.ranks} ranks"


def _evidence(race: RaceResult) -> str:
    """A line about a race that led to a rule."""
    gain = race.own or race
    return (
        f"{'learned' if race.learned else 'raced'} with {formatting.size(race.nbytes)}:"
        f" {gain.speedup_low:.2f} to {gain.speedup_high:.2f} times as fast as the default"
    )
