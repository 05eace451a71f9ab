"""What all broadcasts down a tree share: the program, its exact time, the choice of a segment."""

from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cache
from math import lcm
from typing import Any, NamedTuple, TypeAlias

from collwise.algorithms.registry import Algorithm, Settings, integer, register
from collwise.model.machine import Machine
from collwise.schedule.data_movement import DownTree
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program
from collwise.schedule.trees import Shape, Tree

TreeOf: TypeAlias = Callable[[Problem, Settings], Tree]
TREES: dict[str, TreeOf] = {}
"""By the names of their algorithms, the trees of broadcasts in one message."""
SEGMENT = integer("segment", 1, "the bytes in a segment, an integer of at least 1")


def register_tree(name: str, summary: str, time: str, tree: TreeOf, **more: Any) -> Algorithm:
    """Register a broadcast down a tree, in segments if it has the parameter `segment`.

    more: other fields of `Algorithm`.   predicted, if not among them: by `tree_time`.
    """

    def predicted(problem: Problem, machine: Machine, settings: Settings) -> Fraction:
        segment = settings.get("segment")
        return tree_time(tree(problem, settings), problem.nbytes, machine, segment)

    def build(problem: Problem, settings: Settings) -> Program:
        return DownTree(tree(problem, settings), problem.nbytes, settings.get("segment"))

    facts: dict[str, Any] = {"build": build, "predicted": predicted, **more}
    facts["segmented"] = "segment" in facts.get("parameters", {})
    if not facts["segmented"]:
        TREES[name] = tree
    return register(Algorithm(name=f"broadcast/{name}", summary=summary, time=time, **facts))


def tree_time(tree: Tree, nbytes: int, machine: Machine, segment: int | None = None) -> Fraction:
    """Exact time of a `DownTree` in seconds, by a recurrence over the shapes of the subtrees.

    A rank that gets its segments every P seconds and serves d children passes them on every
    max(P, d·t0) seconds; only the last, shorter segment is followed one by one.  Exact on every
    machine with independent ports.  Cost: a few steps for every *different* subtree.
    """
    count, rest = divmod(nbytes, segment or nbytes)
    full, last = machine.message(segment or nbytes), machine.message(rest)
    if not rest:
        count, last = count - 1, full  # `count` full segments come before the last one
    grid = lcm(*(x.denominator for x in (*full, *last)))  # integers are ten times as fast
    first, end = (_Ticks(*(int(x * grid) for x in cost)) for cost in (full, last))
    time = _one(tree, end) if count == 0 else _many(tree, count, first, end)
    return Fraction(time, grid)


class _Ticks(NamedTuple):
    """A message's cost on a common grid."""

    gap: int
    latency: int


def _one(tree: Tree, cost: _Ticks) -> int:
    @cache
    def below(shape: Shape) -> int:
        children = enumerate(tree.child_shapes(shape))
        return max((c * cost.gap + cost.latency + below(s) for c, s in children), default=0)

    return below(tree.root_shape)


def _many(tree: Tree, count: int, full: _Ticks, last: _Ticks) -> int:
    @cache
    def below(shape: Shape, period: int, lag: int) -> int:
        """Time until the subtree has everything, from when its root has the last full segment.

        period: between full segments as they come in.  lag: from the last full one to the last.
        """
        children = tree.child_shapes(shape)
        busy = len(children) * full.gap
        slower = max(period, busy)
        begin = (count - 1) * (slower - period)  # when the last full segment starts on its way
        start = max(lag, begin + busy)  # when the last segment does
        times = [lag]
        for c, child in enumerate(children):
            here = begin + c * full.gap + full.latency
            end = max(start + c * last.gap + last.latency, here + last.gap)
            times.append(here + below(child, slower, end - here))
        return max(times)

    return below(tree.root_shape, 0, 0)


def segment_choices(
    time: Callable[[int], Fraction], problem: Problem, machine: Machine
) -> Iterable[Settings]:
    """The best segment by the model: powers of two times 1, 1¼, 1½, 1¾, and where laws bend.

    time: the predicted time of a segment length.  None where no segmenting helps.
    """

    def worth(lengths: Iterable[int]) -> set[int]:
        return {n for n in lengths if n < problem.nbytes <= n * LARGEST_COUNT}

    coarse = worth({1 << k for k in range(40)} | set(machine.sizes()))
    if not coarse or problem.ranks == 1:
        return []
    timed = {n: time(n) for n in sorted(coarse)}
    first = min(timed, key=timed.__getitem__)
    power = 1 << first.bit_length() - 1
    for n in sorted(worth(power * eighths // 8 for eighths in (4, 5, 6, 7, 8, 10, 12, 14))):
        timed.setdefault(n, time(n))
    return [{"segment": min(sorted(timed), key=timed.__getitem__)}]


LARGEST_COUNT = 4096
"""More segments than this are never worth the room that a compiled plan takes."""
