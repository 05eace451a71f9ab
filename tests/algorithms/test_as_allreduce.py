"""A reduce-scatter by any allreduce: right, and as fast."""

from typing import Any

import pytest

from collwise.algorithms import ALGORITHMS, Algorithm
from collwise.algorithms.registry import algorithms_for, describe
from collwise.errors import InvalidArgument
from collwise.schedule.problem import Order, satisfies
from collwise.timing import ideal
from collwise.verifier import check_flow
from tests.algorithms.examples import COMBINES, VAN_DE_GEIJN, settings_of

AS_ALLREDUCE = ALGORITHMS["reduce_scatter_block/as_allreduce"]
each = pytest.mark.parametrize(
    "algorithm", algorithms_for("allreduce", levels=False), ids=lambda a: a.name
)


@each
def test_every_rank_keeps_its_block_of_an_allreduce(algorithm: Algorithm) -> None:
    cases: list[tuple[int, Order]] = [(3, "any"), (8, "same"), (5, "rank"), (1, "any")]
    for p, order in cases:
        whole = algorithm.problem(p, 8 * p, itemsize=4)
        label = describe(algorithm.short_name, algorithm.settings(settings_of(algorithm, p)))
        given: dict[str, Any] = {"itemsize": 4, "order": order, "algorithm": label}
        if not satisfies(whole.order, order) and p > 1:
            with pytest.raises(InvalidArgument, match=f"in the order '{order}': it combines in"):
                AS_ALLREDUCE.schedule(p, 8 * p, **given)
            continue
        schedule = AS_ALLREDUCE.schedule(p, 8 * p, **given)
        check_flow(schedule)
        settings = settings_of(algorithm, p)
        for machine in (VAN_DE_GEIJN, COMBINES):
            time = AS_ALLREDUCE.time_of(schedule.problem, machine, {"algorithm": label})
            assert time == ideal(schedule, machine).completion
            assert time == algorithm.time_of(whole, machine, settings) or p == 1
