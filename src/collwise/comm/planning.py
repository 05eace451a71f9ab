"""What a communicator plans: from rank 0's decision and from sizes, equal on all ranks alike."""

import logging
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from os import PathLike
from typing import NamedTuple

from collwise.algorithms.registry import algorithms_for, collectives, find
from collwise.comm.checking import checks_wanted
from collwise.errors import InvalidArgument, NothingApplies, UnknownName
from collwise.measure.race import LIBRARY
from collwise.model.machine import Machine, checked_machine
from collwise.mpi.world import World
from collwise.planner.choose import plan_for, predicted, unpredicted
from collwise.planner.operator_order import legal
from collwise.planner.plans import Plan
from collwise.planner.race_lookup import learned_choice
from collwise.profiles.profile import Profile
from collwise.profiles.records import Form
from collwise.profiles.store import find as find_profile
from collwise.schedule.problem import GATHERING, ORDERS, Order, Problem, keeps

log = logging.getLogger("collwise")

EFFORTS = ("measure", "estimate")
MOST = 4096
"""Plans that a communicator remembers before it starts anew."""


class Vectors(NamedTuple):
    """How vectors are combined, as planning knows it."""

    op: str
    dtype: str
    item: int


@dataclass(frozen=True)
class Decision:
    """What plans depend on besides sizes; `cw.Comm` says what each means."""

    profile: Profile | None = None
    machine: Machine | None = None
    effort: str = "measure"
    algorithms: Mapping[str, str] = field(default_factory=dict)
    order: Order | None = None
    checking: bool = False
    """Whether calls are checked before they run."""

    @staticmethod
    def of(
        world: World,
        profile: Profile | str | PathLike[str] | bool | None,
        machine: Machine | None,
        effort: str,
        algorithms: Mapping[str, str] | None,
        order: Order | None,
    ) -> "Decision":
        """What somebody asks for, checked; raises as `cw.Comm`."""
        if machine is not None:
            checked_machine(machine, "a communicator with a machine")
        if effort not in EFFORTS:
            raise UnknownName.of("effort", effort, EFFORTS)
        if order is not None and order not in ORDERS:
            raise UnknownName.of("order", order, ORDERS)
        chosen = _chosen({} if algorithms is None else algorithms)
        fingerprint = world.fingerprint()
        found: Profile | None = None
        if profile is None or profile is True:
            found = find_profile(fingerprint) if machine is None else None
        elif profile is not False:
            found = profile if isinstance(profile, Profile) else _loaded(profile)
            found.check(fingerprint)
        return Decision(found, machine, effort, chosen, order, checks_wanted())

    def served(self, ranks: int) -> Set[str]:
        """Collectives for which anything but the library's own may serve on so many ranks."""
        return frozenset(name for name in collectives() if self._serves(name, ranks))

    def _serves(self, collective: str, ranks: int) -> bool:
        if (name := self.algorithms.get(collective)) is not None:
            return name != LIBRARY
        if self.effort == "estimate":
            return self.machine is not None or self.profile is not None
        won = self.profile.race_results if self.profile is not None else ()
        return any(
            (win.collective, win.ranks) == (collective, ranks) and win.decision != LIBRARY
            for win in won
        )

    def machine_for(self, vectors: Vectors | None) -> Machine | None:
        """The machine to plan for, with what combining such vectors takes."""
        if self.machine is not None or self.profile is None:
            return self.machine
        if vectors is None:
            return self.profile.machine
        return self.profile.machine_combining(vectors.op, vectors.dtype)


def _chosen(algorithms: Mapping[str, str]) -> dict[str, str]:
    """The full names of the algorithms to run, or the library, by collective."""
    if not isinstance(algorithms, Mapping):
        raise InvalidArgument(
            "a communicator with algorithms",
            f"algorithms = {algorithms!r}",
            'give them by collective, such as {"broadcast": "postal_tree"}',
        )
    for collective in algorithms:
        algorithms_for(collective)
    return {
        collective: LIBRARY if name == LIBRARY else find(name, collective).name
        for collective, name in algorithms.items()
    }


def _loaded(profile: object) -> Profile:
    if isinstance(profile, str | PathLike):
        return Profile.load(profile)
    raise InvalidArgument(
        "a communicator with a profile",
        f"profile = {profile!r}",
        "give a collwise.Profile, the name of its file, None or False",
    )


class Plans:
    """The plans of one communicator; the same on all its ranks.

    helped: whether a schedule can be kept moving while the program is elsewhere.
    """

    def __init__(self, decision: Decision, ranks: int, *, helped: bool) -> None:
        self._decision, self.ranks, self._helped = decision, ranks, helped
        self._known: dict[tuple[Problem, Form, Vectors | None, bool], Plan | None] = {}

    def combining(
        self, collective: str, nbytes: int, root: int, form: Form, vectors: Vectors
    ) -> Plan | None:
        """The plan for vectors of so many bytes; None where the library's own serves."""
        allowed = legal(collective, vectors.op, vectors.dtype, self._decision.order)
        problem = Problem(collective, self.ranks, nbytes, root, vectors.item, allowed.order)
        return self.of(problem, form, vectors, allowed.reason)

    def of(
        self,
        problem: Problem,
        form: Form,
        vectors: Vectors | None = None,
        reason: str = "",
        *,
        told: bool = True,
    ) -> Plan | None:
        """The plan for a problem; None where the library's own serves.

        told: whether anybody will look at the time predicted.  If not, and the algorithm is known,
        a schedule whose time can only be played is not.
        """
        key = problem, form, vectors, told
        if key not in self._known:
            if len(self._known) >= MOST:
                self._known.clear()
            self._known[key] = self._make(*key, reason)
        return self._known[key]

    def _make(
        self, problem: Problem, form: Form, vectors: Vectors | None, told: bool, reason: str
    ) -> Plan | None:
        decision, collective = self._decision, problem.collective
        name, machine = decision.algorithms.get(collective), decision.machine_for(vectors)
        if name == LIBRARY or not self._helped or self.ranks == 1:
            return None
        if machine is None:
            if name is None:
                return None
            raise InvalidArgument(
                f"{name} on this communicator",
                "there is no profile of this machine to choose its settings by",
                "run `collwise tune` first, or give Comm a machine",
            )
        if name is None and decision.effort == "measure":
            wins = decision.profile.race_results if decision.profile is not None else ()
            name = learned_choice(
                wins, collective, form, self.ranks, problem.nbytes, len(problem.sources)
            )
            if name is None:
                return None
            if vectors and not keeps(find(name, collective).order(problem), problem.order):
                return None  # the race was won with another operator
        played = problem.collective in GATHERING and name is not None
        score = unpredicted if played and not told else predicted
        try:
            made = plan_for(problem, machine, name, reason=reason, score=score)
        except NothingApplies as nothing:
            log.info("the library's own serves: %s", nothing)
            return None
        log.debug("%s: %s", problem, made.choice.label)
        return made
