"""Finds calls for which races show the library's default to be slow, and says what to do."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

import msgspec

from collwise.measure.race import (
    BLOCKING,
    LIBRARY,
    LIBRARY_PERSISTENT,
    Race,
    is_clear,
    own_algorithm,
)
from collwise.profiles.records import Bounds
from collwise.tuning.outcomes import Task

STEP, FAR = 1.5, 10.0
"""Least ratios of findings: for one element more (a cliff), and for the default over its bound."""
NEXT, TWICE, MESSAGES = "one element more", "twice the bytes", "messages"
OWN_REMEDY = "let collwise tune or collwise export choose it"
_COMPOSITION = "make these calls in its place"
_REMEDIES = {
    LIBRARY_PERSISTENT: "make a persistent request, if the call is repeated",
    TWICE: "pad the buffers",
    NEXT: "give the last element a call of its own, or pad the buffers to a faster size",
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
    """The findings, the worst first, as a JSON document.

    medians_s: maps a task and a label to the median seconds.   left_out: tasks for which there was
    no time.   spent_s: seconds that the scan took.
    """

    format: str = "collwise scan"
    version: int = 1
    library: str
    ranks: int
    spent_s: float
    findings: Sequence[Finding]
    medians_s: Mapping[str, Mapping[str, float]]
    left_out: Sequence[str]


def neighbours(task: Task) -> dict[str, Task]:
    """Two tasks, by label: this one with one element more, and with twice the bytes."""
    sources = task.problem.sources
    nbytes = sources[0].nbytes if sources else task.problem.nbytes
    return {NEXT: task.resized(nbytes + 1), TWICE: task.resized(2 * nbytes)}


def findings(task: Task, race: Race, bound_s: float) -> dict[str, Finding]:
    """The findings of a race, by the label of the faster competitor, or NEXT for a cliff.

    The library's fastest other algorithm is included, too, because programs need no change for it.
    bound_s: the lower bound in seconds, which is a finding if the default is far above it; 0 for
    none.
    """
    last = len(race.samples[LIBRARY])
    stayed = [label for label, times_s in race.samples.items() if len(times_s) == last]
    others = sorted({*stayed} - {LIBRARY, NEXT}, key=lambda label: race.medians[label].middle)
    own = [label for label in others if own_algorithm(label) is not None]
    found: dict[str, Finding] = {}
    for alternatives in (others, own):
        found |= islice(_compared(task, race, LIBRARY, alternatives, 1.0), 1)
    if not found and 0 < FAR * bound_s < min(race.samples[LIBRARY]):
        limited = replace(race, samples={**race.samples, MESSAGES: (bound_s,) * last})
        found |= _compared(task, limited, LIBRARY, [MESSAGES], FAR)
    return found | dict(_compared(task, race, NEXT, [LIBRARY] * (NEXT in race.samples), STEP))


def _compared(
    task: Task, race: Race, slow: str, quicker: Sequence[str], times: float
) -> Iterator[tuple[str, Finding]]:
    """Yield a finding for each label in `quicker` that is clearly faster by more than `times`."""
    kind = task.problem.kind
    names = {label: str(other) for label, other in neighbours(task).items()} | {
        LIBRARY: str(task),
        LIBRARY_PERSISTENT: f"{kind.methods[0]}_init",
    }
    for quick in quicker:
        ratio, label = race.against(slow, quick), NEXT if slow == NEXT else quick
        if ratio.middle > times and is_clear(ratio.low, ratio.high):
            instead = names.get(quick, quick.removesuffix(BLOCKING))
            other = _COMPOSITION if own_algorithm(quick) is None else OWN_REMEDY
            finding = Finding(
                what=names[slow],
                takes_s=race.medians[slow].middle,
                instead=instead.removeprefix(f"{kind.name}/"),
                instead_s=race.medians[quick].middle,
                ratio=ratio.middle,
                interval=(ratio.low, ratio.high),
                remedy=_REMEDIES.get(label, other),
            )
            yield label, finding
