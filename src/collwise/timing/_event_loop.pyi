"""The event loop in C; `event_loop.py` says what it does, and what its arguments mean."""

from typing import Any

from numpy.typing import NDArray

def play(
    rows: int,
    ranks: int,
    rules: int,
    limit: int,
    columns: tuple[NDArray[Any], ...],
    needs: NDArray[Any],
    ports: tuple[NDArray[Any], NDArray[Any]],
    routes: tuple[()] | tuple[NDArray[Any], NDArray[Any], int],
    levels: tuple[tuple[NDArray[Any], ...], ...],
    results: tuple[NDArray[Any], ...],
) -> int: ...
