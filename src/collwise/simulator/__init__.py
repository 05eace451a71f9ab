"""Schedules and measurements on assumed machines: nothing is sent, time is computed."""

from collwise.simulator.simulated_prober import SimulatedProber
from collwise.simulator.trace import Trace, simulate

__all__ = ["SimulatedProber", "Trace", "simulate"]
