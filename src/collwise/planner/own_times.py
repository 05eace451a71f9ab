"""Predicts those of the MPI library's own algorithms that are constructed like one of ours.

`OURS` says which these are.  An algorithm that is not there, or not on these ranks or with these
settings, has no prediction.  That says only that no schedule of ours stands for it, not that it is
slow: it is raced like the others, after those with a prediction.
"""

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

from collwise.algorithms.registry import ALGORITHMS, describe
from collwise.errors import CollwiseError
from collwise.model.limits import RUNNERS_UP
from collwise.planner.candidates import predicted
from collwise.planner.plans import Plan
from collwise.schedule.problem import Problem
from collwise.timing.trace import messages_played

InForce: TypeAlias = Mapping[str, int]
"""The library's settings of an algorithm, such as k, by our names of them."""
_LATER = re.compile("^(sched|tsp)_")
"""The prefixes of MPICH's names of algorithms for non-blocking and persistent calls."""


class Ours(NamedTuple):
    """Our algorithm that one of the library's own is, by its short name.

    settings: returns our algorithm's settings for a problem and the library's settings; None where
    the library's algorithm is another one.
    """

    name: str
    settings: Callable[[Problem, InForce], dict[str, Any] | None]


def _always(problem: Problem, own: InForce) -> dict[str, Any] | None:
    return {} if not own.get("segment") else None


def _power_of_two(problem: Problem, own: InForce) -> dict[str, Any] | None:
    return _always(problem, own) if problem.ranks.bit_count() == 1 else None


def _one_level(problem: Problem, own: InForce) -> dict[str, Any] | None:
    """Where nodes matter the two differ, since ranks meet others in another order."""
    return _always(problem, own) if problem.placement is None else None


def _halving(problem: Problem, own: InForce) -> dict[str, Any] | None:
    return _one_level(problem, own) if problem.ranks.bit_count() == 1 else None


def _two(problem: Problem, own: InForce) -> dict[str, Any] | None:
    """Our algorithm has no radix: that of the library is 2."""
    return {} if own.get("k", 2) == 2 else None


def _in_segments(problem: Problem, own: InForce) -> dict[str, Any] | None:
    segment = own.get("segment", 0)
    return {"segment": segment if segment > 0 else max(problem.nbytes, 1)}


def _tree(problem: Problem, own: InForce) -> dict[str, Any] | None:
    return {"k": own["k"]} if "k" in own and not own.get("segment") else None


def _power_of_k(problem: Problem, own: InForce) -> dict[str, Any] | None:
    if own.get("k", 0) < 2:  # a job may have set it to anything
        return None
    left = problem.ranks
    while left % own["k"] == 0:
        left //= own["k"]
    return {"radix": own["k"]} if left == 1 else None


OURS: Mapping[str, Mapping[str, Mapping[str, Ours]]] = {
    "MPICH": {
        "Bcast": {
            "binomial": Ours("knomial", lambda problem, own: {"k": 2}),
            "ring": Ours("chain_segmented", _in_segments),
            "scatter_recursive_doubling_allgather": Ours("scatter_allgather", _power_of_two),
            "scatter_ring_allgather": Ours("scatter_ring", _power_of_two),
        },
        "Reduce": {
            "binomial": Ours("binomial", _power_of_two),
            "reduce_scatter_gather": Ours("halving_gather", _power_of_two),
            "ring": Ours("chain_segmented", _in_segments),
        },
        "Allreduce": {
            "recursive_doubling": Ours("recursive_doubling", _always),
            "recursive_multiplying": Ours("recursive_multiplying", _power_of_k),
            "recexch": Ours("recursive_multiplying", _power_of_k),
            "recexch_single_buffer": Ours("recursive_multiplying", _power_of_k),
            "recexch_multiple_buffer": Ours("recursive_multiplying", _power_of_k),
            "reduce_scatter_allgather": Ours("halving_doubling", _always),
            "ring": Ours("ring", _always),
        },
        "Reduce_scatter_block": {
            "pairwise": Ours("pairwise", _always),
            "recursive_halving": Ours("recursive_halving", _halving),
        },
        "Allgather": {
            "brucks": Ours("bruck", _two),
            "k_brucks": Ours("bruck", _two),
            "recursive_doubling": Ours("recursive_doubling", _power_of_two),
            "ring": Ours("ring", _always),
        },
        "Allgatherv": {
            "brucks": Ours("bruck", _two),
            "recursive_doubling": Ours("recursive_doubling", _power_of_two),
            "ring": Ours("ring", _always),
        },
    },
    "Open MPI": {
        "Bcast": {
            "basic_linear": Ours("flat", _always),
            "linear": Ours("flat", _always),
            "pipeline": Ours("chain_segmented", _in_segments),
            "binomial": Ours("binomial", _one_level),
            "knomial": Ours("knomial", _tree),
            "scatter_allgather": Ours("scatter_allgather", _power_of_two),
            "scatter_allgather_ring": Ours("scatter_ring", _power_of_two),
        },
        "Reduce": {
            "linear": Ours("flat", _always),
            "pipeline": Ours("chain_segmented", _in_segments),
            "binomial": Ours("binomial", _power_of_two),
            "rabenseifner": Ours("halving_gather", _power_of_two),
        },
        "Allreduce": {
            "basic_linear": Ours("flat", _always),
            "binomial": Ours("reduce_broadcast", _power_of_two),
            "recursive_doubling": Ours("recursive_doubling", _always),
            "ring": Ours("ring", _always),
            "segmented_ring": Ours("ring", _always),
            "rabenseifner": Ours("halving_doubling", _always),
        },
        "Reduce_scatter_block": {
            "recursive_halving": Ours("recursive_halving", _halving),
        },
        "Allgather": {
            "bruck": Ours("bruck", _always),
            "recursive_doubling": Ours("recursive_doubling", _power_of_two),
            "ring": Ours("ring", _always),
        },
    },
}
"""Which of our algorithms a library's own is: by library, MPI method and the library's name.

MPICH's names stand here without the prefix of non-blocking calls.  The messages are the same, but a
rank may serve its children in another order, and libraries collect scattered pieces anew even where
a rank had them.  Not here are MPICH's trees, since their kind is chosen at launch and is no
integer, and algorithms unlike all of ours.
"""


def ours_of(
    library: str, method: str, name: str, problem: Problem, own: InForce
) -> tuple[str, Any] | None:
    """The full name and the settings of our algorithm that a library's own is; None without one.

    method: the MPI method, such as "Bcast".   name: the library's name of the algorithm.
    own: its settings in force.
    """
    known = OURS.get(library, {}).get(method, {}).get(_LATER.sub("", name))
    settings = None if known is None else known.settings(problem, own)
    if known is None or settings is None:
        return None
    return f"{problem.collective}/{known.name}", settings


def predicted_own(
    estimated: Plan, library: str, method: str, name: str, own: InForce
) -> Fraction | None:
    """The predicted seconds of one of the library's own algorithms; None without a prediction.

    The time is that of the plan's candidate, or is simulated if that takes few messages.
    estimated: a plan of the problem.   The others are as `ours_of` takes them.
    """
    problem, machine, net = estimated.problem, estimated.machine, estimated.topology
    if (found := ours_of(library, method, name, problem, own)) is None:
        return None
    for candidate in estimated.candidates:
        if candidate.label == describe(*found):
            return candidate.predicted
    algorithm, settings = ALGORITHMS[found[0]], found[1]
    try:
        if messages_played(algorithm.solve(problem, settings), machine, net) > RUNNERS_UP:
            return None
        return predicted(algorithm, problem, machine, settings, net)
    except CollwiseError:  # it does not apply, or its schedule has too many messages
        return None
