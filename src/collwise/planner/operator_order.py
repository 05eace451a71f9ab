"""What is legal: the order in which an operator's contributions have to be combined, and why.

MPI users expect the same bits on every rank.  Where the result cannot depend on the order
(integers, logical and bitwise operators), any order will do; where it rounds, or where NaN and the
sign of zero matter, all ranks must combine alike; where the operator does not commute, in the order
of the ranks.
"""

from typing import Any, NamedTuple

import numpy as np

from collwise.errors import InvalidArgument, UnknownName, shown
from collwise.schedule.collectives import find_collective
from collwise.schedule.operators import Operator, find_operator
from collwise.schedule.problem import ORDERS, Order

OP, DTYPE = "sum", "float64"
"""What vectors are combined with, and their elements, if nobody says."""


class WeakestOrder(NamedTuple):
    """The weakest order that is legal, the reason, and the bytes of an element."""

    order: Order
    reason: str
    itemsize: int


NOTHING_COMBINED = WeakestOrder("any", "", 1)
"""What is asked of algorithms for collectives that combine nothing."""


def legal(
    collective: str, op: str | None = None, dtype: Any = None, order: Order | None = None
) -> WeakestOrder:
    """What an operator on elements of a type asks of an algorithm.

    op: a name of `OPERATORS`; None for OP.   dtype: whatever `numpy.dtype` takes; None for DTYPE.
    order: the user's own wish, for more or for less; operators that do not commute allow no less.
    Raises UnknownName for an unknown operator or order, InvalidArgument for a type that is none, or
    that does not fit the operator.
    """
    operator = find_operator(OP if op is None else op)
    if order is not None and order not in ORDERS:
        raise UnknownName.of("order", order, ORDERS)
    element = _element(collective, DTYPE if dtype is None else dtype)
    _check_fit(operator, element)
    needed, reason = _needed(collective, operator, element)
    if order is not None and order != needed and operator.commutes:
        needed, reason = order, f"the order {order!r} is asked for"
    return WeakestOrder(needed, reason, element.itemsize)


def _element(collective: str, dtype: Any) -> np.dtype[Any]:
    seen = "NumPy knows no such type"
    try:
        element: np.dtype[Any] = np.dtype(dtype)
    except (TypeError, ValueError, SyntaxError):  # it reads some of them as Python would
        pass
    else:
        if element.itemsize and not element.hasobject:
            return element
        seen = "they are Python's objects" if element.hasobject else "they have no bytes"
    name = repr(dtype) if isinstance(dtype, type | np.dtype) else shown(dtype)
    asked, remedy = f"{collective} of elements of type {name}", "name one, such as float64 or int32"
    raise InvalidArgument(asked, seen, remedy)


def _needed(collective: str, op: Operator, element: np.dtype[Any]) -> tuple[Order, str]:
    if not op.commutes:
        return "rank", "the operator does not commute"
    if find_collective(collective).output != "everyone":
        return "any", "every element of the result is on one rank only"
    if op.kind == "user":
        return "same", "nobody knows whether the operator rounds"
    accumulates = op.name in ("sum", "prod")
    if accumulates and element.kind in "iu" and element.itemsize < 4:
        return "same", f"{op.name} of {element} saturates on some MPI libraries"
    inexact = element.names is not None or element.kind in "fcV"
    if op.kind in ("arithmetic", "locating") and inexact:
        what = "rounds" if accumulates else "minds the order of NaN and ±0"
        reason = f"{op.name} of {element} {what}, and all ranks must end with the same bits"
        return "same", reason
    return "any", f"{op.name} of {element} is exact"


def _check_fit(op: Operator, element: np.dtype[Any]) -> None:
    fits = ""
    if op.kind != "user" and element.kind not in "biufcV":  # text, dates, spans of time
        fits = "numbers"
    elif op.kind == "bitwise" and element.kind not in "iubV":
        fits = "bits of integers"
    elif op.name in ("max", "min") and element.kind == "c":
        fits = "numbers that are ordered"
    elif op.kind == "locating" and element.names is not None and len(element.names) != 2:
        fits = "pairs of a value and an index"
    if fits:
        raise InvalidArgument(
            f"the operator {op.name} on elements of type {element}",
            f"{op.name} is for {fits}",
            "choose an operator that fits the type",
        )
