"""A tuning session: measure this machine, plan, race the best candidates against the library."""

import logging
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

from collwise.comm.own_candidates import own_candidates
from collwise.errors import InvalidArgument, NothingApplies
from collwise.measure.race import ALWAYS_RACED, BEHIND, CALLS, OWN, Race, own_algorithm
from collwise.model.placement import Placement, check_placement
from collwise.mpi.bench.measuring import run_campaign
from collwise.mpi.bench.placing import NamedPlacement, find_placement, worth_measuring
from collwise.mpi.bench.race_harness import RaceHarness, race
from collwise.mpi.bench.workloads import RACED
from collwise.mpi.runtime.agreement import on_root
from collwise.mpi.runtime.private_communicator import PrivateCommunicator
from collwise.mpi.runtime.world import Communicator, World
from collwise.planner.by_hand import has_settings, own_choice
from collwise.planner.plans import Candidate, Plan, together
from collwise.planner.shortlist import worth_a_race
from collwise.profiles.profile import Profile, with_measurements
from collwise.profiles.records import FORMS, Form
from collwise.schedule.problem import Problem
from collwise.schedule.program import Schedule
from collwise.system import formatting
from collwise.system.host import NODE, chosen_transport
from collwise.tuning.agenda import (
    AGENDA_SHARE,
    Item,
    agenda,
    announcement,
    share_s,
)
from collwise.tuning.outcomes import Outcome, Task, Tuning
from collwise.verifier import verify

log = logging.getLogger("collwise")

MEASURING_SHARE = 0.4
"""The share of the time budget that measuring may take; the races share the rest."""
LARGEST_PROVED = 256
"""The most ranks for which schedules are proved correct before they run."""

Progress = Callable[[str, float], None]
"""A function to be called with what the session is doing, and the part done, from 0 to 1."""


def check_raceable(task: Task) -> None:
    """Raise InvalidArgument if the task needs more bytes than the memory has, or an operator whose
    results races cannot check.
    """
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if (nbytes := task.problem.nbytes) > memory:
        seen = f"{nbytes} bytes are more than the memory here ({formatting.size(memory)})"
        raise InvalidArgument(f"a race of {task.problem}", seen, "race smaller messages")
    if task.problem.kind.combines and task.op not in RACED:
        raise InvalidArgument(
            f"a race with the operator {task.op}",
            "races know the result of " + ", ".join(RACED),
            "race one of these; `collwise plan` takes every operator",
        )


class Session:
    """Measures and races on the ranks of a communicator: collective, as is making a session.

    seed: starts all random choices.   placement: the groups of the ranks at every level; None:
    MPI tells which ranks share a node, and measured times tell groups of nodes.   progress:
    a `Progress`.   Use a session in a `with` statement, whose end frees its private communicator.
    """

    def __init__(
        self,
        comm: Communicator,
        world: World,
        *,
        seed: int = 0,
        placement: Placement | None = None,
        progress: Progress = lambda what, done: None,
    ) -> None:
        self.world, self.seed, self.progress = world, seed, progress
        self._placement = placement
        self.private = PrivateCommunicator(comm, world.sharing)
        self._check_memory()

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        if "_harness" in vars(self):
            self._harness.free()
        self.private.free()

    def _check_memory(self) -> None:
        """Raise InvalidArgument on all ranks if shared memory is requested but impossible."""
        world, comm = self.world, self.private.comm
        shared = len(set(world.nodes)) < len(world.nodes)
        wanted = shared and (world.sharing or on_root(comm, chosen_transport) == "memory")
        alone = not wanted or world.nodes.count(world.nodes[comm.Get_rank()]) == 1
        if not all(comm.allgather(alone or self.private.transport is not None)):
            self.private.free()
            seen = "some ranks of a node cannot share it: `collwise doctor` says why"
            raise InvalidArgument("races through memory", seen, f"set {NODE}=messages")

    @cached_property
    def _harness(self) -> RaceHarness:
        return RaceHarness(self.private, self.world.oversubscribed)

    @cached_property
    def levels(self) -> NamedPlacement:
        """The placement of the ranks, with the levels' names.  Collective at the first access."""
        if (placement := self._placement) is not None:
            check_placement(placement, self.private.comm.Get_size())
            return worth_measuring(self.world, placement)
        return find_placement(self.private.comm, self.world)

    def measure(
        self,
        budget_s: float,
        sizes: Sequence[int] | None = None,
        share: float = 1.0,
        largest: int | None = None,
    ) -> Profile:
        """Measure the machine; the profile is equal on all ranks.

        budget_s: seconds that measuring may take.   sizes: the message sizes in bytes; by default
        the usual ones, up to `largest`.
        share: the part of the whole session that measuring takes, for `progress`.
        Raises InvalidArgument for values out of range, on all ranks.
        """
        profile = run_campaign(
            self.private.comm,
            self.world,
            budget_s=budget_s,
            sizes=sizes,
            largest=largest,
            seed=self.seed,
            report=lambda done: self.progress("measuring t0 and λ", done * share),
            levels=self.levels,
        )
        given = self._placement
        if given is not None and (missing := given.depth - self.levels.placement.depth):
            line = f"{formatting.count(missing, 'level')} of the placement {given.describe()} left"
            line += " out: no two ranks meet there, or all are in one group"
            profile = with_measurements(profile, advice=(*profile.advice, line))
        return profile

    def tune(
        self,
        tasks: Mapping[Task, float],
        budget_s: float,
        known: Profile | None = None,
        announce: Callable[[str], object] = lambda line: None,
        form: Form = "blocking",
        keep: Callable[[Profile], object] = lambda profile: None,
    ) -> Tuning:
        """Measure, plan and race; the most useful races come first (`agenda`).

        tasks: what to race, with the seconds that a program spends on each task, or 0.   budget_s:
        seconds for the session; once they are over, no task but the first is begun.  If measuring
        takes longer than its share, the races still have their share.
        known: an earlier profile to use instead of measuring.   announce: called on rank 0 with a
        line about the races before they begin.   form: as `race` takes it.   keep: called on rank 0
        with what is measured and decided so far, after measuring and after each race.
        Raises InvalidArgument for values out of range, WrongResult for a wrong byte, on all ranks.
        """
        begin = time.monotonic()
        measuring = 0 if known is not None else MEASURING_SHARE
        largest = max((task.problem.nbytes for task in tasks), default=None)
        profile = known or self.measure(budget_s * measuring, share=measuring, largest=largest)
        measured_s = on_root(self.private.comm, lambda: time.monotonic() - begin)
        budget_s = max(budget_s, measured_s + (1 - measuring) * budget_s)

        def left_s() -> float:
            return budget_s - (time.monotonic() - begin)

        placement = self.levels.placement if profile.levels else None
        outcomes: list[Outcome] = []

        def kept() -> float:
            keep(Tuning.of(profile, outcomes).profile)
            return left_s()

        def plan_agenda() -> list[Item]:
            kept()
            enough_s = left_s() - AGENDA_SHARE * budget_s
            items = agenda(tasks, profile, placement, lambda: left_s() > enough_s)
            if items:
                announce(announcement(items, max(left_s(), 0.0)))
            return items

        items = on_root(self.private.comm, plan_agenda, takes_long=True)
        racing_s = on_root(self.private.comm, left_s)
        for number, item in enumerate(items):
            remaining_s = on_root(self.private.comm, kept if outcomes else left_s)
            if number and remaining_s <= 0:
                break
            self.progress(f"racing: {item.task}", max(1 - remaining_s / budget_s, measuring))
            try:
                done, spent_s = items[:number], racing_s - remaining_s
                share = share_s(items[number:], max(remaining_s, 0.0), done, spent_s)
                outcomes.append(self.race(item.task, profile, share, form=form))
            except NothingApplies as nothing:  # raised on all ranks: the library's default stays
                log.warning("not raced: %s", nothing)
        else:
            number = len(items)
        self.progress("done", 1.0)
        unraced = [(item.task, item.gain) for item in items[number:]]
        return Tuning.of(profile, outcomes, unraced)

    def race(
        self,
        task: Task,
        profile: Profile,
        budget_s: float,
        repetitions: int = 300,
        only: Sequence[str] = (),
        within: float = 0.0,
        form: Form = "blocking",
    ) -> Outcome:
        """Plan one task, prove candidates correct (up to LARGEST_PROVED ranks), and race them.

        After a doubtful outcome (`Outcome.doubtful`) a second race, with another seed, decides.
        budget_s: seconds for the race; a second race has the rest of them, but at least half.
        repetitions: the largest number of repetitions.   only: labels of the algorithms to race,
        with the best settings where a label has none; OWN for all of the library's
        that may win; empty for ours that may win and as many of the library's as time allows.
        within: if above 0, the race ends once the medians are known to ± this share.
        form: a form to race in any case, like those ALWAYS_RACED; others are raced if time allows.
        Raises the errors of planning and racing, on all ranks.
        """
        of_library = [label for label in only if own_algorithm(label) is not None]
        planned = [label for label in only if label not in of_library]
        placement = self.levels.placement
        # One rank plans for all: on emulated hosts, and on nodes that are full, ranks share cores.
        estimated, candidates, bound_s = on_root(
            self.private.comm,
            lambda: self._planned(task, profile, placement, planned),
            takes_long=True,
        )
        if only and not planned:
            candidates = ()
        problem = estimated.problem  # with the ranks' placement
        forms = [one for one in FORMS if one in (*ALWAYS_RACED, form)]
        if_time = [one for one in FORMS if one not in forms]
        own: dict[str, Candidate] = {}
        if not only or OWN in of_library:
            own = self.own_candidates(estimated, forms) | self.own_candidates(estimated, if_time)
        for label in of_library:
            if (choice := own_choice(problem.collective, label)) is not None:
                asked = ALWAYS_RACED if form in ALWAYS_RACED else (form,)
                own |= self._in_all_forms(problem, choice, asked)

        def outcome(seed: int, most_s: float) -> Outcome:
            everything = self.compare(
                problem,
                {candidate.label: candidate.schedule(problem) for candidate in candidates},
                {candidate.label: candidate.predicted_s for candidate in candidates},
                most_s,
                op=task.op,
                dtype=task.dtype,
                repetitions=repetitions,
                seed=seed,
                behind=BEHIND,
                within=within,
                own=own,
                forms=forms,
                if_time=if_time,
                every_own=bool(only),
            )
            everything = replace(everything, bound_s=bound_s)
            return Outcome.of(
                task, estimated, everything, self.world.ranks_per_node, self.world.engine, own
            )

        begin = time.monotonic()
        first = outcome(self.seed, budget_s)
        left_s = budget_s - (time.monotonic() - begin)  # only rank 0's value counts
        return outcome(self.seed + 1, max(left_s, budget_s / 2)) if first.doubtful else first

    def _planned(
        self, task: Task, profile: Profile, placement: Placement, labels: Sequence[str]
    ) -> tuple[Plan, Sequence[Candidate], float]:
        """The plan of a task, its candidates that are worth a race, and a lower bound in seconds.

        labels: the only algorithms to plan with; empty for all.
        """
        made, worth = list[Plan](), list[Candidate]()
        for label in labels or (None,):
            plan = task.plan(profile, label, placement)
            raced: Sequence[Candidate] = plan.candidates
            if label is None or not has_settings(label):
                plan, raced = worth_a_race(plan, label, share_cores=self.world.oversubscribed)
            made.append(plan)
            worth += raced
        return together(made), worth, task.least_s(profile, placement)

    def _in_all_forms(
        self, problem: Problem, choice: Candidate, asked: Sequence[Form]
    ) -> dict[str, Candidate]:
        """One of the library's own algorithms by label, in each form of the call that has it.

        Raises InvalidArgument, on all ranks, if none of the forms `asked` has it.
        """
        method, name = problem.method, own_algorithm(choice.name) or ""
        found = {
            form: self._harness.own.find(method, form, name, choice.settings, local=False)
            for form in FORMS
        }
        able = [form for form, one in found.items() if not isinstance(one, str)]
        if not {*able} & {*asked}:
            about = f"a race of {choice.label}" + f" as {asked[0]} calls" * (len(asked) == 1)
            raise InvalidArgument(about, str(found[asked[0]]), "race another one")
        return {choice.label + CALLS[form].ending: choice for form in able}

    def own_candidates(self, estimated: Plan, forms: Sequence[Form]) -> dict[str, Candidate]:
        """The library's own algorithms to race on these ranks, by label.  Collective."""
        sizes, method = Counter(self.world.hosts).values(), estimated.problem.method
        composed = len(sizes) > 1 and max(sizes) > 1
        chosen = partial(own_candidates, estimated, method, forms, composed=composed)
        return on_root(self.private.comm, chosen, takes_long=True)

    def compare(
        self,
        problem: Problem,
        schedules: Mapping[str, Schedule],
        predicted_s: Mapping[str, float],
        budget_s: float,
        *,
        seed: int | None = None,
        own: Mapping[str, Candidate] | None = None,
        **options: Any,
    ) -> Race:
        """Prove schedules of a problem correct (up to LARGEST_PROVED ranks), and race them.

        schedules, predicted_s: by label.   budget_s: seconds for the race.   seed: None for that of
        the session.   own: the library's own algorithms, by label.   options: for the race.
        """

        def prove() -> None:
            for schedule in schedules.values():
                verify(schedule)

        if problem.ranks <= LARGEST_PROVED:
            on_root(self.private.comm, prove)
        return race(
            self._harness,
            problem,
            schedules,
            predicted_s,
            budget_s=budget_s,
            seed=self.seed if seed is None else seed,
            own={
                label: (own_algorithm(one.name) or "", one.settings)
                for label, one in (own or {}).items()
            },
            **options,
        )
