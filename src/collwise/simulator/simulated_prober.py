"""Times probes on an assumed machine by simulation; the MPI runner times them on a real one."""

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

from collwise.measure.campaign import Campaign, Result
from collwise.measure.fit import Seconds
from collwise.measure.probes import AnyProbe, Probe
from collwise.model.levels import Levels
from collwise.model.machine import Machine
from collwise.timing import simulate


class SimulatedProber:
    """Times probes on a simulated machine, and counts the simulated seconds that they take.

    machine: the machine for non-blocking sends.   blocking: the machine for blocking sends; None
    for `machine`.
    """

    def __init__(self, machine: Machine, *, blocking: Machine | None = None) -> None:
        self.machine, self.blocking = machine, blocking or machine
        self.elapsed_s = 0.0
        """Simulated seconds of all probes that `run` has timed."""

    def run(self, probes: Sequence[AnyProbe]) -> list[Seconds]:
        """Exact seconds of each probe by the clock of rank 0 (P_0); adds them to `elapsed_s`."""
        samples = [self.sample(probe) for probe in probes]
        self.elapsed_s += float(sum(samples))
        return samples

    def conduct(self, campaign: Campaign[Result]) -> Result:
        """Run all batches of probes of a campaign; returns its result."""
        while batch := campaign.next_batch():
            campaign.record(batch, self.run(batch), self.elapsed_s)
        return campaign.result()

    def sample(self, probe: AnyProbe) -> Seconds:
        """The exact seconds that one probe takes."""
        machine = self.blocking if probe.blocking else self.machine
        return observed(_renumbered(probe) if isinstance(probe, Probe) else probe, machine)


@lru_cache(maxsize=4096)
def observed(probe: AnyProbe, machine: Machine) -> Fraction:
    """Exact seconds until rank 0 (P_0) has finished a probe, by simulating the probe's schedule.

    On a machine with levels, the schedule has as many ranks as the machine's placement.
    """
    ranks = machine.placement.ranks if isinstance(machine, Levels) else None
    return simulate(probe.schedule(ranks), machine).finish[0]


def _renumbered(probe: Probe) -> Probe:
    """The probe with targets renumbered 1, 2, …, which takes equally long on an ideal network."""
    names = {target: 1 + i for i, target in enumerate(dict.fromkeys(probe.targets))}
    targets = tuple(names[target] for target in probe.targets)
    return Probe(probe.experiment, probe.nbytes, targets, probe.blocking)
