"""Measures a machine level by level: one campaign per level, on ranks that meet at that level."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from collwise.measure.campaign import Campaign
from collwise.measure.level_probes import PortTeam, level_team, port_team
from collwise.measure.port_campaign import PortCampaign, PortFit, port_sizes
from collwise.measure.size_campaign import Measurement, SizeCampaign
from collwise.model.placement import Placement

OUTERMOST = 5.0
"""The budget of the outermost level, where messages take longest, relative to another level's."""
Conduct: TypeAlias = Callable[[Sequence[int], Callable[[], Campaign[Any]], float, float], Any]
"""A function that runs a campaign on some ranks and returns its result.

Its arguments: the ranks, a function that makes the campaign, the share of all campaigns that is
done already, and this campaign's share.
"""


class LevelMeasurements(NamedTuple):
    """The results of all levels.

    inner: the results of each inner level, the innermost first.   ports: the times of the ports of
    each inner level's groups, empty if not measured.   outermost: the results of the last level.
    """

    inner: list[Measurement]
    ports: list[tuple[PortFit, ...]]
    outermost: Measurement


def measure_levels(
    placement: Placement,
    conduct: Conduct,
    new: Callable[[float, int], SizeCampaign],
    asked: Sequence[int] | None,
    whole: float = 1.0,
) -> LevelMeasurements:
    """Measure every level of a placement.

    conduct: runs a campaign.   new: makes a campaign from its share of the budget and its number of
    ranks.   asked: the sizes that the user named; None for the usual ones.   whole: the share of
    the budget for all levels together.
    """
    levels = range(1, placement.depth + 1)
    teams = [level_team(placement, level) for level in levels]
    ports = [port_team(placement, level) for level in levels[:-1]]
    weights = [1.0] * len(ports) + [OUTERMOST if ports else 1.0]
    part = whole / (sum(weights) + sum(team is not None for team in ports))
    done = 0.0

    def run(members: Sequence[int], share: float, make: Callable[[SizeCampaign], Any]) -> Any:
        nonlocal done
        before, done = done, done + share
        return conduct(members, lambda: make(new(share, len(members))), before, share)

    def of_port(team: PortTeam, usual: SizeCampaign) -> PortCampaign:
        return PortCampaign(team, port_sizes(usual.sizes, asked), usual.budget_s, usual.seed)

    *inner, outermost = [
        run(team, weight * part, lambda usual: usual)
        for team, weight in zip(teams, weights, strict=True)
    ]
    fits = [
        () if team is None else run(team.members, part, partial(of_port, team)) for team in ports
    ]
    return LevelMeasurements(inner, fits, outermost)
