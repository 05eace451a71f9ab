"""The messages of a schedule as rows of numbers, from its lists."""

from itertools import accumulate

from collwise.schedule.dependencies import matching
from collwise.schedule.program import Schedule


def messages(schedule: Schedule) -> list[tuple[int, ...]]:
    """Sorted rows: source, target, place at the source and at the target, offset, length.

    Offsets count in the data of all sources, by rank.  Adjacent blocks of a message are one row.
    """
    sources, lists = schedule.problem.sources, schedule.lists
    lengths = accumulate((source.nbytes for source in sources), initial=0)
    starts = dict(zip((source.rank for source in sources), lengths, strict=False))
    rows = sorted(
        (rank, peer, step, there, starts.get(block.owner, 0) + block.offset, block.length)
        for (rank, step), (peer, there) in matching(lists).items()
        for block in lists[rank][step].blocks
    )
    joined: list[tuple[int, ...]] = []
    for row in rows:
        *places, offset, length = row
        *last, begin, before = joined[-1] if joined else (-1, 0, 0)
        if places == last and offset == begin + before:
            joined[-1] = (*last, begin, before + length)
        else:
            joined.append(row)
    return joined
