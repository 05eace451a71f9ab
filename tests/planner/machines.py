"""Machines to plan for: one of each kind, and any of each kind for Hypothesis."""

from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

from collwise.algorithms.registry import ALGORITHMS, algorithms_for
from collwise.model.exact import Number
from collwise.model.machine import Machine
from collwise.model.measured_machine import Measured, measured
from collwise.model.shared_memory import Memory
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


times = st.integers(0, 60).map(Fraction)
positive = st.integers(1, 60).map(Fraction)
latencies = st.builds(Fraction, st.integers(6, 30), st.integers(1, 6)).map(lambda x: max(x, 1))

postal = st.builds(lambda t0, lam: Machine.postal(t0_s=t0, lam=lam), positive, latencies)
hockney = st.builds(lambda a, b: Machine.hockney(alpha_s=a, beta_s=b), times, times)
loggp = st.builds(
    lambda L, o, g, G: Machine.loggp(L_s=L, o_s=o, g_s=g, G_s=G), times, times, times, times
)


@st.composite
def piecewise(draw: st.DrawFn) -> Measured:
    """Up to four protocols of up to three sizes each, with any jumps and slopes between them."""
    sizes = sorted(draw(st.sets(st.integers(1, 400), min_size=1, max_size=8)))
    cuts = sorted(draw(st.sets(st.integers(1, 8), max_size=3)) & set(range(1, len(sizes))))
    t0 = Fraction(1, 10**9)
    rows: list[tuple[int, Number, Number]] = []
    for nbytes in sizes:
        t0 += draw(st.sampled_from([0, 1, 20, 1000])) * Fraction(1, 10**9)
        rows.append((nbytes, t0, draw(st.sampled_from(["1/2", "1", "3/2", "4", "9"]))))
    return measured([rows[a:b] for a, b in pairwise([0, *cuts, len(rows)])])


@st.composite
def sharing_memory(draw: st.DrawFn) -> Memory:
    """Publishing as on any machine with several protocols, or in one time; reads of any cost."""
    publishing: Any = draw(st.one_of(piecewise(), postal))
    share = Fraction(draw(st.integers(0, 8)), 8)
    sizes = publishing.sizes() or (1,)
    return Machine.memory(
        publishing, read=[(n, share * publishing.message(n).latency) for n in sizes]
    )


any_machine = st.one_of(postal, hockney, loggp, piecewise())
