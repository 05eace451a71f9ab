"""Runs the races of a scan: each default against its rivals, then the search for cliffs."""

import os
import time
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any

from collwise.errors import InvalidArgument
from collwise.measure.race import BEHIND, END, HALFWAY, LIBRARY, NEXT, Race
from collwise.mpi.runtime.agreement import on_root
from collwise.planner.plans import Plan
from collwise.profiles.profile import Profile
from collwise.profiles.records import USUAL_WITHIN
from collwise.tuning.agenda import RUNS
from collwise.tuning.outcomes import Task
from collwise.tuning.scanning import MESSAGES, Finding, Scan, Step, findings, neighbours, steep
from collwise.tuning.session import Session

MEASURING_SHARE = 0.1
"""The share of a scan's time that measuring may take."""
CLIFFS_SHARE = 0.2
"""The share of a scan's time that is kept for the search for cliffs."""
FULL_RACES = 4
"""A race of all library algorithms may take this multiple of a usual race's seconds.

The time includes a second race, which confirms findings.
"""


def scan(
    session: Session, tasks: Sequence[Task], budget_s: float, known: Profile | None = None
) -> Scan:
    """Race the library's defaults against other calls that a program could make.

    A second race has to confirm each finding.   tasks: in this order, each gets an equal share of
    the time that is left, or more if calls of its collective take long.  A task, except the first,
    is left out if the time that is left is too short.   budget_s: seconds.   known: a profile to
    use instead of measuring.   Collective.
    Raises InvalidArgument for one rank or values out of range, WrongResult for a wrong byte.
    """
    comm, begin = session.private.comm, time.monotonic()
    if comm.size < 2:
        raise InvalidArgument("scan 1 rank", "one rank sends nothing", "use 2 ranks or more")

    def left_s(share: float = 1.0) -> float:
        """Seconds until this share of the budget is used up, by rank 0's clock."""
        return on_root(comm, lambda: max(share * budget_s - (time.monotonic() - begin), 0.0))

    largest = max(task.problem.nbytes for task in tasks)
    measuring = MEASURING_SHARE * budget_s, None, MEASURING_SHARE, largest
    profile = known or session.measure(*measuring)
    placement = session.levels.placement if profile.levels else None
    medians_s: dict[str, Mapping[str, float]] = {}
    slower: dict[str, float] = {}  # by collective, its last time over its lower bound
    scanned = list[tuple[Task, float, float]]()
    found, left_out, unsettled = list[Finding](), list[str](), list[str]()
    for number, task in enumerate(tasks):
        racing_s = left_s(1 - CLIFFS_SHARE)
        least_s, name = task.least_s(profile, placement), task.problem.collective
        race_s = RUNS * least_s * slower.get(name, 1.0)
        if number and racing_s <= race_s:
            left_out.append(str(task))
            continue
        session.progress(f"scanning: {task}", 1 - CLIFFS_SHARE - racing_s / budget_s)
        share_s = min(max(racing_s / (len(tasks) - number), FULL_RACES * race_s), racing_s)
        estimated = on_root(comm, partial(task.plan, profile, None, placement), takes_long=True)
        first, confirmed = _with_all_rivals(session, task, estimated, share_s)
        found += confirmed
        medians_s[str(task)] = {label: one.middle for label, one in first.medians.items()}
        slower[name] = first.medians[LIBRARY].middle / (least_s or 1.0)
        scanned.append((task, first.medians[LIBRARY].middle, estimated.predicted_s))
    steps = steep(scanned)
    for number, step in enumerate(steps):
        remaining_s = left_s()
        if remaining_s <= 0:
            unsettled.append(str(step))
            continue
        session.progress(f"looking for a cliff: {step}", 1 - remaining_s / budget_s)
        cliffs = _cliff(session, step, remaining_s / (len(steps) - number))
        found += [cliff for cliff in cliffs if cliff.what not in {one.what for one in found}]
    return Scan(
        library=session.world.library,
        ranks=comm.Get_size(),
        spent_s=time.monotonic() - begin,
        findings=sorted(found, key=lambda one: (one.instead == MESSAGES, -one.ratio)),
        medians_s=medians_s,
        left_out=left_out,
        unsettled=unsettled,
    )


def _timed(
    session: Session, task: Task, others: Mapping[str, Task], budget_s: float, **options: Any
) -> Race:
    """A race of the library's default for a task.   others: by label, tasks raced beside it."""
    return session.compare(
        task.problem,
        {},
        {},
        budget_s,
        op=task.op,
        dtype=task.dtype,
        neighbours={label: other.problem for label, other in others.items()},
        within=USUAL_WITHIN,
        **options,
    )


def _with_all_rivals(
    session: Session, task: Task, estimated: Plan, budget_s: float
) -> tuple[Race, Collection[Finding]]:
    """A race of a task with all of its rivals, and the findings that a second race confirms."""
    busy = on_root(session.private.comm, lambda: os.getloadavg()[0] > 1 + (os.cpu_count() or 1))
    waiting = (busy or session.world.oversubscribed) and not session.world.emulated  # for a core
    bound_s = 0.0 if waiting else estimated.lower_bound_s
    own = session.own_candidates(estimated, ["blocking"])
    timed = partial(_timed, session, task, neighbours(task), budget_s / 2, own=own)
    first = timed(behind=BEHIND)
    if not (suspects := findings(task, first, bound_s)):
        return first, ()
    again = timed(seed=session.seed + 1, only={LIBRARY, *suspects})
    confirmed = findings(task, again, bound_s)
    return first, [confirmed[label] for label in suspects if label in confirmed]


def _cliff(session: Session, step: Step, budget_s: float) -> Collection[Finding]:
    """The cliff between two sizes, which halving finds; empty unless two races of it show it."""
    each_s = budget_s / (step.halvings + 2)
    half: Step | None = step
    while half is not None and (halfway := half.halfway) is not None:
        others = {HALFWAY: halfway, END: half.high}
        race = _timed(session, half.low, others, each_s, only={LIBRARY, *others})
        half = half.steeper_half(halfway, race)
    found: dict[str, Finding] = {}
    if half is not None:
        others = {NEXT: half.high}
        for seed in range(2):
            race = _timed(
                session, half.low, others, each_s, only={LIBRARY, NEXT}, seed=session.seed + seed
            )
            if not (found := findings(half.low, race, 0.0)):
                break
    return found.values()
