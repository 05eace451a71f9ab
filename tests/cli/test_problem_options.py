"""The problem that options describe, and who has data if nobody says."""

from typing import Any

import pytest

from collwise.cli.problem_options import ProblemOptions, Sources
from collwise.errors import InvalidArgument
from collwise.planner.choose import problem_for
from collwise.schedule.collectives import COLLECTIVES
from collwise.tuning.outcomes import Task


def options(**given: Any) -> ProblemOptions:
    nothing = dict.fromkeys(("op", "dtype", "order", "sources", "pattern", "shape"))
    return ProblemOptions(**{"root": 0, **nothing, **given})


@pytest.mark.parametrize(
    ("ranks", "shape", "sources"),
    [
        (1, None, (0,)),
        (2, None, (0, 1)),
        (4, None, (0, 2)),
        (7, None, (0, 3)),
        (16, None, (0, 4, 8, 12)),
        (12, (2, 6), (0, 4, 8)),
    ],
)
def test_who_has_data_if_nobody_says(
    ranks: int, shape: tuple[int, int] | None, sources: tuple[int, ...]
) -> None:
    """In races; plans and simulations have to be told."""
    problem = options(shape=shape).task("allgatherv", ranks, 64).problem
    assert [tuple(source) for source in problem.sources] == [(rank, 64) for rank in sources]
    assert problem.shape == (shape or problem.usual_shape)
    with pytest.raises(InvalidArgument, match="nothing says which ranks have data"):
        options(shape=shape).problem("allgatherv", ranks, 64)


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_what_does_not_apply_is_ignored(collective: str) -> None:
    """As by `tune`, for which some options apply to some of its collectives."""
    kind = COLLECTIVES[collective]
    given = options(root=1, op="max", dtype="int32", sources=Sources((0, 1)))
    applies: dict[str, Any] = {"root": 1} if kind.rooted else {}
    applies |= {"op": "max", "dtype": "int32"} if kind.combines else {}
    applies |= {"sources": [0, 1]} if kind.has_sources else {}
    problem, reason = problem_for(collective, ranks=4, nbytes=64, **applies)
    assert given.problem(collective, 4, 64) == (problem, reason)
    assert given.task(collective, 4, 64) == Task(problem, "max", "int32", reason)
    rounded = given.task(collective, 4, 61, round_up=True)
    assert str(rounded) == str(given.task(collective, 4, rounded.problem.nbytes // (
        len(rounded.problem.sources) or 1)))  # fmt: skip
    assert rounded.problem.nbytes == (64 if kind.combines else 122 if kind.has_sources else 61)


def test_operators_that_cannot_be_raced() -> None:
    with pytest.raises(InvalidArgument, match="races know the result of sum"):
        options(op="noncommutative").task("allreduce", 4, 64)
    with pytest.raises(InvalidArgument, match="bytes are more than the memory here"):
        options().task("broadcast", 4, 2**50)
    problem, _ = options(op="noncommutative").problem("allreduce", 4, 64)
    assert problem.order == "rank"
