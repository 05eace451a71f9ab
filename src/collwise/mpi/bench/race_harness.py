"""Races on MPI: common starts, competitors shuffled and interleaved, the slowest rank's time.

Every competitor's result is checked on every rank, before and after the timing.
"""

import gc
import logging
import random
import time
from collections.abc import Mapping, Sequence
from statistics import median

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from collwise.measure.race import Punctual, Race, punctual
from collwise.mpi.bench.clock import CommonClock, StartingLine
from collwise.mpi.bench.workloads import Competitor, Workload
from collwise.mpi.library.switching import OwnCalls
from collwise.mpi.runtime.private_communicator import PrivateCommunicator
from collwise.schedule.problem import Problem
from collwise.schedule.program import Schedule

log = logging.getLogger("collwise")

FEW, BEHIND = 5, 1.5
"""After FEW repetitions, the library's own algorithms leave that are so many times behind."""
MOST_OWN = 3
"""Most of them that stay."""
TRYING_SHARE = 0.25
"""The share of a race's time for these repetitions."""
_WARM_UPS = 3
_FEWEST = 3
_CHUNK_S = 0.05
_MAX_IN_CHUNK = 50


class RaceHarness:
    """Where races are run: a private communicator with a common clock.  Making one is collective.

    oversubscribed: there are more ranks than cores on some node.
    """

    def __init__(self, private: PrivateCommunicator, oversubscribed: bool) -> None:
        self.private, self.comm = private, private.comm
        self.own = OwnCalls(private.comm, one_thread=True)
        self.clock = CommonClock(self.comm)
        self.line = StartingLine(self.comm, self.clock, oversubscribed=oversubscribed)


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
) -> Race:
    """Race the schedules, by label, against the library's own collective.  Collective.

    op, dtype: the operator and the elements of vectors.   budget_s: seconds for this race.
    repetitions: at most.   bare_sends: race the same messages by plain calls of mpi4py, too.
    own: by label, names and settings of the library's own algorithms to race, as blocking calls;
    those far behind leave after a few repetitions.
    Raises WrongResult, on all ranks, if a competitor leaves a wrong byte on any rank, and
    UnknownName for an operator that races do not support.
    """
    workload = Workload(harness.private, problem, op, dtype)
    competitors = workload.libraries()
    for label, schedule in schedules.items():
        competitors += workload.candidates(label, schedule)
        if bare_sends:
            competitors.append(workload.bare_sends(label, schedule))
    try:
        for competitor in competitors:
            workload.check(competitor)
        if own:
            competitors += _hopeful(harness, workload, own, competitors[0], budget_s, seed)
        samples, timed = time_competitors(harness, competitors, budget_s, repetitions, seed)
        for competitor in competitors:
            workload.check(competitor)
    finally:
        for competitor in competitors:
            competitor.free()
    return Race(
        problem.collective,
        problem.ranks,
        problem.nbytes,
        problem.root,
        samples,
        dict(predicted_s),
        timed.dropped,
        apart_s=timed.tolerance_s,
    )


def _hopeful(
    harness: RaceHarness,
    workload: Workload,
    own: Mapping[str, tuple[str, Mapping[str, int]]],
    default: Competitor,
    budget_s: float,
    seed: int,
) -> list[Competitor]:
    """The best of the library's own algorithms, if a few repetitions let them hope; checked.

    As many are tried, the first ones, as TRYING_SHARE of the time allows.
    """
    began_s = time.perf_counter()
    default.run()
    each_s = harness.comm.allreduce(time.perf_counter() - began_s, MPI.MAX) + harness.line.notice_s
    most = int(budget_s * TRYING_SHARE / (each_s * (FEW + 3)))
    trying = []
    for label, (name, settings) in list(own.items())[:most]:
        competitor = workload.own(harness.own, label, name, settings)
        if isinstance(competitor, str):
            log.info("%s is not raced: %s", label, competitor)
        else:
            trying.append(competitor)
    if left_out := list(own)[most:]:
        log.info("there is no time to race %s", ", ".join(left_out))
    if not trying:
        return []
    about = harness, [default, *trying], budget_s * TRYING_SHARE, FEW, seed
    samples, _ = time_competitors(*about, warm_ups=1)
    medians_s = {label: median(times) for label, times in samples.items()}
    limit_s = BEHIND * min(medians_s.values())
    trying.sort(key=lambda one: medians_s[one.label])
    hopeful = [one for one in trying if medians_s[one.label] <= limit_s][:MOST_OWN]
    for competitor in hopeful:
        workload.check(competitor)
    return hopeful


def time_competitors(
    harness: RaceHarness,
    competitors: Sequence[Competitor],
    budget_s: float,
    repetitions: int,
    seed: int,
    warm_ups: int = _WARM_UPS,
) -> tuple[dict[str, tuple[float, ...]], Punctual]:
    """By competitor, the slowest rank's seconds in the repetitions that all ranks began together.

    Times count from the first rank's start, so nobody looks faster because another was late.
    """
    comm, line, now = harness.comm, harness.line, harness.clock.now
    order = list(range(len(competitors)))
    shuffle = random.Random(seed).shuffle
    every: list[NDArray[np.float64]] = []  # of each chunk: times, and how far the starts were apart
    begin = time.perf_counter()
    plan = np.array([warm_ups])
    collecting = gc.isenabled()
    gc.disable()
    try:
        while plan[0]:
            count = int(plan[0])
            began, last, ended = np.zeros((3, count, len(competitors)))
            late = np.zeros((count, len(competitors)), dtype=np.uint8)
            for repetition in range(count):
                shuffle(order)
                for index in order:
                    began[repetition, index], in_time = line.line_up()
                    competitors[index].run()
                    ended[repetition, index] = now()
                    late[repetition, index] = not in_time
            last[:] = began
            comm.Allreduce(MPI.IN_PLACE, began, MPI.MIN)
            for latest in (last, ended, late):
                comm.Allreduce(MPI.IN_PLACE, latest, MPI.MAX)
            line.adapt(float(late.mean()))
            every.append(np.stack([ended - began, last - began]))
            kept = punctual(*np.concatenate(every[1:] or every, axis=1))  # the first are warm-ups
            each_s = float((ended - began).sum(axis=1).mean()) + line.notice_s * len(competitors)
            left_s = begin + budget_s - time.perf_counter()
            have = len(kept.kept) if every[1:] else 0
            plan[0] = _next_chunk(left_s, each_s, have, repetitions)
            comm.Bcast(plan, root=0)
    finally:
        if collecting:
            gc.enable()
    columns = kept.kept[:repetitions].T.tolist()
    return {one.label: tuple(c) for one, c in zip(competitors, columns, strict=True)}, kept


def _next_chunk(left_s: float, each_s: float, have: int, repetitions: int) -> int:
    """How many repetitions to time next: 0 when the time or the repetitions are used up.

    A few repetitions are timed whatever the budget.
    """
    if have >= repetitions or (have >= _FEWEST and each_s > left_s):
        return 0
    return max(1, min(_MAX_IN_CHUNK, repetitions - have, int(min(_CHUNK_S, left_s) / each_s)))
