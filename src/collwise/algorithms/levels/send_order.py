"""Who is served next: a search over orders of sends on a machine with levels.

Ranks become free one after another.  The one that is free first decides which rank to serve, or to
serve nobody any more; execution as early as possible follows from these decisions.  First a rule
decides: outer groups before inner ones [Kielmann1999], once so many ranks of the sender's own node
have the data.  On few ranks the search then tries other decisions, up to a limit of work.
"""

from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from typing import NamedTuple, TypeAlias

from collwise.model.placement import Placement

MAX_RUNS = 1500
"""Orders that are tried after those of the rules."""
LARGEST_SEARCHED = 16
"""Ranks up to which other orders than those of the rules are tried."""
MANY = 1024
"""Up to so many ranks every power of two is a rule; beyond, every power of four."""


_Parts: TypeAlias = list[list[tuple[int, int]]]


class LevelCost(NamedTuple):
    """What a message that meets at a level costs, and what a group's port there takes; integers."""

    gap: int
    latency: int
    port: int = 0


class Order(NamedTuple):
    """Sends as (source, target), in the order of decisions, and when the last one arrives.

    options: the number of options at every decision.
    """

    sends: list[tuple[int, int]]
    finish: int
    options: list[int]


def best_order(placement: Placement, costs: Sequence[LevelCost]) -> Order:
    """The fastest order of sends from rank 0 that is found.   costs: by level, innermost first."""
    largest = max(map(len, placement.members[0]))
    step = 1 if placement.ranks <= MANY else 2
    rules = sorted({1, *(1 << n for n in range(step, largest.bit_length(), step)), largest})
    groups = [*placement.groups, (0,) * placement.ranks]
    parts = [_parts(groups, level) for level in range(1, placement.depth + 1)]
    searched = placement.ranks <= LARGEST_SEARCHED
    best: Order | None = None
    for rule in rules:
        run = _Run(groups, parts, costs, rule, searched=searched).order([], best)
        best = min(best or run, run, key=lambda order: order.finish)
    assert best is not None
    choices: list[int] = []
    for _ in range(MAX_RUNS if searched else 0):
        run = _Run(groups, parts, costs, 1, searched=True).order(choices, best)
        best = min(best, run, key=lambda order: order.finish)
        choices = [*choices, *[0] * len(run.options)][: len(run.options)]
        while choices and choices[-1] + 1 >= run.options[len(choices) - 1]:
            choices.pop()
        if not choices:
            break
        choices[-1] += 1
    return best


class _Run:
    """One order, decision by decision.

    groups: of every level, the number of each rank's group; parts: of every level, `_parts`.
    rule: outer groups are served when so many ranks of the sender's node have the data.
    searched: whether to return all options.
    """

    def __init__(
        self,
        groups: Sequence[Sequence[int]],
        parts: Sequence[_Parts],
        costs: Sequence[LevelCost],
        rule: int,
        *,
        searched: bool,
    ) -> None:
        self.groups, self.costs, self.rule, self.searched = groups, costs, rule, searched
        self.least = min(cost.latency for cost in costs)
        self.ranks, self.nodes = len(groups[0]), groups[0]
        self.never = 1 + 2 * self.ranks * sum(map(sum, costs))
        """Later than any order that serves everybody ends."""
        self.informed = [False] * self.ranks
        self.counts = [[0] * (max(row) + 1) for row in groups]
        """For every level, how many ranks of its groups have the data."""
        self.fresh = [[[*rows] for rows in level] for level in parts]
        self.out = [[0] * len(counts) for counts in self.counts]
        self.into = [
            [-cost.port] * len(counts) for cost, counts in zip(costs, self.counts, strict=True)
        ]
        self.passed = [  # of a message that meets at a level, the ports and for how long
            [(row, cost.port) for row, cost in enumerate(costs[:level]) if cost.port]
            for level in range(len(costs))
        ]
        self.outwards = range(len(groups), 0, -1)
        self._tell(0)

    def order(self, choices: Sequence[int], best: Order | None) -> Order:
        """By these choices among the options, then by the first ones; given up if it is no better.

        An order that is given up never ends before the best one.
        """
        free, finish = [(0, 0)], 0
        sends: list[tuple[int, int]] = []
        options: list[int] = []
        gaps, limit = [cost.gap for cost in self.costs], best.finish if best else self.never
        while len(sends) < self.ranks - 1:
            if not free:  # everybody serves nobody any more
                return Order(sends, self.never, options)
            ready, rank = heappop(free)
            if finish >= limit or ready + self.least >= limit:
                return Order(sends, max(finish, limit), options)
            if self.searched:
                offered = list(self._options(rank))
                choice = offered[choices[len(options)] if len(options) < len(choices) else 0]
                options.append(len(offered))
            else:
                choice = next(self._options(rank))
            if choice is None:
                continue
            target, level = choice
            start, arrival = self._send(ready, rank, target, level)
            finish = max(finish, arrival)
            sends.append((rank, target))
            heappush(free, (start + gaps[level - 1], rank))
            heappush(free, (arrival, target))
            self._tell(target)
        return Order(sends, finish, options)

    def _options(self, rank: int) -> Iterator[tuple[int, int] | None]:
        """The ranks that a rank may send to, with the level of each, in the order of the rule."""
        levels: Iterable[int] = self.outwards
        if self.counts[0][self.nodes[rank]] < self.rule:
            levels = (1, *self.outwards[:-1])
        nodes = set()
        for level in levels:
            if (target := self._next(level, rank)) is not None:
                nodes.add(self.nodes[target])
                yield target, level
        if self.searched:  # also those in a node in which some rank has the data
            for target, (informed, node) in enumerate(zip(self.informed, self.nodes, strict=True)):
                if not informed and node not in nodes:
                    nodes.add(node)
                    rows = enumerate(self.groups, 1)
                    yield target, next(n for n, row in rows if row[rank] == row[target])
        yield None

    def _next(self, level: int, rank: int) -> int | None:
        """The first rank of the largest group of the level below in which no rank has the data."""
        parts = self.fresh[level - 1][self.groups[level - 1][rank]]
        informed = self.informed if level == 1 else self.counts[level - 2]
        while parts:
            part, first = parts[-1]
            if not informed[part]:
                return first
            parts.pop()
        return None

    def _send(self, start: int, source: int, target: int, level: int) -> tuple[int, int]:
        """When a message that is ready at `start` starts, and when it arrives."""
        ports = self.passed[level - 1]
        for row, _ in ports:
            start = max(start, self.out[row][self.groups[row][source]])
        arrival = start + self.costs[level - 1].latency
        for row, port in ports:
            self.out[row][self.groups[row][source]] = start + port
        for row, port in reversed(ports):
            into, group = self.into[row], self.groups[row][target]
            arrival = into[group] = max(arrival, into[group] + port)
        return start, arrival

    def _tell(self, rank: int) -> None:
        self.informed[rank] = True
        for row, counts in zip(self.groups, self.counts, strict=True):
            counts[row[rank]] += 1


def _parts(groups: Sequence[Sequence[int]], level: int) -> _Parts:
    """In every group of a level, (group, first rank) of the groups below, the largest one last."""
    around: list[dict[int, list[int]]] = [{} for _ in range(max(groups[level - 1]) + 1)]
    for rank, group in enumerate(groups[level - 1]):
        part = groups[level - 2][rank] if level > 1 else rank
        around[group].setdefault(part, []).append(rank)
    return [
        sorted(
            ((part, ranks[0]) for part, ranks in parts.items()),
            key=lambda row: (len(parts[row[0]]), -row[1]),
        )
        for parts in around
    ]
