"""The operators of combining collectives: MPI's predefined ones, and two kinds of user operators.

`planner.operator_order` says in which orders vectors may be combined with an operator.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias

import numpy as np

from collwise.errors import UnknownName

Kind: TypeAlias = Literal["arithmetic", "logical", "bitwise", "locating", "user"]


@dataclass(frozen=True)
class Operator:
    """One operator of collectives that combine.

    name: MPI's name in lower case without MPI_; of a user's operator, "commutative" or
    "noncommutative".   kind: "user" for a user's operator; only whether it commutes is known.
    ufunc: the NumPy function that combines two arrays in the same way; None if NumPy has none.
    commutes: whether its operands may be exchanged.
    """

    name: str
    kind: Kind
    ufunc: np.ufunc | None = None
    commutes: bool = True


OPERATORS: Mapping[str, Operator] = MappingProxyType(
    {
        operator.name: operator
        for operator in (
            Operator("sum", "arithmetic", np.add),
            Operator("prod", "arithmetic", np.multiply),
            Operator("max", "arithmetic", np.maximum),
            Operator("min", "arithmetic", np.minimum),
            Operator("land", "logical", np.logical_and),
            Operator("lor", "logical", np.logical_or),
            Operator("lxor", "logical", np.logical_xor),
            Operator("band", "bitwise", np.bitwise_and),
            Operator("bor", "bitwise", np.bitwise_or),
            Operator("bxor", "bitwise", np.bitwise_xor),
            Operator("maxloc", "locating"),
            Operator("minloc", "locating"),
            Operator("commutative", "user"),
            Operator("noncommutative", "user", commutes=False),
        )
    }
)
"""Maps the name of each operator to the operator."""


def find_operator(name: str) -> Operator:
    """The operator with this name; raises UnknownName if there is none."""
    if not isinstance(name, str) or name not in OPERATORS:
        raise UnknownName.of("operator", name, OPERATORS)
    return OPERATORS[name]
