"""Reduce up a tree: the time-reverse of a broadcast down it.

The λ-tree is optimal in the postal model, as its broadcast is; the binomial tree is what most MPI
libraries use for short vectors, and approach 1 of [vandeGeijn1991] §5.
"""

from collwise.algorithms.broadcast import binomial, postal_tree
from collwise.algorithms.reductions import from_root_on, unless_alone, up_tree, up_tree_time
from collwise.algorithms.registry import Algorithm, register
from collwise.schedule.trees import Part, SplitTree


def everybody(ranks: int) -> SplitTree:
    """The flat tree, as a tree of intervals: what comes in is in the order of the ranks."""
    return SplitTree(lambda part: (Part(part.size - 1), Part(1)), Part(ranks))


register(
    Algorithm(
        name="reduce/binomial",
        summary="binomial tree, upwards: the ranks that still have a part halve in every step",
        source=("vandeGeijn1991 §5", "Bruck1996 §2.1"),
        time="the binomial broadcast's, and combining on the way",
        build=unless_alone(lambda problem, _: up_tree(binomial.tree(problem.ranks), problem)),
        predicted=lambda problem, machine, _: up_tree_time(
            binomial.tree(problem.ranks), problem.nbytes, machine
        ),
        order=from_root_on,
    )
)
register(
    Algorithm(
        name="reduce/flat",
        summary="flat tree: every rank sends its vector to the root itself",
        source=("BarNoyKipnis1994",),
        time="(p − 2 + λ)·t0, and combining at the root",
        build=unless_alone(lambda problem, _: up_tree(everybody(problem.ranks), problem)),
        predicted=lambda problem, machine, _: up_tree_time(
            everybody(problem.ranks), problem.nbytes, machine
        ),
        order=from_root_on,
    )
)
register(
    Algorithm(
        name="reduce/postal_tree",
        summary="λ-tree, upwards; optimal in the postal model",
        source=("BarNoyKipnis1994", "Bruck1996 §2.3"),
        time="T_λ(p)·t0, and combining on the way",
        build=unless_alone(
            lambda problem, settings: up_tree(
                postal_tree.tree(problem.ranks, settings["lam"]), problem
            )
        ),
        predicted=lambda problem, machine, settings: up_tree_time(
            postal_tree.tree(problem.ranks, settings["lam"]), problem.nbytes, machine
        ),
        choices=postal_tree.at_machine,
        parameters={"lam": postal_tree.LAM},
        order=from_root_on,
    )
)
