"""On how many ranks a check runs by default.  Ranks and tests read it: it loads neither."""

from collections.abc import Sequence
from typing import TypeAlias
from zlib import crc32

Turns: TypeAlias = Sequence[Sequence[int]]
"""Groups of numbers of ranks; a number that stands twice in its group has twice as many checks."""

ON_ONE_NUMBER = {
    "calls_leak_nothing": 2,
    "counts_in_a_tuple_are_no_counts_by_rank": 2,
    "early_blocks_of_a_ring_come_from_ranks_behind_the_late_one": 3,
    "exported_algorithms_keep_the_order": 5,
    "what_is_ours_too_looks_like_ours": 5,
    "what_papers_measured_is_measured_here": 3,
}
"""Checks that do nothing on other numbers of ranks, or take long on more."""


def has_turn(check: str, ranks: int, turns: Turns) -> bool:
    """Whether a check runs on so many ranks: of each group, on one number, by its name."""
    for group in turns:
        if ranks in group:
            turn = crc32(f"{check} {group[0]}".encode()) % len(group)
            return ranks == ON_ONE_NUMBER.get(check, group[turn])
    return True
