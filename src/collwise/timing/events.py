"""Ideal time: what a schedule takes if every rank goes on as early as it can.  Exact.

The laws are those of DESIGN's rulings, also told in docs/design.md.  Times are kept as integers on
a common grid while events are played, and given out as Fractions of a second.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import NamedTuple

from collwise.errors import InvalidArgument, InvalidSchedule
from collwise.model.exact import seconds
from collwise.model.machine import Hockney, LogGP, Machine, Wormhole
from collwise.model.topology import Topology
from collwise.schedule.operations import Combine, Operation, Recv, Send, size_of
from collwise.schedule.problem import Problem
from collwise.schedule.program import Schedule, Written
from collwise.timing.arguments import check_simulable
from collwise.timing.laws import law_of
from collwise.timing.port_state import Law, Ports, Progress
from collwise.timing.wormhole import Network, Passing, stages


class Transfer(NamedTuple):
    """One message in time (exact seconds): the send begins, the sender is free, it is received."""

    source: int
    target: int
    place_at_source: int
    place_at_target: int
    nbytes: int
    start: Fraction
    sent: Fraction
    received: Fraction


class Combining(NamedTuple):
    """One combine in time (exact seconds), on a machine where it takes any."""

    rank: int
    place: int
    nbytes: int
    start: Fraction
    end: Fraction


class Wait(NamedTuple):
    """What a transfer waited for longest: a link, and who held it (by place in the timing)."""

    link: int
    transfer: int


class Passage(NamedTuple):
    """One message in the network (exact seconds).

    Both ranks were at it, and the data was there, when it was `ready`; the send began at `start`;
    it held the links of its `route` from `entry` to `end`, and its header was through at `header`.
    waited: what for, where it began later than it was ready.
    """

    ready: Fraction
    start: Fraction
    entry: Fraction
    header: Fraction
    end: Fraction
    route: tuple[int, ...]
    waited: Wait | None


@dataclass(frozen=True)
class Timing:
    """The ideal times of a schedule on a machine: exact, in seconds from a common start."""

    finish: tuple[Fraction, ...]
    """Per rank: when its last operation is done."""
    transfers: tuple[Transfer, ...]
    combines: tuple[Combining, ...] = ()
    passages: tuple[Passage, ...] = ()
    """One for each of `transfers`, in the order in which they were served; none without links."""

    @property
    def completion(self) -> Fraction:
        """When the last rank is done."""
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
        """For how long each link was held in all, in exact seconds; no others than were used."""
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
    check_simulable("the ideal time of a schedule", schedule, machine, topology)
    topology = _network(machine, topology)
    lists = schedule.lists
    sizes = [[size_of(op) for op in operations] for operations in lists]
    law, grid = _law(machine, lists, sizes, linked=topology is not None)
    ranks: Sequence[Progress]
    passings: list[Passing] = []
    if isinstance(machine, Wormhole) or topology is not None:
        network = Network(lists, sizes, law, topology, machine.all_port)
        network.play()
        ranks, records, passings = network.ranks, network.records, network.passings
    else:
        ranks = ports = [Ports(*both, law) for both in zip(lists, sizes, strict=True)]
        records = law_of(machine)(ports, law.message)
    for number, rank in enumerate(ranks):
        if (place := rank.stuck()) is not None:
            raise _stuck(number, place, lists[number][place])
    finish = [rank.latest for rank in ranks]
    for r in records:
        finish[r.source] = max(finish[r.source], r.sent)

    known: dict[int, Fraction] = {}

    def time(ticks: int) -> Fraction:
        if (found := known.get(ticks)) is None:
            found = known[ticks] = Fraction(ticks, grid)
        return found

    transfers = tuple(
        Transfer(*r[:5], time(r.start), time(r.sent), time(r.received)) for r in records
    )
    return Timing(
        tuple(time(t) for t in finish),
        transfers,
        tuple(
            Combining(number, place, rank.sizes[place], time(start), time(end))
            for number, rank in enumerate(ranks)
            for place, start, end in rank.combined
        ),
        tuple(
            Passage(
                time(p.ready),
                t.start,
                time(p.entry),
                time(p.header),
                t.sent,
                p.route,
                None if p.waited is None else Wait(*p.waited),
            )
            for t, p in zip(transfers, passings, strict=False)
        ),
    )


def _network(machine: Machine, topology: Topology | None) -> Topology | None:
    """The links to be reckoned with, if any; raise InvalidArgument if they cannot be."""
    if topology is None:
        return None
    if isinstance(machine, Hockney | Wormhole):
        return topology
    if topology.kind == "complete":
        return None
    raise InvalidArgument(
        f"the time of a schedule on a {topology.describe()}",
        f"the law of the machine knows no links ({machine.kind})",
        "take Machine.hockney, Machine.wormhole or one of collwise.presets, or leave the topology"
        " out",
    )


def _law(
    machine: Machine,
    lists: Sequence[Sequence[Operation]],
    sizes: Sequence[Sequence[int]],
    *,
    linked: bool,
) -> tuple[Law, int]:
    """The machine's law for what a schedule has to do, in ticks, and the ticks of a second."""
    messages: set[int] = set()
    combining: set[int] = set()
    for operations, lengths in zip(lists, sizes, strict=True):
        for op, nbytes in zip(operations, lengths, strict=True):
            if isinstance(op, Send | Recv):
                messages.add(nbytes)
            elif isinstance(op, Combine):
                combining.add(nbytes)
    numbers: dict[int, tuple[Fraction, ...]]
    if isinstance(machine, Wormhole) or (isinstance(machine, Hockney) and linked):
        numbers = {size: stages(machine, size) for size in messages}
    else:
        numbers = machine_numbers(machine, messages)
    costs = {n: cost for n in combining if (cost := machine.combine(n)) is not None}
    exact = [x for row in numbers.values() for x in row] + list(costs.values())
    grid = lcm(*(x.denominator for x in exact))
    law = Law(
        {size: tuple(int(x * grid) for x in row) for size, row in numbers.items()},
        {size: int(cost * grid) for size, cost in costs.items()},
    )
    return law, grid


def _stuck(rank: int, place: int, op: Operation) -> InvalidSchedule:
    verb = type(op).__name__.lower()
    return InvalidSchedule(
        f"rank {rank}, step {place}: {verb}"
        + (f" with rank {op.peer}" if isinstance(op, Send | Recv) else ""),
        "it never completes: the ranks wait for each other, or nobody answers",
        rank=rank,
        step=place,
    )


def ideal_alike(operations: Sequence[Operation], machine: Machine) -> Fraction:
    """Exact seconds of a schedule in which all ranks do the same: one of them stands for all.

    What it sends, it receives itself: its k-th message is the k-th that it gets.
    """
    mirrored = tuple(
        op._replace(peer=0) if isinstance(op, Send | Recv) else op for op in operations
    )
    schedule = Schedule(Problem("one rank for all", 1, 0), Written((mirrored,)))
    return ideal(schedule, machine).completion


def machine_numbers(machine: Machine, sizes: set[int]) -> dict[int, tuple[Fraction, ...]]:
    """The law of a machine for each size: (gap, latency), or for LogGP (o, g', o', L).

    g' = g + (s−1)G and o' = o + (s−1)G for s bytes.
    """
    if isinstance(machine, LogGP):
        body = {size: max(size - 1, 0) * machine.G for size in sizes}
        return {s: (machine.o, machine.g + b, machine.o + b, machine.L) for s, b in body.items()}
    return {size: tuple(machine.message(size)) for size in sizes}
