"""Ideal time: when everything happens if every rank goes on as early as it can.  Exact.

A schedule has an order but no times; this room computes them.  Read `law` first (the laws of
machines as data: costs, resources, rules at ties), then `event_loop` (the one loop that plays all
of them; `_event_loop.c` is the same in C), `times` (what it gives, as people read it) and `trace`
(schedules in, times out).  `tree_times` stays beside the loop: trees of 10^6 ranks, by the shapes
of their subtrees.  `critical_path` says at which level of a machine the time was spent.
"""

from collwise.timing.times import Timing, Transfer
from collwise.timing.trace import Trace, completion, ideal, messages_played, simulate

__all__ = ["Timing", "Trace", "Transfer", "completion", "ideal", "messages_played", "simulate"]
