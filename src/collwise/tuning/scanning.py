"""Is the library's default bad here?  What to race it with, and what the races found.  No MPI."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, zip_longest
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from collwise.measure.race import (
    BLOCKING,
    LIBRARY,
    LIBRARY_PERSISTENT,
    Race,
    clear,
    own_algorithm,
)
from collwise.measure.statistics import Interval
from collwise.profiles.records import Bounds
from collwise.schedule.problem import Problem
from collwise.tuning.outcomes import Task

STEP = 1.5
"""A cliff: one element more takes more than this many times as long."""
FAR = 5.0
"""The default is far from the lower bound if it takes more than this many times as long."""
_AGAIN = 3
"""So many of the fastest alternatives are raced once more."""
_NEXT, _TWICE, _TWICE_NEXT = "one element more", "twice the bytes", "one more than twice"
_CLIFFS = ((LIBRARY, _NEXT), (_TWICE, _TWICE_NEXT))
"""Pairs of sizes between which a cliff is looked for: at every power of two, from two to two."""
_COMMONEST = ("allreduce", "broadcast", "allgatherv", "reduce", "reduce_scatter_block")

Kind: TypeAlias = Literal["own", "composition", "persistent", "padding", "cliff", "bound"]
"""What is faster: one of the library's own algorithms, other collectives, the persistent form, the
same with more bytes, the same with one element less, or what the measured machine allows."""


class Rivals(NamedTuple):
    """What the default is raced with.

    own: the library's own algorithms, by label: name and settings.   compositions: names of calls
    that do the same.   neighbours: problems of other sizes, by label.
    """

    own: Mapping[str, tuple[str, Mapping[str, int]]]
    compositions: Sequence[str]
    neighbours: Mapping[str, Problem]

    def among(self, labels: Collection[str]) -> "Rivals":
        """Those that have these labels in a race."""
        return Rivals(
            {label: own for label, own in self.own.items() if label + BLOCKING in labels},
            [name for name in self.compositions if name + BLOCKING in labels],
            {label: other for label, other in self.neighbours.items() if label in labels},
        )


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Something that takes too long.

    what: such as "allreduce of 8 bytes".   instead: the label of what takes less; for a cliff, the
    smaller call; empty for a bound.   ratio: `takes_s` / `instead_s`.   interval: of it, at 95 %.
    bound_s: the lower bound of `what`; None for a cliff.
    """

    kind: Kind
    what: str
    collective: str
    takes_s: float
    instead: str
    instead_s: float
    ratio: float
    interval: Bounds
    bound_s: float | None


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One size of one collective: all medians in seconds, by label.

    nbytes: of the message, of a rank's vector, or of the whole result.   best: the fastest
    alternative; None if there is none.   speedup: of it over the default; interval at 95 %.
    bound_s: the lower bound.   confirmed: the medians of the second race; empty without one.
    """

    what: str
    collective: str
    nbytes: int
    default_s: float
    bound_s: float
    best: str | None
    speedup: float | None
    interval: Bounds | None
    medians_s: dict[str, float]
    confirmed_s: dict[str, float]
    findings: tuple[Finding, ...]


class Scan(msgspec.Struct, frozen=True, kw_only=True):
    """All findings, the worst first, and what they are from; a document as it stands.

    Those that a race proved come before what only the model says.   left_out: what there was no
    time for.   spent_s: seconds that the scan took.
    """

    format: str = "collwise scan"
    version: int = 1
    library: str
    ranks: int
    spent_s: float
    findings: tuple[Finding, ...]
    cells: tuple[Cell, ...]
    left_out: tuple[str, ...]

    @classmethod
    def of(
        cls, library: str, ranks: int, spent_s: float, cells: Sequence[Cell], left: Iterable[Task]
    ) -> "Scan":
        """The scan with these cells.   left: the tasks that were left out."""
        findings = chain.from_iterable(cell.findings for cell in cells)
        return cls(
            library=library,
            ranks=ranks,
            spent_s=spent_s,
            findings=tuple(sorted(findings, key=lambda one: (one.kind == "bound", -one.ratio))),
            cells=tuple(cells),
            left_out=tuple(map(str, left)),
        )


def commonest_first(tasks: Iterable[Task]) -> list[Task]:
    """The order in which to scan: collectives in turns, the commonest first, small sizes first."""
    by_collective: dict[str, list[Task]] = {name: [] for name in _COMMONEST}
    for task in tasks:
        by_collective.setdefault(task.problem.collective, []).append(task)
    turns = chain.from_iterable(zip_longest(*by_collective.values()))
    return [task for task in turns if task is not None]


def neighbours(task: Task) -> dict[str, Task]:
    """The same with one element more, with twice the bytes, and with one more than these."""
    sources = task.problem.sources
    nbytes = sources[0].nbytes if sources else task.problem.nbytes
    sizes = {_NEXT: nbytes + 1, _TWICE: 2 * nbytes, _TWICE_NEXT: 2 * nbytes + 1}
    return {label: task.resized(size) for label, size in sizes.items()}


def _alternatives(race: Race) -> list[str]:
    """The labels of what may take the place of the default, the fastest first."""
    every = race.samples.keys() - {LIBRARY, _NEXT, _TWICE_NEXT}
    return sorted(every, key=lambda label: race.medians[label].middle)


def suspects(race: Race) -> list[str]:
    """The labels to race once more: clearly faster than the default, or at a cliff."""
    ahead = [label for label in _alternatives(race) if clear(race.against(LIBRARY, label))]
    again = dict.fromkeys(ahead[:_AGAIN])
    for low, high in _CLIFFS:
        medians = [race.medians[label].middle for label in (low, high) if label in race.samples]
        if len(medians) == 2 and medians[1] > STEP * medians[0]:
            again |= dict.fromkeys((low, high))
    return list(again)


def found(task: Task, bound_s: float, first: Race, second: Race | None) -> Cell:
    """What the races of a task found.

    bound_s: the lower bound.   second: the race of the suspects alone, which has to confirm each;
    None if there were none.
    """
    findings = [] if second is None else [*_ahead(task, bound_s, second), *_cliffs(task, second)]
    median = (second or first).medians[LIBRARY]
    if all(one.kind == "cliff" for one in findings) and median.low > FAR * bound_s > 0:
        ratio = Interval(*(time_s / bound_s for time_s in median))
        findings.append(_finding("bound", task, median.middle, "", bound_s, ratio, bound_s))
    best = next(iter(_alternatives(first)), None)
    speedup = None if best is None else first.against(LIBRARY, best)
    return Cell(
        what=str(task),
        collective=task.problem.collective,
        nbytes=task.problem.nbytes,
        default_s=first.medians[LIBRARY].middle,
        bound_s=bound_s,
        best=None if best is None else best.removesuffix(BLOCKING),
        speedup=speedup and speedup.middle,
        interval=speedup and (speedup.low, speedup.high),
        medians_s=_medians_s(first),
        confirmed_s=_medians_s(second) if second else {},
        findings=tuple(findings),
    )


def _medians_s(race: Race) -> dict[str, float]:
    return {label: median.middle for label, median in race.medians.items()}


def _ahead(task: Task, bound_s: float, race: Race) -> Iterator[Finding]:
    """The fastest alternative, if it is clearly faster than the default."""
    for label in _alternatives(race)[:1]:
        if clear(speedup := race.against(LIBRARY, label)):
            instead = str(neighbours(task)[label]) if label == _TWICE else label
            takes_s, instead_s = (race.medians[one].middle for one in (LIBRARY, label))
            yield _finding(_kind(label), task, takes_s, instead, instead_s, speedup, bound_s)


def _cliffs(task: Task, race: Race) -> Iterator[Finding]:
    """The pairs of sizes of which the larger one clearly takes more than STEP times as long."""
    problems = {LIBRARY: task, **neighbours(task)}
    for low, high in _CLIFFS:
        if {low, high} <= race.samples.keys():
            step = race.against(high, low)
            if step.middle > STEP and clear(step):
                times_s = [race.medians[one].middle for one in (high, low)]
                instead = str(problems[low])
                yield _finding("cliff", problems[high], times_s[0], instead, times_s[1], step)


def _finding(
    kind: Kind,
    task: Task,
    takes_s: float,
    instead: str,
    instead_s: float,
    ratio: Interval,
    bound_s: float | None = None,
) -> Finding:
    return Finding(
        kind=kind,
        what=str(task),
        collective=task.problem.collective,
        takes_s=takes_s,
        instead=instead.removesuffix(BLOCKING),
        instead_s=instead_s,
        ratio=ratio.middle,
        interval=(ratio.low, ratio.high),
        bound_s=bound_s,
    )


def _kind(label: str) -> Kind:
    if own_algorithm(label) is not None:
        return "own"
    if label == LIBRARY_PERSISTENT:
        return "persistent"
    return "padding" if label == _TWICE else "composition"
