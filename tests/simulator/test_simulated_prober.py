"""The simulated prober: exact without noise, seeded with it, and with a clock of its own."""

from fractions import Fraction
from statistics import median
from typing import Literal

import pytest

from collwise.measure.probes import Probe
from collwise.model.machine import Machine
from collwise.simulator import SimulatedProber
from tests.simulator.noisy_prober import NoisyProber

MACHINE = Machine.postal(t0_s="2e-6", lam=Fraction(9, 5))
PROBES = [Probe(1, 8, (4, 2)), Probe(2, 8, (1, 5, 1)), Probe(1, 512, (3,), True)]


def test_without_noise_samples_are_exact() -> None:
    prober = SimulatedProber(MACHINE)
    samples = prober.run(PROBES)
    assert samples == [probe.expected(MACHINE.message(probe.nbytes)) for probe in PROBES]
    assert all(isinstance(sample, Fraction) for sample in samples)
    assert prober.elapsed_s == pytest.approx(float(sum(samples)))


def test_blocking_sends_may_have_a_machine_of_their_own() -> None:
    slow = Machine.postal(t0_s=1, lam=1)
    samples = SimulatedProber(MACHINE, blocking=slow).run(PROBES)
    assert samples[2] == 2
    assert samples[:2] == SimulatedProber(MACHINE).run(PROBES)[:2]


@pytest.mark.parametrize("distribution", ["lognormal", "uniform"])
def test_noise_multiplies_and_keeps_the_median(
    distribution: Literal["lognormal", "uniform"],
) -> None:
    probe = PROBES[0]
    exact = float(probe.expected(MACHINE.message(8)))
    noisy = NoisyProber(MACHINE, noise=0.05, distribution=distribution, seed=3)
    samples = [float(x) for x in noisy.run([probe] * 4000)]
    assert median(samples) == pytest.approx(exact, rel=0.005)
    assert len(set(samples)) == 4000
    again = NoisyProber(MACHINE, noise=0.05, distribution=distribution, seed=3)
    assert again.run([probe] * 4000) == samples
    if distribution == "uniform":
        assert 0.95 * exact <= min(samples) < 0.96 * exact
        assert 1.04 * exact < max(samples) <= 1.05 * exact


def test_overheads_pass_on_its_clock() -> None:
    prober = NoisyProber(MACHINE, overhead_s=1.0)
    prober.run(PROBES)
    assert 3 < prober.elapsed_s < 3.001
