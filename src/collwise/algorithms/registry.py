"""The registry of all algorithms by name, from which the planner, tables and tests take them."""

import re
import warnings
from collections import UserDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field, replace
from fractions import Fraction
from math import isqrt
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from collwise.errors import BeyondLimits, InvalidArgument, UnknownName, shown
from collwise.model.collective_names import shown_name
from collwise.model.exact import exact
from collwise.model.limits import MAX_PLAYED
from collwise.model.machine import Machine, checked_machine
from collwise.model.placement import MAX_RANKS, Placement
from collwise.schedule.collectives import COLLECTIVES, Collective, find_collective, kind_of
from collwise.schedule.problem import Order, Problem, satisfies
from collwise.schedule.program import Program, Schedule
from collwise.system.quantities import parse_size
from collwise.timing.trace import completion, messages_played

Settings: TypeAlias = Mapping[str, Any]
"""The values of an algorithm's parameters, by name."""
Build: TypeAlias = Callable[[Problem, Settings], Program]
"""A function that makes the program of a problem, for checked settings."""


class Rough(NamedTuple):
    """Settings with a rough time; a search simulates only the few settings that seem best.

    time: rough seconds, compared only with times of other settings of the same algorithm.
    problem: a problem of about the same size to simulate, such as one with equally long blocks, for
    which simulating one rank is enough; None for the user's problem.
    """

    time: float | Fraction
    settings: Settings
    problem: Problem | None = None


Choices: TypeAlias = Callable[[Problem, Machine], Iterable[Settings | Rough]]
"""A function that returns the settings of an algorithm that are worth trying on a machine."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of an algorithm.

    read: returns a value in its usual form; raises InvalidArgument or UnknownName if it is invalid.
    meaning: what the value means, in words.
    """

    read: Callable[[Any], Any]
    meaning: str


@dataclass(frozen=True, kw_only=True)
class Algorithm:
    """An algorithm for a collective, for any number of ranks and any root.

    name: "collective/name".  summary: one line.  source: keys of docs/bibliography.bib, with the
    section.  time: a formula as text; t0 is how long a message keeps a port busy, λ its latency in
    t0, T_λ(p) the least time of a broadcast in t0.  build: makes the program of a problem.
    choices: returns the settings worth trying on a machine; empty if the algorithm does not apply.
    Of the settings that `choices` returns as `Rough`, plans try only the fastest.
    parameters: the parameters by name.   predicted: deprecated and ignored.
    """

    name: str
    summary: str
    source: tuple[str, ...]
    time: str
    build: Build
    choices: Callable[[Problem, Machine], Iterable[Settings | Rough]] = lambda problem, machine: [
        {}
    ]
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    segmented: bool = False
    """Whether a message may carry only a part of a vector, or of a source's contribution."""
    order: Callable[[Problem], Order] = lambda problem: "rank"
    """Maps a problem to the algorithm's order of combining; unused if nothing is combined."""
    levels: bool = False
    """Whether the algorithm is for machines with levels; if so, it uses the problem's placement."""
    usual: bool = False
    """Whether MPI libraries commonly use it; if so, plans try it even if `searched` is false."""
    searched: bool = True
    """Whether plans try the algorithm on machines where only ranks' own ports delay messages.

    For the order "fixed", and where links, processors or shared ports delay messages too, plans
    also try the others.  Users can run any algorithm by its name."""
    repositions: str = ""
    """Name of the algorithm that runs once this one has moved the sources' data to better ranks.

    Empty if this algorithm moves no data to other ranks first."""
    predicted: InitVar[object] = None

    def __post_init__(self, predicted: object) -> None:
        if predicted is not None:
            warnings.warn(
                f"{self.name}: predicted= is ignored; the time of its schedule is computed",
                DeprecationWarning,
                stacklevel=3,
            )

    @property
    def collective(self) -> str:
        """The name of the collective."""
        return self.name.partition("/")[0]

    @property
    def kind(self) -> Collective:
        """The properties of the collective, from `COLLECTIVES`."""
        return COLLECTIVES[self.collective]

    @property
    def short_name(self) -> str:
        """The name without its collective."""
        return self.name.partition("/")[2]

    def keeps_order(self, problem: Problem) -> bool:
        """Whether the algorithm combines in the order that a problem needs.

        True if the collective combines nothing.
        """
        return not self.kind.combines or satisfies(self.order(problem), problem.order)

    def settings(self, values: Settings) -> dict[str, Any]:
        """The values of all parameters by name, checked and in their usual form.

        Raises InvalidArgument for unknown or missing parameters, and what `Parameter.read` raises.
        """
        unknown = sorted(set(values) - set(self.parameters))
        if unknown:
            raise InvalidArgument(
                f"{self.name} with {', '.join(unknown)}",
                "it has no such parameter",
                "it takes " + (", ".join(self.parameters) or "none"),
            )
        if missing := [name for name in self.parameters if name not in values]:
            name = missing[0]
            raise InvalidArgument(
                f"{self.name} without {name}",
                "nothing says which to use",
                f"give {name}: {self.parameters[name].meaning}",
            )
        return {name: self.parameters[name].read(values[name]) for name in self.parameters}

    def schedule(
        self,
        ranks: int,
        nbytes: int | Sequence[int],
        root: int = 0,
        *,
        itemsize: int = 1,
        item: int | None = None,
        order: Order | None = None,
        sources: Sequence[int] | None = None,
        shape: tuple[int, int] | None = None,
        placement: Placement | None = None,
        **settings: Any,
    ) -> Schedule:
        """The schedule for `ranks` ranks and `nbytes` bytes from or to `root`.

        itemsize: bytes of an element; no element is cut.   item: an older name of `itemsize`.
        order: the order of combining that is needed; None for the algorithm's own.
        sources, shape, placement: arguments of `Problem.of`.   settings: the parameters by name.
        Raises InvalidArgument for a root, size or setting out of range, or an order that the
        algorithm does not keep; UnknownName for an unknown order, or algorithm in a setting.
        """
        itemsize = itemsize if item is None else item
        arguments = {"sources": sources, "shape": shape, "placement": placement}
        problem = self.problem(ranks, nbytes, root, itemsize=itemsize, **arguments)
        if order is not None:
            problem = replace(problem, order=order)
        return self.solve(problem, settings)

    def problem(
        self, ranks: int, nbytes: int | Sequence[int], root: int = 0, **arguments: Any
    ) -> Problem:
        """The problem of the algorithm's collective, in the algorithm's own order of combining.

        arguments: further arguments of `Problem.of`.
        For an algorithm for levels, the default placement has about √p nodes with √p ranks each.
        """
        problem = Problem.of(self.collective, ranks, nbytes, root, **arguments)
        if self.levels and arguments.get("placement") is None:
            problem = replace(problem, placement=_square(problem.ranks))
        return replace(problem, order=self.order(problem)) if self.kind.combines else problem

    def solve(self, problem: Problem, settings: Settings) -> Schedule:
        """The schedule for a problem.

        Raises the errors of `settings`, and InvalidArgument if the algorithm combines in a weaker
        order than the problem needs.
        """
        if not self.keeps_order(problem):
            raise InvalidArgument(
                f"{self.name} in the order {problem.order!r}",
                f"it combines in the order {self.order(problem)!r}",
                "choose an algorithm that keeps the order, or an operator that does not need it",
            )
        read = self.settings(settings)
        return Schedule(problem, self.build(problem, read), describe(self.name, read))

    def predict(
        self,
        machine: Machine,
        ranks: int,
        nbytes: int | Sequence[int],
        root: int = 0,
        *,
        itemsize: int = 1,
        item: int | None = None,
        sources: Sequence[int] | None = None,
        shape: tuple[int, int] | None = None,
        placement: Placement | None = None,
        **settings: Any,
    ) -> Fraction:
        """The predicted completion time on a machine, in exact seconds.

        itemsize: bytes of an element.   item: an older name of `itemsize`.
        sources, shape, placement: arguments of `Problem.of`.   settings: the parameters by name.
        Raises BeyondLimits if the schedule has too many messages to simulate, and the errors of
        `schedule`.
        """
        checked_machine(machine, f"the time of {self.name}")
        itemsize = itemsize if item is None else item
        arguments = {"sources": sources, "shape": shape, "placement": placement}
        problem = self.problem(ranks, nbytes, root, itemsize=itemsize, **arguments)
        return self.time_of(problem, machine, settings)

    def time_of(self, problem: Problem, machine: Machine, settings: Settings) -> Fraction:
        """The predicted completion time for a problem on a machine, in exact seconds.

        Raises the errors of `solve`, and BeyondLimits if the schedule has too many messages to
        simulate.
        """
        schedule = self.solve(problem, settings)
        if problem.ranks == 1 or problem.nbytes == 0:
            return Fraction(0)
        if (about := messages_played(schedule, machine)) > MAX_PLAYED:
            raise BeyondLimits(
                f"the time of {schedule.algorithm}",
                f"about {about:,} messages would have to be simulated for it",
                f"choose fewer ranks{', larger segments' * ('segment' in settings)}"
                " or another algorithm",
            )
        return completion(schedule, machine)


def _square(ranks: int) -> Placement:
    """A placement of p = `ranks` ranks on about √p nodes; a node's ranks are consecutive."""
    side = isqrt(ranks - 1) + 1
    nodes = [rank // side for rank in range(min(ranks, MAX_RANKS + 1))]
    return Placement.of(nodes, ranks=ranks)


class _ByName(UserDict[str, Algorithm]):
    """A map from names to algorithms; names may begin with an alias of the collective."""

    def __missing__(self, name: str) -> Algorithm:
        if (current := shown_name(str(name))) == name:
            raise KeyError(name)
        return self[current]

    def __contains__(self, name: object) -> bool:
        return (shown_name(name) if isinstance(name, str) else name) in self.data


_ALGORITHMS = _ByName()
ALGORITHMS: Mapping[str, Algorithm] = MappingProxyType(_ALGORITHMS)


def register(algorithm: Algorithm) -> Algorithm:
    """Add an algorithm to the registry; returns it, named by the collective's current name.

    Raises InvalidArgument if it is no `Algorithm`, or if its name is invalid or taken.
    """
    asked = "register an algorithm"
    if not isinstance(algorithm, Algorithm):
        raise InvalidArgument(asked, f"it is {shown(algorithm)}", "give a collwise.Algorithm")
    name = shown_name(algorithm.name) if isinstance(algorithm.name, str) else algorithm.name
    match = re.fullmatch(r"(\w+)/([A-Za-z_]\w*)", name) if isinstance(name, str) else None
    if match is None or match[1] not in COLLECTIVES or match[2] == "library":
        remedy = "name the collective and the algorithm, such as broadcast/two_arms; collectives: "
        raise InvalidArgument(asked, f"its name is {shown(name)}", remedy + ", ".join(COLLECTIVES))
    if name in _ALGORITHMS:
        raise InvalidArgument(asked, f"two algorithms are named {name}", "choose another name")
    algorithm = algorithm if name == algorithm.name else replace(algorithm, name=name)
    _ALGORITHMS[name] = algorithm
    return algorithm


def collectives() -> tuple[str, ...]:
    """Names of the collectives for which algorithms are registered."""
    return tuple(dict.fromkeys(a.collective for a in ALGORITHMS.values()))


def algorithms_for(collective: str, *, levels: bool = True) -> tuple[Algorithm, ...]:
    """The algorithms of a collective, in the order of their registration.

    collective: its name or an alias; raises UnknownName for others.
    levels: whether to include algorithms for machines with levels.
    """
    name = find_collective(collective).name
    algorithms = (a for a in ALGORITHMS.values() if a.collective == name)
    return tuple(a for a in algorithms if levels or not a.levels)


def find(name: str, collective: str | None = None) -> Algorithm:
    """The algorithm with a given name, such as "broadcast/chain".

    If `collective` is given, "chain" is enough.  Raises UnknownName for an unknown collective, or
    if no algorithm (of `collective`, if given) has the name.
    """
    among = algorithms_for(collective) if collective else ALGORITHMS.values()
    by_name = {algorithm.name: algorithm for algorithm in among}
    if isinstance(name, str):
        prefix, _, short = name.rpartition("/")
        if algorithm := by_name.get(f"{kind_of(prefix or collective or '').name}/{short}"):
            return algorithm
    what = f"{find_collective(collective).name} algorithm" if collective else "algorithm"
    raise UnknownName.of(what, name, by_name)


_INTEGERS = ("k", "radix", "latency", "pieces", "segment")
WRITTEN = re.compile(r"\s*((?:\w+/)?[A-Za-z_]\w*)\s*(?:\((.*)\))?\s*")


def parse_label(label: str, collective: str) -> tuple[Algorithm, dict[str, Any]]:
    """Parse a label such as "chain_segmented(segment=4k)" into an algorithm and unchecked settings.

    Raises UnknownName for an unknown algorithm, and InvalidArgument if the text is no label.
    """
    match = WRITTEN.fullmatch(label)
    if match is None:
        remedy = "write it as in postal_tree(lam=4)"
        raise InvalidArgument(f"the algorithm {label!r}", "that is no name with settings", remedy)
    values: dict[str, Any] = {}
    for term in re.split(r",\s*(?=\w+\s*=)(?![^(]*\))", match[2] or ""):
        if term.strip():
            name, _, value = (piece.strip() for piece in term.partition("="))
            values[name] = value
            if name in _INTEGERS and re.fullmatch("[0-9]{1,20}", value):
                values[name] = int(value)
            elif name == "segment":
                values[name] = parse_size(value)
    return find(match[1], collective), values


def describe(name: str, settings: Settings) -> str:
    """The label of an algorithm with its settings, such as "broadcast/chain(segment=4096)"."""
    if not settings:
        return name
    return f"{name}({', '.join(f'{key}={value}' for key, value in settings.items())})"


def segments(problem: Problem, settings: Settings) -> int:
    """Number of segments of the vector: 0 if it is empty, 1 if there is no setting `segment`."""
    return -(-problem.nbytes // int(settings.get("segment", problem.nbytes or 1)))


def fraction(what: str, least: Fraction, below: Fraction | None, advice: str) -> Parameter:
    """A parameter named `what`, whose values are exact numbers from `least` to less than `below`.

    below: None if there is no upper limit.   advice: the parameter's meaning in words.
    """

    def read(value: Any) -> Fraction:
        number = exact(value, what)
        if number < least or (below is not None and number >= below):
            raise InvalidArgument(f"the parameter {what}", f"it is {value}", f"give {advice}")
        return number

    return Parameter(read, advice)


def integer(what: str, least: int, advice: str) -> Parameter:
    """A parameter named `what`, whose values are integers of at least `least`.

    advice: the parameter's meaning in words.
    """

    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise InvalidArgument(f"the parameter {what}", f"it is {value!r}", f"give {advice}")
        return int(value)

    return Parameter(read, advice)
