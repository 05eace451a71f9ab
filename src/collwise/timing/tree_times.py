"""Computes the time of a broadcast down a tree, or a reduce up a tree, for up to 10^6 ranks.

A recurrence goes over the shapes of subtrees.  Subtrees of one shape take the same time, and most
trees have few shapes.  Tests check that the event loop gives the same times.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from math import lcm
from typing import NamedTuple, TypeVar

from collwise.model.machine import Machine
from collwise.schedule.combinators import Then
from collwise.schedule.data_movement import DownTree
from collwise.schedule.program import Program
from collwise.schedule.reduction import UpTree
from collwise.schedule.trees import Shape, Tree


def tree_completion(program: Program, machine: Machine) -> Fraction | None:
    """Exact seconds of a tree program, on a machine where only ranks' own ports delay messages.

    A tree program is a broadcast down a tree, a reduce of whole vectors up a tree, or such a reduce
    and then a broadcast.  Returns None for other programs.
    """
    if (trees := trees_of(program)) is None:
        return None
    times = (
        tree_time(part.tree, part.nbytes, machine, part.segment)
        if isinstance(part, DownTree)
        else up_tree_time(part.tree, part.nbytes, machine)
        for part in trees
    )
    return sum(times, Fraction(0))


def about_shapes(program: Program) -> int | None:
    """Estimated number of shapes that `tree_completion` visits; None for other programs."""
    trees = trees_of(program)
    return None if trees is None else sum(part.tree.about_shapes() for part in trees)


def trees_of(program: Program) -> Sequence[UpTree | DownTree] | None:
    """The parts of a tree program, up and down trees, in order; None for other programs."""
    match program.parts if isinstance(program, Then) else (program,):
        case [DownTree() as down]:
            return [down]
        case [UpTree() as up] if up.is_whole():
            return [up]
        case [UpTree() as up, DownTree() as down] if up.is_whole():
            return [up, down]
    return None


class _Ticks(NamedTuple):
    """The gap and latency of a message in ticks, a unit in which all costs are integers."""

    gap: int
    latency: int


def tree_time(tree: Tree, nbytes: int, machine: Machine, segment: int | None = None) -> Fraction:
    """Exact seconds to send `nbytes` down a tree, in segments of `segment` bytes if given.

    A rank that gets a segment every P seconds, and serves d children, sends one to each child every
    max(P, d·t0) seconds.  Only the last segment, which may be shorter, is followed on its own.
    """
    if not nbytes or tree.size == 1:
        return Fraction(0)
    count, rest = divmod(nbytes, segment or nbytes)
    full, last = machine.message(segment or nbytes), machine.message(rest)
    if not rest:
        count, last = count - 1, full  # `count` full segments precede the last one
    grid = lcm(*(x.denominator for x in (*full, *last)))  # integers are ten times as fast
    first, end = (_Ticks(*(int(x * grid) for x in cost)) for cost in (full, last))
    time = _one_message(tree, end) if count == 0 else _segments(tree, count, first, end)
    return Fraction(time, grid)


Node = TypeVar("Node")
Value = TypeVar("Value")


def _from_leaves(
    root: Node,
    below: Callable[[Node], Sequence[Node]],
    value: Callable[[Node, Sequence[Value]], Value],
) -> Value:
    """The value of `root`, computed from the leaves up; each distinct node is visited once.

    below: gives the children of a node.   value: gives a node's value from the node and its
    children's values.   The function does not call itself: a chain of p ranks is p nodes deep.
    """
    known: dict[Node, Value] = {}
    children: dict[Node, Sequence[Node]] = {}
    todo = [root]
    while todo:
        node = todo[-1]
        if node not in children:
            children[node] = below(node)
            todo += [child for child in set(children[node]) if child not in known]
            continue
        todo.pop()
        if node not in known:
            known[node] = value(node, [known[child] for child in children[node]])
    return known[root]


def depth(tree: Tree) -> int:
    """Number of messages, one after another, from the root to the rank that is farthest away."""

    def value(_: Shape, depths: Sequence[int]) -> int:
        return max(depths, default=-1) + 1

    return _from_leaves(tree.root_shape, tree.child_shapes, value)


def _one_message(tree: Tree, cost: _Ticks) -> int:
    """Ticks until all ranks have received a message that is sent down the tree."""

    def value(_: Shape, times: Sequence[int]) -> int:
        return max((c * cost.gap + cost.latency + t for c, t in enumerate(times)), default=0)

    return _from_leaves(tree.root_shape, tree.child_shapes, value)


class _Stream(NamedTuple):
    """The segments that the root of a subtree receives.

    period: ticks between full segments.   lag: ticks from the last of these to the final segment.
    """

    shape: Shape
    period: int
    lag: int


def _segments(tree: Tree, count: int, full: _Ticks, last: _Ticks) -> int:
    """Ticks until all ranks have received the last segment, which follows `count` full ones.

    full, last: costs of a full segment and of the last one.
    """

    def starts(stream: _Stream) -> list[tuple[int, _Stream]]:
        """For each child of the subtree's root: a delay in ticks, and the child's stream.

        The delay runs from the root's receipt of the last full segment to the child's.
        """
        children = tree.child_shapes(stream.shape)
        busy = len(children) * full.gap
        slower = max(stream.period, busy)
        # When the last full segment, and when the last segment, is first sent on:
        begin = (count - 1) * (slower - stream.period)
        start = max(stream.lag, begin + busy)
        streams = []
        for c, child in enumerate(children):
            here = begin + c * full.gap + full.latency
            end = max(start + c * last.gap + last.latency, here + last.gap)
            streams.append((here, _Stream(child, slower, end - here)))
        return streams

    def below(stream: _Stream) -> list[_Stream]:
        return [child for _, child in starts(stream)]

    def value(stream: _Stream, times: Sequence[int]) -> int:
        at = [here for here, _ in starts(stream)]
        return max([stream.lag, *(a + t for a, t in zip(at, times, strict=True))])

    return _from_leaves(_Stream(tree.root_shape, 0, 0), below, value)


SIMULATED = 3
"""Times of programs with SIMULATED and SIMULATED + 1 segments are extrapolated to more segments."""


def with_few_segments(program: DownTree | UpTree) -> list[DownTree | UpTree]:
    """Programs with few segments, to extrapolate the time of a program with many.

    One has SIMULATED segments, and one has a segment more; all segments are full.  A program of at
    most SIMULATED segments is returned itself, as the only one.
    """
    segment = program.segment or program.nbytes
    if program.nbytes <= SIMULATED * segment:
        return [program]
    return [replace(program, nbytes=(SIMULATED + more) * segment) for more in (0, 1)]


def time_by_pace(
    program: DownTree | UpTree, time: Callable[[DownTree | UpTree], Fraction]
) -> Fraction:
    """The seconds of a program with many segments, extrapolated from programs with few segments.

    Each further segment adds as much time as the last simulated one.   time: returns the seconds of
    a program with few segments.
    """
    first, *longer = map(time, with_few_segments(program))
    segments = -(-program.nbytes // (program.segment or program.nbytes or 1))
    return first + sum(more - first for more in longer) * (segments - SIMULATED)


def up_tree_time(tree: Tree, nbytes: int, machine: Machine) -> Fraction:
    """Exact seconds to combine whole vectors up a tree.

    A rank receives from its last child first, and combines each vector as it arrives.
    """
    if not nbytes:
        return Fraction(0)
    cost, combine = machine.message(nbytes), machine.combine(nbytes) or Fraction(0)

    def value(_: Shape, times: Sequence[Fraction]) -> Fraction:
        """When the root of a subtree has combined all vectors of the subtree, in seconds."""
        free: Fraction | None = None  # when the root's last receive and combine ended
        for time in reversed(times):
            received = time + cost.latency
            free = received if free is None else max(received, free + cost.gap)
            free += combine
        return free or Fraction(0)

    return _from_leaves(tree.root_shape, tree.child_shapes, value)
