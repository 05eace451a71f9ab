"""What is legal for an operator and a type, and how a plan says so."""

from typing import Any

import pytest

from collwise.algorithms.registry import ALGORITHMS
from collwise.errors import CollwiseError, InvalidArgument, UnknownName
from collwise.model.machine import Machine
from collwise.planner.choose import plan
from collwise.planner.operator_order import legal
from collwise.schedule.operators import OPERATORS
from collwise.schedule.problem import satisfies
from tests.algorithms.examples import COMBINES
from tests.planner.machines import tried_on

POSTAL = Machine.postal(t0_s="1e-5", lam=4)


@pytest.mark.parametrize(
    ("op", "dtype", "order"),
    [
        ("sum", "float64", "same"),
        ("prod", "complex64", "same"),
        ("max", "float32", "same"),
        ("sum", "int32", "any"),
        ("sum", "int8", "same"),
        ("max", "int8", "any"),
        ("band", "uint16", "any"),
        ("land", "bool", "any"),
        ("maxloc", [("value", "f8"), ("index", "i4")], "same"),
        ("maxloc", "V12", "same"),
        ("commutative", "i4,i4", "same"),
        ("commutative", "int64", "same"),
        ("noncommutative", "int64", "rank"),
    ],
)
def test_the_weakest_legal_order(op: str, dtype: Any, order: str) -> None:
    found = legal("allreduce", op, dtype)
    assert found.order == order
    assert found.reason
    assert legal("reduce", op, dtype).order == ("rank" if order == "rank" else "any")


def test_a_wish_for_more_or_less() -> None:
    assert legal("allreduce", "sum", "int32", "rank").order == "rank"
    assert legal("allreduce", "sum", "float64", "any").order == "any"
    assert legal("allreduce", "noncommutative", "float64", "any").order == "rank"


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        (("sun", "float64"), UnknownName, "did you mean sum"),
        (("sum", "float63"), InvalidArgument, "NumPy knows no such type"),
        (("band", "float64"), InvalidArgument, "bits of integers"),
        (("max", "complex128"), InvalidArgument, "numbers that are ordered"),
        (("sum", "float64", "sideways"), UnknownName, "order 'sideways'"),
        (("sum", "i4,,"), InvalidArgument, "elements of type 'i4,,': NumPy knows no such type"),
        (("sum", "S"), InvalidArgument, "elements of type 'S': they have no bytes"),
        (("sum", "i4,i4"), InvalidArgument, "sum is for numbers"),
        (("land", "f8,i4"), InvalidArgument, "land is for numbers"),
        (("band", "i4,i4"), InvalidArgument, "band is for numbers"),
        (("maxloc", "float64"), InvalidArgument, "pairs of a value and an index, such as f8,i4"),
        (("maxloc", "i4,f8"), InvalidArgument, "maxloc is for pairs"),
        (("sum", object), InvalidArgument, "they are Python's objects; name one, such as float64"),
    ],
)
def test_what_is_refused(arguments: tuple[Any, ...], error: type[CollwiseError], text: str) -> None:
    with pytest.raises(error) as caught:
        legal("allreduce", *arguments)
    assert text in str(caught.value)


@pytest.mark.parametrize("collective", ["reduce", "allreduce"])
@pytest.mark.parametrize("op", ["sum", "noncommutative"])
@pytest.mark.parametrize("dtype", ["float64", "int64"])
def test_a_plan_takes_what_is_legal_and_says_why_not(collective: str, op: str, dtype: str) -> None:
    made = plan(collective, ranks=12, nbytes=96, machine=COMBINES, op=op, dtype=dtype)
    asked = legal(collective, op, dtype)
    assert made.problem.order == asked.order
    for algorithm in map(ALGORITHMS.__getitem__, tried_on(COMBINES, collective)):
        fits = satisfies(algorithm.order(made.problem), asked.order)
        assert fits or asked.reason in made.excluded[algorithm.name]
        assert fits == any(c.name == algorithm.name for c in made.candidates)
    assert asked.reason in str(made)


def test_only_exact_sums_go_by_the_census() -> None:
    exact = plan("allreduce", ranks=64, nbytes=64, machine=POSTAL, dtype="int64")
    rounding = plan("allreduce", ranks=64, nbytes=64, machine=POSTAL)
    wished = plan("allreduce", ranks=64, nbytes=64, machine=POSTAL, order="any")
    assert exact.algorithm == wished.algorithm == "allreduce/census_delay_receive"
    assert rounding.algorithm == "allreduce/census_in_order"
    assert exact.predicted_s == exact.lower_bound_s == rounding.predicted_s
    with pytest.raises(InvalidArgument, match="not legal"):
        plan("allreduce", ranks=8, nbytes=64, machine=POSTAL, algorithm="census_delay_send")


def test_every_operator_has_an_order() -> None:
    for op, known in OPERATORS.items():
        fitting = "i2,i2" if known.kind == "locating" else "int32"
        assert legal("allreduce", op, fitting).itemsize == 4
