"""The interval map in C; see `dependencies`."""

from collections.abc import Sequence

from collwise.schedule.operations import Operation

def rows_of_lists(
    lists: Sequence[Sequence[Operation]], kinds: tuple[type[Operation], ...], asked: int
) -> tuple[bytearray, ...]: ...
