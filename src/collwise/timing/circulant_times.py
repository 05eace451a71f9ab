"""Ideal times of exchanges around a circle: all ranks at once, message by message.

The times are those of `timing.ideal` on machines with independent ports.
"""

from fractions import Fraction
from typing import Any

import numpy as np

from collwise.model.machine import Machine
from collwise.schedule.circulant_exchange import CirculantExchange, Step
from collwise.system.integers import Ints
from collwise.timing.exchange_times import Play, Sent, played
from collwise.timing.vectorised_laws import Ticks


class _Circling(Play):
    """Where a rank's blocks are said by how far they are from its own."""

    def __init__(self, program: CirculantExchange, costs: Any) -> None:
        super().__init__(program.problem, program.problem.nbytes * program.problem.ranks, costs)
        self.program, self.ranks = program, np.arange(program.problem.ranks)
        self.senders = program.gathering() if program.to_root else {}
        pieces = range(program.pieces)
        self.before = [program.bytes_before(piece, self.of_bytes) for piece in pieces]
        self.written = [list[tuple[int, int, Ticks]]() for _ in pieces]  # from, to, when

    def _bytes(self, piece: int, ranks: Ints, begin: int, width: Any) -> Any:
        first = (ranks + begin) % len(self.ranks)
        return self.before[piece][first + width] - self.before[piece][first]

    def _ready(self, piece: int, ranks: Ints, begin: int, width: Any) -> Ticks:
        """When ranks have what they were to write of some blocks of their own."""
        ready = np.zeros(len(ranks), self.value.dtype)
        for low, high, when in self.written[piece]:
            start = max(low, begin)
            both = np.minimum(high, begin + width) - start
            if (both > 0).any():
                some = self._bytes(piece, ranks, start, np.maximum(both, 0)) > 0
                ready = np.where(some, np.maximum(ready, when[ranks]), ready)
        return ready

    def _send(self, piece: int, step: Step) -> Sent:
        ranks, width = self.ranks, np.full(len(self.ranks), step.width)
        begin, turn = (0, -step.distance) if step.gathers else (step.distance, step.distance)
        to = (ranks + turn) % len(self.ranks)
        if step.gathers and self.program.to_root:
            first, number = self.senders[step]
            at = (first, first + number, first - step.distance)
            ranks, end, to = (self.program.block_of(part) for part in at)
            width = end - ranks
        nbytes = self._bytes(piece, ranks, begin, width)
        ready = self._ready(piece, ranks, begin, width)
        places = np.zeros_like(ranks)  # nobody asks for them
        return self.send(ranks, to, nbytes, places, ready)

    def _receive(self, piece: int, step: Step, sent: Sent) -> None:
        received = np.zeros(len(self.ranks), self.value.dtype)
        self.receive(sent)
        received[sent.target] = self.receive_free[sent.target]
        if step.gathers:
            begin, end = step.distance, step.distance + step.width
            if self.program.to_root:  # who sends, sends all that it has
                begin, end = 0, len(self.ranks)
            self.written[piece].append((begin, end, received))
            return
        mine = self._ready(piece, self.ranks, 0, step.width)
        nbytes = self._bytes(piece, self.ranks, 0, step.width)
        done = self.combine(self.ranks, nbytes, received, mine)
        kept = [row for row in self.written[piece] if row[1] > step.width]
        self.written[piece] = [*kept, (0, step.width, done)]

    def run(self) -> None:
        under_way: dict[tuple[int, Step], Sent] = {}
        for _, sends, piece, step in self.program.events:
            if sends:
                under_way[piece, step] = self._send(piece, step)
            else:
                self._receive(piece, step, under_way.pop((piece, step)))


def circulant_time(program: CirculantExchange, machine: Machine) -> Fraction | None:
    """Exact seconds; None if the law's senders wait for receivers, and receipts for later sends."""
    if machine.law == "hockney" and program.latency > 1:
        return None
    times, unit = played(lambda costs: _Circling(program, costs), machine)
    return int(times.finish.max()) * unit
