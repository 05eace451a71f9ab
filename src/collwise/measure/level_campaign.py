"""Measures a machine level by level: a campaign for each, by a team of ranks that meet there."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from collwise.measure.campaign import Campaign, Measurement
from collwise.measure.level_probes import level_team, port_team
from collwise.measure.port_campaign import PortCampaign, PortFit, port_sizes
from collwise.model.placement import Placement

OUTERMOST = 5.0
"""Messages take longest there: it gets so many times the budget of any other."""
AnyCampaign: TypeAlias = Campaign | PortCampaign
Conduct: TypeAlias = Callable[[Sequence[int], Callable[[], AnyCampaign], float, float], Any]
"""Runs a campaign on some ranks and returns its result.  It is given the ranks, what makes the
campaign, the share of the whole that was done before, and the share that this is."""


class LevelMeasurements(NamedTuple):
    """The results, of the innermost level first.   ports: of the groups of each inner level."""

    inner: list[Measurement]
    ports: list[tuple[PortFit, ...]]
    outermost: Measurement


def measure_levels(
    placement: Placement,
    conduct: Conduct,
    new: Callable[[float, int], Campaign],
    asked: Sequence[int] | None,
    whole: float = 1.0,
) -> LevelMeasurements:
    """Measure every level of a placement.

    new: makes a campaign from its share of the budget and its number of ranks.   asked: sizes that
    somebody named.   whole: the share of the budget that all of this may take.
    """
    inner = range(1, placement.depth)
    teams = [level_team(placement, level) for level in (*inner, placement.depth)]
    ports = [port_team(placement, level) for level in inner]
    parts = [1.0] * len(inner) + [OUTERMOST if inner else 1.0]
    part = whole / (sum(parts) + sum(team is not None for team in ports))
    done = 0.0
    measured: list[Measurement] = []
    for team, weight in zip(teams, parts, strict=True):
        share = weight * part

        def usual(share: float = share, ranks: int = len(team)) -> Campaign:
            return new(share, ranks)

        measured.append(conduct(team, usual, done, share))
        done += share
    fits: list[tuple[PortFit, ...]] = []
    for port in ports:
        if port is None:
            fits.append(())
            continue

        def of_port(team: Any = port) -> PortCampaign:
            campaign = new(part, len(team.members))
            sizes = port_sizes(campaign.sizes, asked)
            return PortCampaign(team, sizes, campaign.budget_s, campaign.seed)

        fits.append(conduct(port.members, of_port, done, part))
        done += part
    return LevelMeasurements(measured[:-1], fits, measured[-1])
