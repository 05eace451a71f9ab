"""Chain: every rank passes the message on to the next, whole or in segments (a pipeline).

With short segments a byte costs as much as in a single transfer, however many ranks there are.
Nothing is better for very long messages on few ranks.
"""

from fractions import Fraction

from collwise.algorithms.broadcast.segmented_tree import SEGMENT, register_tree, segment_choices
from collwise.algorithms.registry import Settings
from collwise.model.machine import Machine
from collwise.schedule.problem import Problem
from collwise.schedule.trees import HeapTree


def tree(ranks: int) -> HeapTree:
    """0 → 1 → 2 → …"""
    return HeapTree(ranks, 1)


def _whole(problem: Problem, machine: Machine, _: Settings) -> Fraction:
    return (problem.ranks - 1) * machine.message(problem.nbytes).latency


def _segmented(problem: Problem, machine: Machine, settings: Settings) -> Fraction:
    hops = problem.ranks - 1
    segment: int = settings["segment"]
    count, rest = divmod(problem.nbytes, segment)
    full = machine.message(segment)
    last = machine.message(rest) if rest else full
    count -= not rest  # full segments before the last one
    if count <= 0:
        return _whole(problem, machine, settings)
    # Full segments arrive t0 apart; after one hop the last one is `lag` behind the one before.
    lag = max(full.gap + last.latency - full.latency, last.gap)
    for _ in range(hops - 1):
        before, lag = lag, max(max(lag, full.gap) + last.latency - full.latency, last.gap)
        if lag == before:
            break
    return hops * full.latency + (count - 1) * full.gap + lag


register_tree(
    "chain",
    "chain: every rank passes the whole message on to the next",
    "(p − 1)·λ·t0",
    lambda problem, _: tree(problem.ranks),
    source=("Desprez1993",),
    predicted=_whole,
)
register_tree(
    "chain_segmented",
    "pipelined chain: segments follow each other along the ranks",
    "((p − 1)·λ + k − 1)·t0 for k segments, t0 and λ those of a segment",
    lambda problem, _: tree(problem.ranks),
    source=("Desprez1993",),
    predicted=_segmented,
    choices=lambda problem, machine: segment_choices(
        lambda n: _segmented(problem, machine, {"segment": n}), problem, machine
    ),
    parameters={"segment": SEGMENT},
)
