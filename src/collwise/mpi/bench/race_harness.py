"""Races on MPI: common starts, competitors shuffled and interleaved, the slowest rank's time.

A competitor's result is checked on all its ranks before the timing, and afterwards if it stayed.
"""

import gc
import logging
import os
import random
import sys
import time
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from functools import cached_property, partial
from math import inf

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from collwise.errors import WrongResult
from collwise.measure.race import (
    ALWAYS_RACED,
    CALLS,
    LIBRARY,
    NEIGHBOURS,
    Load,
    Punctual,
    Race,
    contenders,
    form_of,
    method_name,
    punctual,
)
from collwise.measure.statistics import FEWEST, median_interval
from collwise.mpi.bench.clock import CommonClock, StartingLine
from collwise.mpi.bench.workloads import Competitor, Workload, idle
from collwise.mpi.engine.node_transport import line_times_s
from collwise.mpi.execution.executor import NoPlannedRequest
from collwise.mpi.library.switching import OwnCalls
from collwise.mpi.runtime.agreement import everywhere
from collwise.mpi.runtime.private_communicator import PrivateCommunicator
from collwise.mpi.runtime.world import library_line
from collwise.profiles.records import Form
from collwise.schedule.problem import Problem
from collwise.schedule.program import Schedule
from collwise.system.host import LAB

log = logging.getLogger("collwise")

_FOR_INTERVALS = 20
"""The fewest repetitions after which narrow confidence intervals may end a race."""
_TRIALS, _TRIAL_SHARE = 5, 0.25
"""Competitors may leave for being behind after so many repetitions or this share of the budget."""
_ROOM, _ROOM_S, _FEWEST_IN_CHUNK = 1.5, 1e-3, 3
"""Between hosts, where agreeing on a start takes long, ranks agree once for several repetitions, at
first for at least _FEWEST_IN_CHUNK.  Between a call's start and the next start, _ROOM × the
slowest time of its competitor so far plus _ROOM_S seconds pass."""
_CHUNK_S = 0.05
_MAX_IN_CHUNK = 50


class RaceHarness:
    """What races run on: a private communicator with a common clock, and its `OwnCalls`.

    Making one is collective.

    oversubscribed: whether there are more ranks than cores on some node.
    """

    def __init__(self, private: PrivateCommunicator, oversubscribed: bool) -> None:
        self.private, self.comm = private, private.comm
        self.nodes = () if oversubscribed else private.nodes
        self.own = OwnCalls(private.comm, one_thread=True)
        self.clock = CommonClock(self.comm)
        self.line = StartingLine(self.comm, self.clock, oversubscribed=oversubscribed)
        self.wrong = set[str]()  # the library's calls that have left wrong data

    @cached_property
    def fewer(self) -> PrivateCommunicator | None:
        """A communicator of all ranks but the last; None on the last.  First access: collective."""
        last = self.private.rank == self.private.size - 1
        team = self.comm.Split(MPI.UNDEFINED if last else 0, self.private.rank)
        if last:
            return None
        made = PrivateCommunicator(MPI.Intracomm(team))
        team.Free()
        return made

    def free(self) -> None:
        """Free all communicators that were made here.  Collective."""
        self.own.free()
        if (fewer := vars(self).get("fewer")) is not None:
            fewer.free()


def race(
    harness: RaceHarness,
    problem: Problem,
    schedules: Mapping[str, Schedule],
    predicted_s: Mapping[str, float],
    *,
    op: str = "sum",
    dtype: str = "float64",
    budget_s: float,
    repetitions: int = 300,
    seed: int = 0,
    bare_sends: bool = False,
    own: Mapping[str, tuple[str, Mapping[str, int]]] | None = None,
    forms: Collection[Form] = ALWAYS_RACED,
    if_time: Collection[Form] = (),
    every_own: bool = False,
    neighbours: Mapping[str, Problem] | None = None,
    only: Container[str] | None = None,
    behind: float = inf,
    within: float = 0.0,
) -> Race:
    """Race the schedules, by label, against the library's own collective.  Collective.

    op, dtype: the operator and the elements of vectors.   budget_s: seconds for this race.
    repetitions: the most to time.   bare_sends: race messages by plain calls of mpi4py, too.
    own: for each label, the name and settings of one of the library's own algorithms; the label
    names the form of the call.  Those that fail their check are left out.  Only the first ones are
    raced if _TRIAL_SHARE of the time allows no more, unless `every_own`.
    forms: the forms of calls to race.   if_time: further forms, raced if _TRIAL_SHARE of the time
    allows to try all competitors of all forms.
    neighbours: for each label, another problem, of as many ranks or one less, on which the
    library's blocking call is timed; with any, COMPOSITIONS race, too.   only: the labels of all
    that is timed; None for everything.
    behind: competitors that take this many times as long as the best of their form may leave early.
    within: the race ends once medians are known to ± this share; 0 for no such end.
    Raises WrongResult, on all ranks, if a schedule leaves a wrong byte on any rank (a call of the
    library's is left out then, unless it blocks), and UnknownName for an operator without races.
    """
    begin = time.perf_counter()
    workload = Workload(harness.private, problem, op, dtype)
    others: dict[str, Workload | None] = {}
    for label, other in (neighbours or {}).items():
        private = harness.private if other.ranks == problem.ranks else harness.fewer
        others[label] = None if private is None else Workload(private, other, op, dtype)

    def checked(some: Iterable[Competitor]) -> list[Competitor]:
        """Keep those that can run here, and of the library's those whose results are right."""
        able = []
        for one in some:
            on = others.get(one.label, workload)
            try:
                if on is not None and on.private is harness.private:
                    on.check(one)
                else:
                    everywhere(harness.comm, one.run if on is None else partial(on.check, one))
                able.append(one)
            except NoPlannedRequest as why:
                log.info("%s is not raced: %s", one.label, why)
            except WrongResult as wrong:
                if one.label.startswith(tuple(schedules)):
                    raise
                _warn(harness, problem, one.label, wrong.seen)
                able += [one] * (one.label in (LIBRARY, *NEIGHBOURS))
        return able

    competitors = workload.libraries()
    for label, schedule in schedules.items():
        competitors += workload.candidates(label, schedule)
        if bare_sends:
            competitors.append(workload.bare_sends(label, schedule))
    competitors += workload.compositions() if others else []
    competitors += [
        idle(label) if other is None else other.default(label) for label, other in others.items()
    ]
    try:
        default = competitors[0]
        wanted = [one for one in competitors if only is None or one.label in only]
        some = {label: one for label, one in (own or {}).items() if not only or label in only}
        running: list[Competitor] = []
        for group in (forms, if_time):
            more = [one for one in wanted if form_of(one.label) in group]
            more_own = {label: one for label, one in some.items() if form_of(label) in group}
            everything = len(running) + len(more) + len(more_own)
            if running and more and everything > _room(harness, default, budget_s):
                log.info("there is no time to race %s calls", " and ".join(group))
                break
            running += checked(more)
            if more_own:
                most_s = inf if every_own else budget_s
                added = _own_competitors(harness, workload, more_own, default, most_s)
                competitors += added
                running += added
        before_s = line_times_s(harness.comm, harness.nodes)
        left_s = budget_s - (time.perf_counter() - begin)
        samples, timed, load = time_competitors(
            harness, running, left_s, repetitions, seed, behind=behind, within=within
        )
        after_s = line_times_s(harness.comm, harness.nodes)
        last = max(map(len, samples.values()))
        stayed = [one for one in running if len(samples.get(one.label, ())) == last]
        for one in {*stayed} - {*checked(stayed)}:  # it was right at first
            del samples[one.label]
    finally:
        for competitor in competitors:
            competitor.free()
    return Race(
        *(problem.collective, problem.ranks, problem.nbytes, problem.root),
        samples,
        dict(predicted_s),
        timed.dropped,
        apart_s=timed.tolerance_s,
        load=load._replace(lines_s=(before_s, after_s)),
    )


def _warn(harness: RaceHarness, problem: Problem, label: str, seen: str) -> None:
    """Warn once, on rank 0, that a call of the library's leaves wrong data."""
    form = next((form for form, call in CALLS.items() if call.defaults[-1] == label), None)
    name = f"{library_line()}'s {method_name(problem.method, form) if form else label}"
    if name not in harness.wrong and harness.private.rank == 0:
        log.warning("%s leaves wrong data, without collwise, too: %s: %s", name, problem, seen)
    harness.wrong.add(name)


def _room(harness: RaceHarness, default: Competitor, budget_s: float) -> int:
    """Time the default, to tell how many competitors _TRIAL_SHARE of the time allows to try."""
    began_s = time.perf_counter()
    for _ in range(_TRIALS):
        harness.line.line_up()
        default.run()
    each_s = (time.perf_counter() - began_s) / _TRIALS
    return _fitting(harness, budget_s, each_s)


def _fitting(harness: RaceHarness, budget_s: float, each_s: float) -> int:
    """How many competitors of each_s seconds _TRIAL_SHARE of rank 0's time allows to try."""
    share = min(budget_s * _TRIAL_SHARE / (each_s * (_TRIALS + 3)), sys.maxsize)
    most: int = harness.comm.bcast(int(share))
    return most


def _own_competitors(
    harness: RaceHarness,
    workload: Workload,
    own: Mapping[str, tuple[str, Mapping[str, int]]],
    default: Competitor,
    budget_s: float,
) -> list[Competitor]:
    """Make competitors of own algorithms that can run; of the first few only if time is short."""
    began_s = time.perf_counter()
    default.run()
    each_s = harness.comm.allreduce(time.perf_counter() - began_s, MPI.MAX) + harness.line.notice_s
    most = _fitting(harness, budget_s, each_s)
    trying = []
    for label, (name, settings) in list(own.items())[:most]:
        competitor = workload.own(harness.own, label, name, settings)
        if isinstance(competitor, str):
            log.info("%s is not raced: %s", label, competitor)
        else:
            trying.append(competitor)
    if left_out := list(own)[most:]:
        log.info("there is no time to race %s", ", ".join(left_out))
    return trying


def time_competitors(
    harness: RaceHarness,
    competitors: Sequence[Competitor],
    budget_s: float,
    repetitions: int,
    seed: int,
    *,
    behind: float = inf,
    within: float = 0.0,
) -> tuple[dict[str, tuple[float, ...]], Punctual, Load]:
    """Time competitors: the slowest rank's seconds in repetitions that all ranks began together.

    Times count from the first rank's start, so no rank looks faster because another was late.
    Returns (times by label, what `punctual` kept, the load).   budget_s: seconds by rank 0's clock.
    behind: competitors that take this many times as long as the best of their form leave, except
    those that `contenders` keeps.
    within: the timing ends early once medians are known to ± this share; 0 for no such end.
    """
    comm, line, now = harness.comm, harness.line, harness.clock.now
    tried = behind == inf
    began_s, calls_s, worked_s = time.monotonic(), 0.0, 0.0
    emulated = LAB in os.environ
    shuffle = random.Random(seed).shuffle
    every: list[NDArray[np.float64]] = []  # of each chunk: times, and how far the starts were apart
    begin = time.perf_counter()
    plan = np.ones(1 + len(competitors), np.int64)  # repetitions to time next, and who runs
    tried_with: Punctual | None = None  # what was kept when competitors left
    gaps_s: list[float] = []  # from a competitor's start to the next start, once that is known
    collecting = gc.isenabled()
    gc.disable()
    try:
        while plan[0]:
            count, racing = int(plan[0]), plan[1:] > 0
            began, last, ended = np.zeros((3, count, len(competitors)))
            late = np.zeros((count, len(competitors)), dtype=np.uint8)
            order = np.flatnonzero(racing).tolist()
            after_s = None
            for repetition in range(count):
                shuffle(order)
                for index in order:
                    began[repetition, index], in_time = line.line_up(after_s)
                    after_s = gaps_s[index] if gaps_s else None
                    working_s = time.process_time() if emulated else 0.0
                    competitors[index].run()
                    ended[repetition, index] = now()
                    worked_s += time.process_time() - working_s if emulated else 0.0
                    late[repetition, index] = not in_time
            last[:] = began
            comm.Allreduce(MPI.IN_PLACE, began, MPI.MIN)
            for latest in (last, ended, late):
                comm.Allreduce(MPI.IN_PLACE, latest, MPI.MAX)
            line.adapt(float(late[:, racing].mean()))
            times = np.where(racing, ended - began, np.nan)
            every.append(np.stack([times, last - began]))
            calls_s += float(np.nansum(times))
            trials = np.concatenate(every[1:] or every, axis=1)  # the first is a warm-up
            if line.apart:
                gaps_s = (_ROOM * np.nanmax(trials[0], axis=0) + _ROOM_S).tolist()
            kept = punctual(*trials)
            have = len(kept.kept) if every[1:] else 0
            if comm.Get_rank() == 0:  # whose clock counts
                each_s = float(np.nansum(times, axis=1).mean()) + line.notice_s * len(order)
                each_s = sum(gaps_s[index] for index in order) if gaps_s else each_s
                spent_s = time.perf_counter() - begin
                if not tried and have and (have >= _TRIALS or spent_s > _TRIAL_SHARE * budget_s):
                    tried = True
                    plan[1:] = _stay(competitors, kept.kept, behind)
                enough = have >= _FOR_INTERVALS and _narrow(kept.kept[:, plan[1:] > 0], within)
                left_s = budget_s - spent_s
                plan[0] = 0 if enough else _next_chunk(left_s, each_s, have, repetitions)
                if plan[0] and gaps_s and have < FEWEST:  # agreeing on more takes long, too
                    plan[0] = max(plan[0], _FEWEST_IN_CHUNK)
            comm.Bcast(plan, root=0)
            if (plan[1:] < racing).any():
                tried_with = kept
    finally:
        if collecting:
            gc.enable()
    samples: dict[str, tuple[float, ...]] = {}
    for index, competitor in enumerate(competitors):
        column = kept.kept[:repetitions, index]
        if tried_with is not None and np.isnan(column).all():  # all of its starts count as late now
            column = tried_with.kept[:repetitions, index]
        if timed := tuple(column[~np.isnan(column)].tolist()):
            samples[competitor.label] = timed
    worked_s = comm.allreduce(worked_s, MPI.SUM)
    return samples, kept, Load(began_s, time.monotonic(), calls_s, worked_s)


def _stay(
    competitors: Sequence[Competitor], times_s: NDArray[np.float64], behind: float
) -> list[bool]:
    """For each competitor, whether it stays in the race, given the times of its repetitions."""
    labels = [competitor.label for competitor in competitors]
    medians_s = np.median(times_s, axis=0).tolist()
    staying = contenders(dict(zip(labels, medians_s, strict=True)), behind)
    return [label in staying for label in labels]


def _narrow(times_s: NDArray[np.float64], within: float) -> bool:
    """Whether the medians of all competitors are known to ± `within`, a share; False for 0."""
    return within > 0 and all(median_interval(c).uncertainty <= within for c in times_s.T)


def _next_chunk(left_s: float, each_s: float, have: int, repetitions: int) -> int:
    """How many repetitions to time next: 0 when the time or the repetitions are used up.

    A few repetitions are timed whatever the budget.
    """
    if have >= repetitions or (have >= FEWEST and each_s > left_s):
        return 0
    return max(1, min(_MAX_IN_CHUNK, repetitions - have, int(min(_CHUNK_S, left_s) / each_s)))
