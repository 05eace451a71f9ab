"""The loop in C; see `level_queues`."""

from typing import Any

from numpy.typing import NDArray

def play(
    messages: int,
    ranks: int,
    columns: tuple[NDArray[Any], ...],
    waits: NDArray[Any],
    ports: tuple[tuple[NDArray[Any], ...], ...],
    limit: int,
) -> int: ...
