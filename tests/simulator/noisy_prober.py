"""A simulated network with noise, which tests of campaigns measure."""

from collections.abc import Sequence
from math import exp
from random import Random
from typing import Literal

from collwise.measure.fit import Seconds
from collwise.measure.probes import AnyProbe
from collwise.model.machine import Machine
from collwise.simulator import SimulatedProber


class NoisyProber(SimulatedProber):
    """A prober whose samples are the exact ones times random factors.

    distribution: of the factors: "lognormal" with σ = noise and median 1, or "uniform" in
    [1 − noise, 1 + noise].   overhead_s: seconds that a probe takes beyond its sample.
    """

    def __init__(
        self,
        machine: Machine,
        *,
        noise: float = 0,
        distribution: Literal["lognormal", "uniform"] = "lognormal",
        seed: int = 0,
        overhead_s: float = 0.0,
    ) -> None:
        super().__init__(machine)
        self.noise, self.distribution, self.overhead_s = noise, distribution, overhead_s
        self._random = Random(seed)

    def run(self, probes: Sequence[AnyProbe]) -> list[Seconds]:
        self.elapsed_s += self.overhead_s * len(probes)
        return super().run(probes)

    def sample(self, probe: AnyProbe) -> Seconds:
        time = super().sample(probe)
        if not self.noise:
            return time
        if self.distribution == "uniform":
            return float(time) * self._random.uniform(1 - self.noise, 1 + self.noise)
        return float(time) * exp(self._random.gauss(0, self.noise))
