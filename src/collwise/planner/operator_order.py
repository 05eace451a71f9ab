"""What is legal: the order in which an operator's contributions have to be combined, and why.

MPI users expect the same bits on every rank.  Where the result cannot depend on the order
(integers, logical and bitwise operators), any order will do; where it rounds, or where NaN and the
sign of zero matter, all ranks must combine alike; where the operator does not commute, in the order
of the ranks.
"""

from typing import Any, NamedTuple

import numpy as np

from collwise.errors import InvalidArgument, UnknownName, shown
from collwise.schedule.problem import ORDERS, Order

ARITHMETIC = ("sum", "prod", "max", "min")
LOGICAL = ("land", "lor", "lxor")
BITWISE = ("band", "bor", "bxor")
LOCATING = ("maxloc", "minloc")
USERS = ("commutative", "noncommutative")
"""Operators that a user made, of which nothing else is known."""
OPERATORS = (*ARITHMETIC, *LOGICAL, *BITWISE, *LOCATING, *USERS)


OP, DTYPE = "sum", "float64"
"""What vectors are combined with, and their elements, if nobody says."""


class Legal(NamedTuple):
    """The weakest order that is legal, the reason, and the bytes of an element."""

    order: Order
    reason: str
    itemsize: int


def legal(collective: str, op: str = OP, dtype: Any = DTYPE, order: Order | None = None) -> Legal:
    """What an operator on elements of a type asks of an algorithm.

    op: one of OPERATORS.   dtype: whatever `numpy.dtype` takes.   order: the user's own wish, for
    more or for less; only operators that do not commute allow no less.
    Raises UnknownName for an unknown operator or order, InvalidArgument for a type that is none, or
    that does not fit the operator.
    """
    if op not in OPERATORS:
        raise UnknownName.of("operator", op, OPERATORS)
    if order is not None and order not in ORDERS:
        raise UnknownName.of("order", order, ORDERS)
    kind = _element(collective, dtype)
    _check_fit(op, kind)
    needed, reason = _needed(collective, op, kind)
    if order is not None and order != needed and op != "noncommutative":
        needed, reason = order, f"the order {order!r} is asked for"
    return Legal(needed, reason, kind.itemsize)


def _element(collective: str, dtype: Any) -> np.dtype[Any]:
    seen = "NumPy knows no such type"
    try:
        kind: np.dtype[Any] = np.dtype(dtype)
    except (TypeError, ValueError, SyntaxError):  # it reads some of them as Python would
        pass
    else:
        if kind.itemsize and not kind.hasobject:
            return kind
        seen = "they are Python's objects" if kind.hasobject else "they have no bytes"
    told = repr(dtype) if isinstance(dtype, type | np.dtype) else shown(dtype)
    asked, remedy = f"{collective} of elements of type {told}", "name one, such as float64 or int32"
    raise InvalidArgument(asked, seen, remedy)


def _needed(collective: str, op: str, kind: np.dtype[Any]) -> tuple[Order, str]:
    if op == "noncommutative":
        return "rank", "the operator does not commute"
    if collective == "reduce":
        return "any", "there is one result only"
    if op == "commutative":
        return "same", "nobody knows whether the operator rounds"
    if op in ("sum", "prod") and kind.kind in "iu" and kind.itemsize < 4:
        return "same", f"{op} of {kind} saturates on some MPI libraries"
    inexact = kind.names is not None or kind.kind in "fcV"
    if op in (*ARITHMETIC, *LOCATING) and inexact:
        what = "rounds" if op in ("sum", "prod") else "minds the order of NaN and ±0"
        return "same", f"{op} of {kind} {what}, and all ranks must end with the same bits"
    return "any", f"{op} of {kind} is exact"


def _check_fit(op: str, kind: np.dtype[Any]) -> None:
    wrong = ""
    if op in BITWISE and kind.kind not in "iubV":
        wrong = "bits of integers"
    elif op in ("max", "min") and kind.kind == "c":
        wrong = "numbers that are ordered"
    elif op in LOCATING and kind.names is not None and len(kind.names) != 2:
        wrong = "pairs of a value and an index"
    if wrong:
        raise InvalidArgument(
            f"the operator {op} on elements of type {kind}",
            f"{op} is for {wrong}",
            "choose an operator that fits the type",
        )
