"""The operators of combining collectives: MPI's predefined ones, and two kinds of user operators.

`planner.operator_order` says what is legal with an operator.
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
    """One operator.

    name: MPI's name, in lower case.   kind: "user" if only `commutes` is known about it.
    ufunc: the NumPy function that does the same with two arrays, if there is one.
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
"""Every operator by its name."""


def find_operator(name: str) -> Operator:
    """Look up an operator by its name; raises UnknownName."""
    if not isinstance(name, str) or name not in OPERATORS:
        raise UnknownName.of("operator", name, OPERATORS)
    return OPERATORS[name]
