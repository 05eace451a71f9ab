"""Ideal time: what a schedule takes if every rank goes on as early as it can.  Exact.

`docs/design.md` states the laws.  An event simulation keeps times as integers on a common grid;
results are Fractions of a second.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from math import lcm
from typing import TypeAlias, overload

from tests.timing.twin.laws import message_costs, simulate_loggp, simulate_postal, times_in_order
from tests.timing.twin.level_law import LevelNetwork, level_costs
from tests.timing.twin.port_order import Event, port_order, sizes_of
from tests.timing.twin.rank_state import Costs, PastLimit, RankState, TickTransfer
from tests.timing.twin.wormhole import SimulatedNetwork, network_costs

from collwise.model.exact import seconds
from collwise.model.levels import Levels
from collwise.model.machine import (
    Hockney,
    LogGP,
    Machine,
    Wormhole,
)
from collwise.model.topology import Topology
from collwise.schedule.evaluation import never_completes
from collwise.schedule.operations import Combine, Operation, Recv, Send, size_of
from collwise.schedule.problem import Problem
from collwise.schedule.program import Schedule, Written
from collwise.timing.law import with_links
from collwise.timing.times import Combining, LinkWait, Passage, Transfer
from collwise.timing.trace import check_simulable


@dataclass(frozen=True)
class Timing:
    """The ideal times of a schedule on a machine: exact, in seconds from a common start."""

    finish: tuple[Fraction, ...]
    """Per rank: when its last operation completes."""
    transfers: tuple[Transfer, ...]
    combines: tuple[Combining, ...] = ()
    passages: tuple[Passage, ...] = ()
    """One for each of `transfers`, in the order of reservation; none without links."""

    @property
    def completion(self) -> Fraction:
        """When the last rank finishes."""
        return max(self.finish)

    @property
    def completion_s(self) -> float:
        """`completion` as a float, in seconds."""
        return seconds(self.completion)

    @property
    def finish_s(self) -> tuple[float, ...]:
        """`finish` as floats, in seconds."""
        return tuple(seconds(t) for t in self.finish)

    def link_busy(self) -> dict[int, Fraction]:
        """For how long each link that was used was held in all, in exact seconds."""
        grid = lcm(*{t.denominator for p in self.passages for t in (p.entry, p.end)})
        busy: dict[int, int] = {}
        for p in self.passages:
            held = int((p.end - p.entry) * grid)
            for link in p.route:
                busy[link] = busy.get(link, 0) + held
        return {link: Fraction(held, grid) for link, held in sorted(busy.items())}


def ideal(schedule: Schedule, machine: Machine, topology: Topology | None = None) -> Timing:
    """Exact as-early-as-possible times of a schedule: O(messages), for up to some thousand ranks.

    topology: the network between the ranks, for machines whose messages hold links (Hockney's,
    wormhole); without one, every pair of ranks has a link of its own.
    Raises InvalidArgument for a topology of another size, or on a machine that knows no links;
    InvalidSchedule if ranks wait for each other in a circle, or for a message nobody sends.
    """
    (finish, transfers, combines), grid = _played(schedule, machine, topology)
    linked = isinstance(machine, Wormhole) or with_links(machine, topology) is not None

    @cache
    def time(ticks: int) -> Fraction:
        return Fraction(ticks, grid)

    return Timing(
        tuple(map(time, finish)),
        tuple(Transfer(*t[:5], time(t.start), time(t.sent), time(t.received)) for t in transfers),
        tuple(
            Combining(rank, step, size_of(schedule.lists[rank][step]), time(start), time(end))
            for rank, step, start, end in sorted(combines)
        ),
        tuple(
            Passage(
                time(p.ready),
                time(t.start),
                time(p.entry),
                time(p.header),
                time(t.sent),
                p.route,
                None if p.waited is None else LinkWait(*p.waited),
            )
            for t in transfers
            if linked and (p := t.passage) is not None
        ),
    )


@overload
def ideal_completion(
    schedule: Schedule, machine: Machine, topology: Topology | None = None
) -> Fraction: ...
@overload
def ideal_completion(
    schedule: Schedule, machine: Machine, topology: Topology | None, limit: Fraction | None
) -> Fraction | None: ...
def ideal_completion(
    schedule: Schedule,
    machine: Machine,
    topology: Topology | None = None,
    limit: Fraction | None = None,
) -> Fraction | None:
    """When the last rank finishes, as `ideal` has it; None if that is after the limit.

    Where times decide what comes first, the simulation then ends early.   Without what happens in
    between, this is quicker than `ideal`, whose arguments and errors it has.
    """
    try:
        (finish, *_), grid = _played(schedule, machine, topology, limit, record=False)
    except PastLimit:
        return None
    time = Fraction(max(finish), grid)
    return None if limit is not None and time > limit else time


_Played: TypeAlias = tuple[list[int], list[TickTransfer], list[tuple[int, int, int, int]]]


def _played(
    schedule: Schedule,
    machine: Machine,
    topology: Topology | None,
    limit: Fraction | None = None,
    *,
    record: bool = True,
) -> tuple[_Played, int]:
    """What `times_in_order` returns, and the ticks of a second; may raise PastLimit.

    record: whether messages and combines are asked for, too.
    """
    check_simulable("the ideal time of a schedule", schedule, machine, topology)
    topology = with_links(machine, topology)
    events = _known_order(schedule, machine, topology)
    waits_for_links = isinstance(machine, Hockney | Wormhole) and events is None
    costs, grid = _costs_in_ticks(machine, schedule, waits_for_links)
    if events is not None:
        rendezvous = machine.law == "hockney"
        return times_in_order(schedule, events, costs, rendezvous, record), grid
    last = None if limit is None else int(limit * grid)
    return _simulated(schedule, machine, topology, costs, last, record), grid


def _simulated(
    schedule: Schedule,
    machine: Machine,
    topology: Topology | None,
    costs: Costs,
    limit: int | None,
    record: bool,
) -> _Played:
    """As `times_in_order`, where times decide what comes first; raises as `ideal` does."""
    if isinstance(machine, Hockney | Wormhole):
        network = SimulatedNetwork(
            schedule, costs, topology, machine.all_port, machine.law == "one partner", record
        )
        network.run(limit)
        ranks, transfers = network.ranks, network.transfers
    else:
        rows = zip(schedule.lists, schedule.dependencies, sizes_of(schedule), strict=True)
        ranks = [RankState(*row, costs) for row in rows]
        if isinstance(machine, Levels):
            levels = LevelNetwork(ranks, costs.message, machine.placement)
            levels.run()
            transfers = levels.transfers
        else:
            if isinstance(machine, LogGP):
                transfers = simulate_loggp(ranks, costs.message, limit)
            else:
                transfers = simulate_postal(ranks, costs.message)
    for number, rank in enumerate(ranks):
        if (step := rank.first_incomplete()) is not None:
            raise never_completes(number, step, rank.operations[step])
    finish = [rank.finish for rank in ranks]
    for t in transfers:
        finish[t.source] = max(finish[t.source], t.sent)
    combines = [
        (number, *combine) for number, rank in enumerate(ranks) for combine in rank.combined
    ]
    return finish, transfers, combines


def _known_order(
    schedule: Schedule, machine: Machine, topology: Topology | None
) -> list[Event] | None:
    """All that happens, in order, where lists alone decide it; None if times have a say."""
    if topology is not None or not machine.independent_ports:
        return None
    order = port_order(schedule.lists, schedule.dependencies, combines_use_ports=True)
    if order is None and machine.combine(1) is None:
        return port_order(schedule.lists, schedule.dependencies, combines_use_ports=False)
    return order


def _costs_in_ticks(
    machine: Machine, schedule: Schedule, waits_for_links: bool
) -> tuple[Costs, int]:
    """What the operations of a schedule cost, in ticks, and the ticks of a second."""
    messages, combining = _lengths(schedule)
    cost_of: Callable[[int], tuple[Fraction, ...]] = partial(message_costs, machine)
    if waits_for_links and isinstance(machine, Hockney | Wormhole):
        cost_of = partial(network_costs, machine)
    elif isinstance(machine, Levels):
        cost_of = partial(level_costs, machine)
    message = {size: cost_of(size) for size in messages}
    combine = {n: cost for n in combining if (cost := machine.combine(n)) is not None}
    grid = lcm(*(x.denominator for row in (*message.values(), combine.values()) for x in row))
    return Costs(
        {size: tuple(int(x * grid) for x in row) for size, row in message.items()},
        {size: int(cost * grid) for size, cost in combine.items()},
    ), grid


def ideal_alike(operations: Sequence[Operation], machine: Machine) -> Fraction:
    """Exact seconds of a schedule in which all ranks do the same, simulated as a single rank.

    The rank sends to itself: the k-th message that it sends is the k-th that it receives.
    """
    mirrored = tuple(
        op._replace(peer=0) if isinstance(op, Send | Recv) else op for op in operations
    )
    schedule = Schedule(Problem("one rank for all", 1, 0), Written((mirrored,)))
    return ideal_completion(schedule, machine)


def _lengths(schedule: Schedule) -> tuple[set[int], set[int]]:
    """The lengths that occur in bytes: of messages, and of combines."""
    every = [op for operations in schedule.lists for op in operations]
    return (
        {size_of(op) for op in every if isinstance(op, Send | Recv)},
        {size_of(op) for op in every if isinstance(op, Combine)},
    )
