"""Measuring without a clock: what to time, and what the times say.

MPI or the simulator runs the probes of a `Campaign` and hands back seconds.
"""

from collwise.measure.campaign import SIZES, Campaign, Measurement
from collwise.measure.fit import Fit, Law, fit_samples
from collwise.measure.probes import Cell, Probe
from collwise.measure.profile_building import build_profile
from collwise.measure.stability import Judgement, judge

__all__ = [
    "SIZES",
    "Campaign",
    "Cell",
    "Fit",
    "Judgement",
    "Law",
    "Measurement",
    "Probe",
    "build_profile",
    "fit_samples",
    "judge",
]
