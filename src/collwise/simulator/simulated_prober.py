"""Times probes on an assumed machine, as the MPI runner does on a real one."""

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import exp
from random import Random
from typing import Literal

from collwise.errors import InvalidArgument
from collwise.measure.campaign import Campaign, Result
from collwise.measure.probes import AnyProbe, Probe
from collwise.model.levels import Levels
from collwise.model.machine import Machine
from collwise.timing import simulate


class SimulatedProber:
    """A simulated network, and a simulated clock, for probes.

    machine: the machine for non-blocking sends.   blocking: the machine for blocking sends; None
    for the same one.   noise: 0 for exact samples (Fractions); else each sample is a float, the
    exact one times a random factor.   distribution: that of the factor: "lognormal" with σ = noise
    and median 1, or "uniform" in [1 − noise, 1 + noise].   seed: of the random numbers.
    overhead_s: seconds that every probe takes beyond its sample.
    """

    def __init__(
        self,
        machine: Machine,
        *,
        blocking: Machine | None = None,
        noise: float = 0,
        distribution: Literal["lognormal", "uniform"] = "lognormal",
        seed: int = 0,
        overhead_s: float = 0.0,
    ) -> None:
        if not 0 <= noise < 1:
            raise InvalidArgument(
                "a simulated prober", f"noise = {noise}", "give a fraction from 0 to below 1"
            )
        self.machine, self.blocking = machine, blocking or machine
        self.noise, self.distribution = noise, distribution
        self.overhead_s = overhead_s
        self.elapsed_s = 0.0
        """Simulated seconds since the prober was made."""
        self._random = Random(seed)

    def run(self, probes: Sequence[AnyProbe]) -> list[Fraction | float]:
        """The seconds that each probe takes by the clock of rank P_0."""
        samples = [self._sample(probe) for probe in probes]
        self.elapsed_s += float(sum(samples)) + self.overhead_s * len(probes)
        return samples

    def conduct(self, campaign: Campaign[Result]) -> Result:
        """Run all batches of probes of a campaign; returns its result."""
        while batch := campaign.next_batch():
            campaign.record(batch, self.run(batch), self.elapsed_s)
        return campaign.result()

    def _sample(self, probe: AnyProbe) -> Fraction | float:
        machine = self.blocking if probe.blocking else self.machine
        time = observed(_renumbered(probe) if isinstance(probe, Probe) else probe, machine)
        if not self.noise:
            return time
        if self.distribution == "uniform":
            return float(time) * self._random.uniform(1 - self.noise, 1 + self.noise)
        return float(time) * exp(self._random.gauss(0, self.noise))


@lru_cache(maxsize=4096)
def observed(probe: AnyProbe, machine: Machine) -> Fraction:
    """Exact seconds until rank P_0 has finished a probe, by simulating the probe's schedule.

    On a machine with levels, the schedule has as many ranks as the machine's placement.
    """
    ranks = machine.placement.ranks if isinstance(machine, Levels) else None
    return simulate(probe.schedule(ranks), machine).finish[0]


def _renumbered(probe: Probe) -> Probe:
    """The probe with targets renumbered 1, 2, …, which takes equally long on an ideal network."""
    names = {target: 1 + i for i, target in enumerate(dict.fromkeys(probe.targets))}
    targets = tuple(names[target] for target in probe.targets)
    return Probe(probe.experiment, probe.nbytes, targets, probe.blocking)
