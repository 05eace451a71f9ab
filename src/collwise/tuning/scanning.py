"""Finds calls for which races show the library's default to be slow, and says what to do."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, pairwise
from typing import NamedTuple

import msgspec

from collwise.measure.race import (
    BLOCKING,
    END,
    FEWER,
    HALFWAY,
    LIBRARY,
    LIBRARY_PERSISTENT,
    NEIGHBOURS,
    NEXT,
    TWICE,
    Race,
    is_clear,
    own_algorithm,
)
from collwise.profiles.records import Bounds
from collwise.tuning.outcomes import Task

STEP, FAR = 1.5, 10.0
"""Least ratios of times: STEP, of a cliff to one element less; FAR, of a default to its bound."""
MESSAGES = "messages"
OWN_REMEDY = "let collwise tune or collwise export choose it"
_COMPOSITION = "make these calls in its place"
_REMEDIES = {
    LIBRARY_PERSISTENT: "make a persistent request, if the call is repeated",
    TWICE: "pad the buffers",
    NEXT: "give the last element a call of its own, or pad the buffers to a faster size",
    FEWER: "let one more rank take part; or see what collwise scan finds on fewer ranks",
    MESSAGES: "nothing that was raced is clearly faster; let collwise tune look for a schedule",
}


class Finding(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A call that takes clearly longer than it should.

    what: such as "allreduce of 8 bytes".   instead: what takes less time, or "messages" for the
    lower bound.   ratio: `takes_s` / `instead_s`, with its 95 % interval.   remedy: what to do
    about it.
    """

    what: str
    takes_s: float
    instead: str
    instead_s: float
    ratio: float
    interval: Bounds
    remedy: str


class Scan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The findings as a JSON document: the worst first; findings by a lower bound come last.

    medians_s: median seconds by task, then by label.   left_out: tasks for which time ran out.
    unsettled: pairs of sizes between which the time rises steeply, but the budget ended before the
    size at which it rises was found.   spent_s: seconds that the scan took.
    """

    format: str = "collwise scan"
    version: int = 1
    library: str
    ranks: int
    spent_s: float
    findings: Sequence[Finding]
    medians_s: Mapping[str, Mapping[str, float]]
    left_out: Sequence[str]
    unsettled: Sequence[str]


class Step(NamedTuple):
    """Two sizes of one collective between which the default's time rises.

    low_s, high_s: medians in seconds.   low_model_s, high_model_s: predicted seconds of our best
    schedules; a straight line is assumed between the two sizes.
    """

    low: Task
    high: Task
    low_s: float
    high_s: float
    low_model_s: float
    high_model_s: float

    @property
    def excess(self) -> float:
        """The factor by which the time rises, divided by that of the model's time (at least 1)."""
        rise, modelled = self.high_s / self.low_s, 1.0
        if self.low_model_s:
            modelled = max(self.high_model_s / self.low_model_s, 1.0)
        return rise / modelled

    @property
    def halfway(self) -> Task | None:
        """The task with a size halfway between the two; None if they are one element apart."""
        low, high = self.low.size, self.high.size
        return None if self.low.next == self.high else self.low.resized((low + high) // 2)

    @property
    def halvings(self) -> int:
        """How often the interval can be halved."""
        low, high = self.low.size, self.high.size
        unit = self.low.next.size - low
        return ((high - low) // unit - 1).bit_length()

    def steeper_half(self, halfway: Task, race: Race) -> "Step | None":
        """The half with more excess; None if its time rises by a factor of STEP or less.

        race: samples of the default: LIBRARY at `low`, HALFWAY at `halfway`, END at `high`.
        """
        sizes = [task.size for task in (self.low, halfway, self.high)]
        share = (sizes[1] - sizes[0]) / (sizes[2] - sizes[0])
        model_s = (1 - share) * self.low_model_s + share * self.high_model_s
        low_s, half_s, high_s = (race.medians[one].middle for one in (LIBRARY, HALFWAY, END))
        first = Step(self.low, halfway, low_s, half_s, self.low_model_s, model_s)
        second = Step(halfway, self.high, half_s, high_s, model_s, self.high_model_s)
        steeper = max(first, second, key=lambda half: half.excess)
        return steeper if steeper.high_s > STEP * steeper.low_s else None

    def __str__(self) -> str:
        return f"{self.low} and of {self.high.size}"


def steep(scanned: Sequence[tuple[Task, float, float]]) -> list[Step]:
    """The steps of several elements between neighbours, with `excess` above STEP, worst first.

    scanned: tasks, each with the default's time and the model's, in seconds.
    """
    by_size = sorted(scanned, key=lambda one: (one[0].problem.collective, one[0].problem.nbytes))
    steps = [
        Step(low, high, low_s, high_s, low_model_s, high_model_s)
        for (low, low_s, low_model_s), (high, high_s, high_model_s) in pairwise(by_size)
        if low.problem.collective == high.problem.collective and high != low.next
    ]
    found = [step for step in steps if step.excess > STEP]
    return sorted(found, key=lambda step: -step.excess)


def neighbours(task: Task) -> dict[str, Task]:
    """Tasks by label: with one element more, with twice the bytes, and on one rank fewer.

    A task on two ranks has no task on fewer, since one rank sends nothing.
    """
    found = {NEXT: task.next, TWICE: task.resized(2 * task.size)}
    return found | ({FEWER: task.on_fewer} if task.problem.ranks > 2 else {})


def findings(task: Task, race: Race, bound_s: float) -> dict[str, Finding]:
    """The findings of a race, by the label of what is faster than the library's default.

    The key is NEXT for a cliff, and FEWER if the call takes longer on fewer ranks.  The library's
    fastest other algorithm is included, too, because programs need no change for it.
    bound_s: lower bound in seconds, 0 for none; a default far above it is a finding (MESSAGES) if
    nothing else is faster.
    """
    last = len(race.samples[LIBRARY])
    stayed = [label for label, times_s in race.samples.items() if len(times_s) == last]
    no_rivals = {LIBRARY, *NEIGHBOURS} - {TWICE}
    others = sorted({*stayed} - no_rivals, key=lambda label: race.medians[label].middle)
    own = [label for label in others if own_algorithm(label) is not None]
    found: dict[str, Finding] = {}
    for alternatives in (others, own):
        found |= islice(_compared(task, race, LIBRARY, alternatives, 1.0), 1)
    if not found and 0 < FAR * bound_s < min(race.samples[LIBRARY]):
        limited = replace(race, samples={**race.samples, MESSAGES: (bound_s,) * last})
        found |= _compared(task, limited, LIBRARY, [MESSAGES], FAR)
    for slow, times in ((NEXT, STEP), (FEWER, 1.0)):
        found |= _compared(task, race, slow, [LIBRARY] * (slow in race.samples), times)
    return found


def _compared(
    task: Task, race: Race, slow: str, quicker: Sequence[str], times: float
) -> Iterator[tuple[str, Finding]]:
    """Yield findings for labels in `quicker` clearly faster than `slow`, by more than `times`."""
    kind, ranks = task.problem.kind, task.problem.ranks
    names = {label: str(other) for label, other in neighbours(task).items()} | {
        LIBRARY: f"{task} on {ranks} ranks" if slow == FEWER else str(task),
        LIBRARY_PERSISTENT: f"{task.problem.method}_init",
    }
    for quick in quicker:
        ratio, label = race.against(slow, quick), quick if slow == LIBRARY else slow
        if ratio.middle > times and is_clear(ratio.low, ratio.high):
            instead = names.get(quick, quick.removesuffix(BLOCKING))
            other = _COMPOSITION if own_algorithm(quick) is None else OWN_REMEDY
            finding = Finding(
                what=names[slow] + f" on {ranks - 1} ranks" * (slow == FEWER),
                takes_s=race.medians[slow].middle,
                instead=instead.removeprefix(f"{kind.name}/"),
                instead_s=race.medians[quick].middle,
                ratio=ratio.middle,
                interval=(ratio.low, ratio.high),
                remedy=_REMEDIES.get(label, other),
            )
            yield label, finding
