"""What broadcasts and reduces through a circulant graph share: their exact time, and the pieces."""

from collections.abc import Iterable
from fractions import Fraction
from math import lcm

import numpy as np

from collwise.algorithms.registry import Settings
from collwise.model.machine import Hockney, Machine
from collwise.schedule.circulant import received, skips
from collwise.schedule.data_movement import pieces
from collwise.schedule.operations import Block
from collwise.schedule.problem import Problem
from collwise.system.integers import Ints

MOST_PIECES = 4096
"""More pieces than this are never worth the room that a compiled plan takes."""
MOST_PLAYED = 1 << 22
"""Pieces times ranks up to which pieces that are not all alike are tried."""
LARGEST_TICKS = 1 << 62


def pieces_of(problem: Problem, settings: Settings) -> tuple[Block, ...]:
    """The vector in pieces of `segment` bytes, rounded up to whole elements."""
    items = -(-settings["segment"] // problem.itemsize)
    return tuple(pieces(problem.nbytes, items * problem.itemsize))


def rank_rounds(problem: Problem, settings: Settings) -> int:
    """What the recurrence costs, a round of all ranks being a few operations of NumPy."""
    count = -(-problem.nbytes // max(settings["segment"], problem.itemsize))
    return problem.ranks * (count + problem.ranks.bit_length()) // 64


def piece_choices(problem: Problem, machine: Machine) -> Iterable[Settings]:
    """The best length of pieces, by the time if the last one were as long as the others."""
    items, most = problem.nbytes // problem.itemsize, MOST_PLAYED // problem.ranks
    counts, count = set[int](), 2
    while count <= min(items, MOST_PIECES):
        counts.add(count)
        count += -(-count // 8)
    lengths = {-(-items // count) * problem.itemsize for count in counts}
    lengths = {n for n in lengths if problem.nbytes % n == 0 or problem.nbytes <= n * most}
    if problem.ranks == 1 or not lengths:
        return []
    best = min(
        sorted(lengths), key=lambda n: _even_time(problem, machine, -(-problem.nbytes // n), n)
    )
    return [{"segment": best}]


def _even_time(problem: Problem, machine: Machine, count: int, nbytes: int) -> Fraction:
    """Seconds for so many pieces, all of so many bytes, where λ = 1; else about as many."""
    rounds = count - 1 + (problem.ranks - 1).bit_length()
    return rounds * (machine.message(nbytes).latency + (_combine(problem, machine, nbytes) or 0))


def _combine(problem: Problem, machine: Machine, nbytes: int) -> Fraction | None:
    return machine.combine(nbytes) if problem.kind.combines else None


def circulant_time(problem: Problem, machine: Machine, settings: Settings) -> Fraction:
    """Exact seconds of a broadcast, or of a reduce, by a recurrence over the rounds.

    All ranks are taken at once, a few operations of NumPy for each round.
    """
    blocks = pieces_of(problem, settings)
    full, last = blocks[0].length, blocks[-1].length
    costs = [machine.message(nbytes) for nbytes in (full, last)]
    if full == last and costs[0].gap == costs[0].latency:
        return _even_time(problem, machine, len(blocks), full)
    combines = [_combine(problem, machine, nbytes) for nbytes in (full, last)]
    grid = lcm(
        *(x.denominator for row in (*costs, [c or Fraction(0) for c in combines]) for x in row)
    )
    ticks = [[int(x * grid) for x in cost] for cost in costs]
    adding = None if combines[0] is None else [int((c or 0) * grid) for c in combines]
    most = sum(map(max, ticks)) + sum(adding or ())
    play = _Play(problem.ranks, len(blocks), len(blocks) * problem.ranks * most < LARGEST_TICKS)
    return Fraction(
        play.completion(ticks, adding, problem.kind.combines, isinstance(machine, Hockney)), grid
    )


class _Play:
    """When each rank's ports are free, and when it has each block, after some of the rounds."""

    def __init__(self, ranks: int, count: int, fits: bool) -> None:
        self.ranks, self.count = ranks, count
        self.kind = np.dtype(np.int64 if fits else object)
        self.table = np.array([received(ranks, rank) for rank in range(ranks)], dtype=np.int64)

    def completion(
        self,
        costs: list[list[int]],
        combine: list[int] | None,
        backwards: bool,
        rendezvous: bool,
    ) -> int:
        """Ticks until the last rank is done.   costs, combine: of a full piece, of the last one.

        backwards: it is a reduce.   rendezvous: a send waits for the receiver's port, too.
        """
        send_free, held = (
            np.zeros(self.ranks, self.kind),
            np.zeros((self.ranks, self.count), self.kind),
        )
        receive_free = np.full(self.ranks, -1, self.kind)
        gaps, latencies = (np.array(row, self.kind) for row in zip(*costs, strict=True))
        for source, target, block in self._rounds(backwards):
            is_last = (block == self.count - 1).astype(np.int64)
            gap, latency = gaps[is_last], latencies[is_last]
            free = receive_free[target]
            start = np.maximum(send_free[source], held[source, block])
            if rendezvous:
                start = np.maximum(start, free)
            arrival = start + latency
            if not rendezvous:
                arrival = np.where(free >= 0, np.maximum(arrival, free + gap), arrival)
            send_free[source] = start + gap
            receive_free[target] = arrival
            ready = np.maximum(arrival, held[target, block])
            if combine is not None:
                ready = np.maximum(ready, send_free[target]) + np.array(combine, self.kind)[is_last]
                send_free[target] = receive_free[target] = ready
            held[target, block] = ready
        return int(max(send_free.max(), receive_free.max(), held.max()))

    def _rounds(self, backwards: bool) -> Iterable[tuple[Ints, Ints, Ints]]:
        """Who sends to whom which block, round by round."""
        numbers, ranks = skips(self.ranks), np.arange(self.ranks)
        phase = len(numbers) - 1
        first = (1 - self.count) % phase
        rounds = range(first, first + self.count - 1 + phase)
        for number in reversed(rounds) if backwards else rounds:
            k = number % phase
            block = self.table[:, k] + (number - k - first)
            target = np.flatnonzero((block >= 0) & (ranks > 0))
            block = np.minimum(block[target], self.count - 1)
            source = (target - numbers[k]) % self.ranks
            yield (target, source, block) if backwards else (source, target, block)
