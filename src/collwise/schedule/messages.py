"""All messages of a schedule as columns, whatever bytes they carry: how many, and after what."""

from dataclasses import dataclass

from collwise.system.integers import Ints


@dataclass(frozen=True, eq=False)
class Messages:
    """All messages of a schedule, one row of int64 columns for each.

    source, target: ranks.   place_at_source, place_at_target: position in that rank's list.
    nbytes: bytes.
    """

    source: Ints
    target: Ints
    place_at_source: Ints
    place_at_target: Ints
    nbytes: Ints


@dataclass(frozen=True, eq=False)
class Rows(Messages):
    """The same in any order, with what they wait for, and combines that take time.

    A combine is a row whose source is its target: it stands in both queues of its rank.
    after: how many rows a message's source has to have received (or combined) before it sends it.
    """

    after: Ints
