"""Reduce up a tree to rank 0, then broadcast down the same tree: Version 1 of [vandeGeijn1991].

With the binomial tree it always takes d(α + nβ) longer than recursive doubling (Version 2); with
the λ-tree it is what is left where λ is high and the ranks must agree to the last bit.
"""

from fractions import Fraction

from collwise.algorithms.broadcast import binomial, postal_tree
from collwise.algorithms.broadcast.segmented_tree import down_tree, tree_time
from collwise.algorithms.reductions import unless_alone, up_tree, up_tree_time
from collwise.algorithms.registry import Algorithm, register
from collwise.model.machine import Machine
from collwise.schedule.data_movement import Chained
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program
from collwise.schedule.trees import Tree


def _up_and_down(tree: Tree, problem: Problem) -> Program:
    return Chained((up_tree(tree, problem), down_tree(tree, problem)), problem.ranks)


def _time(tree: Tree, problem: Problem, machine: Machine) -> Fraction:
    up = up_tree_time(tree, problem.nbytes, machine)
    return up + tree_time(tree, problem.nbytes, machine)


register(
    Algorithm(
        name="allreduce/reduce_broadcast",
        summary="binomial tree, upwards and then downwards",
        source=("vandeGeijn1991 §3.1",),
        time="2d(α + nβ) + dnγ for p = 2^d",
        build=unless_alone(lambda problem, _: _up_and_down(binomial.tree(problem.ranks), problem)),
        predicted=lambda problem, machine, _: _time(binomial.tree(problem.ranks), problem, machine),
    )
)
register(
    Algorithm(
        name="allreduce/postal_reduce_broadcast",
        summary="λ-tree, upwards and then downwards",
        source=("BarNoyKipnis1994", "Bruck1996 §2.3"),
        time="2·T_λ(p)·t0, and combining on the way",
        build=unless_alone(
            lambda problem, settings: _up_and_down(
                postal_tree.tree(problem.ranks, settings["lam"]), problem
            )
        ),
        predicted=lambda problem, machine, settings: _time(
            postal_tree.tree(problem.ranks, settings["lam"]), problem, machine
        ),
        choices=postal_tree.at_machine,
        parameters={"lam": postal_tree.LAM},
    )
)
