"""Schedules and measurements on assumed machines: nothing is sent, time is computed.

`simulate` and `Trace` come from the package `timing`.  `simulated_prober` measures an assumed
machine; `data_values` runs a schedule on real values.
"""

from collwise.simulator.data_values import values
from collwise.simulator.simulated_prober import SimulatedProber
from collwise.timing import Trace, simulate

__all__ = ["SimulatedProber", "Trace", "simulate", "values"]
