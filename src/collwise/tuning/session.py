"""A tuning session: measure this machine, plan, race the best few against the library, learn."""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Literal

from collwise.algorithms.registry import algorithms_for
from collwise.errors import InvalidArgument, NothingApplies
from collwise.measure.race import Race
from collwise.measure.statistics import Interval
from collwise.model.exact import seconds
from collwise.model.sources import distribute
from collwise.model.topology import near_square
from collwise.mpi.bench.measuring import run_campaign
from collwise.mpi.bench.race_harness import RaceHarness, race
from collwise.mpi.bench.workloads import BLOCKING, RACED
from collwise.mpi.runtime.agreement import everywhere, on_root
from collwise.mpi.runtime.private_communicator import PrivateCommunicator
from collwise.mpi.runtime.world import Communicator, World
from collwise.planner.choose import decided, plan, shortlist
from collwise.planner.operator_order import legal
from collwise.planner.plans import Candidate, Plan
from collwise.profiles.profile import Profile
from collwise.profiles.records import Form, RaceResult
from collwise.schedule.collectives import kind_of
from collwise.schedule.problem import Problem
from collwise.schedule.program import Schedule
from collwise.verifier import verify

log = logging.getLogger("collwise")

MEASURING_SHARE = 0.4
"""Of the time budget; the races share the rest."""
LARGEST_PROVED = 256
"""Schedules of up to so many ranks are proved right before they run."""

Progress = Callable[[str, float], None]
"""Told what is being done and how far the whole is, from 0 to 1 (on rank 0)."""


@dataclass(frozen=True)
class Task:
    """What is planned and raced: a collective, bytes, a root, and how vectors are combined.

    sources: of an s-to-p broadcast, the ranks that have data, nbytes each.   shape: the mesh in
    which its algorithms see the ranks; near a square if not given.
    """

    collective: str
    nbytes: int
    root: int = 0
    op: str = "sum"
    dtype: str = "float64"
    sources: tuple[int, ...] | None = None
    shape: tuple[int, int] | None = None

    def __str__(self) -> str:
        told = f"{self.collective} of {self.nbytes} bytes"
        return told if self.sources is None else f"{told} from each of {len(self.sources)} ranks"

    @classmethod
    def of(
        cls,
        collective: str,
        nbytes: int,
        root: int,
        op: str,
        dtype: str,
        *,
        ranks: int,
        round_up: bool = False,
        sources: Sequence[int] | None = None,
        shape: tuple[int, int] | None = None,
    ) -> "Task":
        """A task on so many ranks; a root counts where the collective has one.

        round_up: to whole elements, where they are combined.   sources, shape: count for an s-to-p
        broadcast; if there are no sources, `usual_sources` has data.
        Raises UnknownName or InvalidArgument for what is no collective, operator, type, size, root,
        source, shape.
        """
        algorithms_for(collective)
        if kind_of(collective).has_sources:
            given = usual_sources(ranks, shape) if sources is None else tuple(sources)
            Problem.of(collective, ranks, nbytes, sources=given, shape=shape)
            return cls(collective, nbytes, 0, op, dtype, given, shape)
        if kind_of(collective).combines:
            item = legal(collective, op, dtype).itemsize
            if round_up:
                unit = kind_of(collective).unit(ranks, item)
                nbytes = -(-nbytes // unit) * unit
            if op not in RACED:
                raise InvalidArgument(
                    f"a race with the operator {op}",
                    "races know the result of " + ", ".join(RACED),
                    "race one of these; `collwise plan` takes every operator",
                )
            Problem(collective, ranks, nbytes, 0, item)
        Problem("broadcast", ranks, nbytes, root)  # a wrong root is wrong for all of them
        return cls(collective, nbytes, 0 if not kind_of(collective).rooted else root, op, dtype)

    def plan(self, profile: Profile, ranks: int, algorithm: str | None = None) -> Plan:
        """The plan on a measured machine."""
        combines = kind_of(self.collective).combines
        return plan(
            self.collective,
            ranks=ranks,
            nbytes=self.nbytes,
            machine=profile.machine_combining(self.op, self.dtype) if combines else profile.machine,
            root=self.root,
            op=self.op if combines else None,
            dtype=self.dtype if combines else None,
            sources=self.sources,
            shape=self.shape,
            algorithm=algorithm,
        )


def usual_sources(ranks: int, shape: tuple[int, int] | None = None) -> tuple[int, ...]:
    """Who has data if nobody says: every fourth rank, but at least two of them (or the only one).

    Raises InvalidArgument for a shape out of range.
    """
    count = min(max(ranks // 4, 2), ranks)
    return distribute("equal", shape or near_square(ranks), count)


@dataclass(frozen=True)
class Decision:
    """What a race says about one form of a call, and the two competitors that it is about.

    form: blocking calls, which are compared with the library's blocking call; or persistent
    requests, which are compared with the faster of the library's two forms.
    """

    form: Form
    race: Race

    @property
    def unmarked(self) -> Race:
        """The same race, in which candidates have the labels that they have in plans."""
        samples = {name.removesuffix(BLOCKING): times for name, times in self.race.samples.items()}
        return replace(self.race, samples=samples)

    @property
    def raced(self) -> bool:
        """Whether a schedule of ours ran against the library's own."""
        return self.race.best not in self.race.libraries

    @property
    def ours(self) -> str:
        """The planned candidate that was the fastest; the library's own where nothing else ran."""
        return self.race.best.removesuffix(BLOCKING)

    @property
    def predicted_s(self) -> float | None:
        """What the model said about it, in seconds; nothing about the library's own."""
        return self.race.predicted_s.get(self.ours)

    @property
    def measured(self) -> Interval:
        """Its measured median, in seconds."""
        return self.race.medians[self.race.best]

    @property
    def library(self) -> Interval:
        """The measured median of the library's own that it is compared with, in seconds."""
        return self.race.medians[self.race.library]

    @property
    def speedup(self) -> Interval:
        """How many times as fast as that."""
        return self.race.speedup(self.race.best)

    @property
    def used(self) -> Literal["library", "collwise"]:
        """Who serves such calls from now on."""
        return "library" if self.race.winner == self.race.library else "collwise"


@dataclass(frozen=True)
class Outcome:
    """One size: what was planned, what a race said.

    race: persistent collectives, as a program that repeats them uses them.   blocking: the same
    repetitions, blocking calls only.
    """

    task: Task
    plan: Plan
    race: Race
    blocking: Race

    @property
    def decisions(self) -> tuple[Decision, Decision]:
        """What was decided for blocking calls, and for persistent ones."""
        return Decision("blocking", self.blocking), Decision("persistent", self.race)

    @property
    def ours(self) -> str:
        """The label of our fastest schedule as a persistent request."""
        return self.race.best

    @property
    def t0_s(self) -> float:
        """The machine's t0 at this size, in seconds."""
        return seconds(self.plan.machine.message(self.plan.problem.nbytes).gap)

    @property
    def lam(self) -> float:
        """The machine's λ at this size."""
        return float(self.plan.machine.message(self.plan.problem.nbytes).lam)


@dataclass(frozen=True)
class Tuning:
    """What a session found; the same on all ranks."""

    profile: Profile
    outcomes: tuple[Outcome, ...]


def tune(
    comm: Communicator,
    world: World,
    tasks: Sequence[Task],
    *,
    budget_s: float,
    seed: int = 0,
    progress: Progress = lambda what, done: None,
) -> Tuning:
    """Measure, plan, race and learn.  Collective over `comm`.

    tasks: what to race, in this order.   budget_s: seconds for everything.
    Raises InvalidArgument for values out of range, WrongResult for a wrong byte, on all ranks.
    """
    if not budget_s > 0:
        raise InvalidArgument("a time budget", f"{budget_s} s", "give seconds, above 0")
    channel = PrivateCommunicator(comm)
    try:
        profile = run_campaign(
            channel.comm,
            world,
            budget_s=budget_s * MEASURING_SHARE,
            seed=seed,
            report=lambda done: progress("measuring t0 and λ", done * MEASURING_SHARE),
        )
        harness = RaceHarness(channel, world.crowded)
        share = budget_s * (1 - MEASURING_SHARE) / max(len(tasks), 1)
        outcomes = []
        for number, task in enumerate(tasks):
            done = MEASURING_SHARE + (1 - MEASURING_SHARE) * number / len(tasks)
            progress(f"racing: {task}", done)
            try:
                outcomes.append(compare(harness, profile, task, budget_s=share, seed=seed))
            except NothingApplies as nothing:  # on all ranks alike: the library's own stays
                log.warning("not raced: %s", nothing)
        progress("done", 1.0)
    finally:
        channel.free()
    return Tuning(
        profile.with_race_results(win for outcome in outcomes for win in wins(outcome)),
        tuple(outcomes),
    )


def compare(
    harness: RaceHarness,
    profile: Profile,
    task: Task,
    *,
    budget_s: float,
    repetitions: int = 300,
    seed: int = 0,
    algorithm: str | None = None,
) -> Outcome:
    """Plan one collective, prove the candidates right, race them, decide.  Collective.

    algorithm: race this one only.
    """
    comm = harness.comm
    estimated = everywhere(comm, lambda: task.plan(profile, comm.Get_size(), algorithm))
    picked = shortlist(estimated)
    schedules = _schedules(estimated.problem, picked)
    if comm.Get_size() <= LARGEST_PROVED:
        on_root(comm, lambda: _prove(schedules.values()))
    predictions = {candidate.label: candidate.predicted_s for candidate in picked}
    everything = race(
        harness,
        estimated.problem,
        schedules,
        predictions,
        op=task.op,
        dtype=task.dtype,
        budget_s=budget_s,
        repetitions=repetitions,
        seed=seed,
    )
    # All ranks have the same samples, so all decide the same.
    blocking = {label for label in everything.samples if label.endswith(BLOCKING)}
    persistent = everything.among(set(everything.samples) - blocking)
    medians = {label: median.middle for label, median in persistent.medians.items()}
    return Outcome(
        task,
        decided(estimated, medians, persistent.winner, persistent.library),
        persistent,
        everything.among(blocking | {everything.libraries[0]}),
    )


def _schedules(problem: Problem, candidates: Iterable[Candidate]) -> dict[str, Schedule]:
    """The schedules of candidates, by label."""
    return {candidate.label: candidate.schedule(problem) for candidate in candidates}


def _prove(schedules: Iterable[Schedule]) -> None:
    for schedule in schedules:
        verify(schedule)


def wins(outcome: Outcome) -> list[RaceResult]:
    """What the race taught, for blocking calls and for persistent ones."""
    found: list[RaceResult] = []
    if outcome.plan.problem.shape != outcome.plan.problem.usual_shape:
        return found  # a communicator sees its ranks in the usual mesh: another schedule
    for decision in outcome.decisions:
        run, gain = decision.race, decision.speedup
        if not (decision.raced and isfinite(gain.high)):
            continue  # nothing raced, or too little to learn from
        candidate = outcome.plan.candidate(decision.ours)
        found.append(
            RaceResult(
                collective=run.collective,
                form=decision.form,
                ranks=run.ranks,
                nbytes=run.nbytes,
                root=run.root,
                sources=len(outcome.plan.problem.sources),
                algorithm=candidate.name,
                settings={name: str(value) for name, value in candidate.settings.items()},
                ours_s=decision.measured.middle,
                library_s=decision.library.middle,
                speedup_low=gain.low,
                speedup_high=gain.high,
                decision=decision.used,
            )
        )
    return found
