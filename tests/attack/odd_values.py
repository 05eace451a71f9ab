"""Values that no caller should give, and some that are right, for attacks on arguments."""

import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

ODD: tuple[Any, ...] = (
    *(None, True, False, -1, 0, 1, 2, 3, 7, 8, 2**31, 2**63, 2**64, -(2**70)),
    *(0.0, -0.0, 1.5, -2.5, 1e308, float("nan"), float("inf"), -float("inf"), 1j),
    *(Fraction(9, 5), Fraction(-1, 3), np.int8(3), np.int64(5), np.uint64(2**63), np.float32(1.5)),
    *("", " ", "0", "-1", "nan", "1e999", "\0", "λ"),
    *("broadcast", "allreduce", "allgatherv", "chain"),
    *("x" * 300, "sum", "any", "float64", "mesh:2x4", b"", b"bytes", bytearray(3), Path("absent")),
    *((), (1,), (1, 2), (2, 4), (0, 1, 2), (1.5, None), [], [0], [0, 1, 2], [[1], [2]], [None]),
    *({}, {1: 2}, set(), {0, 1}, frozenset({1}), range(3), range(0), slice(1)),
    *(np.arange(4), np.zeros((2, 2)), np.array("a"), np.array([]), np.datetime64("2024-01-01")),
    *(datetime.date(2024, 1, 1), object(), object, int, len, Ellipsis, NotImplemented, Exception()),
)
