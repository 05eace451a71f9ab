"""The teams of every level, and what one rank's schedule needs of them."""

from random import Random
from typing import Any

import pytest
from tests.algorithms.examples import settings_of
from tests.timing.schedules import random_placement

from collwise.algorithms.registry import ALGORITHMS
from collwise.model.placement import Placement
from collwise.schedule.hierarchy import Seat, Teams, hierarchy
from collwise.schedule.problem import Problem

Team = tuple[int, ...]


def twin(placement: Placement, root: int) -> list[list[Team]]:
    """The teams of every level, in the obvious way: rank after rank."""
    levels: list[list[Team]] = []
    leaders = list(range(placement.ranks))
    for level in range(1, placement.depth + 1):
        teams: dict[int, list[int]] = {}
        for rank in leaders:
            group = placement.group(level, (rank + root) % placement.ranks)
            teams.setdefault(group, []).append(rank)
        if len(leaders) > 1 or level == 1:
            levels.append(list(map(tuple, teams.values())))
        leaders = [team[0] for team in teams.values()]
    return levels


@pytest.mark.parametrize("seed", range(20))
def test_teams_and_seats(seed: int) -> None:
    random = Random(seed)
    ranks = random.randrange(1, 20)
    placement = random_placement(random, ranks, random.choice((1, 2, 3, 4)))
    root = random.randrange(ranks)
    teams, expected = hierarchy(placement, root), twin(placement, root)
    assert [list(level) for level in teams.teams] == expected
    assert teams.depth == len(expected)
    for number, level in enumerate(expected, 1):
        assert teams.largest(number) == max(map(len, level))
        by_size = [tuple(team) for _, rows in teams.teams[number - 1].by_size() for team in rows]
        assert sorted(by_size) == sorted(level)
        for rank in range(ranks):
            seats = [Seat(team, team.index(rank)) for team in level if rank in team]
            assert teams.seat(number, rank) == (seats[0] if seats else None)


WITH_LEVELS = [algorithm for algorithm in ALGORITHMS.values() if algorithm.levels]
SEARCHES = {
    "broadcast/multilevel_ordered",
    "allgatherv/multilevel_as_broadcast",
    "allreduce/multilane_pieces",
}
"""The order of all sends is searched for, or found by playing all ranks."""


@pytest.mark.parametrize("algorithm", WITH_LEVELS, ids=lambda a: a.name)
def test_one_rank_looks_at_few_teams(algorithm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those in which it is itself, and that of the root: not at all 64 nodes."""
    if algorithm.name in SEARCHES:
        return
    made: list[int] = []
    getitem = Teams.__getitem__

    def counted(self: Any, number: Any) -> Any:
        made.append(number)
        return getitem(self, number)

    monkeypatch.setattr(Teams, "__getitem__", counted)
    sources = [0, 9] if algorithm.kind.has_sources else None
    placement = Placement.regular(64, 4, round_robin=True)
    problem = Problem.of(algorithm.collective, 256, 512, sources=sources, placement=placement)
    schedule = algorithm.solve(problem, settings_of(algorithm, 256))
    assert schedule.rank(77)
    assert len(set(made)) <= 6
