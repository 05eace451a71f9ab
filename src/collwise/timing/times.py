"""The times of a schedule: columns of ticks, converted to exact seconds on demand."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np

from collwise.model.exact import seconds
from collwise.schedule.rows import LARGEST, NONE, Rows
from collwise.system.integers import Ints
from collwise.timing.event_loop import Columns
from collwise.timing.law import Law, Ticks

EXACT_IN_FLOAT = 2**53
"""Up to this number, integers are exact as floats, and dividing two of them rounds only once."""


class Transfer(NamedTuple):
    """One message, with times in exact seconds.

    place_at_source: position of the send in the source's list.   place_at_target: position of the
    receive in the target's list.   start: when the send starts.   sent: when the source is free
    again.   received: when the target has the message.
    """

    source: int
    target: int
    place_at_source: int
    place_at_target: int
    nbytes: int
    start: Fraction
    sent: Fraction
    received: Fraction


class Combining(NamedTuple):
    """One combine, with times in exact seconds.

    place: the combine's position in the rank's list.
    """

    rank: int
    place: int
    nbytes: int
    start: Fraction
    end: Fraction


class LinkWait(NamedTuple):
    """The `link` that a message waited for longest, and the message that held it meanwhile.

    transfer: the index of that other message in `Timing.transfers`.
    """

    link: int
    transfer: int


class Passage(NamedTuple):
    """One message's passage through the network, with times in exact seconds.

    ready: when both ranks and the message's data were ready.   start: when the send started.
    The message held the links of its `route` from `entry` to `end`; its header was through at
    `header`.
    waited: the link that delayed its start; None if no link did.
    """

    ready: Fraction
    start: Fraction
    entry: Fraction
    header: Fraction
    end: Fraction
    route: tuple[int, ...]
    waited: LinkWait | None


@dataclass(frozen=True, eq=False)
class Timing:
    """The ideal times of a schedule on a machine, from a common start.

    rows: messages and combines.   played: their times in ticks.   class_of: for each rank, the
    rank in `rows` that stands for it and sends its messages; None if `rows` have all ranks.
    """

    rows: Rows
    law: Law
    played: Columns
    class_of: Ints | None = None

    @cached_property
    def _ticks(self) -> Ticks:
        """Per rank: when its last operation completes, in ticks."""
        ranks, played = len(self.law.ports.own_sends) - 1, self.played
        done = np.zeros(ranks, played.start.dtype)
        started = np.flatnonzero((self.rows.target != NONE) & (played.received >= 0))
        sent = played.start[started] + self.law.sender_busy[started]
        np.maximum.at(done, self.rows.source[started], sent)
        np.maximum.at(done, self.rows.target[started], played.received[started])
        combined = np.flatnonzero(self.rows.combines)
        np.maximum.at(done, self.rows.source[combined], played.received[combined])
        return done if self.class_of is None else done[self.class_of]

    @cached_property
    def finish(self) -> tuple[Fraction, ...]:
        """Per rank: when its last operation completes, in exact seconds."""
        return tuple(self._exact(self._ticks))

    @cached_property
    def finish_s(self) -> tuple[float, ...]:
        """`finish` as floats, in seconds."""
        num, den = self.law.unit.as_integer_ratio()
        if int(self._ticks.max()) * num <= EXACT_IN_FLOAT and den <= EXACT_IN_FLOAT:
            return tuple((self._ticks.astype(np.float64) * num / den).tolist())
        distinct, which = np.unique(self._ticks, return_inverse=True)
        floats = np.array([seconds(int(t) * self.law.unit) for t in distinct.tolist()])
        return tuple(floats[which].tolist())

    @property
    def completion(self) -> Fraction:
        """When the last rank finishes, in exact seconds."""
        return int(self._ticks.max()) * self.law.unit

    @property
    def completion_s(self) -> float:
        """`completion` as a float, in seconds."""
        return seconds(self.completion)

    @property
    def sizes(self) -> tuple[Ints, Ints]:
        """For each message of `rows`, in two arrays: its bytes, and how many ranks send it."""
        sent = np.flatnonzero(self.rows.target != NONE)
        of_class = np.ones(len(self.law.ports.own_sends), np.int64)
        if self.class_of is not None:
            of_class = np.bincount(self.class_of)
        return self.rows.nbytes[sent], of_class[self.rows.source[sent]]

    @cached_property
    def _order(self) -> Ints:
        """The indices of the rows that are messages, in the order of receipt.

        If messages hold links of a topology, the order is that of reserving links.
        """
        rows, played = self.rows, self.played
        messages = np.flatnonzero((rows.target != NONE) & (played.received >= 0))
        if self.law.links is not None:
            return messages[np.argsort(played.served[messages], kind="stable")]
        when = np.unique(played.received[messages], return_inverse=True)[1]
        ends = rows.place_at_target[messages], rows.target[messages]
        return messages[np.lexsort((*ends, when))]

    @cached_property
    def transfers(self) -> tuple[Transfer, ...]:
        """The messages that are received, with their times, in the order of receipt.

        If messages hold links of a topology, they are in the order in which they reserved links.
        """
        order, rows, start = self._order, self.rows, self.played.start
        what = rows.source, rows.target, rows.place_at_source, rows.place_at_target, rows.nbytes
        times = start, start + self.law.sender_busy, self.played.received
        columns = [*(c[order].tolist() for c in what), *(self._exact(t[order]) for t in times)]
        return tuple(map(Transfer, *columns))

    @cached_property
    def combines(self) -> tuple[Combining, ...]:
        """All combines, ordered by rank and place; () where `Machine.combine` returns None."""
        rows, order = self.rows, np.flatnonzero(self.rows.combines)
        order = order[np.lexsort((rows.place_at_source[order], rows.source[order]))]
        what = rows.source, rows.place_at_source, rows.nbytes
        times = self.played.start, self.played.received
        columns = [*(c[order].tolist() for c in what), *(self._exact(t[order]) for t in times)]
        return tuple(map(Combining, *columns))

    @cached_property
    def passages(self) -> tuple[Passage, ...]:
        """One passage for each of `transfers`; () if the law's `tells_passages` is False."""
        law, order, played = self.law, self._order, self.played
        if not law.tells_passages:
            return ()
        number = np.full(len(self.rows), NONE)
        number[order] = np.arange(len(order))
        times = [
            self._exact(ticks[order])
            for ticks in (
                played.asked,
                played.start,
                played.start + law.entry,
                played.start + law.header,
                played.start + law.gap,
            )
        ]
        return tuple(
            Passage(ready, start, entry, header, end, self._route(row), self._wait(row, number))
            for row, ready, start, entry, header, end in zip(order.tolist(), *times, strict=True)
        )

    def _route(self, row: int) -> tuple[int, ...]:
        if self.law.links is None:
            return ()
        begin, end = self.law.links.begins[row : row + 2].tolist()
        return tuple(self.law.links.links[begin:end].tolist())

    def _wait(self, row: int, number: Ints) -> LinkWait | None:
        link = int(self.played.waited[row])
        return None if link == NONE else LinkWait(link, int(number[self.played.holder[row]]))

    def link_busy(self) -> dict[int, Fraction]:
        """Maps each used link to the exact seconds for which messages held it; {} without links."""
        law = self.law
        if law.links is None:
            return {}
        held = np.repeat(law.gap - law.entry, np.diff(law.links.begins))
        if len(held) * int(held.max(initial=0)) > LARGEST:
            held = held.astype(object)
        busy = np.zeros(law.links.number, held.dtype)
        np.add.at(busy, law.links.links, held)
        used = np.unique(law.links.links).tolist()
        return {link: int(busy[link]) * law.unit for link in used}

    def _exact(self, ticks: Ticks) -> Sequence[Fraction]:
        """Times in ticks as exact seconds; equal times are converted once."""
        num, den = self.law.unit.as_integer_ratio()
        distinct, which = np.unique(ticks, return_inverse=True)
        fractions = np.empty(len(distinct), dtype=object)
        fractions[:] = [Fraction(int(t) * num, den) for t in distinct.tolist()]
        exact: list[Fraction] = fractions[which].tolist()
        return exact
