"""Ideal time: when everything happens if every rank goes on as early as it can.  Exact.

A schedule has an order but no times; this room computes them, with two engines that agree exactly.
Read `events` first (results, and the engine for any schedule on any machine), then `rank_state`,
`laws` (postal and Hockney's where lists decide the order; LogGP), `level_law` (nodes, racks, sites)
and `wormhole` (networks with links, and one partner at a time).  `vectorised` is the engine for
very many ranks, with `port_queues`, `combining_queues`, `level_queues`, `waves`, `vectorised_laws`,
`exchange_times`, `circulant_times` and `pipelined_up_trees`.
`trace` chooses an engine and keeps the result with what it was computed from; `critical_path` says
at which level of a machine the time was spent.
"""

from collwise.timing.events import Timing, Transfer, ideal, ideal_alike, ideal_completion
from collwise.timing.trace import Trace, simulate

__all__ = ["Timing", "Trace", "Transfer", "ideal", "ideal_alike", "ideal_completion", "simulate"]
