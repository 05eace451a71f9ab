"""What a communicator's plans depend on besides sizes: rank 0's settings, sent to all ranks.

MPI requires sizes, root and operator to be equal on all ranks, so all ranks make the same plans.
"""

import logging
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from collwise.algorithms.registry import find
from collwise.comm.chosen import Chosen, Own, own_of
from collwise.errors import InvalidArgument, NothingApplies
from collwise.measure.race import LIBRARY, own_algorithm
from collwise.model.levels import Levels
from collwise.model.machine import Machine
from collwise.model.placement import Placement
from collwise.mpi.engine.own_loops import needs_no_helper
from collwise.mpi.runtime.world import World
from collwise.planner.by_hand import (
    Choice,
    Choices,
    choice_for,
    parse_choices,
    planned,
    read_choices,
)
from collwise.planner.candidates import predicted
from collwise.planner.choose import plan_for, unpredicted
from collwise.planner.operator_order import legal
from collwise.planner.plans import Plan
from collwise.planner.race_lookup import Verdict, keeps_order, known_races, settled, verdict
from collwise.planner.shortlist import worth_a_race
from collwise.planner.worth import Worth, worth
from collwise.profiles.profile import Profile
from collwise.profiles.records import Form, RaceResult
from collwise.schedule.collectives import COLLECTIVES
from collwise.schedule.problem import Order, Problem

log = logging.getLogger("collwise")

ALGORITHMS = "COLLWISE_ALGORITHMS"
"""The environment variable that names algorithms, such as "broadcast=chain;allreduce=ring"."""
HINT = "collwise_algorithms"
"""The key of an `MPI.Info` whose value names algorithms for a communicator."""
ORDER = "COLLWISE_ORDER"
"""The environment variable that says in which order to combine, such as "fixed"."""
FALLBACK = "COLLWISE_FALLBACK"
"""The environment variable whose value "never" forbids that the library serves without a plan."""
_ANY_MACHINE = Machine.hockney(alpha_s="1e-6", beta_s="1e-10", gamma_s="1e-10")
"""The machine to plan for if none is known, but the user or the order demands a plan."""


class OpAndType(NamedTuple):
    """Operator and element type, by their names in planning, and the bytes of an element."""

    op: str
    dtype: str
    itemsize: int


class CallProblem(NamedTuple):
    """The problem that a call poses.   reason: why `problem.order` was chosen.

    elements: the operator and element type, if the collective combines.
    """

    problem: Problem
    elements: OpAndType | None = None
    reason: str = ""


@dataclass(frozen=True)
class Decision:
    """What plans depend on besides sizes; `cw.Comm` documents the settings.

    ranks_per_node: how many ranks each node has, such as "2x8".   level_placement: the ranks'
    groups at the levels of profile or machine, None if unknown.   one_node_profile: the profile for
    derived communicators on one node, if this one is on several.   progress: whether a helper
    thread can advance schedules while the program computes.   check_limit_s: how long checked calls
    wait for all ranks; 0 if calls are not checked.   engine: the name of rank 0's engine.
    within_memory: whether shared memory of one node carries all data.   falls_back: whether the
    library may serve calls without a plan.
    """

    profile: Profile | None = None
    ranks_per_node: str = ""
    level_placement: Placement | None = None
    machine: Machine | None = None
    effort: str = "measure"
    algorithms: Choices = field(default_factory=dict)
    order: Order | None = None
    progress: bool = True
    check_limit_s: float = 0.0
    engine: str = ""
    one_node_profile: Profile | None = None
    within_memory: bool = False
    falls_back: bool = True
    learn: float = 0.0

    def on(self, world: World) -> "Decision":
        """The decision with profile and placement for the communicator that `world` describes."""
        ranks_per_node, level_placement = world.ranks_per_node, world.level_placement
        if (ranks_per_node, level_placement) == (self.ranks_per_node, self.level_placement):
            return self
        used = self.profile
        if self.one_node_profile is not None and world.layout == "one node":
            used = self.one_node_profile
        if used is not None:
            used = used.at(len(world.hosts), ranks_per_node)
        machine = self.machine
        if isinstance(machine, Levels) and level_placement is not None:
            machine = machine.placed(level_placement)
        return replace(
            self,
            profile=used,
            ranks_per_node=ranks_per_node,
            level_placement=level_placement,
            machine=machine,
            within_memory=world.within_memory,
        )

    def served(self, ranks: int) -> Set[str]:
        """The collectives that a plan may serve on a communicator of `ranks` ranks."""
        return frozenset(name for name in COLLECTIVES if self._serves(name, ranks))

    def _serves(self, collective: str, ranks: int) -> bool:
        if not self.falls_back or self.order == "fixed":
            return True
        if choices := self.algorithms.get(collective):
            if any(choice.algorithm != LIBRARY for choice in choices):
                return True
            if choices[-1].most is None:
                return False
        if self.effort == "estimate":
            return self.machine is not None or self.profile is not None
        return any(
            (result.collective, result.ranks) == (collective, ranks) and result.decision != LIBRARY
            for result in self._races(ranks)
        )

    def with_hint(self, text: str) -> "Decision":
        """The decision with the algorithms that `text`, the hint of an `MPI.Info`, names."""
        named = parse_choices(text, f"the algorithms in the Info key {HINT}")
        return self.with_algorithms(named) if text else self

    def with_algorithms(self, algorithms: Mapping[str, str]) -> "Decision":
        """The decision with algorithms chosen by hand for some collectives."""
        return replace(self, algorithms={**self.algorithms, **read_choices(algorithms)})

    def _races(self, ranks: int) -> Sequence[RaceResult]:
        if self.profile is not None and ranks not in self._races_found:
            self._races_found[ranks] = known_races(self.profile, ranks, self.ranks_per_node)
        return self._races_found.get(ranks, ())

    @cached_property
    def _races_found(self) -> dict[int, Sequence[RaceResult]]:
        """The races that were asked for, by the number of ranks."""
        return {}

    @cached_property
    def _machines_found(self) -> dict[tuple[str, ...], Machine]:
        """The machines that were asked for, by the operator and type of what is combined."""
        return {}

    def machine_for(self, asked: CallProblem) -> Machine | None:
        """The machine to plan for, or None.  A profile's has the time to combine such elements."""
        if self.machine is not None or self.profile is None:
            return self.machine
        combined = () if asked.elements is None else asked.elements[:2]
        if combined not in self._machines_found:
            machine = self.profile.machine_on(self.level_placement, *combined)
            self._machines_found[combined] = machine
        return self._machines_found[combined]

    def _placed(self, problem: Problem) -> Problem:
        """The problem with the placement of its ranks, if the placement is known."""
        return replace(problem, placement=self.level_placement)

    def combine(
        self, collective: str, ranks: int, nbytes: int, root: int, elements: OpAndType
    ) -> CallProblem:
        """The problem of combining vectors of `nbytes` bytes, in an order that MPI allows."""
        allowed = legal(collective, elements.op, elements.dtype, self.order)
        problem = Problem(collective, ranks, nbytes, root, elements.itemsize, allowed.order)
        return CallProblem(problem, elements, allowed.reason)

    def chosen(self, asked: CallProblem, form: Form, timed: bool = True) -> Chosen:
        """What serves a call, and why; logs the reason.   timed: False to predict no time."""
        chosen = self.explained(asked, form, timed=timed)
        quiet = chosen.plan is not None and "not legal here" not in chosen.why
        log.log(logging.DEBUG if quiet else logging.INFO, "%s: %s", asked.problem, chosen.why)
        return chosen

    def own_algorithms(self, ranks: int) -> list[Own]:
        """The library's own algorithms that may serve a communicator of `ranks` ranks."""
        return own_of(self.algorithms, self._won(ranks))

    def plans_nonblocking(self, ranks: int) -> bool:
        """Whether a plan won a race of non-blocking calls of `ranks` ranks, and may serve them."""
        return (self.progress or self.within_memory) and any(
            race.form == "nonblocking" and own_algorithm(race.algorithm) is None
            for race in self._won(ranks)
        )

    def _won(self, ranks: int) -> list[RaceResult]:
        """The races on `ranks` ranks that the library's default lost, if races decide."""
        raced = self._races(ranks) if self.effort == "measure" and self.machine is None else ()
        return [race for race in raced if race.ranks == ranks and race.decision != LIBRARY]

    def check_fallback(self, asked: CallProblem, form: Form, why: str = "") -> None:
        """Raise InvalidArgument with `why` if order or environment demand a plan, and p > 1."""
        fixed = asked.problem.order == "fixed"
        if (fixed or not self.falls_back) and asked.problem.ranks > 1:
            raise InvalidArgument(
                f"{asked.problem} by a plan, as "
                + ("the order 'fixed' demands" if fixed else f"{FALLBACK}=never demands"),
                why or self.explained(asked, form).why,
                f"choose an algorithm by {ALGORITHMS}, or leave out {ORDER if fixed else FALLBACK}",
            )

    def race(self, asked: CallProblem, form: Form) -> RaceResult | None:
        """The race that decides what serves a call; None if no race decides it."""
        problem = asked.problem
        if self.effort != "measure" or self.machine is not None or self._by_hand(problem):
            return None
        return self._by_races(self._placed(problem), form).race

    def _by_races(self, problem: Problem, form: Form) -> Verdict:
        instead: Form = "blocking" if self.progress else "persistent"  # what needs no helper either
        return verdict(self._races(problem.ranks), problem, form, instead)

    def _by_hand(self, problem: Problem) -> Choice | None:
        return choice_for(self.algorithms.get(problem.collective, ()), problem.nbytes)

    def learnable(self, asked: CallProblem) -> bool:
        """Whether learning may try plans on calls that pose this problem."""
        problem = asked.problem
        if not (self.learn and self.progress and self.effort == "measure" and problem.ranks > 1):
            return False
        if problem.order == "fixed" or self._by_hand(problem):  # trials try the library's own, too
            return False
        return self.machine_for(asked) is not None and self.race(asked, "blocking") is None

    def best_plans(self, asked: CallProblem) -> dict[str, Plan]:
        """Plans for the candidates worth a trial, by label.   Raises NothingApplies if none is."""
        machine = self.machine_for(asked)
        assert machine is not None, "callers ask `learnable` first"
        estimate, raced = worth_a_race(plan_for(asked.problem, machine, reason=asked.reason))
        return {one.label: replace(estimate, choice=one) for one in raced}

    def with_result(self, result: RaceResult) -> "Decision":
        """The decision with a learned result added to its profile's races, if it has a profile."""
        if self.profile is None:
            return self
        return replace(self, profile=self.profile.with_race_results([result]))

    def worth(self, asked: CallProblem, form: Form, took_s: float | None) -> Worth:
        """What tuning might save on one call of the library's.   took_s: its seconds, if known."""
        problem = asked.problem
        if problem.ranks == 1 or self.race(asked, form) is not None:
            return Worth()
        races, machine = self._races(problem.ranks), self.machine_for(asked)
        return worth(races, machine, problem, form, took_s)

    def explained(self, asked: CallProblem, form: Form, *, timed: bool = True) -> Chosen:
        """What serves a call, and why; nothing is logged.   timed: False to predict no time."""
        problem, reason = self._placed(asked.problem), asked.reason
        by_hand, machine, unsuited = self._by_hand(problem), self.machine_for(asked), ""
        decided: Verdict | None = None  # None: the model chooses
        chosen = by_hand.algorithm if by_hand is not None else LIBRARY
        if by_hand is not None and not keeps_order(chosen, problem):
            unsuited, by_hand = f"{chosen} is not legal here ({reason}); instead ", None
        if by_hand is not None:
            decided = Verdict(by_hand.algorithm, "it was chosen by hand")
        elif machine is None:
            decided = Verdict(LIBRARY, "there is no profile of this machine: run `collwise tune`")
        elif self.effort == "measure" and not unsuited:
            decided = self._by_races(problem, form)
        if decided is not None and not keeps_order(decided.algorithm, problem):
            decided, machine = None, machine or _ANY_MACHINE
        if not self.progress and not (self.within_memory and needs_no_helper(asked.elements, form)):
            decided = Verdict(LIBRARY, "MPI offers less than MPI_THREAD_MULTIPLE")
        elif problem.ranks == 1:
            decided = Verdict(LIBRARY, "there is one rank")
        if decided is not None and decided.algorithm == LIBRARY:
            return Chosen(None, f"{unsuited}{decided}{self._unlike(decided)}")
        if decided is not None and own_algorithm(decided.algorithm) is not None:
            own = Own(decided.algorithm, () if by_hand is None else by_hand.settings)
            if decided.race is not None:
                own = Own.of(decided.race)
            return Chosen(None, f"{decided._replace(algorithm=own.label)}", own)
        named = None if decided is None else decided.algorithm
        asks = timed or named is None
        if machine is None:
            assert by_hand is not None, "without a machine the algorithm was chosen by hand"
            if find(by_hand.algorithm).parameters and not by_hand.settings:
                raise InvalidArgument(
                    f"{by_hand.algorithm} on this communicator",
                    "there is no profile of this machine to choose its settings by",
                    "give them, as in chain_segmented(segment=8k), run `collwise tune` first, or"
                    " give Comm a machine",
                )
            machine, asks = _ANY_MACHINE, False
        score = predicted if asks else unpredicted
        try:
            if by_hand is not None and by_hand.settings:
                plan = planned(problem, machine, by_hand, reason=reason, score=score)
                return Chosen(plan, f"{plan.choice.label}: it was chosen by hand")
            plan = plan_for(problem, machine, named, reason=reason, score=score)
        except NothingApplies as nothing:
            return Chosen(None, f"{unsuited}the library's own: {nothing}")
        if decided is None or decided.race is None:
            why = plan.choice.verdict.removeprefix("chosen: ")
            return Chosen(plan, f"{unsuited}{plan.choice.label}: {why}{self._unlike(decided)}")
        return Chosen(settled(plan, decided), f"{decided}{self._unlike(decided)}")

    def _unlike(self, decided: Verdict | None) -> str:
        """A warning if the race or profile that decides was measured with another engine; or ""."""
        measured = ""
        if decided is not None:
            measured = decided.race.engine if decided.race is not None else ""
        elif self.profile is not None and self.machine is None:
            measured = self.profile.provenance.engine
        if measured in ("", self.engine):
            return ""
        return f"; measured with the {measured} engine, while {self.engine} serves: tune again"
