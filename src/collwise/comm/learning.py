"""Learning while a program runs: candidates serve its own calls in turn, for a share of its time.

MPI orders collectives, so the n-th call of a kind is the same on all ranks.  All ranks know after
how many calls the next candidate takes over.  When all candidates have had a turn, one allreduce
inside a blocking call gives all ranks the same times of these calls.  So all ranks decide alike
whether to go on.
"""

import logging
from collections.abc import Mapping
from functools import partial
from math import ceil, isfinite
from statistics import median
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

from collwise.comm.decision import CallProblem
from collwise.comm.recording import FOREVER, NUMBERS, TIMES, UNTIL, Calls, Tally, Way
from collwise.errors import CollwiseError, NothingApplies
from collwise.measure.race import LIBRARY, Race
from collwise.mpi.execution.executor import Executor
from collwise.mpi.library.switching import Switched
from collwise.mpi.runtime.agreement import everywhere
from collwise.mpi.runtime.progress import wait_with_progress
from collwise.planner.by_hand import own_choice
from collwise.planner.plans import Plan
from collwise.planner.race_lookup import race_result
from collwise.planner.worth import Worth
from collwise.profiles.fingerprint import Fingerprint
from collwise.profiles.records import RaceResult
from collwise.profiles.store import add_learned
from collwise.system import formatting

if TYPE_CHECKING:
    from collwise.comm.dispatch import Dispatch

log = logging.getLogger("collwise")

BLOCKS = (2, 8, 8, 8)
"""How many calls in a row a candidate serves, by round; the first of them is no sample."""
MAX_TRIALS = 256
"""Largest number of trials on a communicator, one for each kind of calls."""
AGREEMENT_S, PLANNING_S = 20e-6, 0.02
"""About how many seconds the ranks' agreement takes, and the planning for the first trial."""
MOST_OWN = 4
"""Largest number of the library's own algorithms that a trial tries."""
HOPELESS = 3
"""From round 2, a candidate whose time is over this many times the default's leaves the trial."""
_HEAD = 3
"""How many numbers precede the times of calls in the array that the ranks reduce."""


class Learning:
    """Budget and results of learning on a `Comm` and on the communicators derived from it.

    share: the share of the time, since this object was made, that learning may take.
    results: what was learned on communicators on which this process is rank 0; saved at once.
    """

    def __init__(self, share: float) -> None:
        self.share, self.spent_s, self.planning_s = share, 0.0, PLANNING_S
        self.results: list[tuple[Fingerprint, RaceResult]] = []
        self._begin, self._refused = monotonic(), False

    @property
    def elapsed_s(self) -> float:
        """Seconds since this object was made."""
        return monotonic() - self._begin

    def add(self, fingerprint: Fingerprint, result: RaceResult) -> None:
        """Save what was learned at once, since a job may be ended at any time."""
        self.results.append((fingerprint, result))
        try:
            add_learned(fingerprint, [result])
        except CollwiseError as problem:
            if not self._refused:
                log.warning("what was learned is not saved: %s", problem)
            self._refused = True

    @property
    def lines(self) -> list[str]:
        """A summary for people: how long learning took, and what was learned."""
        share = self.spent_s / self.elapsed_s
        most = f"the aim is at most {self.share:.1%}"
        lines = [f"learning took {formatting.time(self.spent_s)}, {share:.1%} of the time; {most}"]
        for _, one in self.results:
            who = "the library's own stays" if one.decision == LIBRARY else one.algorithm
            gain = f"{one.speedup_low:.2f} to {one.speedup_high:.2f} times as fast"
            what = f"{one.collective} of {formatting.size(one.nbytes)} on {one.ranks} ranks"
            lines.append(f"learned: {what}: {who} ({one.algorithm} was {gain})")
        return lines


class Trial(Tally):
    """Counts and times equal calls, which plans and the library's algorithms serve in turn."""

    def __init__(
        self, method: str, way: Way, asked: CallProblem, dispatch: "Dispatch", learning: Learning
    ) -> None:
        super().__init__(
            method, way, asked.problem.ranks, asked, dispatch.decision, kept=2 * max(BLOCKS)
        )
        self._dispatch, self._learning, self.problem = dispatch, learning, asked.problem
        self._round = 0
        self._turns: list[str] = []
        """Labels of the candidates that still serve in this round, the current one first."""
        self._block: dict[str, Any] = {}
        """Starts and ends of this round's calls, in ns, by the candidate's label."""
        self._samples: dict[str, list[float]] = {}
        """Seconds that calls took, by the candidate's label; equal on all ranks (see `_agree`)."""
        self._plans: Mapping[str, Plan] = {}
        self._executors: dict[str, Executor | None] = {LIBRARY: None}
        self._own: dict[str, Switched] = {}
        machine = dispatch.decision.machine_for(asked)
        assert machine is not None, "nothing can be learned without a machine"
        least_s = max(asked.problem.lower_bounds(machine)[0].time_s, 1e-7)
        # After so many calls an agreement takes no more than the share of their time.
        self.numbers[UNTIL] = max(2, ceil(AGREEMENT_S / (learning.share * least_s)))

    def worth(self, calls: Calls) -> Worth:
        """What tuning would save on these calls; nothing once the trial is over."""
        return Worth() if self.numbers[UNTIL] == FOREVER else super().worth(calls)

    @property
    def executor(self) -> Executor | None:
        """The executor that serves the next call; None if the library serves it."""
        return self._executors.get(self._turns[0]) if self._turns else None

    @property
    def own(self) -> Switched | None:
        """The library's own algorithm that serves the next call; None if something else does."""
        return self._own.get(self._turns[0]) if self._turns else None

    def proceed(self, op: MPI.Op | None) -> bool:
        """Prepare for the next call; False when the trial is over.

        op: the call's predefined operator, or None.   Collective when a round or a pause ends.
        """
        if self.numbers[TIMES] < self.numbers[UNTIL]:
            return True
        begin = monotonic()
        try:
            return self._step(op)
        finally:
            self._learning.spent_s += monotonic() - begin

    def _step(self, op: MPI.Op | None) -> bool:
        if self._turns:
            self._block[self._turns[0]] = self._last(BLOCKS[self._round])
            del self._turns[0]
            if self._turns:
                return self._go_on(BLOCKS[self._round])
        spent_s, elapsed_s, planning_s = self._agree()
        decision, asked = self._dispatch.decision, self.asked
        assert asked is not None
        if self._block:
            self._judge()
            self._round += 1
        elif decision.race(asked, "blocking") is not None:
            return self._end(None)  # a race learned on calls of another size decides
        if self._round >= len(BLOCKS):
            return self._end(self._race())
        expected_s = planning_s
        if self._samples:
            medians = {label: median(times) for label, times in self._samples.items()}
            behind_s = (max(0.0, time - medians[LIBRARY]) for time in medians.values())
            expected_s = BLOCKS[self._round] * sum(behind_s)
        if spent_s + expected_s > self._learning.share * elapsed_s:
            return self._go_on(self.numbers[TIMES])
        if not self._dispatch.duplicate.exists():
            return self._end(None)
        if not self._plans:
            begin = monotonic()
            try:
                everywhere(self._dispatch.duplicate.of, partial(self._prepare, asked, op))
                estimated = next(iter(self._plans.values()))
                self._own = self._dispatch.own_to_try(self.method, estimated, MOST_OWN)
            except Exception as problem:  # the same on all ranks
                if self._dispatch.rank == 0 and not isinstance(problem, NothingApplies):
                    log.warning("nothing is tried on %s: %r", self.problem, problem)
                return self._end(None)
            self._samples = {label: [] for label in (*self._executors, *self._own)}
            self._learning.planning_s = max(self._learning.planning_s, monotonic() - begin)
        labels = list(self._samples)
        first = self._round % len(labels)
        self._turns = labels[first:] + labels[:first]
        return self._go_on(BLOCKS[self._round])

    def _prepare(self, asked: CallProblem, op: MPI.Op | None) -> None:
        """Make plans and executors; this may fail on one rank."""
        self._plans = self._dispatch.decision.best_plans(asked)
        for label, plan in self._plans.items():
            self._executors[label] = self._dispatch.executor(self.method, plan, op)

    def _go_on(self, calls: int) -> bool:
        """Let the current candidate, or the library if none is, serve the next `calls` calls."""
        self.numbers[UNTIL] = self.numbers[TIMES] + calls
        return True

    def _last(self, calls: int) -> Any:
        """(start, end) of the last `calls` calls in ns; all starts are 0 without a common clock."""
        pairs = np.array(self.numbers[NUMBERS:]).reshape(-1, 2)
        times = pairs[np.arange(self.numbers[TIMES] - calls, self.numbers[TIMES]) % len(pairs)]
        return times if self._dispatch.common_clock else times - times[:, :1]

    def _agree(self) -> tuple[float, float, float]:
        """Seconds (spent on learning, elapsed, needed for planning), equal on all ranks.

        Sets each start and end of this round's calls to the latest of all ranks.   Collective.
        """
        learning = self._learning
        own = learning.spent_s, -learning.elapsed_s, learning.planning_s
        blocks = [np.round(np.array(own) * 1e9), *(b.ravel() for b in self._block.values())]
        agreed = np.concatenate(blocks).astype(np.int64)
        wait_with_progress([self._dispatch.duplicate.of.Iallreduce(MPI.IN_PLACE, agreed, MPI.MAX)])
        place = _HEAD
        for label, block in self._block.items():
            self._block[label] = agreed[place : place + block.size].reshape(-1, 2)
            place += block.size
        spent, elapsed, planning = (agreed[:_HEAD] / 1e9).tolist()
        return spent, -elapsed, planning

    def _judge(self) -> None:
        """Keep a round's times, add to `spent_s` the time lost, and drop HOPELESS candidates."""
        took = {k: np.maximum(b[:, 1] - b[:, 0], 1) / 1e9 for k, b in self._block.items()}
        usual_s = float(np.median(took[LIBRARY][1:]))
        for label, times in took.items():
            self._samples[label] += times[1:].tolist()
            if label != LIBRARY:
                self._learning.spent_s += float(np.maximum(times - usual_s, 0).sum())
        limit_s = HOPELESS * median(self._samples[LIBRARY])
        if self._round:
            kept = {k: t for k, t in self._samples.items() if k == LIBRARY or median(t) <= limit_s}
            if len(kept) == 1:
                self._round = len(BLOCKS)  # no round is left
            else:
                self._samples = kept
        self._block = {}

    def _race(self) -> RaceResult | None:
        problem, decision = self.problem, self._dispatch.decision
        predicted_s = {label: plan.predicted_s for label, plan in self._plans.items()}
        samples = {label: tuple(times) for label, times in self._samples.items()}
        about = problem.collective, problem.ranks, problem.nbytes, problem.root
        race = Race(*about, samples, predicted_s)
        if race.best == LIBRARY or not isfinite(race.speedup(race.best).high):
            return None
        gain = race.speedup(race.best)
        if race.best in self._own:
            choice = own_choice(problem.collective, race.best.partition("/")[2])
        else:
            choice = self._plans[race.best].choice
        assert choice is not None, "its label says that it is one of the library's"
        return race_result(
            problem,
            choice,
            race.medians[race.best],
            race.medians[LIBRARY],
            gain,
            form="blocking",
            decision="library" if race.winner == LIBRARY else "collwise",
            ranks_per_node=decision.ranks_per_node,
            engine=decision.engine,
            learned=True,
            method=self.method,
        )

    def _end(self, result: RaceResult | None) -> bool:
        self.numbers[UNTIL] = FOREVER
        self._executors.clear()  # the record keeps this object
        profile = self._dispatch.decision.profile
        if result is not None and profile is not None and self._dispatch.rank == 0:
            self._learning.add(profile.fingerprint, result)
        self._dispatch.trial_over(self, result)
        return False
