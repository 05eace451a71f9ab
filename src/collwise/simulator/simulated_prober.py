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
    """A network and a clock for probes, both simulated.

    machine: for non-blocking sends; blocking: the machine for blocking ones (the same if not
    given).  noise: 0 for exact samples (Fractions); else each is multiplied by a random factor and
    is a float, "lognormal" with this σ and median 1, or "uniform" in [1 − noise, 1 + noise].
    overhead_s: what every probe takes beyond its sample.
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
        """Seconds that each probe takes, as P_0 sees them."""
        samples = [self._sample(probe) for probe in probes]
        self.elapsed_s += float(sum(samples)) + self.overhead_s * len(probes)
        return samples

    def conduct(self, campaign: Campaign[Result]) -> Result:
        """Run a whole campaign."""
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
    """Exact seconds until P_0 has the answer, from the simulated schedule (no closed form).

    On a machine with levels the ranks are those of its placement.
    """
    ranks = machine.placement.ranks if isinstance(machine, Levels) else None
    return simulate(probe.schedule(ranks), machine).finish[0]


def _renumbered(probe: Probe) -> Probe:
    """The probe on the ranks 1, 2, …: an ideal network does not know which rank is which."""
    names = {target: 1 + i for i, target in enumerate(dict.fromkeys(probe.targets))}
    targets = tuple(names[target] for target in probe.targets)
    return Probe(probe.experiment, probe.nbytes, targets, probe.blocking)
