"""No plan is faster than its printed bound, nor is any other candidate, on any machine."""

from typing import Any

import pytest

import collwise as cw
from collwise.model.measured_machine import measured
from tests.guidelines.random_problems import KINDS, SHARING, problems
from tests.planner.machines import below_bounds


@pytest.mark.no_cover
@pytest.mark.parametrize("kind", [*KINDS, *SHARING])
def test_no_plan_is_below_its_bound(kind: str) -> None:
    """Few with levels, where plans take long: tests/algorithms/test_multilevel.py has more."""
    for asked in problems(2026, 3 if kind in ("levels", "memory in nodes") else 12, (kind,)):
        assert not below_bounds(asked.plan())


@pytest.mark.exhaustive
def test_no_plan_of_10_000_is_below_its_bound() -> None:
    wrong = [
        line
        for asked in problems(11, 10_000, (*KINDS, *SHARING))
        for line in below_bounds(asked.plan())
    ]
    assert not wrong, f"{len(wrong)} of 10,000: {wrong[:3]}"


def test_a_message_of_several_vectors_may_cost_less_a_byte() -> None:
    """What gathers before it combines sends more than one vector's bytes in a message."""
    rows: list[Any] = [[(8, 1e-6, 3), (64, 8e-6, 3), (128, 1e-5, "12/5")], [(65536, 3e-5, 3)]]
    for collective, ranks, nbytes in (
        ("reduce", 6, 32784),
        ("allreduce", 2, 40000),
        ("reduce_scatter_block", 12, 12000),
    ):
        plan = cw.plan(collective, ranks=ranks, nbytes=nbytes, machine=measured(rows))
        assert not below_bounds(plan)
