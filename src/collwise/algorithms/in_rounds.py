"""What broadcasts and reduces in rounds share: their exact time, and the choice of the pieces."""

from collections.abc import Callable, Iterable
from fractions import Fraction
from math import ceil, floor, lcm
from typing import Any, TypeAlias

import numpy as np

from collwise.algorithms.registry import Settings
from collwise.errors import InvalidArgument
from collwise.model import postal
from collwise.model.machine import Hockney, Machine
from collwise.schedule.circulant import Circulant
from collwise.schedule.data_movement import pieces
from collwise.schedule.operations import Block
from collwise.schedule.postal_rounds import PostalRounds
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program, Schedule
from collwise.schedule.rounds import DownRounds, Rounds, UpRounds
from collwise.timing import ideal

MAX_PIECES = 4096
"""Pieces: more are never worth the room that a compiled plan takes."""
MAX_RANKS, MAX_PLAYED = 1 << 12, 1 << 20
"""Ranks, and pieces × ranks: larger rounds are not played for their time while planning."""
MAX_EVER = 1 << 22
"""Pieces × ranks, the first piece counted several times: larger rounds are refused."""
MAX_TABLED = 1 << 14
"""Pieces × ranks: larger rounds for latencies above 1 are not tried while planning."""
MAX_COMPARED = 4
"""Numbers of pieces that are compared by exact times."""
MAX_SIMULATED = 1 << 12
"""Pieces × ranks: larger rounds are not tried where only a simulation gives the time."""
LARGEST_TICKS = 1 << 62
_RoundsOf: TypeAlias = Callable[[Problem, Settings, int], Rounds]


def circulant(problem: Problem, settings: Settings, count: int) -> Rounds:
    """Rounds through a circulant graph."""
    return Circulant(problem.ranks, count, 1)


def postal_rounds(problem: Problem, settings: Settings, count: int) -> Rounds:
    """Rounds for the latency that is set."""
    return PostalRounds(problem.ranks, count, settings["latency"])


def rounds_fields(rounds_of: _RoundsOf) -> dict[str, Any]:
    """The fields `build` and `predicted` of an algorithm in such rounds."""

    def rounds(problem: Problem, settings: Settings) -> tuple[Rounds, tuple[Block, ...]]:
        items = -(-settings["segment"] // problem.itemsize)  # no element is cut
        if (count := -(-problem.nbytes // (items * problem.itemsize))) > MAX_EVER:
            raise InvalidArgument(f"{problem} in rounds", f"{count:,} pieces", "choose longer ones")
        blocks = tuple(pieces(problem.nbytes, items * problem.itemsize))
        return rounds_of(problem, settings, len(blocks)), blocks

    def build(problem: Problem, settings: Settings) -> Program:
        return (UpRounds if problem.kind.combines else DownRounds)(*rounds(problem, settings))

    def predicted(problem: Problem, machine: Machine, settings: Settings) -> Fraction:
        return rounds_time(problem, machine, *rounds(problem, settings))

    return {"build": build, "predicted": predicted}


def circulant_choices(problem: Problem, machine: Machine) -> Iterable[Settings]:
    """The best length of pieces, by the time if the last one were as long as the others."""
    items, most = problem.nbytes // problem.itemsize, 0
    if problem.ranks <= MAX_RANKS:
        most = MAX_PLAYED // problem.ranks
    counts, count = {items} if 1 < items <= MAX_PIECES else set[int](), 2
    while count <= min(items, MAX_PIECES):
        counts.add(count)
        count += -(-count // 8)
    lengths = {-(-items // count) * problem.itemsize for count in counts}
    tried = [
        (_even_time(problem, machine, count, nbytes), nbytes)
        for nbytes in lengths
        if (count := -(-problem.nbytes // nbytes)) <= most
        or (problem.nbytes % nbytes == 0 and _at_once(machine, nbytes))
    ]
    return [{"segment": min(tried)[1]}] if tried and problem.ranks > 1 else []


def postal_choices(problem: Problem, machine: Machine) -> Iterable[Settings]:
    """The best number of pieces, and their latency, of the best few by a rough time."""
    items, ranks = problem.nbytes // problem.itemsize, problem.ranks
    simulated = isinstance(machine, Hockney) or _combine(problem, machine, 1) is not None
    most = min(
        items, (MAX_SIMULATED if problem.kind.combines and simulated else MAX_TABLED) // ranks
    )
    rough: dict[tuple[int, int], Fraction] = {}
    for count in sorted({n for power in range(1, 12) for n in (2**power, 3 * 2**power // 2)}):
        nbytes = -(-items // count) * problem.itemsize
        cost = machine.message(nbytes)
        if ranks == 1 or count > most:
            break
        for latency in {min(max(rounded(cost.lam), 1), ranks) for rounded in (floor, ceil)}:
            rounds = count - 1 + Fraction(5, 4) * postal.broadcast_time(ranks, latency)
            combining = _combine(problem, machine, nbytes) or 0
            rough[nbytes, latency] = rounds * (max(cost.gap, cost.latency / latency) + combining)

    def time(one: tuple[int, int]) -> Fraction:
        nbytes, latency = one
        rounds = PostalRounds(ranks, -(-problem.nbytes // nbytes), latency)
        return rounds_time(problem, machine, rounds, tuple(pieces(problem.nbytes, nbytes)))

    few = sorted(rough, key=rough.__getitem__)[:MAX_COMPARED]
    return [
        {"latency": latency, "segment": nbytes}
        for nbytes, latency in sorted(few, key=time if len(few) > 1 else None)[:1]
    ]


def _at_once(machine: Machine, nbytes: int) -> bool:
    """Whether a message is there as soon as its sender is free: λ is 1."""
    cost = machine.message(nbytes)
    return cost.gap == cost.latency


def _even_time(problem: Problem, machine: Machine, count: int, nbytes: int) -> Fraction:
    """Seconds for so many pieces, all of so many bytes, where λ = 1; else about as many."""
    rounds = count - 1 + (problem.ranks - 1).bit_length()
    return rounds * (machine.message(nbytes).latency + (_combine(problem, machine, nbytes) or 0))


def _combine(problem: Problem, machine: Machine, nbytes: int) -> Fraction | None:
    return machine.combine(nbytes) if problem.kind.combines else None


def rounds_time(
    problem: Problem, machine: Machine, rounds: Rounds, blocks: tuple[Block, ...]
) -> Fraction:
    """Exact seconds of a broadcast, or of a reduce, by a recurrence over the rounds.

    All ranks are taken at once, a few operations of NumPy for each round.  Where reduces with a
    latency have to wait for ports, they are simulated message by message.
    """
    full, last = blocks[0].length, blocks[-1].length
    if isinstance(rounds, Circulant) and full == last and _at_once(machine, full):
        return _even_time(problem, machine, len(blocks), full)
    if problem.ranks * (len(blocks) + 64) > MAX_EVER:
        asked, seen = f"the time of {problem} in rounds", f"{len(blocks):,} pieces would be played"
        raise InvalidArgument(asked, seen, "choose fewer ranks or pieces, or another algorithm")
    costs = [machine.message(nbytes) for nbytes in (full, last)]
    combines = [_combine(problem, machine, nbytes) for nbytes in (full, last)]
    rendezvous, backwards = isinstance(machine, Hockney), problem.kind.combines
    if backwards and rounds.latency > 1 and (rendezvous or combines[0] is not None):
        return ideal(Schedule(problem, UpRounds(rounds, blocks)), machine).completion
    numbers = [*costs[0], *costs[1], *(c or Fraction(0) for c in combines)]
    grid = lcm(*(x.denominator for x in numbers))
    ticks = [int(x * grid) for x in numbers]
    fits = (len(blocks) + 1) * problem.ranks * max(sum(ticks), 1) < LARGEST_TICKS
    kind = np.dtype(np.int64 if fits else object)
    gaps, latencies, adding = (
        np.array([ticks[i] for i in pair], kind) for pair in ((0, 2), (1, 3), (4, 5))
    )
    play = rounds.every()
    if backwards:
        play = [(target, source, piece) for source, target, piece in reversed(play)]
    send_free, receive_free = np.zeros(problem.ranks, kind), np.full(problem.ranks, -1, kind)
    held = np.zeros((problem.ranks, len(blocks)), kind)
    for source, target, piece in play:
        which = (piece == len(blocks) - 1).astype(np.int64)
        free = receive_free[target]
        start = np.maximum(send_free[source], held[source, piece])
        if rendezvous:
            start = np.maximum(start, free)
        arrival = start + latencies[which]
        if not rendezvous:
            spaced = np.maximum(arrival, free + gaps[which])
            arrival = np.where(free >= 0, spaced, arrival)
        send_free[source] = start + gaps[which]
        receive_free[target] = arrival
        ready = np.maximum(arrival, held[target, piece])
        if combines[0] is not None:
            ready = np.maximum(ready, send_free[target]) + adding[which]
            send_free[target] = receive_free[target] = ready
        held[target, piece] = ready
    return Fraction(int(max(send_free.max(), receive_free.max(), held.max())), grid)
