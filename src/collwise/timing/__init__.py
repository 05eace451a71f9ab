"""Ideal time: the exact times if every rank starts each operation as early as it can.

A schedule has an order but no times; this package computes them.  Read `law` first (machines' laws
as data: costs, resources and rules), then `event_loop` (one loop that simulates all of them;
`_event_loop.c` is the loop in C, `plain_ports` a part of the one in Python), `times` (results for
users) and `trace` (from schedules to times).  `tree_times` is a shortcut for trees of up to 10^6
ranks, by the shapes of their subtrees.  `critical_path` says at which level of a machine the time
was spent.
"""

from collwise.timing.times import Timing, Transfer
from collwise.timing.trace import Trace, completion, ideal, messages_played, simulate

__all__ = ["Timing", "Trace", "Transfer", "completion", "ideal", "messages_played", "simulate"]
