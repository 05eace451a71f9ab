"""Times by the shapes of subtrees are those of the event loop."""

import pytest
from tests.algorithms.examples import MACHINES, settings_of

from collwise.algorithms import ALGORITHMS
from collwise.model.machine import Machine
from collwise.schedule.data_movement import DownTree
from collwise.schedule.reduction import UpTree
from collwise.schedule.trees import HeapTree
from collwise.timing.tree_times import about_shapes, tree_completion, tree_time, up_tree_time


def test_which_go_by_shapes() -> None:
    """Trees of broadcasts, of reduces in one message, and both one after the other.

    What is predicted with shapes is compared with the loop in tests/algorithms/test_every_p.py.
    """
    for name in ("broadcast/binomial", "reduce/postal_tree", "allreduce/reduce_broadcast"):
        algorithm = ALGORITHMS[name]
        program = algorithm.schedule(9, 72, **settings_of(algorithm, 9)).program
        assert about_shapes(program) is not None
        assert tree_completion(program, MACHINES[0]) is not None
    segmented = ALGORITHMS["reduce/chain_segmented"].schedule(9, 72, segment=40)
    assert tree_completion(segmented.program, MACHINES[0]) is None


@pytest.mark.parametrize("degree", [1, 2])
def test_chains_of_thousands_of_ranks_are_no_deep_recursion(degree: int) -> None:
    machine, tree = Machine.postal(t0_s=1, lam=2), HeapTree(20_000, degree)
    down, up = tree_time(tree, 8, machine), up_tree_time(tree, 8, machine)
    assert tree_time(tree, 80, machine, 8) > down
    if degree == 1:
        assert down == up == 19_999 * 2
        assert tree_time(tree, 80, machine, 8) == 19_999 * 2 + 9
    assert tree_completion(DownTree(tree, 8, None), machine) == down
    assert tree_completion(UpTree(tree, 8), machine) == up
