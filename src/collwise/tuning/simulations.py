"""Simulates schedules of one problem, and compares them: what `collwise simulate` shows."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

from collwise.algorithms.registry import Algorithm, algorithms_for, describe, find
from collwise.errors import BeyondLimits, InvalidArgument
from collwise.model.bounds import Bound
from collwise.model.limits import MAX_SIMULATED, SEARCHED_RANKS
from collwise.model.machine import Machine
from collwise.model.topology import Topology
from collwise.planner.by_hand import find_planned
from collwise.planner.candidates import predicted
from collwise.planner.choose import plan_for
from collwise.schedule.data_movement import DownTree
from collwise.schedule.problem import Problem, placed
from collwise.schedule.program import Schedule
from collwise.schedule.reduction import UpTree
from collwise.simulator import Trace, simulate
from collwise.system.quantities import parse_size
from collwise.timing import messages_played

COMPARED_SHARE = 8
"""If algorithms are compared, each of them may send at most MAX_SIMULATED / COMPARED_SHARE
messages."""

Progress = Callable[[str, float], None]
"""A function that is called with what is being done, and how far the work is, from 0 to 1."""


class Traffic(NamedTuple):
    """A schedule's messages: their number, the sum of their bytes, the least and most bytes."""

    messages: int
    nbytes: int
    least: int
    most: int


class LinkLoad(NamedTuple):
    """How long messages held a link from one node to another.

    busy: the sum, in exact seconds.   share: `busy` over the schedule's time, 0 to 1.
    """

    link: int
    source: int
    target: int
    busy: Fraction
    share: float


class LinkWaits(NamedTuple):
    """How many messages waited for links; the sum and the longest of their waits, in seconds."""

    messages: int
    total: Fraction
    longest: Fraction


@dataclass(frozen=True)
class Simulation:
    """A simulated schedule, with the trace of its messages.

    settings: the settings of the schedule's algorithm.   bound: a lower bound of the problem's
    time.
    """

    name: str
    settings: Mapping[str, Any]
    trace: Trace
    bound: Bound

    @property
    def label(self) -> str:
        """The algorithm with its settings."""
        return describe(self.name, self.settings)

    @property
    def problem(self) -> Problem:
        """The problem that the schedule solves."""
        return self.trace.schedule.problem

    @property
    def linked(self) -> bool:
        """Whether messages passed links of a network, for which they may have to wait."""
        return any(passage.route for passage in self.trace.passages)

    @cached_property
    def traffic(self) -> Traffic:
        """The number of the schedule's messages, and their sizes."""
        sizes, times = self.trace.sizes
        if not len(sizes):
            return Traffic(0, 0, 0, 0)
        total = int((times * sizes).sum())
        return Traffic(int(times.sum()), total, int(sizes.min()), int(sizes.max()))

    @cached_property
    def loads(self) -> tuple[LinkLoad, ...]:
        """The loads of all links that messages used, the busiest first; () without a topology."""
        topology, completion = self.trace.topology, self.trace.completion
        if topology is None:
            return ()
        loads = [
            LinkLoad(link, *topology.ends(link), busy, float(busy / (completion or 1)))
            for link, busy in self.trace.link_busy().items()
        ]
        return tuple(sorted(loads, key=lambda load: (-load.busy, load.link)))

    @cached_property
    def waits(self) -> LinkWaits:
        """How long messages waited for links although sender and receiver were ready."""
        times = [p.start - p.ready for p in self.trace.passages if p.start > p.ready]
        return LinkWaits(len(times), sum(times, Fraction(0)), max(times, default=Fraction(0)))


def simulations(
    problem: Problem,
    machine: Machine,
    topology: Topology | None = None,
    *,
    algorithm: str | None = None,
    settings: Mapping[str, str] | None = None,
    reason: str = "",
    progress: Progress = lambda what, done: None,
) -> tuple[list[Simulation], dict[str, str]]:
    """Simulate schedules of a problem.  Returns (simulations, reasons).

    The fastest simulation comes first.  The reasons tell, by name, why algorithms were left out.
    algorithm: the only one to simulate; by default all that apply, or on more than SEARCHED_RANKS
    ranks the fastest by the model.   settings: the algorithm's settings, as text; the planner
    chooses missing ones.   reason: why contributions are combined in the problem's order.
    Raises UnknownName or InvalidArgument for an algorithm, setting or machine that does not fit the
    problem, or for too many messages.
    """
    problem = placed(problem, machine)
    several = algorithm is None and problem.ranks <= SEARCHED_RANKS
    simulator = _Simulator(problem, machine, topology, reason, COMPARED_SHARE if several else 1)
    if algorithm is not None:
        named = find_planned(algorithm, problem.collective)
        progress(f"simulating {named.name}", 0.5)
        return [simulator.run(named, settings or {})], {}
    if not several:
        if topology is not None or not machine.independent_ports:
            raise InvalidArgument(
                f"all algorithms for {problem.ranks} ranks",
                "on this machine each has to be simulated to be compared",
                "name one with --algorithm (and its parameters with --set)",
            )
        best = plan_for(problem, machine, reason=reason)
        progress(f"simulating {best.algorithm}", 0.5)
        why = f"not simulated beyond {SEARCHED_RANKS} ranks; name it with --algorithm"
        others = {c.name: f"{c.verdict} by its formula; {why}" for c in best.candidates[1:]}
        fastest = simulator.run_with(best.algorithm, best.settings)
        return [fastest], {**others, **best.excluded}
    algorithms = algorithms_for(problem.collective, levels=problem.placement is not None)
    simulated: list[Simulation] = []
    refused: dict[str, InvalidArgument] = {}
    for number, candidate in enumerate(algorithms):
        progress(f"simulating {candidate.name}", number / len(algorithms))
        try:
            simulated.append(simulator.run(candidate, {}))
        except InvalidArgument as refusal:
            refused[candidate.name] = refusal
    if not simulated:
        raise next(iter(refused.values()))
    simulated.sort(key=lambda simulation: simulation.trace.completion)
    return simulated, {name: refusal.seen for name, refusal in refused.items()}


def planned_schedule(
    problem: Problem,
    machine: Machine,
    topology: Topology | None = None,
    algorithm: str | None = None,
    settings: Mapping[str, str] | None = None,
    reason: str = "",
) -> tuple[str, Schedule]:
    """Returns (algorithm with settings as text, schedule) without simulating the schedule.

    algorithm, settings: the planner chooses what they leave out.   reason: why contributions are
    combined in the problem's order.
    Raises UnknownName or InvalidArgument for arguments that do not fit the problem.
    """
    if algorithm is not None:
        algorithm = find_planned(algorithm, problem.collective).name
    plan = plan_for(problem, machine, algorithm, topology=topology, reason=reason)
    chosen = find(plan.algorithm)
    combined = chosen.settings({**plan.settings, **read_settings(chosen, settings or {})})
    return describe(chosen.name, combined), chosen.solve(plan.problem, combined)


@dataclass
class _Simulator:
    """Simulates schedules of one problem, each only once.

    share: a schedule may have up to MAX_SIMULATED / `share` messages.
    """

    problem: Problem
    machine: Machine
    topology: Topology | None
    reason: str
    share: int
    traces: dict[str, Trace] = field(default_factory=dict)

    @cached_property
    def bound(self) -> Bound:
        """A lower bound of the time of any schedule of the problem on this machine."""
        return self.problem.lower_bounds(self.machine)[0]

    def run(self, algorithm: Algorithm, typed: Mapping[str, str]) -> Simulation:
        """Simulate an algorithm; the planner chooses the settings that `typed` leaves out."""
        settings = read_settings(algorithm, typed)
        if len(settings) < len(algorithm.parameters) or not typed:
            plan = plan_for(
                self.problem,
                self.machine,
                algorithm.name,
                topology=self.topology,
                reason=self.reason,
                score=self._score,
            )
            settings = {**plan.settings, **settings}
        return self.run_with(algorithm.name, algorithm.settings(settings))

    def run_with(self, name: str, settings: Mapping[str, Any]) -> Simulation:
        """Simulate the algorithm `name`; `settings` gives a value to each of its parameters.

        Reuses an earlier simulation.  Raises InvalidArgument for too many messages.
        """
        label = describe(name, settings)
        if label not in self.traces:
            schedule = find(name).solve(self.problem, settings)
            self._check_size(schedule)
            self.traces[label] = simulate(schedule, self.machine, self.topology)
        return Simulation(name, settings, self.traces[label], self.bound)

    def _check_size(self, schedule: Schedule) -> None:
        """Raise InvalidArgument for more than MAX_SIMULATED / `share` messages."""
        program = schedule.program
        if isinstance(program, DownTree | UpTree):  # `messages_played` counts only their shapes
            segments = -(-program.nbytes // (program.segment or program.nbytes or 1))
            about = (program.tree.size - 1) * segments
        else:
            about = messages_played(schedule, self.machine, self.topology)
        if about > (most := MAX_SIMULATED // self.share):
            raise InvalidArgument(
                f"a simulation of {schedule.algorithm}",
                f"these are about {about:,} messages, and at most {most:,} are simulated"
                + " beside other algorithms" * (self.share > 1),
                f"choose fewer ranks{', larger segments' * ('segment=' in schedule.algorithm)}"
                " or another algorithm",
            )

    def _score(
        self,
        algorithm: Algorithm,
        problem: Problem,
        machine: Machine,
        settings: Mapping[str, Any],
        topology: Topology | None,
    ) -> Fraction:
        """The predicted time if ports are independent and planning can; else the simulated time."""
        if topology is None and machine.independent_ports:
            with suppress(BeyondLimits):  # planning has lower limits than simulating
                return predicted(algorithm, problem, machine, settings, topology)
        return self.run_with(algorithm.name, settings).trace.completion


def read_settings(algorithm: Algorithm, typed: Mapping[str, str]) -> dict[str, Any]:
    """The values of an algorithm's parameters, read from text such as 4, 9/5 or 64k.

    typed: text by parameter.   Raises InvalidArgument for text that is no value of its parameter,
    and for unknown parameters.
    """
    if set(typed) - set(algorithm.parameters):
        algorithm.settings(typed)  # raises, and names the parameters that there are
    return {name: _read(algorithm, name, text) for name, text in typed.items()}


def _read(algorithm: Algorithm, name: str, text: str) -> Any:
    read = algorithm.parameters[name].read
    try:
        return read(text)
    except InvalidArgument:
        value: str | int = text
        with suppress(InvalidArgument):
            value = parse_size(text)
        return read(value)
