"""The exact time of contributions in rounds, from the sizes of the messages alone."""

from fractions import Fraction
from functools import lru_cache
from math import lcm

import numpy as np

from collwise.algorithms.in_rounds import LARGEST_TICKS
from collwise.model.machine import Machine
from collwise.schedule.all_rounds import AllRounds


@lru_cache(maxsize=256)
def rounds_time(program: AllRounds, machine: Machine) -> Fraction:
    """Exact seconds, by a recurrence over the rounds, all ranks at once."""
    alike = program.is_alike()
    messages = program.messages(of_one=alike)
    costs = {n: machine.message(n) for _, sizes, _ in messages for n in set(sizes.tolist()) if n}
    grid = lcm(*(x.denominator for cost in costs.values() for x in cost))
    ticks = {n: (int(gap * grid), int(lat * grid)) for n, (gap, lat) in costs.items()} | {0: (0, 0)}
    rows = 1 if alike else program.problem.ranks
    most = max(sum(pair) for pair in ticks.values()) * (len(messages) + 1) * rows
    kind = np.dtype(np.int64 if most < LARGEST_TICKS else object)
    send_free, receive_free = np.zeros(rows, kind), np.full(rows, -1, kind)
    came = np.zeros((rows, len(messages) + 1), kind)  # the last column: what waits for nothing
    ranks = np.arange(rows)
    for number, (step, sizes, latest) in enumerate(messages):
        gap, latency = np.array([ticks[n] for n in sizes.tolist()], kind).T
        start, some = np.maximum(send_free, came[ranks, latest]), sizes > 0
        to = (ranks + step) % rows
        free = receive_free[to]
        if machine.law == "hockney":
            start = np.maximum(start, free)
            arrival = start + latency
        else:
            arrival = np.where(free >= 0, np.maximum(start + latency, free + gap), start + latency)
        send_free = np.where(some, start + gap, send_free)
        receive_free[to] = np.where(some, arrival, free)
        came[:, number] = receive_free
    return Fraction(int(max(0, send_free.max(), receive_free.max())), grid)
