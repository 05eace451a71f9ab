"""Machines to plan for, one of each kind; which algorithms plans try, and what no plan may be."""

from functools import partial

from collwise.algorithms.registry import ALGORITHMS, algorithms_for
from collwise.model.machine import Machine
from collwise.model.measured_machine import measured
from collwise.planner.plans import Plan
from collwise.timing.law import only_own_ports
from tests.profiles.example import won_race

POSTAL = Machine.postal(t0_s="1e-6", lam="9/5")
HOCKNEY = Machine.hockney(alpha_s="5e-6", beta_s="1e-9")
LOGGP = Machine.loggp(L_s="2.5e-6", o_s="1.5e-6", g_s="1e-6", G_s="6e-9")
MEASURED = measured(
    [[(8, "1e-6", 3), (1024, "2e-6", 2)], [(4096, "9e-6", "1.6"), (1 << 20, "2e-4", "1.1")]]
)
STEEP = measured(
    [
        [(1, "1e-6", 2), (8, "1e-6", 2), (16, "5e-5", "1.01")],
        [(1000, "5e-5", "1.5"), (2000, "1.5e-4", "1.2")],
    ]
)
"""Just below 1000 bytes its eager messages cost far more than those of 1000 bytes."""
MACHINES = {
    "postal": POSTAL,
    "hockney": HOCKNEY,
    "loggp": LOGGP,
    "measured": MEASURED,
    "steep": STEEP,
}


race = partial(won_race, nbytes=512, speedup_low=1.8, speedup_high=2.2)
"""A race of 512 bytes that a chain won clearly, or as told."""


def tried_on(machine: Machine, collective: str) -> set[str]:
    """The algorithms that a plan tries without levels and links, by name."""
    every = algorithms_for(collective, levels=False)
    few = only_own_ports(machine, None)
    return {one.name for one in every if one.searched or one.usual or not few}


def below_bounds(made: Plan) -> list[str]:
    """The candidates that are faster than a lower bound that is theirs."""
    return [
        f"{made.problem} on {made.machine}: {one.label} takes {one.predicted}, below {bound}"
        for one in made.candidates
        for bound in (made.bound, made.unsegmented_bound)
        if one.predicted < bound.time
        and not (bound is made.unsegmented_bound and ALGORITHMS[one.name].segmented)
    ]
