"""Lower bounds for broadcasts between groups of a level, such as nodes whose ranks share a port.

In all functions a message of `level` or of an outer level leaves a group of level − 1, and times
are exact seconds.
"""

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import islice

from collwise.model import relayed
from collwise.model.levels import Levels


def leaving(
    machine: Levels, level: int, nbytes: int, sizes: Sequence[int]
) -> tuple[Fraction, Fraction]:
    """The least seconds for a group of level − 1 to send nbytes to others; and to reach all groups.

    Let x bytes be the size of the last message.  Before it starts, the group's port has been busy
    with all other bytes.  Or, if the group has up to q ranks, let x be the size of the last message
    of the rank that sends most: its own port has been busy with all but x of nbytes/q bytes.
    The second bound is that of `relayed` for groups, each with one shared port or q own ports.
    sizes: those of messages of up to nbytes at which a cost can be least.
    """
    groups = machine.placement.members[level - 2]
    most = max(map(len, groups))
    sizes = [*sizes, -(-nbytes // most)]
    costs = {
        x: [machine.at(at, x) for at in range(level, machine.placement.depth + 1)] for x in sizes
    }
    rates = (
        min(machine.port(level - 1, x) / x for x in sizes),
        min(min(cost.gap for cost in costs[x]) / x for x in sizes),
    )
    shares = Fraction(nbytes), Fraction(nbytes, most)
    latencies = {x: min(cost.latency for cost in costs[x]) for x in sizes}
    alone = max(
        min(max(share - x, Fraction(0)) * rate + latencies[x] for x in sizes)
        for share, rate in zip(shares, rates, strict=True)
    )
    lags = (
        min(latencies[x] - machine.port(level - 1, x) for x in sizes),
        min(cost.latency - cost.gap for x in sizes for cost in costs[x]),
    )
    starts = list(islice(reaching(machine, level, sizes), len(groups)))
    return alone, max(
        relayed.soonest(starts, (len(groups) - 1) * share * rate, lag)
        for share, rate, lag in zip(shares, rates, lags, strict=True)
    )


def reaching(machine: Levels, level: int, sizes: Iterable[int]) -> Iterator[Fraction]:
    """The earliest times at which messages of `level` and outer levels reach groups below it.

    t0, λ·t0 and the time of a group's port are the least of all `sizes`, as if all ranks of a group
    had the data at once. (T_λ of the number of groups is no bound, since several ranks of a group
    can send at once.)
    """
    levels = range(level, machine.placement.depth + 1)
    costs = [machine.at(at, n) for at in levels for n in sizes]
    return relayed.reached(
        min(cost.latency for cost in costs),
        min(cost.gap for cost in costs),
        together=max(map(len, machine.placement.members[level - 2])),
        port=min(machine.port(level - 1, n) for n in sizes),
    )
