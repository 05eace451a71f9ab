"""Machines with levels, measured: what goes in comes out, on the ranks that can tell."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import msgspec
import pytest
from tests.profiles.example import FINGERPRINT, PROVENANCE, point
from tests.profiles.example import profile as example_profile
from tests.simulator.noisy_prober import NoisyProber

from collwise.measure.campaign import Campaign
from collwise.measure.level_campaign import measure_levels
from collwise.measure.level_probes import port_team
from collwise.measure.port_campaign import (
    PortCampaign,
    PortFit,
    ReadCampaign,
    port_sizes,
    port_times,
)
from collwise.measure.profile_building import build_profile, with_levels
from collwise.measure.size_campaign import SizeCampaign
from collwise.model.level_notation import parse
from collwise.model.levels import Levels
from collwise.model.machine import Machine
from collwise.model.measured_machine import measured
from collwise.model.placement import Placement
from collwise.profiles.profile import Profile
from collwise.profiles.records import MeasuredSize, ReadTime
from collwise.simulator import SimulatedProber

SIZES = (8, 512, 8192)


def measure(machine: Levels, *, noise: float = 0, budget_s: float = 1e4) -> Profile:
    """The profile of a simulated machine."""

    def conduct(
        members: Sequence[int], make: Callable[[], Campaign[Any]], done: float, share: float
    ) -> Any:
        assert 0 <= done < done + share <= 1.000001
        team = machine.placed(machine.placement.part(members))
        return NoisyProber(team, noise=noise, seed=1).conduct(make())

    def new(share: float, ranks: int) -> SizeCampaign:
        return SizeCampaign(ranks, sizes=SIZES, budget_s=share * budget_s, repetitions=8)

    measured = measure_levels(machine.placement, conduct, new, SIZES)
    hosts = {f"host{n}": len(ranks) for n, ranks in enumerate(machine.placement.members[0])}
    made = msgspec.structs.replace(PROVENANCE, hosts=hosts)
    profile = build_profile(measured.outermost, FINGERPRINT, made)
    names = [level.name for level in machine.by_level[:-1]]
    return with_levels(profile, measured, names, {}, budget_s)


MACHINES = {
    # Nobody notices the port; everybody does; one rank alone fills it; of three levels.
    "no port": "4x3: 200ns,2; 2us+1ns/B,4",
    "a port": "3x4: 200ns+0.1ns/B,2,900ns+0.8ns/B; 2us+1ns/B,5",
    "a full port": "2x4: 50ns+0.1ns/B,2,3us+0.8ns/B; 1us+0.1ns/B,20us+1ns/B",
    "racks": "2x3x2: 200ns,2,500ns+0.4ns/B; 900ns+0.6ns/B,3,600ns+0.5ns/B; 1us+0.7ns/B,20",
    "nobody to share with": "3+1+1: 200ns,2; 2us+1ns/B,4",
    "ragged": "3+5+4, round robin: 200ns,2,900ns+0.8ns/B; 2us+1ns/B,5",
}


@pytest.mark.parametrize("name", MACHINES)
def test_a_simulated_machine_comes_back_exactly(name: str) -> None:
    machine = parse(MACHINES[name])
    profile = measure(machine)
    again = profile.machine_on(machine.placement)
    assert isinstance(again, Levels)
    assert Profile.from_json(profile.to_json()) == profile
    for level in range(1, machine.placement.depth + 1):
        for nbytes in (*SIZES, 3000):
            assert again.at(level, nbytes) == machine.at(level, nbytes)
            if level < machine.placement.depth:
                assert again.port(level, nbytes) == machine.port(level, nbytes)


def test_a_profile_serves_other_placements_and_other_machines_are_flat() -> None:
    machine = parse(MACHINES["a port"])
    profile = measure(machine)
    for placement in (Placement.regular(8, 2), Placement.nodes([1, 5, 2], round_robin=True)):
        served = profile.machine_on(placement)
        assert isinstance(served, Levels)
        assert served.placement == placement
        assert served.message(512) == machine.message(512)
    assert profile.machine_on(None) == profile.machine_on(Placement.regular(4)) == profile.machine
    assert profile.machine_on(Placement.regular(2, 2, 2)) == profile.machine


def test_a_port_within_noise_and_with_its_intervals() -> None:
    machine = parse(MACHINES["a full port"])
    (level,) = measure(machine, noise=0.02).levels
    for time in level.port:
        assert time.port_interval_s is not None
        low, high = time.port_interval_s
        assert low <= time.port_s <= high
        assert time.port_s == pytest.approx(float(machine.port(1, time.nbytes)), rel=0.05)
        assert (time.rank_s is None) == (time.rank_interval_s is None)


def test_a_port_is_not_kept_to_what_one_sender_is_uncertain_of() -> None:
    """t0 came out a fifth too short, within its interval; the port was measured with four senders.

    One sender cannot be slower than its port, so the interval's upper end still limits it.
    """
    fit = PortFit(1400, 4, Fraction(4640, 10**6), 1e-5, Fraction(4, 10**5), 1e-6, 5)
    inside = [point(1400, "nonblocking", 60.0, t0_s=4e-6)]
    for high, expected in ((1.4e-3, 1.16e-3), (1.1e-3, 1.1e-3), (None, 0.95e-3)):
        interval = high and (0.7e-3, high)
        around = [point(1400, "nonblocking", 7.0, t0_s=0.95e-3, t0_interval_s=interval)]
        (time,) = port_times([fit], around, inside)
        assert time.port_s == pytest.approx(expected)
        assert time.rank_s == 4e-5


def test_a_budget_that_suffices_for_nothing_measures_the_smallest_size_once() -> None:
    machine = parse(MACHINES["a port"])
    team = port_team(machine.placement, 1)
    assert team is not None
    campaign = PortCampaign(team, SIZES, budget_s=1e-9, seed=0)
    (fit,) = SimulatedProber(machine.placed(machine.placement.part(team.members))).conduct(campaign)
    assert (fit.nbytes, fit.repetitions, fit.together_error_s) == (8, 1, None)
    assert campaign.progress == 1
    (time,) = port_times([fit], profile_points(machine, 2), profile_points(machine, 1))
    assert time.port_s == float(machine.port(1, 8))
    assert time.port_interval_s is None


def profile_points(machine: Levels, level: int) -> list[MeasuredSize]:
    """A level's costs as if they had been measured."""
    costs = [(nbytes, machine.at(level, nbytes)) for nbytes in SIZES]
    return [
        point(nbytes, "nonblocking", float(cost.lam), t0_s=float(cost.gap))
        for nbytes, cost in costs
    ]


def test_sizes_of_ports() -> None:
    """All that somebody named; else some, with the largest."""
    assert port_sizes((8, 512), (8, 512)) == (8, 512)
    assert port_sizes((8, 32, 128, 512, 2048, 4096), None) == (32, 2048, 4096)


@pytest.mark.parametrize("senders", [1, 3])
def test_reads_come_back_exactly(senders: int) -> None:
    """One sender alone is slower than the reader; then its t0 is what is seen.

    A message takes as long for many readers as for one.
    """
    read = [(8, Fraction("50e-9")), (8192, Fraction("900e-9"))]
    law = Machine.postal(t0_s="1e-6", lam=2)
    campaign = ReadCampaign(senders, SIZES, budget_s=10, seed=0)
    found = SimulatedProber(Machine.memory(law, read=read)).conduct(campaign)
    shared = Machine.memory(law, read=read)
    least = law.message(8).gap / senders
    assert [time.nbytes for time in found] == list(SIZES)
    for time in found:
        assert time.read_s == float(max(shared.receipt(time.nbytes), least))
        each = float(max(shared.receipt(time.nbytes), law.message(8).gap)) * (senders > 1)
        assert (time.by_one_s, time.by_all_s) == (each, each)
        assert time.readers == (senders if senders > 1 else 0)


def test_memory_comes_back_exactly() -> None:
    """No rank of a probe publishes while it could read, so taking turns changes no probe."""
    publishing = measured([[(8, "1e-6", 2), (8192, "5e-6", "1.25")]])
    machine = Machine.memory(publishing, read=[(8, "5e-7"), (8192, "4e-6")])
    campaign = SizeCampaign(2, sizes=(8, 8192), budget_s=10, modes=(False,))
    fits = SimulatedProber(machine).conduct(campaign).fits
    assert [fit.cost for fit in fits] == [machine.message(n) for n in (8, 8192)]


def test_measured_reads_make_a_machine_that_shares_memory() -> None:
    """Noise may make a read longer than the way of which it is a part, or fall with the size."""
    points = [point(8, t0_s=1e-6, lam=2), point(8192, t0_s=5e-6, lam=2)]
    times = [(8, 4e-6), (16, 2e-6), (64, 3e-6), (8192, 4e-6)]
    reading = [ReadTime(nbytes=n, read_s=s, repetitions=3) for n, s in times]
    profile = example_profile(points, combining=(), reading=tuple(reading))
    machine = profile.machine
    assert machine.shares_memory
    assert (machine.receipt(8), machine.receipt(8192)) == (Fraction("2e-6"), Fraction("4e-6"))
    assert machine.message(8) == profile.machine_for("nonblocking").message(8)
    assert profile.machine_combining("sum", "float64").shares_memory
    assert Profile.from_json(profile.to_json()) == profile


@pytest.mark.parametrize("level", [1, 2])
def test_one_size_of_a_level_tells_nothing_of_long_messages(level: int) -> None:
    """There was no time for more, as with sites on a slow network: the other level knows."""
    machine = parse("2x8: 2us+8ns/B,14us+8ns/B; 3us+8ns/B,210us+8ns/B")
    profile = measure(machine)
    known = profile.measurements
    if level == 1:
        few = tuple(point for point in known.levels[0].points if point.nbytes == SIZES[0])
        inside = msgspec.structs.replace(known.levels[0], points=few)
        known = msgspec.structs.replace(known, levels=(inside,))
    else:
        few = tuple(point for point in known.points if point.nbytes == SIZES[0])
        known = msgspec.structs.replace(known, points=few)
    again = msgspec.structs.replace(profile, measurements=known).machine_on(machine.placement)
    assert isinstance(again, Levels)
    for nbytes in SIZES:
        assert again.at(level, nbytes) == machine.at(level, nbytes)
