"""The function `rows_of_lists` in C; `dependencies.py` says what it does."""

from collections.abc import Sequence

from collwise.schedule.operations import Operation

def rows_of_lists(
    lists: Sequence[Sequence[Operation]], kinds: tuple[type[Operation], ...], asked: int
) -> tuple[bytearray, ...]: ...
