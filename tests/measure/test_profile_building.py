"""From a simulated machine to a profile file and back to the machine."""

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import msgspec
import pytest
from tests.profiles.example import FINGERPRINT, PROVENANCE

from collwise.measure.fit import Seconds
from collwise.measure.probes import AnyProbe
from collwise.measure.profile_building import build_profile
from collwise.measure.size_campaign import SIZES, Measurement, SizeCampaign
from collwise.model.machine import Machine
from collwise.model.measured_machine import PICOSECOND, measured
from collwise.profiles.profile import Profile
from collwise.simulator import SimulatedProber

MADE = msgspec.structs.replace(PROVENANCE, elapsed_s=0, ranks=0, budget_s=0)


def _measure(machine: Machine, ranks: int = 9, **options: object) -> Measurement:
    campaign = SizeCampaign(ranks, seed=5, budget_s=7, **options)  # type: ignore[arg-type]
    return SimulatedProber(machine).conduct(campaign)


@pytest.mark.no_cover
@pytest.mark.parametrize("lam", ["1", "9/5", "4/3"])
def test_a_profile_gives_the_machine_back_exactly(lam: str, tmp_path: Path) -> None:
    machine = Machine.postal(t0_s="1.2e-6", lam=Fraction(lam))
    profile = build_profile(_measure(machine), FINGERPRINT, MADE)
    loaded = Profile.load(profile.save(tmp_path / "profile.json"))
    assert loaded == profile
    assert loaded.machine.sizes() == SIZES
    for nbytes in (1, 8, 100, 1 << 20, 1 << 24):
        assert loaded.machine.message(nbytes) == machine.message(nbytes)
        assert loaded.machine_for("blocking").message(nbytes) == machine.message(nbytes)
    assert profile.verdict == "stable"
    assert profile.advice == ()
    assert profile.disagreement == 0


def test_protocol_segments_survive() -> None:
    machine = measured(
        [
            [(8, "1.002e-6", 2), (16384, "5.096e-6", 2)],
            [(32768, "20e-6", "1.5"), (1048576, "200e-6", "1.5")],
        ]
    )
    measurement = _measure(machine)
    profile = build_profile(measurement, FINGERPRINT, MADE)
    assert len(profile.machine_for("nonblocking").segments) == 2
    costs = {fit.nbytes: fit.cost for fit in measurement.fits if not fit.blocking}
    for nbytes in SIZES:
        gap, latency = profile.machine.message(nbytes)
        assert abs(gap - costs[nbytes].gap) <= PICOSECOND / 2
        assert abs(latency - costs[nbytes].latency) <= PICOSECOND / 2


def test_provenance_is_completed_and_raw_medians_kept() -> None:
    profile = build_profile(_measure(Machine.postal(t0_s=1e-6, lam=2)), FINGERPRINT, MADE)
    made = profile.provenance
    assert (made.ranks, made.seed, made.budget_s) == (9, 5, 7)
    assert 0 < made.elapsed_s < 7
    assert (made.mpi4py, made.hosts) == ("4.1.2", {"node1": 5})
    assert len(profile.medians) == len(SIZES) * 2 * 2 * 4
    first = profile.medians[0]
    assert (first.experiment, first.nbytes, first.k, first.median_s) == (1, 8, 1, 4e-6)
    assert {m.mode for m in profile.medians} == {"blocking", "nonblocking"}
    point = profile.points[0]
    assert (point.t0_s, point.lam, point.t0_interval_s) == (1e-6, 2, (1e-6, 1e-6))
    assert (point.t0_experiments_s, point.lam_experiments) == ((1e-6, 1e-6), (2, 2))
    assert (point.verdict, point.mode) == ("stable", "nonblocking")


def test_crowded_nodes_are_noticed() -> None:
    measurement = _measure(Machine.postal(t0_s=1e-6, lam=2))
    oversubscribed = build_profile(
        measurement, FINGERPRINT, msgspec.structs.replace(MADE, hosts={"a": 3, "b": 20})
    )
    assert oversubscribed.verdict == "noisy: 20 ranks share 16 core(s)"
    limited = build_profile(measurement, FINGERPRINT, msgspec.structs.replace(MADE, usable_cores=2))
    assert limited.verdict == "noisy: 5 ranks share 2 core(s)"


def test_what_is_unknown_stays_unknown() -> None:
    """One repetition: no interval; an experiment without growth: no λ of its own."""

    class OneLevel(SimulatedProber):
        def run(self, probes: Sequence[AnyProbe]) -> list[Seconds]:
            exact = super().run(probes)
            flat = Fraction(9)
            return [
                flat if p.cell.experiment == 1 else x for p, x in zip(probes, exact, strict=True)
            ]

    # The second size has twice the budget, and its probes fit into that just once.
    campaign = SizeCampaign(4, sizes=(8, 512), budget_s=210)
    profile = build_profile(
        OneLevel(Machine.postal(t0_s=1, lam=2)).conduct(campaign), FINGERPRINT, MADE
    )
    for point in (p for p in profile.points if p.nbytes == 512):
        assert (point.t0_interval_s, point.lam_interval, point.disagreement) == (None,) * 3
        assert point.lam_experiments == (None, 2)
        assert point.repetitions == 1
    assert profile.disagreement is None
    assert Profile.from_json(profile.to_json()) == profile
