"""What broadcasts by scatter and allgather share: the program, and its exact time.

The long-vector broadcast of van de Geijn: halve the message down a binomial tree, then collect the
pieces in steps.  Pieces that a rank got on their way to others are not sent to it again.
"""

from collections.abc import Callable
from fractions import Fraction
from math import lcm
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from collwise.algorithms.broadcast import binomial
from collwise.algorithms.registry import Algorithm, Settings, register
from collwise.model.machine import Machine
from collwise.schedule.data_movement import Collect, ProgramSequence, Scatter, Step, Steps
from collwise.schedule.problem import Problem
from collwise.schedule.program import LARGEST_IN_COLUMNS, Program, Schedule
from collwise.system.integers import Ints
from collwise.timing import ideal_completion

_Times: TypeAlias = NDArray[np.object_]
"""Exact times on a grid: Python's integers, which never overflow."""


def register_scatter_collect(
    name: str,
    summary: str,
    time: str,
    source: tuple[str, ...],
    steps: Callable[[int], Steps],
    most: int,
) -> Algorithm:
    """Register a broadcast that scatters down the binomial tree and then collects in steps.

    steps: of a number of ranks.   most: the ranks beyond which it is never tried.
    """

    def build(problem: Problem, _: Settings) -> Program:
        return ProgramSequence(_programs(problem, steps(problem.ranks)), problem.ranks)

    def predicted(problem: Problem, machine: Machine, _: Settings) -> Fraction:
        """By the recurrence down the tree, then over the steps, all ranks at once."""
        if problem.nbytes > LARGEST_IN_COLUMNS:
            return ideal_completion(Schedule(problem, build(problem, _)), machine)
        ports = _Ports(problem.ranks, machine, *_programs(problem, steps(problem.ranks)))
        for step in ports.collect.steps:
            ports.take(step)
        return ports.end

    return register(
        Algorithm(
            name=f"broadcast/{name}",
            summary=summary,
            source=source,
            time=time,
            build=build,
            predicted=predicted,
            choices=lambda problem, _: [{}] * (2 < problem.ranks <= min(most, problem.nbytes)),
            # A step of all ranks is a few operations of NumPy.
            simulated=lambda problem, _: problem.ranks * len(steps(problem.ranks)) // 64,
            segmented=True,
            usual=True,
        )
    )


def _programs(problem: Problem, steps: Steps) -> tuple[Scatter, Collect]:
    tree, piece = binomial.tree(problem.ranks), max(-(-problem.nbytes // problem.ranks), 1)
    sizes = problem.nbytes, piece
    return Scatter(tree, *sizes), Collect(tree, *sizes, steps)


class _Ports:
    """When each rank's ports are free and its messages were received, after some of the steps."""

    def __init__(self, ranks: int, machine: Machine, scatter: Scatter, collect: Collect) -> None:
        self.collect = collect
        self.spans = scatter.tree.spans()
        rows = scatter.columns()
        lengths = [sum(n for _, n in collect.received(self.spans, s)) for s in collect.steps]
        self.sizes = np.unique(np.concatenate([rows.length, *lengths]))
        costs = [machine.message(int(n)) for n in self.sizes]
        self.grid = lcm(*(x.denominator for cost in costs for x in cost))
        self.gaps, self.latencies = (
            np.array([int(cost[i] * self.grid) for cost in costs], dtype=object) for i in (0, 1)
        )
        self.one_transfer = machine.law == "hockney"
        self.send_free: _Times = np.zeros(ranks, dtype=object)
        self.receipt: _Times = np.zeros(ranks, dtype=object)  # the latest
        self.received = np.zeros(ranks, dtype=bool)  # was there one?
        self.history: list[tuple[Step, _Times]] = []
        size = np.searchsorted(self.sizes, rows.length)
        for row in np.lexsort((rows.place_at_source, rows.source)):  # leaders before followers
            source, target = rows.source[row], rows.target[row]
            arrival = self.send_free[source] + self.latencies[size[row]]
            self.send_free[target] = self.receipt[target] = arrival
            self.send_free[source] += self.gaps[size[row]]
            self.received[target] = True

    @property
    def end(self) -> Fraction:
        """When the last port is free."""
        return Fraction(max(max(self.receipt), max(self.send_free)), self.grid)

    def take(self, step: Step) -> None:
        """Play one step: every rank receives from the rank `step.distance` after it."""
        length = sum(n for _, n in self.collect.received(self.spans, step))
        source = (np.arange(len(self.spans)) + step.distance) % len(self.spans)
        size = np.searchsorted(self.sizes, length)
        gap, latency = self.gaps[size], self.latencies[size]
        start = np.maximum(self.send_free[source], self._data(step, source))
        if self.one_transfer:
            start = np.maximum(start, self.receipt)
        arrival = start + latency
        if not self.one_transfer:
            spaced = np.maximum(arrival, self.receipt + gap)
            arrival = np.where(self.received, spaced, arrival)
        moves = length > 0
        self.send_free[source] = np.where(moves, start + gap, self.send_free[source])
        self.receipt = np.where(moves, arrival, self.receipt)
        self.received |= moves
        self.history.append((step, self.receipt))

    def _data(self, step: Step, source: Ints) -> _Times:
        """When each rank's source received what it now sends; 0 for what the scatter brought."""
        here: _Times = np.zeros(len(source), dtype=object)
        begin = np.maximum(step.start, self.spans) - step.distance  # counted from `source`
        for earlier, done in reversed(self.history):
            if earlier.stop <= step.start - step.distance:
                break
            low = np.maximum(np.maximum(earlier.start, self.spans[source]), begin)
            high = np.minimum(earlier.stop, step.stop - step.distance)
            shared = self._filled(source + low, source + high)
            here = np.where(shared, np.maximum(here, done[source]), here)
        return here

    def _filled(self, low: Ints, high: Ints) -> Any:
        """Whether the pieces low … high − 1 (modulo p) hold any byte."""
        p, filled = len(self.spans), -(-self.collect.nbytes // self.collect.piece)
        return (low < high) & np.where(low >= p, low - p < filled, (low < filled) | (high > p))
