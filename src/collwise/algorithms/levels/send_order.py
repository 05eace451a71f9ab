"""A search for the fastest order of sends of a broadcast on a machine with levels.

An order is built send by send.  Of the ranks that have the data, the one whose port is free first
decides to which rank it sends next, or that it sends no more.  Every send starts as early as
possible.  The search first tries orders in which a fixed rule decides: a rank sends to outer groups
before inner ones [Kielmann1999], once a given number of ranks of its node have the data.  On few
ranks the search then tries at most MAX_RUNS orders in which any decision may break the rule.
"""

from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from typing import NamedTuple, TypeAlias

from collwise.model.placement import Placement

MAX_RUNS = 1500
"""Largest number of send orders that the search tries after those that follow a fixed rule."""
LARGEST_SEARCHED = 16
"""Largest number of ranks for which the search also tries orders that follow no fixed rule."""
MANY = 1024
"""Largest number of ranks for which the search tries a rule for every power of two.

The power says how many ranks of a node have the data before the node's ranks send to outer groups.
On more ranks only powers of four are tried; the size of the largest node is always tried, too.
"""


_Parts: TypeAlias = list[list[tuple[int, int]]]


class LevelCost(NamedTuple):
    """Costs of a message at one level, in ticks: gap, latency, and time at a group's port."""

    gap: int
    latency: int
    port: int = 0


class Order(NamedTuple):
    """An order of sends.   sends: (source, target) pairs, in the order in which they were decided.

    finish: when the last message arrives, in ticks.   options: the number of options of each
    decision; empty if no decision had more than one.
    """

    sends: list[tuple[int, int]]
    finish: int
    options: list[int]


def best_order(placement: Placement, costs: Sequence[LevelCost]) -> Order:
    """The fastest order of sends from rank 0 that the search finds.

    costs: the costs of a message at each level, the innermost first.
    """
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
    """The simulation of one order, decision by decision.

    groups: for each level, the number of each rank's group.   parts: for each level and group, the
    group's subgroups.   rule: how many ranks of the sender's node must have the data before the
    sender sends to outer groups.   searched: whether decisions have more than the rule's option.
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
        """A time in ticks that is later than the end of every complete order."""
        self.informed = [False] * self.ranks
        self.counts = [[0] * (max(row) + 1) for row in groups]
        """counts[level − 1][group]: the number of the group's ranks that have the data."""
        self.fresh = [[[*rows] for rows in level] for level in parts]
        self.out = [[0] * len(counts) for counts in self.counts]
        self.into = [
            [-cost.port] * len(counts) for cost, counts in zip(costs, self.counts, strict=True)
        ]
        self.passed = [  # by a message's level, the ports that it passes: (port's level, ticks)
            [(row, cost.port) for row, cost in enumerate(costs[:level]) if cost.port]
            for level in range(len(costs))
        ]
        self.outwards = range(len(groups), 0, -1)
        self._mark_informed(0)

    def order(self, choices: Sequence[int], best: Order | None) -> Order:
        """The order in which decision i takes option choices[i], and later decisions option 0.

        best: the fastest order so far, or None.  The simulation stops as soon as the new order
        cannot finish before `best`; it then returns an incomplete order that does not finish
        before `best` either.
        """
        free, finish = [(0, 0)], 0
        sends: list[tuple[int, int]] = []
        options: list[int] = []
        gaps, limit = [cost.gap for cost in self.costs], best.finish if best else self.never
        while len(sends) < self.ranks - 1:
            if not free:  # all ranks have decided to send no more
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
            self._mark_informed(target)
        return Order(sends, finish, options)

    def _options(self, rank: int) -> Iterator[tuple[int, int] | None]:
        """The options of a rank: (target, level of the message), in the rule's order.

        The last option is None: the rank sends no more.
        """
        levels: Iterable[int] = self.outwards
        if self.counts[0][self.nodes[rank]] < self.rule:
            levels = (1, *self.outwards[:-1])
        nodes = set()
        for level in levels:
            if (target := self._next(level, rank)) is not None:
                nodes.add(self.nodes[target])
                yield target, level
        if self.searched:  # also targets in nodes in which some rank has the data
            for target, (informed, node) in enumerate(zip(self.informed, self.nodes, strict=True)):
                if not informed and node not in nodes:
                    nodes.add(node)
                    rows = enumerate(self.groups, 1)
                    yield target, next(n for n, row in rows if row[rank] == row[target])
        yield None

    def _next(self, level: int, rank: int) -> int | None:
        """The first rank of the largest subgroup without data, in the group of `rank` at a level.

        None if all subgroups of the group have data.
        """
        parts = self.fresh[level - 1][self.groups[level - 1][rank]]
        informed = self.informed if level == 1 else self.counts[level - 2]
        while parts:
            part, first = parts[-1]
            if not informed[part]:
                return first
            parts.pop()
        return None

    def _send(self, start: int, source: int, target: int, level: int) -> tuple[int, int]:
        """Send a message; returns when the message leaves and when it arrives, in ticks.

        start: when the sender's own port is free, in ticks.
        """
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

    def _mark_informed(self, rank: int) -> None:
        self.informed[rank] = True
        for row, counts in zip(self.groups, self.counts, strict=True):
            counts[row[rank]] += 1


def _parts(groups: Sequence[Sequence[int]], level: int) -> _Parts:
    """For each group of a level, the list of its subgroups, the largest one last.

    A subgroup is given as (its number, its first rank); at level 1 it is a single rank.
    """
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
