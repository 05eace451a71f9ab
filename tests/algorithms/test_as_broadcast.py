"""An s-to-p broadcast with one source is a broadcast, by any algorithm that broadcasts."""

from random import Random
from typing import Any

import pytest

import collwise as cw
from collwise.algorithms import ALGORITHMS, Algorithm
from collwise.algorithms.registry import algorithms_for, describe
from tests.algorithms.examples import MACHINES, MEASURED, settings_of

AS_BROADCAST = ALGORITHMS["allgatherv/as_broadcast"]
OVER_LEVELS = ALGORITHMS["allgatherv/multilevel_as_broadcast"]
LEVELS = cw.Machine.levels(
    [cw.Machine.postal(t0_s=1, lam=2), MEASURED], cw.Placement.regular(3, 2), ports=["1/9"]
)
each = pytest.mark.parametrize("algorithm", algorithms_for("broadcast"), ids=lambda a: a.name)


@pytest.mark.no_cover
@each
def test_one_source_is_a_broadcast(algorithm: Algorithm) -> None:
    """The same messages at the same times, from any source."""
    ours = OVER_LEVELS if algorithm.levels else AS_BROADCAST
    random = Random(algorithm.name)
    for p in (2, 6, 11):
        source, settings = random.randrange(p), settings_of(algorithm, p)
        label = describe(algorithm.short_name, algorithm.settings(settings))
        placement = cw.Placement.regular(3, 2) if p == 6 else None
        given: dict[str, Any] = {"placement": placement, "algorithm": label}
        schedule = ours.schedule(p, 1000, sources=[source], **given)
        broadcast = algorithm.schedule(p, 1000, source, placement=placement, **settings)
        assert schedule.lists == broadcast.lists
        for machine in MACHINES[::3]:
            time = ours.predict(machine, p, 1000, sources=[source], **given)
            assert time == algorithm.predict(
                machine, p, 1000, source, placement=placement, **settings
            )


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("machine", "ranks"),
    [
        (cw.Machine.hockney(alpha_s="1e-6", beta_s="1e-9"), 600),
        (cw.Machine.loggp(L_s=5e-6, o_s=2e-6, g_s=3e-6, G_s=1e-9), 6),
        (LEVELS, 6),
    ],
)
def test_it_is_planned_as_fast(machine: cw.Machine, ranks: int) -> None:
    for nbytes in (8, 5000):
        given: dict[str, Any] = {"ranks": ranks, "machine": machine}
        broadcast = cw.plan("broadcast", nbytes=nbytes, root=4, **given)
        plan = cw.plan("allgatherv", nbytes=nbytes, sources=[4], **given)
        assert plan.choice.predicted == broadcast.choice.predicted
        cw.verify(plan.schedule)
        assert cw.simulate(plan.schedule, machine=machine).completion == plan.choice.predicted
