"""Which order of combining an operator needs, and why.

MPI users expect the same bits on every rank.  An operator that does not commute needs the order of
the ranks.  For other operators any order is legal if the order cannot change the result (most
integers, logical and bitwise operators), or if each element of the result is on one rank only.
Otherwise all ranks must combine in the same order.
"""

from typing import Any, NamedTuple

import numpy as np

from collwise.errors import InvalidArgument, UnknownName, shown
from collwise.schedule.collectives import find_collective
from collwise.schedule.operators import Operator, find_operator
from collwise.schedule.problem import ORDERS, Order, satisfies

OP, DTYPE = "sum", "float64"
"""The default operator and element type of collectives that combine."""


class WeakestOrder(NamedTuple):
    """The weakest legal order of combining, the reason, and the bytes of an element."""

    order: Order
    reason: str
    itemsize: int


NOTHING_COMBINED = WeakestOrder("any", "", 1)
"""The order for collectives that combine nothing, such as a broadcast."""


def legal(
    collective: str, op: str | None = None, dtype: Any = None, order: Order | None = None
) -> WeakestOrder:
    """The weakest order in which an algorithm may combine with this operator and element type.

    op: a name of `OPERATORS`; None for OP.   dtype: any argument of `numpy.dtype`; None for DTYPE.
    order: overrides the order that is needed.  If the operator does not commute, an order weaker
    than "rank" is ignored.
    Raises UnknownName for an unknown operator or order, InvalidArgument for an invalid type, or a
    type that does not fit the operator.
    """
    operator = find_operator(OP if op is None else op)
    if order is not None and order not in ORDERS:
        raise UnknownName.of("order", order, ORDERS)
    element = _element(collective, DTYPE if dtype is None else dtype)
    _check_fit(operator, element)
    needed, reason = _weakest_order(collective, operator, element)
    allowed = order is not None and (operator.commutes or satisfies(order, needed))
    if order is not None and order != needed and allowed:
        needed, reason = order, f"the order {order!r} is asked for"
    return WeakestOrder(needed, reason, element.itemsize)


def _element(collective: str, dtype: Any) -> np.dtype[Any]:
    seen = "NumPy knows no such type"
    try:
        element: np.dtype[Any] = np.dtype(dtype)
    except (TypeError, ValueError, SyntaxError):  # numpy parses some strings as Python code
        pass
    else:
        if element.itemsize and not element.hasobject:
            return element
        seen = "they are Python's objects" if element.hasobject else "they have no bytes"
    name = repr(dtype) if isinstance(dtype, type | np.dtype) else shown(dtype)
    asked, remedy = f"{collective} of elements of type {name}", "name one, such as float64 or int32"
    raise InvalidArgument(asked, seen, remedy)


def _weakest_order(collective: str, op: Operator, element: np.dtype[Any]) -> tuple[Order, str]:
    if not op.commutes:
        return "rank", "the operator does not commute"
    if find_collective(collective).output != "everyone":
        return "any", "every element of the result is on one rank only"
    if op.kind == "user":
        return "same", "nobody knows whether the operator rounds"
    accumulates = op.name in ("sum", "prod")
    if accumulates and element.kind in "iu" and element.itemsize < 4:
        return "same", f"{op.name} of {element} saturates on some MPI libraries"
    if op.kind in ("arithmetic", "locating") and element.kind in "fcV":
        what = "rounds" if accumulates else "minds the order of NaN and ±0"
        reason = f"{op.name} of {element} {what}, and all ranks must end with the same bits"
        return "same", reason
    return "any", f"{op.name} of {element} is exact"


def _check_fit(op: Operator, element: np.dtype[Any]) -> None:
    fits = ""
    if op.kind == "locating":  # MPI has pair types only; a type without fields may be one of them
        if not _is_pair(element):
            fits = "pairs of a value and an index, such as f8,i4"
    elif op.kind != "user" and (element.names is not None or element.kind not in "biufcV"):
        fits = "numbers"  # not for structures, text, dates, spans of time
    elif op.kind == "bitwise" and element.kind not in "iubV":
        fits = "bits of integers"
    elif op.name in ("max", "min") and element.kind == "c":
        fits = "numbers that are ordered"
    if fits:
        raise InvalidArgument(
            f"the operator {op.name} on elements of type {element}",
            f"{op.name} is for {fits}",
            "choose an operator that fits the type",
        )


def _is_pair(element: np.dtype[Any]) -> bool:
    """Whether a type may be an MPI pair: a value and an index, or plain bytes (NumPy's void)."""
    if element.names is None:
        return element.kind == "V"
    kinds = [element[name].kind for name in element.names]
    return len(kinds) == 2 and kinds[0] in "iuf" and kinds[1] in "iu"
