"""The data of a tuning session: tasks, the outcomes of their races, all results.  Needs no MPI."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import isfinite
from typing import Literal

from collwise.algorithms.registry import ALGORITHMS
from collwise.measure.race import (
    ALWAYS_RACED,
    CALLS,
    Race,
    by_library,
    form_of,
    own_algorithm,
)
from collwise.measure.stability import STABLE
from collwise.measure.statistics import Interval
from collwise.model.exact import seconds
from collwise.model.levels import Levels
from collwise.model.machine import Cost, Machine
from collwise.model.placement import Placement
from collwise.planner.by_hand import choice_named, has_settings, planned
from collwise.planner.candidates import predicted
from collwise.planner.choose import decided, plan_for
from collwise.planner.operator_order import DTYPE, OP
from collwise.planner.plans import Candidate, Plan
from collwise.planner.race_lookup import race_result
from collwise.profiles.profile import Profile, with_measurements
from collwise.profiles.records import Form, RacedOwn, RaceResult
from collwise.schedule.problem import Problem


@dataclass(frozen=True)
class Task:
    """A problem to plan and race.

    op, dtype: the operator and the type of the elements, if the collective combines vectors.
    reason: why contributions are combined in the problem's order.
    """

    problem: Problem
    op: str = OP
    dtype: str = DTYPE
    reason: str = ""

    def __str__(self) -> str:
        nbytes, sources = self.problem.nbytes, self.problem.sources
        if sources:
            return (
                f"{self.problem.collective} of {sources[0].nbytes} bytes from each of"
                f" {len(sources)} ranks"
            )
        return f"{self.problem.collective} of {nbytes} bytes"

    def plan(
        self, profile: Profile, algorithm: str | None = None, placement: Placement | None = None
    ) -> Plan:
        """The plan of the task on a measured machine.   algorithm: plan with this algorithm only,
        and with the settings in its label, if any.

        placement: the ranks' groups at the levels of the profile.
        """
        machine = self._machine(profile, placement)
        if algorithm is not None and has_settings(algorithm):
            named = choice_named(self.problem.collective, algorithm)
            return planned(self.problem, machine, named, reason=self.reason, score=predicted)
        return plan_for(self.problem, machine, algorithm, reason=self.reason)

    def least_s(self, profile: Profile, placement: Placement | None = None) -> float:
        """The lower bound in seconds, with each t0 and λ at the lower end of its interval.

        A measured time well below this bound proves t0 or λ wrong.   placement: the ranks' groups.
        """
        machine = self._machine(profile.at_lower_ends(), placement)
        return self.problem.lower_bounds(machine)[0].time_s

    def _machine(self, profile: Profile, placement: Placement | None) -> Machine:
        op = self.op if self.problem.kind.combines else None
        return profile.machine_on(placement, op, self.dtype)

    @property
    def size(self) -> int:
        """The bytes of the problem; if there are sources, the bytes of the first source."""
        sources = self.problem.sources
        return sources[0].nbytes if sources else self.problem.nbytes

    @property
    def next(self) -> "Task":
        """The task with one element more, or one more in each block or from each source."""
        return self.resized(self.size + 1)

    @property
    def on_fewer(self) -> "Task":
        """The task without the last rank and its data, with fewer bytes if needed for equal blocks.

        If the last rank is the root, the rank before it becomes the root.
        """
        sources, ranks = self.problem.sources, self.problem.ranks - 1
        kept = tuple(source for source in sources if source.rank < ranks)
        nbytes = sum(source.nbytes for source in kept) if sources else self.problem.nbytes
        nbytes -= nbytes % self.problem.kind.unit(ranks, self.problem.itemsize)
        fewer = replace(
            self.problem,
            ranks=ranks,
            nbytes=nbytes,
            root=min(self.problem.root, ranks - 1),
            sources=kept,
            shape=(0, 0),
            placement=None,
        )
        return replace(self, problem=fewer)

    def resized(self, nbytes: int) -> "Task":
        """The task with another size: `nbytes` bytes, or `nbytes` bytes from each source.

        Sizes are rounded up to whole elements, and to p equal blocks if every rank gets a block.
        """
        problem, sources = self.problem, self.problem.sources
        if sources:
            sources = tuple(source._replace(nbytes=nbytes) for source in sources)
            nbytes *= len(sources)
        blocks = problem.ranks if problem.kind.output == "own block" else 1
        nbytes += -nbytes % (problem.itemsize * blocks)
        return replace(self, problem=replace(problem, nbytes=nbytes, sources=sources))


@dataclass(frozen=True)
class RaceVerdict:
    """A race, and what it decided about one form of a call.

    form: the form of the competitors, and of the library's default beside them.  Persistent ones
    are also compared with the default's blocking call, which a program could make instead.
    method: the MPI method of the calls, such as "Bcast".
    """

    form: Form
    race: Race
    method: str

    @property
    def plain_race(self) -> Race:
        """The race with the form removed from labels, so that they are the labels of plans."""
        samples = {self._plain(name): times for name, times in self.race.samples.items()}
        return replace(self.race, samples=samples)

    def _plain(self, label: str) -> str:
        return label.removesuffix(CALLS[self.form].ending)

    @property
    def raced(self) -> bool:
        """Whether any candidate, ours or the library's, ran to the end beside the default."""
        return self.race.best not in self.race.libraries

    @property
    def ours(self) -> str:
        """The label of the fastest candidate that ran to the end, or else of the default."""
        return self._plain(self.race.best)

    @property
    def predicted_s(self) -> float | None:
        """The predicted time of `ours` in seconds; None for the library's algorithms."""
        return self.race.predicted_s.get(self.ours)

    @property
    def measured(self) -> Interval:
        """The measured median of `ours`, in seconds."""
        return self.race.medians[self.race.best]

    @property
    def library(self) -> Interval:
        """The measured median, in seconds, of the library's call that `ours` is compared with."""
        return self.race.medians[self.race.library]

    @property
    def speedup(self) -> Interval:
        """The library's time over that of `ours`, with its interval; above 1 if ours is faster."""
        return self.race.speedup(self.race.best)

    def own(self, candidates: Mapping[str, Candidate]) -> RacedOwn | None:
        """The result of the library's fastest other algorithm, for the profile.

        None if none ran to the end, or if a time is impossible.   candidates: the library's own
        algorithms that were to be raced, by label.
        """
        best = candidates.get(self.race.best_own)
        if best is None or self.race.impossible:
            return None
        gain = self.race.speedup(self.race.best_own)
        return RacedOwn(
            name=own_algorithm(best.name) or "",
            settings={name: int(value) for name, value in best.settings.items()},
            median_s=self.race.medians[self.race.best_own].middle,
            speedup_low=gain.low,
            speedup_high=gain.high,
        )

    @property
    def serves(self) -> str:
        """What will run calls: "collwise", "library" (its default) or a "library:…" algorithm."""
        own = self.used == "collwise" and own_algorithm(self.ours) is not None
        return self.ours.partition("/")[2] if own else self.used

    @property
    def used(self) -> Literal["library", "collwise"]:
        """The decision: "library" if its default stays, "collwise" if `ours` replaces it."""
        return "library" if self.race.winner == self.race.library else "collwise"


@dataclass(frozen=True)
class Outcome:
    """The outcome of one task: the race, and the plan that it decided for persistent collectives.

    everything: the race of all forms of the call, in the same repetitions.   ranks_per_node: such
    as "2x8".   engine: what ran the schedules, "compiled" or "python".   own: the library's own
    algorithms to race, by label.
    """

    task: Task
    plan: Plan
    everything: Race
    ranks_per_node: str = ""
    engine: str = ""
    own: Mapping[str, Candidate] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        task: Task,
        estimated: Plan,
        everything: Race,
        ranks_per_node: str = "",
        engine: str = "",
        own: Mapping[str, Candidate] | None = None,
    ) -> "Outcome":
        """Decide a race of all forms.  Equal samples give equal decisions on all ranks.

        estimated: the plan that named the candidates.   everything: the samples of all forms.
        """
        made = cls(task, estimated, everything, ranks_per_node, engine, own or {})
        medians = {label: median.middle for label, median in made.race.medians.items()}
        plan = decided(estimated, medians, made.race.winner, made.race.library)
        return replace(made, plan=plan)

    @cached_property
    def races(self) -> Mapping[Form, Race]:
        """The race of each form of the call that was raced, in the order of FORMS."""
        races: dict[Form, Race] = {}
        for form, named in CALLS.items():
            labels = [label for label in self.everything.samples if form_of(label) == form]
            race = self.everything.among([*named.defaults, *labels])
            if race.samples.keys() & named.defaults:
                races[form] = race
        return races

    @property
    def race(self) -> Race:
        """The race of persistent collectives, for programs that repeat a call."""
        return self.races["persistent"]

    @property
    def decisions(self) -> tuple[RaceVerdict, ...]:
        """The verdict on each form of the call that was raced."""
        method = self.task.problem.method
        return tuple(RaceVerdict(form, race, method) for form, race in self.races.items())

    @property
    def impossible(self) -> bool:
        """Whether a competitor of any form clearly beat the lower bound."""
        return any(race.impossible for race in self.races.values())

    @property
    def doubtful(self) -> bool:
        """Whether to race again: a time is impossible, or a gain is over twice the predicted gain.

        The predicted gain is the predicted time of the best algorithm that libraries commonly use,
        divided by that of our fastest schedule.  Non-blocking calls are not judged by it: in the
        model the library's have no costs besides messages.
        """
        usual = [
            c.predicted_s
            for c in self.plan.candidates
            if not by_library(c.name) and ALGORITHMS[c.name].usual
        ]
        gains = [
            (d.speedup.middle, d.predicted_s)
            for d in self.decisions
            if d.used == "collwise" and d.form in ALWAYS_RACED
        ]
        unexplained = (min(usual) / ours_s < gain / 2 for gain, ours_s in gains if usual and ours_s)
        return self.impossible or any(unexplained)

    @property
    def ours(self) -> str:
        """The label of the fastest candidate in `race`; the default's if no candidate finished."""
        return self.race.best

    @property
    def t0_s(self) -> float:
        """The machine's t0 at this size, in seconds; with levels, at the outermost level."""
        return seconds(self._cost.gap)

    @property
    def lam(self) -> float:
        """The machine's λ at this size, in units of t0; with levels, at the outermost level."""
        return float(self._cost.lam)

    @cached_property
    def spent(self) -> Mapping[str, Fraction]:
        """If `ours` is a schedule, what `Plan.time_spent` says of it: exact seconds; else empty."""
        raced = not by_library(self.race.best) and self.race.best not in self.race.libraries
        return self.plan.time_spent(self.race.best) if raced else {}

    @property
    def _cost(self) -> Cost:
        machine, nbytes = self.plan.machine, self.plan.problem.nbytes
        law = machine.by_level[-1].law if isinstance(machine, Levels) else machine
        return law.message(nbytes)

    @property
    def results(self) -> list[RaceResult]:
        """The results for the profile, one for each form of the call.

        A form has no result if only the library's default ran, or with too few samples.  Empty if
        the problem's mesh of ranks is not the mesh that calls on a communicator have.
        """
        problem = self.plan.problem
        if problem.shape != problem.usual_shape:
            return []
        return [
            self._result(decision)
            for decision in self.decisions
            if decision.raced and isfinite(decision.speedup.high)
        ]

    def _result(self, decision: RaceVerdict) -> RaceResult:
        problem, candidate = self.plan.problem, self.own.get(decision.race.best)
        candidate = candidate or self.plan.candidate(decision.ours)
        return race_result(
            problem,
            candidate,
            decision.measured,
            decision.library,
            decision.speedup,
            form=decision.form,
            method=decision.method,
            decision=decision.used,
            ranks_per_node=self.ranks_per_node,
            engine=self.engine,
            own=decision.own(self.own),
        )


@dataclass(frozen=True)
class Tuning:
    """The results of a session; equal on all ranks.

    profile: the measurements, with the results of the races.   unraced: tasks for which there was
    no time, each with the speed-up that the model predicts, or None if that is unknown.
    """

    profile: Profile
    outcomes: tuple[Outcome, ...]
    unraced: tuple[tuple[Task, float | None], ...] = ()

    @classmethod
    def of(
        cls,
        profile: Profile,
        outcomes: Sequence[Outcome],
        unraced: Sequence[tuple[Task, float | None]] = (),
    ) -> "Tuning":
        """Add the races to a measured profile; mark it noisy if a race beats its lower bound."""
        wrong = [str(o.task) for o in outcomes if o.impossible]
        if wrong:
            reasons = [profile.verdict] * (profile.verdict != STABLE)
            line = f"t0 or λ is wrong: faster than the lower bound were {', '.join(wrong)}; tune"
            profile = with_measurements(
                profile,
                verdict="; ".join([*reasons, "noisy: races are below their lower bounds"]),
                advice=(*profile.advice, f"{line} again while nothing else runs on these nodes"),
            )
        results = (result for outcome in outcomes for result in outcome.results)
        return cls(profile.with_race_results(results), tuple(outcomes), tuple(unraced))
