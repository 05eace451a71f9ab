"""The exact time of contributions in rounds, from the sizes of the messages alone."""

from fractions import Fraction
from functools import lru_cache
from math import lcm

import numpy as np

from collwise.algorithms.in_rounds import LARGEST_TICKS
from collwise.model.machine import Cost, Machine
from collwise.schedule.all_rounds import AllRounds


@lru_cache(maxsize=256)
def rounds_time(program: AllRounds, machine: Machine) -> Fraction:
    """Exact seconds, by a recurrence over the rounds, all ranks at once."""
    alike = program.is_alike()
    messages = program.messages(of_one=alike)
    every = np.array([sizes for _, sizes, _ in messages])
    distinct, kinds = np.unique(every[every > 0], return_inverse=True)
    which = np.zeros(every.shape, np.int64)  # of `costs`: first that of no message
    which[every > 0] = kinds + 1
    nothing = Cost(Fraction(0), Fraction(0))
    costs = [nothing, *(machine.message(nbytes) for nbytes in distinct.tolist())]
    grid = lcm(*(x.denominator for cost in costs for x in cost))
    ticks = [(int(gap * grid), int(latency * grid)) for gap, latency in costs]
    rows = 1 if alike else program.problem.ranks
    most = max(map(sum, ticks)) * (len(messages) + 1) * rows
    kind = np.dtype(np.int64 if most < LARGEST_TICKS else object)
    table = np.array(ticks, kind).T
    send_free, receive_free = np.zeros(rows, kind), np.full(rows, -1, kind)
    came = np.zeros((len(messages) + 1, rows), kind)  # the last row: what waits for nothing
    for number, (step, sizes, latest) in enumerate(messages):
        some = np.flatnonzero(sizes)
        gap, latency = table[:, which[number, some]]
        start = np.maximum(send_free[some], came[latest[some], some])
        to = (some + step) % rows
        free = receive_free[to]
        if machine.law == "hockney":
            start = np.maximum(start, free)
            arrival = start + latency
        else:
            arrival = np.where(free >= 0, np.maximum(start + latency, free + gap), start + latency)
        send_free[some] = start + gap
        receive_free[to] = arrival
        came[number] = receive_free
    return Fraction(int(max(0, send_free.max(), receive_free.max())), grid)
