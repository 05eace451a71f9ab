"""Vectors combined up a tree segment by segment: the times of all ranks in waves.  Exact.

A rank takes a segment two waves after the one before, and its parent takes each one wave after it:
by then its children have what it waits for, and its parent has taken its last segment.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from collwise.model.machine import Machine
from collwise.schedule.reduction import UpTree
from collwise.schedule.trees import Tree
from collwise.system.integers import Ints
from collwise.timing.port_queues import LARGEST
from collwise.timing.vectorised_laws import Ticks, in_ticks


class PipelinedTimes(NamedTuple):
    """Per message (segment after segment, child after child) and per virtual rank, in ticks."""

    start: Ticks
    sent: Ticks
    received: Ticks
    finish: Ticks
    unit: Fraction


class _Family(NamedTuple):
    """The children that are heard in one turn, by the depth of their parents."""

    children: Ints
    parents: Ints
    depths: Ints


def _depths(parent: Ints) -> Ints:
    """How far each rank is from rank 0."""
    above = np.append(0, parent)
    depth = (np.arange(len(above)) > 0).astype(np.int64)
    while above.any():
        depth += depth[above]
        above = above[above]
    return depth


def steps(program: UpTree) -> int:
    """How many times some array operations are made for all times of a reduce in segments."""
    parent = program.tree.edges().parent
    count = -(-program.nbytes // (program.segment or program.nbytes))
    waves = 2 * (count - 1) + int(_depths(parent).max())
    return waves * int(np.bincount(parent).max(initial=0))


def heights(tree: Tree) -> list[int]:
    """How deep each of the trees under the root's children is."""
    parents, height = tree.edges().parent.tolist(), [0] * tree.size
    for rank in range(tree.size - 1, 0, -1):  # parents come before their children
        parent = parents[rank - 1]
        height[parent] = max(height[parent], height[rank] + 1)
    return [height[rank] for rank, parent in enumerate(parents, 1) if not parent]


def least(nbytes: int, machine: Machine, children: list[int], segment: int) -> Fraction:
    """Seconds that a reduce up a tree takes at least; 0 where messages delay each other elsewhere.

    children: the `heights` of the tree.   The last segment leaves the deepest rank after all
    others, and then has to go all the way.  The root receives all segments of all children, after
    the first one's way.
    """
    if not machine.independent_ports:
        return Fraction(0)
    count, rest = -(-nbytes // segment), nbytes % segment or segment
    (gap, latency), (last_gap, last_latency) = machine.message(segment), machine.message(rest)
    combine, last_combine = (machine.combine(n) or Fraction(0) for n in (segment, rest))
    deepest = (count - 1) * gap + (max(children) + 1) * (last_latency + last_combine)
    each = (count - 1) * (gap + combine) + last_gap + last_combine
    first = min(latency - gap, last_latency - last_gap)
    if count > 1:
        first += min(children) * (latency + combine)
    return max(deepest, len(children) * each + first)


def after_first(nbytes: int, machine: Machine, children: int, segment: int) -> Fraction:
    """Seconds at least for which the root of so many children receives after the first segment."""
    count, rest = -(-nbytes // segment), nbytes % segment or segment
    each, last = (machine.message(n).gap + (machine.combine(n) or 0) for n in (segment, rest))
    return children * ((count - 2) * each + last) if count > 1 else Fraction(0)


def pipelined_times(program: UpTree, machine: Machine) -> PipelinedTimes:
    """The ideal times on a machine with independent ports; of two ranks and a byte, or more."""
    parent, place = program.tree.edges()
    ranks, segment = len(parent) + 1, min(program.segment or program.nbytes, program.nbytes)
    count, rest = -(-program.nbytes // segment), program.nbytes % segment or segment
    ports = machine.combine(1) is not None
    rows = [(*machine.message(n), machine.combine(n) or Fraction(0)) for n in (segment, rest)]
    costs, unit = in_ticks(rows)
    fits = count * ranks * sum(map(max, costs)) <= LARGEST
    kind = np.dtype(np.int64 if fits else object)
    gaps, latencies, adding = (np.array(column, kind) for column in costs)

    depth = _depths(parent)
    high = int(depth.max())
    families = _families(parent, place, depth)
    held, send_free = np.zeros(ranks, kind), np.zeros(ranks, kind)
    receive_free = np.full(ranks, -1, kind)
    start, sent, received = (np.zeros((count, ranks - 1), kind) for _ in range(3))
    for wave in range(2 * (count - 1) + high):
        lowest = high - 1 - wave  # the parents of this depth take the first segment
        last = lowest + 2 * (count - 1)
        for turn, family in enumerate(families[lowest % 2]):
            low, end = np.searchsorted(family.depths, (lowest, last + 1))
            if low == end:
                break
            child, above = family.children[low:end], family.parents[low:end]
            levels = family.depths[low:end]
            which = (levels == last).astype(np.int64)
            begun, free = np.maximum(held[child], send_free[child]), receive_free[above]
            if machine.law == "hockney":
                begun = np.maximum(begun, free)
            there = begun + latencies[which]
            if machine.law != "hockney":
                there = np.where(free >= 0, np.maximum(there, free + gaps[which]), there)
            message = (levels - lowest) // 2, child - 1
            start[message], received[message] = begun, there
            send_free[child] = sent[message] = begun + gaps[which]
            receive_free[above] = there
            if ports:
                there = np.maximum(there, send_free[above]) + adding[which]
                send_free[above] = receive_free[above] = there
            held[above] = np.maximum(there, held[above]) if turn else there
    finish = np.maximum(np.maximum(send_free, receive_free), held)
    return PipelinedTimes(start.ravel(), sent.ravel(), received.ravel(), finish, unit)


def _families(parent: Ints, place: Ints, depth: Ints) -> Sequence[list[_Family]]:
    """By the parity of the parents' depth, and by turn: who is served last is heard first."""
    turns = np.bincount(parent)[parent] - 1 - place
    order = np.lexsort((depth[parent], turns))
    found: tuple[list[_Family], list[_Family]] = [], []
    for edges in np.split(order, np.flatnonzero(np.diff(turns[order])) + 1):
        for parity, among in enumerate(found):
            here = edges[depth[parent[edges]] % 2 == parity]
            among.append(_Family(here + 1, parent[here], depth[parent[here]]))
    return found
