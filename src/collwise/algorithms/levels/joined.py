"""Allgathervs that gather in groups, exchange across groups, and broadcast inside.

In the exchange a group counts as one source that has all contributions of its ranks.  So the time
of the exchange depends on how many bytes each group has, not on which of its ranks have them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from collwise.algorithms.allgatherv.trees import tree_edges
from collwise.algorithms.parts import Configured
from collwise.schedule.deliveries import Blocks, Deliveries, Delivery, needed
from collwise.schedule.hierarchy import Hierarchy, TeamTree
from collwise.schedule.problem import Problem, Source


@dataclass(frozen=True)
class Joined(Deliveries):
    """An allgatherv over levels, in three steps: gather, exchange, broadcast.

    Groups gather at their leaders; the leaders of the outermost groups exchange; groups broadcast
    inside.   exchange: the allgatherv algorithm among the leaders of the outermost groups.
    tree: has the tree of every broadcast, by level and size of the team.
    """

    exchange: Configured
    tree: TeamTree

    @property
    def teams(self) -> Hierarchy:
        """The teams of each level of the placement."""
        return self.tree.teams

    @cached_property
    def held(self) -> list[dict[int, Blocks]]:
        """For each level from 0 on, a map from a leader to the blocks that its group contributes.

        At level 0 every source is its own leader.  Leaders without blocks are left out.
        """
        levels: list[dict[int, Blocks]] = [{b.owner: (b,) for b in self.problem.gathered}]
        for level in range(1, self.teams.depth + 1):
            joined: dict[int, Blocks] = {}
            for member, blocks in levels[-1].items():
                seat = self.teams.seat(level, member)
                assert seat is not None
                joined[seat.team[0]] = joined.get(seat.team[0], ()) + blocks
            levels.append(joined)
        return levels

    def _teams(self, level: int, rank: int | None) -> Iterable[tuple[tuple[int, ...], int | None]]:
        """The team of `rank` at a level, paired with the place of `rank` in the team.

        Empty if `rank` is in no team of the level.  For rank None all teams, each paired with None.
        """
        if rank is None:
            return ((team, None) for team in self.teams.teams[level - 1])
        seat = self.teams.seat(level, rank)
        return [] if seat is None else [seat]

    def deliveries(self, rank: int | None) -> Iterator[Delivery]:  # noqa: D102
        depth = self.teams.depth
        for level in range(1, depth):
            for team, _ in self._teams(level, rank):
                for member in team[1:]:
                    yield Delivery(member, team[0], self.held[level - 1].get(member, ()))
        for team, place in self._teams(depth, rank):
            yield from self._across(team, place)
        for level in range(depth - 1, 0, -1):
            for team, place in self._teams(level, rank):
                yield from self._outwards(level, team, place)

    def _across(self, team: tuple[int, ...], place: int | None) -> Iterator[Delivery]:
        """Deliveries of the exchange, in which a member contributes all blocks of its group.

        place: yield at least those from and to the member at this place in the team; None for all.
        """
        problem = across(self.problem, self.teams)
        program = self.exchange.build(problem)
        assert isinstance(program, Deliveries)
        held = self.held[self.teams.depth - 1]
        for source, target, blocks in needed(program.deliveries(place)):
            whole = tuple(block for group in blocks for block in held[team[group.owner]])
            yield Delivery(team[source], team[target], whole)

    def _outwards(self, level: int, team: tuple[int, ...], place: int | None) -> Iterator[Delivery]:
        """Deliveries down the team's tree: a member is sent all blocks that its group lacks.

        At level 1 members are sent all blocks, since `Deliveries` leaves out a rank's own blocks.
        place: yield only deliveries from or to the member at this place in the team; None for all.
        """
        for parent, child in tree_edges(self.tree.tree(level, len(team)), place):
            blocks = self.problem.gathered
            if level > 1:
                known = set(self.held[level - 1].get(team[child], ()))
                blocks = tuple(block for block in blocks if block not in known)
            yield Delivery(team[parent], team[child], blocks)


def across(problem: Problem, teams: Hierarchy) -> Problem:
    """The allgatherv across the outermost groups, each as one rank with all its sources' bytes."""
    *inner, outermost = teams.teams
    joined = [0] * len(outermost[0])
    for source in problem.sources:
        rank = source.rank
        for level in inner:
            rank = level.leader(level.number(rank))
        joined[outermost.place(rank)] += source.nbytes
    sources = tuple(Source(place, nbytes) for place, nbytes in enumerate(joined) if nbytes)
    return Problem("allgatherv", len(joined), problem.nbytes, sources=sources)
