"""On how many ranks a check runs by default.  Ranks and tests read it: it loads neither."""

from collections.abc import Sequence
from zlib import crc32


def has_turn(check: str, ranks: int, turns: Sequence[int]) -> bool:
    """Whether a check runs on so many ranks: of those that take turns, on one, by its name."""
    return ranks not in turns or turns[crc32(check.encode()) % len(turns)] == ranks
