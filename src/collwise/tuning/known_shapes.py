"""Names what a library's collective does after one of our algorithms that does the same.

Trees are compared by shape, wherever the ranks are in them.  Expressions are compared with their
ranks.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache, reduce
from itertools import accumulate
from typing import TypeAlias

from collwise.algorithms.registry import Rough, algorithms_for, describe
from collwise.model.machine import Machine
from collwise.mpi.library.fingerprints import ELEMENT, sided
from collwise.schedule.operations import Recv
from collwise.schedule.program import Schedule
from collwise.verifier.contributions import expressions_of

Parents: TypeAlias = Sequence[int | None]
"""For each rank, the rank that it receives from; None for the root."""
MOST_RANKS = 32
"""The most ranks for which all algorithms that combine are examined; beyond, only `usual` ones."""
_SHAPING = ("k", "radix", "lam")
"""Settings that determine the shape; algorithms with others, except segments, get no names."""
_BINOMIAL = ("knomial(k=2)", "binomial")
"""Our name of the binomial tree, and its replacement: the usual name in libraries."""


@cache
def known_trees(ranks: int) -> dict[str, Parents]:
    """Broadcast trees by name, the best-known algorithm first."""
    trees: dict[str, Parents] = {}
    for name, schedule in _schedules("broadcast", ranks):
        peers = [{op.peer for op in here if isinstance(op, Recv)} for here in schedule.lists]
        if all(len(here) < 2 for here in peers):
            trees[name] = [next(iter(here), None) for here in peers]
    return trees


@cache
def known_expressions(collective: str, ranks: int) -> dict[str, frozenset[str]]:
    """Maps an algorithm's name to the expressions of its results, with lower ranks on the left."""
    of_trees = {name: frozenset([_up(one)]) for name, one in known_trees(ranks).items()}
    of_schedules = {
        name: frozenset(sided(one) for here in expressions_of(schedule) for one in here)
        for name, schedule in _schedules(collective, ranks)
    }
    if collective == "reduce":
        return of_trees | of_schedules
    return of_schedules | {f"{name}, up to one rank": one for name, one in of_trees.items()}


def name_of_tree(parents: Parents) -> str:
    """The name of a tree, or a phrase on its depth and its largest number of children."""
    shape, known = tree_text(parents, numbered=False), known_trees(len(parents))
    same = (n for n, one in known.items() if tree_text(one, numbered=False) == shape)
    deep = max(accumulate((word == "(") - (word == ")") for word in shape))
    words = (
        f"a tree {deep} deep, of at most {max(map(parents.count, range(len(parents))))} children"
    )
    return next(same, words).replace(*_BINOMIAL)


def name_of_expressions(collective: str, ranks: int, fits: Callable[[frozenset[str]], bool]) -> str:
    """The names, joined by "or", of the first algorithm that fits and of all `usual` ones that fit.

    fits: whether an algorithm's expressions fit the observed call.   Empty if no algorithm fits.
    """
    known = known_expressions(collective, ranks)
    fitting = [name for name, expressions in known.items() if fits(expressions)]
    usual = {one.short_name for one in algorithms_for(collective) if one.usual}
    names = fitting[:1] + [name for name in fitting if name in usual]
    return " or ".join(dict.fromkeys(names)).replace(*_BINOMIAL)


def tree_text(parents: Parents, *, numbered: bool = True) -> str:
    """A tree as text: "0(1 2(3))" if 0 sends to 1 and 2, and 2 to 3.

    numbered: False for the shape alone, with a dot for each rank and children sorted.
    """

    def text(rank: int) -> str:
        below = [text(child) for child, parent in enumerate(parents) if parent == rank]
        brackets = f"({' '.join(below if numbered else sorted(below))})" * bool(below)
        return (str(rank) if numbered else ".") + brackets

    return text(parents.index(None))


def _up(parents: Parents) -> str:
    """The expression of a reduce up a tree whose ranks combine their children in order."""

    def text(rank: int) -> str:
        below = [text(child) for child, parent in enumerate(parents) if parent == rank]
        return reduce(lambda left, right: f"({left} {right})", below, str(rank))

    return sided(text(parents.index(None)))


def _schedules(collective: str, ranks: int) -> Iterator[tuple[str, Schedule]]:
    """Yield labels and schedules of our algorithms: usual ones first, then fewer settings first."""
    every = algorithms_for(collective, levels=False)
    named = [one for one in every if {*one.parameters} <= {*_SHAPING, "segment"}]
    done = set[str]()
    for algorithm in sorted(
        named, key=lambda one: (not one.usual, len(one.parameters), "lam" in one.parameters)
    ):
        if ranks > MOST_RANKS and algorithm.kind.combines and not algorithm.usual:
            continue
        problem = algorithm.problem(ranks, ranks * ELEMENT, itemsize=ELEMENT)
        for lam in (1, 2, 4):
            for choice in algorithm.choices(problem, Machine.postal(t0_s=1, lam=lam)):
                settings = choice.settings if isinstance(choice, Rough) else choice
                shaping = {name: value for name, value in settings.items() if name in _SHAPING}
                label = describe(algorithm.short_name, shaping)
                if label not in done:
                    done.add(label)
                    yield label, algorithm.solve(problem, settings)
