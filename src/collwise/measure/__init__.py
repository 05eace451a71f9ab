"""Measuring without a clock: what to time, and what the times mean.

MPI or the simulator runs the probes of a `Campaign` and returns seconds.  Read in this order:
`probes` (what is timed), `fit` (from times to t0 and λ; intervals are in `statistics`),
`breakpoints` (protocol switches), `campaign` (what to time next; `probe_costs` estimates how long
that takes), `stability` (the verdict), `profile_building`.  `race` compares collectives, and
`combine_cost` measures γ.
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
