"""What all broadcasts down a tree share: the program, its exact time, the choice of a segment."""

from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cache
from typing import Any, TypeAlias

from collwise.algorithms.registry import Algorithm, Settings, integer, register
from collwise.model.machine import Cost, Machine
from collwise.schedule.data_movement import DownTree
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program
from collwise.schedule.trees import Shape, Tree

TreeOf: TypeAlias = Callable[[Problem, Settings], Tree]
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
    if count == 0:
        return _one(tree, last)
    return _many(tree, count, full, last)


def _one(tree: Tree, cost: Cost) -> Fraction:
    @cache
    def below(shape: Shape) -> Fraction:
        return max(
            (
                c * cost.gap + cost.latency + below(s)
                for c, s in enumerate(tree.child_shapes(shape))
            ),
            default=Fraction(0),
        )

    return below(tree.root_shape)


def _many(tree: Tree, count: int, full: Cost, last: Cost) -> Fraction:
    @cache
    def below(shape: Shape, period: Fraction, lag: Fraction) -> Fraction:
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

    return below(tree.root_shape, Fraction(0), Fraction(0))


def segment_choices(
    time: Callable[[int], Fraction], problem: Problem, machine: Machine
) -> Iterable[Settings]:
    """The best segment by the model: powers of two times 1, 1¼, 1½, 1¾, and where laws bend.

    time: the predicted time of a segment length.  None where no segmenting helps.
    """
    steps = {quarter << k >> 2 for k in range(8, 40) for quarter in (4, 5, 6, 7)}
    lengths = sorted(n for n in steps | set(machine.sizes()) if n < problem.nbytes)
    lengths = [n for n in lengths if problem.nbytes <= n * LARGEST_COUNT]
    if not lengths or problem.ranks == 1:
        return []
    return [{"segment": min(lengths, key=time)}]


LARGEST_COUNT = 4096
"""More segments than this are never worth the room that a compiled plan takes."""
