"""Simulated runs on the preset "delta": λ by message size, and broadcasts on an 8 × 8 mesh."""

from fractions import Fraction
from functools import cache
from random import Random
from statistics import mean

import collwise as cw
from collwise.measure.fit import Fit
from collwise.measure.size_campaign import SizeCampaign
from collwise.model.measured_machine import measured
from collwise.simulator import SimulatedProber

DELTA = cw.presets["delta"]
assert DELTA.contention_free is not None
BLOCKING = DELTA.contention_free
MESH = cw.topology.Mesh(8, 8)
ORDERS = tuple(tuple(Random(seed).sample(range(64), 64)) for seed in range(5))
"""Random orders of the 64 nodes; the paper used one, and does not say which."""
IN_ROWS = (tuple(range(64)),)
"""The order free of contention: row by row, from the source on."""
SIZES = (8, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
PACKET = 512


def overlapping() -> cw.Machine:
    """The Delta with sends that do not block: links carry a message while the next is copied.

    So the paper explains its Fig 5 (§2.2).  We assume that all of the links' time overlaps.
    """
    costs = [(n, BLOCKING.message(n)) for n in (1, PACKET, 32 * PACKET)]
    gaps = [(n, cost.gap - n * DELTA.machine.beta, cost.latency) for n, cost in costs]
    return measured([[(n, gap, latency / gap) for n, gap, latency in gaps]])


@cache
def curve(blocking: bool = True) -> tuple[Fit, ...]:
    """λ and t0 of the simulated Delta for each of SIZES, by both experiments of the paper."""
    campaign = SizeCampaign(9, sizes=SIZES, modes=(blocking,), repetitions=6)
    return SimulatedProber(overlapping(), blocking=BLOCKING).conduct(campaign).fits


@cache
def broadcast_s(alpha: Fraction, nbytes: int, orders: tuple[tuple[int, ...], ...]) -> float:
    """Seconds of the α-broadcast on an 8 × 8 mesh where messages wait for links.

    alpha: the share of its ranks that a source keeps.   orders: for each order, the node of each
    rank; the result is the mean over all orders.
    """
    schedule = cw.ALGORITHMS["broadcast/alpha"].schedule(64, nbytes, alpha=alpha)
    return mean(
        cw.simulate(schedule, DELTA.machine, cw.topology.Embedded(MESH, order)).completion_s
        for order in orders
    )


def waiting(lam: Fraction | int, nbytes: int, order: tuple[int, ...]) -> int:
    """How many messages of the λ-tree wait for a link.   order: the node of each rank."""
    schedule = cw.ALGORITHMS["broadcast/postal_tree"].schedule(64, nbytes, lam=lam)
    trace = cw.simulate(schedule, DELTA.machine, cw.topology.Embedded(MESH, order))
    return sum(passage.start > passage.ready for passage in trace.passages)


def sweep(nbytes: int, orders: tuple[tuple[int, ...], ...] = ORDERS) -> dict[float, float]:
    """Milliseconds of the α-broadcast, for α from 0.5 to 0.74, as `broadcast_s` simulates it."""
    return {x / 100: 1e3 * broadcast_s(Fraction(x, 100), nbytes, orders) for x in range(50, 76, 2)}


def model_sweep(nbytes: int) -> dict[float, float]:
    """Milliseconds of the α-broadcast, by α, in the postal model, where nothing waits for links."""
    algorithm = cw.ALGORITHMS["broadcast/alpha"]
    return {
        x / 100: 1e3 * float(algorithm.predict(BLOCKING, 64, nbytes, alpha=Fraction(x, 100)))
        for x in range(50, 76, 2)
    }


def best(times: dict[float, float]) -> float:
    """The α with the least time.   times: by α."""
    return min(times, key=times.__getitem__)


def gain(times: dict[float, float]) -> float:
    """Percent of time that the best α saves over the binomial tree (α = ½).   times: by α."""
    return 100 * (1 - min(times.values()) / times[0.5])
