"""The operators that vectors are combined with: MPI's predefined ones, and two kinds of users' own.

What is legal with an operator follows in `planner.operator_order`.
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

    name: MPI's, in lower case.   kind: "user" for those of which nothing else is known.
    ufunc: NumPy's function that does the same with two arrays, if there is one.
    commutes: whether its operands may change places.
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
    """An operator by its name; raises UnknownName."""
    if not isinstance(name, str) or name not in OPERATORS:
        raise UnknownName.of("operator", name, OPERATORS)
    return OPERATORS[name]
