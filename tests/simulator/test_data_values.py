"""Schedules run on real values give what NumPy gives."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from collwise.algorithms import Algorithm
from collwise.algorithms.registry import ALGORITHMS, algorithms_for
from collwise.errors import InvalidArgument, InvalidSchedule
from collwise.schedule.operations import Block, Combine, Copy, Operation, Recv, Send, Slot, scratch
from collwise.schedule.problem import Problem
from collwise.schedule.program import Schedule, Written
from collwise.simulator.data_values import values
from tests.algorithms.examples import root_of, roots, settings_of, sources_for

RANKS = (1, 2, 3, 5, 8)
Vector = NDArray[Any]


def outputs(algorithm: Algorithm, schedule: Schedule, found: list[Any]) -> list[Vector]:
    """The results that there are, where they are promised."""
    if algorithm.collective == "reduce":
        root = schedule.problem.root
        assert [r for r, vector in enumerate(found) if vector is not None] == [root]
        return [found[root]]
    return found


@pytest.mark.no_cover
@pytest.mark.parametrize("algorithm", ALGORITHMS.values(), ids=list(ALGORITHMS))
def test_every_algorithm_gives_what_numpy_gives(algorithm: Algorithm) -> None:
    for p in RANKS:
        settings, sources = settings_of(algorithm, p, segment=24), sources_for(algorithm, p)
        counts = (0, 1, p - 1, 2 * p + 1)
        for turn, count in enumerate(counts):
            if own_block := algorithm.kind.output == "own block":
                count *= p
            inputs = [np.arange(count, dtype=np.int64) ** 2 + 5 * rank for rank in range(p)]
            every = roots(algorithm, p)
            for root in {0, every[(turn + p) % len(every)]}:
                at = root_of(algorithm, root)
                schedule = algorithm.schedule(p, 8 * count, at, itemsize=8, **sources, **settings)
                if algorithm.kind.combines:
                    right = sum(inputs[1:], inputs[0])
                elif algorithm.kind.has_sources:
                    right = np.concatenate([inputs[rank] for rank in sorted(sources["sources"])])
                else:
                    right = inputs[at]
                results = outputs(algorithm, schedule, values(schedule, inputs))
                expected = np.split(right, p) if own_block else [right] * len(results)
                for vector, part in zip(results, expected, strict=True):
                    assert np.array_equal(vector, part), (p, count, root)


@pytest.mark.parametrize("algorithm", algorithms_for("allgatherv"), ids=lambda a: a.name)
def test_sources_may_give_different_lengths_or_nothing(algorithm: Algorithm) -> None:
    """The others' inputs do not matter; every rank ends with a copy of its own."""
    settings = settings_of(algorithm, 6)
    inputs = [None, np.array([1.5]), None, np.zeros(0), np.array([2.0, 3.0]), np.array([9.0])]
    sources, nbytes = [4, 1, 3], [16, 8, 0]
    schedule = algorithm.schedule(6, nbytes, itemsize=8, sources=sources, **settings)
    found = values(schedule, inputs)
    assert [vector.tolist() for vector in found if vector is not None] == 6 * [[1.5, 2.0, 3.0]]
    assert len({id(vector) for vector in found}) == 6


@pytest.mark.parametrize(
    ("inputs", "seen"),
    [
        ([np.zeros(2), None, None], "the input of rank 2 is none"),
        ([None, np.zeros(2), np.zeros(1)], "the input of rank 0 is none"),
        ([np.zeros(2), None, np.zeros(2)], "the input of rank 2 is one of 16 bytes"),
        ([np.zeros(1), None, np.zeros(1)], "the input of rank 0 is one of 8 bytes"),
        ([np.zeros(2), None, np.zeros(1, np.int64)], "elements of type float64, int64"),
        ([np.zeros(2), None], "2 inputs"),
    ],
)
def test_sources_that_do_not_give_what_was_said(inputs: list[Vector | None], seen: str) -> None:
    schedule = ALGORITHMS["allgatherv/ring"].schedule(3, [16, 8], itemsize=8, sources=[0, 2])
    with pytest.raises(InvalidArgument) as refusal:
        values(schedule, inputs)
    assert refusal.value.asked == "the values of allgatherv of 24 bytes from 2 to 3 ranks (1 × 3)"
    assert refusal.value.seen == seen


ALL = Block(0, 0, 8)


def reduction(*lists: list[Operation]) -> Schedule:
    return Schedule(Problem("reduce", len(lists), 8, itemsize=8), Written(tuple(map(tuple, lists))))


def test_lists_mean_what_they_say_in_list_order() -> None:
    # The send reads what was there before the combine, whenever it is done.
    schedule = reduction(
        [Recv(1, (ALL,), scratch(0)), Combine(Slot.INPUT, scratch(0), Slot.OUTPUT, (ALL,))],
        [
            Copy(Slot.INPUT, scratch(0), (ALL,)),
            Send(0, (ALL,), scratch(0)),
            Combine(Slot.INPUT, scratch(0), scratch(0), (ALL,)),
        ],
    )
    found = values(schedule, [np.array([1.0]), np.array([10.0])])
    assert found[0] == [11.0]
    assert found[1] is None
    assert values(schedule, [np.array([1.0]), np.array([10.0])], np.subtract)[0] == [-9.0]


def test_only_the_root_of_a_broadcast_gives_anything() -> None:
    schedule = ALGORITHMS["broadcast/binomial"].schedule(3, 2, 1)
    data = np.array([3, 4], np.uint8)
    found = values(schedule, [None, data, None])
    assert all(np.array_equal(vector, data) for vector in found if vector is not None)
    assert not any(vector is data for vector in found)


@pytest.mark.parametrize(
    "inputs",
    [
        [np.zeros(1)],
        [np.zeros(1), None],
        [np.zeros(1), np.zeros(2)],
        [np.zeros(1), np.zeros(1, np.int64)],
        [np.zeros(1, "c8"), np.zeros(2, np.float32)],
    ],
)
def test_inputs_that_do_not_fit_are_refused(inputs: list[Vector | None]) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        values(reduction([], []), inputs)
    assert "reduce" in str(refusal.value)
    assert "give" in refusal.value.remedy


def test_ranks_that_wait_for_each_other_are_found() -> None:
    both: list[Operation] = [Recv(1, (ALL,), scratch(0)), Send(1, (ALL,), scratch(0))]
    other: list[Operation] = [Recv(0, (ALL,), scratch(0)), Send(0, (ALL,), scratch(0))]
    with pytest.raises(InvalidSchedule) as refusal:
        values(reduction(both, other), [np.zeros(1), np.zeros(1)])
    assert refusal.value.rank == 0
    assert refusal.value.step == 0
