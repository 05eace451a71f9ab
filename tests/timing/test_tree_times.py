"""Times by the shapes of subtrees are those of the event loop."""

from random import Random

import pytest
from tests.algorithms.examples import MACHINES, settings_of
from tests.case import in_case

from collwise.algorithms import ALGORITHMS, Algorithm
from collwise.model.machine import Machine
from collwise.schedule.data_movement import DownTree
from collwise.schedule.program import Schedule
from collwise.schedule.reduction import UpTree
from collwise.schedule.trees import HeapTree
from collwise.timing import completion, ideal
from collwise.timing.tree_times import about_shapes, tree_completion, tree_time, up_tree_time


def schedule_of(algorithm: Algorithm, ranks: int, nbytes: int, segment: int) -> Schedule:
    settings = settings_of(algorithm, ranks, segment=segment, lam=(1, "9/5", 4)[ranks % 3])
    return algorithm.schedule(ranks, nbytes, **settings)


BY_SHAPES = [
    a
    for a in ALGORITHMS.values()
    if a.collective in ("broadcast", "reduce", "allreduce")
    and about_shapes(schedule_of(a, 9, 72, 100).program) is not None
]


def test_which_go_by_shapes() -> None:
    """Trees of broadcasts, of reduces in one message, and both one after the other."""
    kinds = {type(schedule_of(a, 9, 72, 100).program).__name__ for a in BY_SHAPES}
    assert {"DownTree", "UpTree"} < kinds
    assert "allreduce/reduce_broadcast" in {a.name for a in BY_SHAPES}
    segmented = ALGORITHMS["reduce/chain_segmented"].schedule(9, 72, segment=40)
    assert tree_completion(segmented.program, MACHINES[0]) is None


@pytest.mark.no_cover
@pytest.mark.parametrize("algorithm", BY_SHAPES, ids=lambda a: a.name)
def test_the_recurrence_and_the_loop(algorithm: Algorithm) -> None:
    random = Random(algorithm.name)
    for ranks in (1, 2, 3, 5, 8, 13, 27, 40, 65):
        nbytes = random.choice((0, 8, 64, 720))
        segment = random.choice((nbytes // 3 + 1, 40, 48, 1000))
        schedule = schedule_of(algorithm, ranks, nbytes, segment)
        for machine in random.sample(MACHINES, 4):
            with in_case(schedule.algorithm, ranks, nbytes, machine.describe()):
                time = ideal(schedule, machine).completion
                if about_shapes(schedule.program) is not None:
                    assert tree_completion(schedule.program, machine) == time
                assert completion(schedule, machine) == time
                if time:
                    assert completion(schedule, machine, None, time) == time
                    assert completion(schedule, machine, None, time * 9 / 10) is None


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
