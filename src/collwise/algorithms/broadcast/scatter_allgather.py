"""Scatter, then allgather: every rank sends little more than the message once or twice.

The long-vector broadcast of van de Geijn: halve the message down a binomial tree, then collect the
pieces, in ⌈log2 p⌉ rounds of doubling size (any p), or around a ring in p − 1 short steps.  Pieces
that a rank got on their way to others are not sent to it again.
"""

from collections.abc import Iterable
from fractions import Fraction
from math import lcm

import numpy as np

from collwise.algorithms.broadcast import binomial
from collwise.algorithms.registry import Algorithm, Settings, register
from collwise.model.machine import Cost, Hockney, Machine
from collwise.schedule.data import Problem, Program
from collwise.schedule.programs import Chained, Collect, Scatter, Step

RING_LIMIT = 1024
"""More ranks than this spend longer on the start-ups of a ring than on anything it can save."""


def doubling_steps(ranks: int) -> tuple[Step, ...]:
    """Distances 1, 2, 4, …: a rank then has as many pieces from itself on."""
    powers = [1 << k for k in range((ranks - 1).bit_length())]
    return tuple(Step(d, d, min(2 * d, ranks)) for d in powers)


def ring_steps(ranks: int) -> tuple[Step, ...]:
    """Every rank passes on, to its left, what came last from its right."""
    return tuple(Step(1, d, d + 1) for d in range(1, ranks))


def _programs(problem: Problem, steps: tuple[Step, ...]) -> tuple[Scatter, Collect]:
    tree, piece = binomial.tree(problem.ranks), max(-(-problem.nbytes // problem.ranks), 1)
    return (
        Scatter(tree, problem.nbytes, piece),
        Collect(tree, problem.nbytes, piece, steps),
    )


def _build(problem: Problem, steps: tuple[Step, ...]) -> Program:
    return Chained(_programs(problem, steps), problem.ranks)


def _predicted(problem: Problem, machine: Machine, steps: tuple[Step, ...]) -> Fraction:
    """The recurrence over the tree and then over the steps, for all ranks at once, exactly."""
    scatter, collect = _programs(problem, steps)
    spans = scatter.tree.spans()
    moved = [collect.received(spans, step) for step in steps]
    lengths = [sum(length for _, length in ranges) for ranges in moved]
    rows = scatter.columns()
    costs = {int(n): machine.message(int(n)) for n in np.unique(np.concatenate([rows.length, *lengths]))}
    grid = lcm(*(x.denominator for cost in costs.values() for x in cost))
    sizes = np.array(sorted(costs))
    gaps, latencies = (
        np.array([int(costs[int(n)][i] * grid) for n in sizes], dtype=object) for i in (0, 1)
    )

    ranks = np.arange(problem.ranks)
    free = np.zeros(problem.ranks, dtype=object)  # the send port
    last = np.zeros(problem.ranks, dtype=object)  # the latest receipt
    waited = np.zeros(problem.ranks, dtype=bool)  # was there one?
    size = np.searchsorted(sizes, rows.length)
    for row in np.lexsort((rows.place_at_source, rows.source)):  # leaders before their followers
        source, target = rows.source[row], rows.target[row]
        free[target] = last[target] = free[source] + latencies[size[row]]
        free[source] += gaps[size[row]]
        waited[target] = True

    history: list[tuple[Step, object]] = []
    for step, length in zip(steps, lengths, strict=True):
        source = (ranks + step.distance) % problem.ranks
        data = np.zeros(problem.ranks, dtype=object)
        begin = np.maximum(step.start, spans) - step.distance  # what is sent, from `source` on
        for earlier, done in reversed(history):
            if earlier.stop <= step.start - step.distance:
                break
            low = np.maximum(np.maximum(earlier.start, spans[source]), begin)
            high = np.minimum(earlier.stop, step.stop - step.distance)
            shared = _filled(collect, source + low, source + high)
            data = np.where(shared, np.maximum(data, done[source]), data)  # type: ignore[index]
        size = np.searchsorted(sizes, length)
        gap, latency = gaps[size], latencies[size]
        start = np.maximum(free[source], data)
        if isinstance(machine, Hockney):
            start = np.maximum(start, last)
            received = start + latency
        else:
            received = np.where(
                waited, np.maximum(start + latency, last + gap), start + latency
            )
        moves = length > 0
        free[source] = np.where(moves, start + gap, free[source])
        last = np.where(moves, received, last)
        waited |= moves
        history.append((step, last))
    return Fraction(max(max(last), max(free)), grid)


def _filled(collect: Collect, low: object, high: object) -> object:
    """Whether the pieces low … high − 1 (modulo p) hold any byte."""
    p, filled = collect.tree.size, -(-collect.nbytes // collect.piece)
    wraps = np.where(low >= p, low - p < filled, (low < filled) | (high > p))  # type: ignore[operator]
    return (low < high) & wraps  # type: ignore[operator]


def _few(limit: int) -> object:
    def choices(problem: Problem, machine: Machine) -> Iterable[Settings]:
        worthwhile = 2 < problem.ranks <= min(limit, problem.nbytes)
        return [{}] if worthwhile else []

    return choices


for _name, _summary, _time, _steps, _limit in (
    (
        "scatter_allgather",
        "scatter down a binomial tree, collect in ⌈log2 p⌉ rounds of doubling size",
        "recurrence over 2⌈log2 p⌉ rounds; for p = 2^d about 2d·α + 2(p − 1)/p·nβ",
        doubling_steps,
        1 << 16,
    ),
    (
        "scatter_ring",
        "scatter down a binomial tree, collect around a ring in p − 1 steps",
        "recurrence over ⌈log2 p⌉ + p − 1 rounds; about (p − 1 + log2 p)·α + 2(p − 1)/p·nβ",
        ring_steps,
        RING_LIMIT,
    ),
):
    register(
        Algorithm(
            name=f"broadcast/{_name}",
            summary=_summary,
            source=("vandeGeijn1991 §3", "Barnett1994"),
            time=_time,
            build=lambda problem, _, steps=_steps: _build(problem, steps(problem.ranks)),
            predicted=lambda problem, machine, _, steps=_steps: _predicted(
                problem, machine, steps(problem.ranks)
            ),
            choices=_few(_limit),
            segmented=True,
        )
    )
