"""Runs a measuring campaign on MPI: rank 0 decides what to time next, all ranks time it."""

import time
from collections.abc import Callable, Iterable

from mpi4py import MPI

from collwise.measure.campaign import SIZES, Campaign, Measurement
from collwise.measure.combine_cost import cells, slowest
from collwise.measure.profile_building import build_profile
from collwise.mpi.bench.combine_timing import time_cells
from collwise.mpi.bench.mpi_prober import Prober
from collwise.mpi.runtime.agreement import on_root
from collwise.mpi.runtime.world import World
from collwise.profiles.profile import Profile

COMBINING_SHARE = 0.1
"""The share of the time budget for timing operators."""

Report = Callable[[float], None]
"""Called on rank 0 with the share that is done, from 0 to 1."""


def run_campaign(
    comm: MPI.Intracomm,
    world: World,
    *,
    budget_s: float,
    sizes: Iterable[int] | None = None,
    seed: int = 0,
    report: Report = lambda done: None,
) -> Profile:
    """Measure t0, λ and combining on `comm`; the profile is the same on all ranks.  Collective.

    budget_s: seconds, of which combining takes a small share at the end.   sizes: bytes of a
    message; the usual ones if not given.
    Raises InvalidArgument, on all ranks, for fewer than 2 ranks or values out of range.
    """
    chosen = SIZES if sizes is None else tuple(sizes)

    def new() -> Campaign:
        share = budget_s * (1 - COMBINING_SHARE)
        return Campaign(comm.Get_size(), sizes=chosen, budget_s=share, seed=seed)

    largest = on_root(comm, lambda: max(new().sizes))
    campaign = new() if comm.Get_rank() == 0 else None
    prober = Prober(comm, largest)
    begin = time.perf_counter()
    while batch := on_root(comm, campaign.next_batch if campaign else list):
        samples = prober.run(batch)
        if campaign is not None:
            campaign.record(batch, samples, time.perf_counter() - begin)
            report(campaign.progress)

    mine = time_cells(cells(), budget_s * COMBINING_SHARE)
    gathered = comm.gather(mine, root=0)

    def result() -> Profile:
        assert campaign is not None
        assert gathered is not None
        measurement: Measurement = campaign.result()
        combining = slowest(gathered)
        return build_profile(measurement, world.fingerprint(), world.provenance(), combining)

    return on_root(comm, result, takes_long=True)
