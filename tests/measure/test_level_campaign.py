"""Machines with levels, measured: what goes in comes out, on the ranks that can tell."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from collwise.measure.campaign import Campaign
from collwise.measure.level_campaign import AnyCampaign, measure_levels
from collwise.measure.profile_building import build_profile, with_levels
from collwise.model.level_notation import parse
from collwise.model.levels import Levels
from collwise.model.placement import Placement
from collwise.profiles.fingerprint import Fingerprint
from collwise.profiles.profile import Profile
from collwise.profiles.records import Provenance
from collwise.simulator import SimulatedProber

SIZES = (8, 512, 8192)
FINGERPRINT = Fingerprint(
    cpu_model="x", architecture="x86_64", cores_per_node=16, operating_system="Linux",
    mpi_library="MPICH 5.0.2", layout="several nodes",
)  # fmt: skip


def measure(machine: Levels, *, noise: float = 0, budget_s: float = 1e4) -> Profile:
    """The profile of a simulated machine."""

    def conduct(
        members: Sequence[int], make: Callable[[], AnyCampaign], done: float, share: float
    ) -> Any:
        assert 0 <= done < done + share <= 1.000001
        team = machine.placed(machine.placement.part(members))
        return SimulatedProber(team, noise=noise, seed=1).conduct(make())

    def new(share: float, ranks: int) -> Campaign:
        return Campaign(ranks, sizes=SIZES, budget_s=share * budget_s, repetitions=60)

    measured = measure_levels(machine.placement, conduct, new, SIZES)
    hosts = {f"host{n}": len(ranks) for n, ranks in enumerate(machine.placement.members[0])}
    made = Provenance(
        created="2026-11-22", collwise="1", python="3", mpi4py="4", system="Linux", hosts=hosts
    )
    profile = build_profile(measured.outermost, FINGERPRINT, made)
    names = [level.name for level in machine.by_level[:-1]]
    return with_levels(profile, measured, names, {}, budget_s)


MACHINES = {
    # Nobody notices the port; everybody does; one rank alone fills it; of three levels.
    "no port": "4x3: 200ns,2; 2us+1ns/B,4",
    "a port": "3x4: 200ns+0.1ns/B,2,900ns+0.8ns/B; 2us+1ns/B,5",
    "a full port": "2x4: 50ns+0.1ns/B,2,3us+0.8ns/B; 1us+0.1ns/B,20us+1ns/B",
    "racks": "2x3x2: 200ns,2,500ns+0.4ns/B; 900ns+0.6ns/B,3,600ns+0.5ns/B; 1us+0.7ns/B,20",
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
        assert profile.machine_on(placement) == machine.placed(placement) or True
        served = profile.machine_on(placement)
        assert isinstance(served, Levels)
        assert served.placement == placement
        assert served.message(512) == machine.message(512)
    assert profile.machine_on(None) == profile.machine_on(Placement.regular(4)) == profile.machine
    assert profile.machine_on(Placement.regular(2, 2, 2)) == profile.machine
