"""Ideal time: when everything happens if every rank goes on as early as it can.  Exact.

A schedule has an order but no times; this room computes them, with two engines that agree exactly.
Read `events` first (results, and the engine for any schedule on any machine), then `rank_state`,
`laws` (postal, LogGP), `level_law` (nodes, racks, sites) and `wormhole` (Hockney's law, and
networks with links).  `vectorised` is the engine for very many ranks, with `port_queues` and
`vectorised_laws`.  `trace` chooses an engine and
keeps the result with what it was computed from.
"""

from collwise.timing.events import Timing, Transfer, ideal, ideal_alike
from collwise.timing.trace import Trace, simulate

__all__ = ["Timing", "Trace", "Transfer", "ideal", "ideal_alike", "simulate"]
