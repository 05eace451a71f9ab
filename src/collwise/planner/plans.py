"""The result of planning: a `Plan`, which can be printed and pickled but executes nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from collwise.algorithms.registry import ALGORITHMS, describe
from collwise.errors import InvalidArgument, UnknownName
from collwise.measure.race import by_library
from collwise.model.bounds import Bound
from collwise.model.exact import seconds
from collwise.model.levels import Levels
from collwise.model.machine import Machine
from collwise.model.sources import picture
from collwise.model.topology import Topology
from collwise.schedule.problem import Problem
from collwise.schedule.program import Schedule
from collwise.system import formatting
from collwise.timing import ideal
from collwise.timing.critical_path import COMBINING, time_by_level

ORDER_WORDS = {
    "any": "any order",
    "same": "the same on all ranks",
    "rank": "that of the ranks",
    "fixed": "that of the ranks, with fixed brackets",
}


MAX_TOLD = 256
"""Largest number of ranks for which a plan shows how its time divides over the levels."""
MESH_SHOWN = 16, 32
"""Largest numbers of rows and of columns of a mesh that is drawn as text."""


def source_lines(problem: Problem) -> list[str]:
    """Lines of text that show which ranks have data; empty if the problem has no sources.

    The lines draw the mesh if it is small; otherwise they name the first eight sources.
    """
    ranks = [source.rank for source in problem.sources]
    if not ranks:
        return []
    shown = [", ".join(map(str, ranks[:8])) + ", …" * (len(ranks) > 8)]
    if all(size <= most for size, most in zip(problem.shape, MESH_SHOWN, strict=True)):
        shown = picture(problem.shape, ranks).splitlines()
    return [f"{'' if number else 'sources':<13}{line}" for number, line in enumerate(shown)]


def shares(spent: Mapping[str, Fraction]) -> str:
    """Shares of the total time in words, such as "90% between nodes, 10% inside a node".

    spent: maps a phrase such as "between nodes" to the seconds spent there.
    """
    total = sum(spent.values()) or 1
    return ", ".join(f"{float(time / total):.0%} {where}" for where, time in spent.items())


@dataclass(frozen=True)
class Candidate:
    """One algorithm with its settings, its predicted time, and why it was chosen or not.

    name: the algorithm's full name; "library" for the MPI library's default.   predicted: seconds,
    exact unless `estimate`.   verdict: why the candidate was chosen, or why not.   measured_s: the
    candidate's median in a race, in seconds; None if it was not raced.
    """

    name: str
    settings: Mapping[str, Any] = field(hash=False)
    predicted: Fraction
    verdict: str = ""
    measured_s: float | None = None
    estimate: bool = False
    """Whether `predicted` is rough, for a machine with levels and too many messages to simulate."""

    @property
    def label(self) -> str:
        """The algorithm's name with its settings, such as "broadcast/chain(segment=4096)"."""
        return describe(self.name, self.settings)

    @property
    def predicted_s(self) -> float:
        """The predicted time in seconds, as a float."""
        return seconds(self.predicted)

    @property
    def time(self) -> str:
        """The predicted time as text: "1.2 ms", or "≈ 1.2 ms" for a rough time."""
        return "≈ " * self.estimate + formatting.time(self.predicted_s)

    def schedule(self, problem: Problem) -> Schedule:
        """The candidate's schedule for a problem.

        Raises InvalidArgument for an algorithm of the MPI library, which has none.
        """
        if by_library(self.name):
            raise InvalidArgument(
                "the schedule of this plan",
                "a race chose the library's own, whose schedule nobody else knows",
                "run the library's collective, or plan one of our algorithms by its name",
            )
        return ALGORITHMS[self.name].solve(problem, self.settings)


@dataclass(frozen=True, repr=False)
class Plan:
    """The chosen algorithm for one problem on one machine; every rank computes the same plan."""

    problem: Problem
    machine: Machine
    topology: Topology | None
    """The network on whose links messages contend; None for no contention on links."""
    choice: Candidate
    candidates: tuple[Candidate, ...]
    """All candidates, ordered by predicted time; a race's winner may stand first or last instead.

    The verdict of each says why it is, or is not, the choice.
    """
    excluded: Mapping[str, str] = field(hash=False)
    """Maps the name of each algorithm without a candidate to the reason."""
    reason: str = ""
    """Why contributions are combined in the problem's order; empty if none are combined."""
    remarks: tuple[str, ...] = ()
    """Sentences on whether it pays to move the sources' data to better ranks first."""

    simulated: str = ""
    """How many candidates were simulated, and why not the others; empty if none were."""
    oddities: tuple[str, ...] = ()
    """Warnings about the machine: messages at an outer level that are faster than at an inner one.
    """

    @property
    def algorithm(self) -> str:
        """The chosen algorithm's name, or "library" for the MPI library's own collective."""
        return self.choice.name

    @property
    def settings(self) -> Mapping[str, Any]:
        """The chosen algorithm's settings."""
        return self.choice.settings

    @property
    def predicted_s(self) -> float:
        """The predicted time of the choice, in seconds."""
        return self.choice.predicted_s

    @cached_property
    def bounds(self) -> tuple[Bound, Bound]:
        """The two lower bounds, `bound` and `unsegmented_bound`, computed when first used."""
        return self.problem.lower_bounds(self.machine)

    @property
    def bound(self) -> Bound:
        """A lower bound of the time of every schedule."""
        return self.bounds[0]

    @property
    def unsegmented_bound(self) -> Bound:
        """A lower bound of the time of every schedule that sends whole vectors, uncut."""
        return self.bounds[1]

    @property
    def lower_bound_s(self) -> float:
        """A lower bound of the time of every schedule, in seconds."""
        return self.bound.time_s

    def candidate(self, label: str) -> Candidate:
        """The candidate with this label; raises UnknownName if there is none."""
        for candidate in self.candidates:
            if isinstance(label, str) and candidate.label == label:
                return candidate
        raise UnknownName.of("candidate", label, [known.label for known in self.candidates])

    @cached_property
    def schedule(self) -> Schedule:
        """The schedule of the choice; the operations of a rank are computed when first used.

        Raises InvalidArgument if the plan chose the MPI library's own collective.
        """
        return self.choice.schedule(self.problem)

    @cached_property
    def level_times(self) -> Mapping[str, Fraction]:
        """The result of `time_spent` for the choice; empty for the MPI library's own collective."""
        return {} if by_library(self.algorithm) else self.time_spent(self.choice.label)

    def time_spent(self, label: str) -> Mapping[str, Fraction]:
        """How a candidate's predicted time divides over levels: exact seconds on its critical path.

        Keys are words such as "inside a node", and "combining".  The schedule is simulated.  Empty
        for more than MAX_TOLD ranks, and for machines without levels.   Raises UnknownName for an
        unknown label.
        """
        candidate = self.candidate(label)
        if not isinstance(self.machine, Levels) or self.problem.ranks > MAX_TOLD:
            return {}
        timing = ideal(candidate.schedule(self.problem), self.machine)
        spent = time_by_level(timing, self.machine)
        return {
            "combining" if level == COMBINING else self.machine.crossing(level): time
            for level, time in spent.items()
        }

    def __getstate__(self) -> dict[str, Any]:
        """The state to pickle, without cached properties: not every schedule can be pickled."""
        made = ("schedule", "level_times", "bounds")
        return {name: value for name, value in vars(self).items() if name not in made}

    def __repr__(self) -> str:
        return f"<Plan of {self.problem}: {self.choice.label}, {self.choice.time}>"

    def __str__(self) -> str:
        measured_s = self.choice.measured_s
        lines = [
            str(self.problem),
            *source_lines(self.problem),
            *(
                [f"order        {ORDER_WORDS[self.problem.order]}: {self.reason}"]
                * bool(self.reason)
            ),
            f"machine      {self.machine.describe()}",
            *(f"note         {oddity}" for oddity in self.oddities),
            *([f"topology     {self.topology.describe()}"] if self.topology else []),
            f"choice       {self.choice.label}",
        ]
        if not by_library(self.algorithm):  # the model does not know the library's schedule
            rough = "  (an estimate, rough)" * self.choice.estimate
            lines.append(f"predicted    {self.choice.time}{rough}")
        if spent := self.level_times:
            lines.append(f"spent        {shares(spent)}")
        if measured_s is not None:
            lines.append(f"measured     {formatting.time(measured_s)}")
        lines += [
            f"lower bound  {formatting.time(self.lower_bound_s)}  ({self.bound.argument})",
            f"if uncut     {formatting.time(self.unsegmented_bound.time_s)}"
            f"  ({self.unsegmented_bound.argument})",
            f"candidates   {self.simulated}" if self.simulated else "candidates",
        ]
        width = max(len(c.label) for c in self.candidates)
        lines += [f"  {c.label:<{width}}  {c.time:>10}  {c.verdict}" for c in self.candidates]
        lines += [f"  {name:<{width}}  {'-':>10}  {why}" for name, why in self.excluded.items()]
        lines += [f"moving       {remark}" for remark in self.remarks]
        return "\n".join(lines)


def together(plans: Sequence[Plan]) -> Plan:
    """One plan with all candidates of several plans of the same problem; chooses the fastest."""
    if len(plans) == 1:
        return plans[0]
    found = {candidate.label: candidate for plan in plans for candidate in plan.candidates}
    ordered = sorted(found.values(), key=lambda candidate: candidate.predicted)
    return replace(plans[0], choice=ordered[0], candidates=tuple(ordered))
