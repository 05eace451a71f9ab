"""Algorithms that users choose by hand: parses text, and finds the choice for a call's size.

    broadcast = binomial <= 4k, chain_segmented(segment=8k); allreduce = library:recexch(k=4)

A call uses the first choice, from the left, whose size is at least the call's.  If all sizes are
smaller, collwise chooses the algorithm.
"""

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import zip_longest
from typing import Any, NamedTuple, TypeAlias

from collwise.algorithms.registry import Algorithm, find, parse_label
from collwise.errors import InvalidArgument
from collwise.measure.race import LIBRARY, OWN, own_algorithm
from collwise.model.machine import Machine
from collwise.planner.candidates import Score
from collwise.planner.plans import Candidate, Plan
from collwise.schedule.collectives import find_collective
from collwise.schedule.hierarchy import hierarchy_of
from collwise.schedule.problem import Problem, placed
from collwise.system.quantities import parse_size

EXAMPLE = "broadcast=binomial<=4k,chain_segmented(segment=8k);allreduce=ring"
_OWN = re.compile(rf"{OWN}\s*([\w-]+)\s*(?:\(([^()]*)\))?")
_SIZE = re.compile(r"<=\s*(\w+)\s*(?:,|$)")


class Choice(NamedTuple):
    """One algorithm that a user chose for calls up to some size.

    algorithm: its full name; LIBRARY for the MPI library's default; "broadcast/library:binomial"
    for an algorithm of the library, which the communicator has to find there.   settings: (name,
    value) pairs that the user gave.   most: the most total bytes of its calls; None for no limit.
    """

    algorithm: str
    settings: tuple[tuple[str, Any], ...] = ()
    most: int | None = None


Choices: TypeAlias = Mapping[str, Sequence[Choice]]
"""Maps the name of a collective to what the user chose for it, ordered by size, smallest first."""


def parse_choices(text: str, where: str) -> dict[str, str]:
    """Split text such as EXAMPLE by collective; each collective's choices stay text.

    where: the origin of `text`, for errors.   Raises InvalidArgument if a collective has no choices
    or is named twice.
    """
    chosen = {}
    for clause in filter(str.strip, text.split(";")):
        collective, _, choices = (word.strip() for word in clause.partition("="))
        if not (collective and choices):
            seen = f"{clause.strip()!r} is no choice"
            raise InvalidArgument(where, seen, f"write it as in {EXAMPLE}")
        if collective in chosen:
            seen = f"{collective} is chosen twice"
            raise InvalidArgument(where, seen, "write its choices together: binomial <= 4k, chain")
        chosen[collective] = choices
    return chosen


def read_choices(algorithms: Mapping[str, str]) -> dict[str, tuple[Choice, ...]]:
    """Parse and check the text of the choices for each collective.

    Raises UnknownName for an unknown collective or algorithm, and InvalidArgument for any other
    mistake.
    """
    if not isinstance(algorithms, Mapping):
        raise InvalidArgument(
            "a communicator with algorithms",
            f"algorithms = {algorithms!r}",
            'give them by collective, such as {"broadcast": "postal_tree"}',
        )
    chosen: dict[str, tuple[Choice, ...]] = {}
    for collective, text in algorithms.items():
        if (name := find_collective(collective).name) in chosen:
            seen = f"that is another name of {name}, for which some are given, too"
            remedy = "write its choices together, under one name: binomial <= 4k, chain"
            raise InvalidArgument(f"algorithms for {collective}", seen, remedy)
        chosen[name] = _parse_for_collective(name, text)
    return chosen


def _parse_for_collective(collective: str, text: str) -> tuple[Choice, ...]:
    if not isinstance(text, str):
        return (Choice(find(text, collective).name),)  # `find` raises UnknownName
    pieces: list[str] = _SIZE.split(text.strip())
    choices: list[Choice] = []
    for label, size in zip_longest(pieces[::2], pieces[1::2]):
        if choices and size is None and not label:
            continue  # a trailing comma: nothing is chosen for larger calls
        most = None if size is None else parse_size(size)
        if choices and most is not None and most <= (choices[-1].most or 0):
            asked, seen = f"the choices {text!r}", f"nothing is left for {label.strip()} <= {size}"
            raise InvalidArgument(asked, seen, "write the smaller sizes first")
        if label.strip() == LIBRARY:
            choices.append(Choice(LIBRARY, (), most))
            continue
        if label.strip().startswith(OWN):
            choices.append(_own_choice(collective, label.strip(), most))
            continue
        choices.append(choice_named(collective, label)._replace(most=most))
    return tuple(choices)


def choice_named(collective: str, label: str) -> Choice:
    """The choice of one of our algorithms for calls of any size, by a label such as "chain(k=2)".

    Raises UnknownName for an unknown algorithm, and InvalidArgument for wrong settings.
    """
    algorithm, values = parse_label(label, collective)
    settings = algorithm.settings(values) if values else {}
    return Choice(algorithm.name, tuple(settings.items()))


def has_settings(label: str) -> bool:
    """Whether a label names settings; without, a planner looks for the best ones."""
    return label.partition("(")[2].strip(" )") != ""


def _own_choice(collective: str, label: str, most: int | None) -> Choice:
    """Parse a label such as "library:tree(k=4)": an MPI library's algorithm, of whatever name."""
    match = _OWN.fullmatch(label)
    terms = [term.partition("=") for term in (match[2] or "").split(",")] if match else []
    settings = [(name.strip(), value.strip()) for name, _, value in terms if name.strip()]
    if match is None or not all(value for _, value in settings):
        seen, remedy = "that is no name with settings", f"write it as in {OWN}tree(k=4)"
        raise InvalidArgument(f"the algorithm {label!r}", seen, remedy)
    for name, value in settings:
        if name != "segment" and not re.fullmatch("[0-9]{1,20}", value):
            seen, remedy = f"{name} = {value[:20]} is no whole number", "give one, such as k=4"
            raise InvalidArgument(f"the algorithm {label[:60]!r}", seen, remedy)
    settings = [(name, str(parse_size(value))) for name, value in settings]
    return Choice(f"{collective}/{OWN}{match[1]}", tuple(settings), most)


def own_choice(collective: str, label: str) -> Candidate | None:
    """The candidate, predicted to take 0 s, for a label "library:NAME"; None for other labels."""
    if not own_algorithm(label.strip()):
        return None
    choice = _own_choice(collective, label.strip().removeprefix(f"{collective}/"), None)
    return Candidate(choice.algorithm, dict(choice.settings), Fraction(0))


def find_planned(name: str, collective: str) -> Algorithm:
    """The registered algorithm with this name, full or short, for a collective.

    Raises UnknownName for an unknown name, InvalidArgument for an algorithm of the MPI library.
    """
    if isinstance(name, str) and OWN in name:
        seen = "the library's own algorithms have no schedule"
        raise InvalidArgument(f"the algorithm {name!r}", seen, "only bench and Comm run them")
    return find(name, collective)


def choice_for(choices: Sequence[Choice], nbytes: int) -> Choice | None:
    """The first choice for calls of `nbytes` total bytes; None if all are for smaller calls."""
    return next((c for c in choices if c.most is None or nbytes <= c.most), None)


def planned(
    problem: Problem, machine: Machine, choice: Choice, *, reason: str, score: Score
) -> Plan:
    """The plan that runs the algorithm of `choice` with the settings of `choice`.

    reason: why contributions are combined in the problem's order.   score: predicts the time.
    Raises NothingApplies for an algorithm for levels if the problem has no placement.  Settings
    that do not suit the problem raise InvalidArgument when the plan's schedule is made.
    """
    algorithm, settings = find(choice.algorithm, problem.collective), dict(choice.settings)
    problem = placed(problem, machine)
    if algorithm.levels:
        hierarchy_of(problem)
    time = score(algorithm, problem, machine, settings, None)
    chosen = Candidate(algorithm.name, settings, time, "chosen: it was named")
    return Plan(problem, machine, None, chosen, (chosen,), {}, reason)
