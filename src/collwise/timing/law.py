"""The laws of machines as data: what messages cost, which resources they use, rules of service.

One event loop (`event_loop`) serves all laws; `docs/design.md` states them.  A `Law` has rules, and
for each row of a schedule (a message or a combine) its costs, and the ports and links that it uses.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from collwise.errors import InvalidArgument
from collwise.model.levels import Levels
from collwise.model.machine import Hockney, LogGP, Machine, Wormhole
from collwise.model.topology import Topology
from collwise.schedule.dependencies import publications
from collwise.schedule.operations import Operation
from collwise.schedule.rows import LARGEST, NONE, Rows
from collwise.system.integers import Ints

Ticks: TypeAlias = NDArray[Any]
"""A column of integers, most often times in ticks: int64s or Python integers."""
EXACT = LARGEST >> 2
"""If no cost exceeds this many ticks, costs are int64s; otherwise all are Python integers."""


class Rules(NamedTuple):
    """The rules of a law, besides costs.

    rendezvous: a send starts only when its receive is next at the receiver's port.
    in_order_of_time: messages compete for shared resources, so requests are served in the order of
    (time, source, target); otherwise any order gives the same times.   one_partner: a rank
    exchanges messages with one other rank at a time.   one_processor: sending and receiving share a
    processor, and messages are received in order of arrival.   in_turns: a rank's publications and
    reads of shared memory share a processor, and what can begin first is first.
    """

    rendezvous: bool = False
    in_order_of_time: bool = False
    one_partner: bool = False
    one_processor: bool = False
    in_turns: bool = False


class Ports(NamedTuple):
    """All ranks' send ports, and all ranks' receive ports, both numbered rank by rank from 0.

    own_sends: rank r has the send ports own_sends[r] … own_sends[r + 1] − 1.   own_receives: rank r
    has the receive ports own_receives[r] … own_receives[r + 1] − 1.   send, receive: each row's
    send port and receive port, or NONE.
    """

    own_sends: Ints
    own_receives: Ints
    send: Ints
    receive: Ints


class Links(NamedTuple):
    """The routes of messages, over links that are numbered 0 … number − 1.

    The route of row n is links[begins[n]:begins[n + 1]].
    """

    begins: Ints
    links: Ints
    number: int


class SharedPort(NamedTuple):
    """The ports of one level, each shared by a group of ranks.

    busy: for each row, the ticks for which it keeps the port busy; 0 if the row does not use it.
    group: for each rank, the number of its group.
    """

    busy: Ticks
    group: Ints


@dataclass(frozen=True, eq=False)
class Law:
    """The rules, costs and resources of a schedule's rows (messages and combines) on a machine.

    Costs are columns in ticks of `unit` seconds, with an entry for each row.   gap: from the start
    of the row until its port is free for the next row; for a combine, its duration.   reach: from
    the start until the message arrives.   entry: from the start until the message holds its links;
    where sending and receiving share a processor, how long a send occupies it, and 0 for messages
    beside shared memory.   absorb: the least time from the previous receipt at the same port to
    this one; where sending and receiving share a processor, how long a receive occupies it.
    header: from the start until the message's header is through the network; it is only reported,
    and delays nothing.
    """

    rules: Rules
    ports: Ports
    gap: Ticks
    reach: Ticks
    entry: Ticks
    absorb: Ticks
    header: Ticks
    unit: Fraction
    links: Links | None = None
    shared: tuple[SharedPort, ...] = ()
    along: Ints | None = None
    """In memory that ranks share, for each row the next one of the same publication, or NONE.

    A publication is all sends of the same bytes; only its first row has a send port.  None without
    publications."""
    tells_passages: bool = False
    """Whether `Timing.passages` has entries: rows hold links, or the machine is a `Wormhole`."""

    @property
    def sender_busy(self) -> Ticks:
        """For each row, the ticks for which its sender is busy."""
        return self.entry if self.rules.one_processor else self.gap


def only_own_ports(machine: Machine, topology: Topology | None) -> bool:
    """Whether it is sure that only ranks' own ports, served in list order, delay messages."""
    return machine.independent_ports and topology is None


def one_stands_for_all(machine: Machine, topology: Topology | None) -> bool:
    """Whether one rank may be timed for all if all ranks' lists are equal up to renumbered peers.

    False with a topology.  Otherwise True if only ranks' own ports delay messages, which cost the
    same between all ranks, or if all ranks share one memory.
    """
    flat = machine.independent_ports or (machine.shares_memory and not isinstance(machine, Levels))
    return flat and topology is None


def receives_in_order(machine: Machine) -> bool:
    """Whether every rank receives in list order, at one port."""
    return machine.law != "loggp" and not machine.all_port


def with_links(machine: Machine, topology: Topology | None) -> Topology | None:
    """The topology if the machine's messages hold the topology's links, else None.

    Raises InvalidArgument for a topology on a machine that knows no links, unless the topology is a
    complete graph.
    """
    if topology is None or isinstance(machine, Hockney | Wormhole):
        return topology
    if topology.kind == "complete":
        return None
    raise InvalidArgument(
        f"the time of a schedule on a {topology.describe()}",
        f"the law of the machine knows no links ({machine.kind})",
        "take a Hockney or a wormhole machine, such as the presets, or leave the topology out",
    )


def law_of(
    machine: Machine,
    rows: Rows,
    ranks: int,
    topology: Topology | None = None,
    combine: Callable[[int], Fraction | None] | None = None,
    along: Ints | None = None,
) -> Law:
    """The law of a machine for the rows of a schedule on `ranks` ranks.

    topology: the network whose links messages hold; None if they hold none.   combine: maps
    bytes to the exact seconds for combining them; None for the machine's own costs.   along: the
    column `along` of `Law`, or None.
    """
    rendezvous = machine.ports_block
    one_partner, one_processor = machine.law == "one partner", machine.law == "loggp"
    levels = machine if isinstance(machine, Levels) else None
    links = None if topology is None else _links(rows, topology)
    kinds, which = _kinds(rows, levels, links)
    columns, unit = in_ticks([_costs(machine, combine or machine.combine, *kind) for kind in kinds])
    exact = max((max(column) for column in columns), default=0) <= EXACT
    kind_of = np.int64 if exact else object
    gap, reach, entry, absorb, header, *busy = (
        np.array(column, kind_of)[which] for column in columns or [[]] * 5
    )
    shared: tuple[SharedPort, ...] = ()
    if levels is not None:
        groups = levels.placement.table
        shared = tuple(
            SharedPort(busy_here, np.asarray(group, np.int64))
            for busy_here, group in zip(busy, groups, strict=False)
            if busy_here.any()
        )
    in_turns = machine.shares_memory
    timed = bool(shared) or links is not None or one_partner or in_turns
    rules = Rules(rendezvous, timed, one_partner, one_processor, in_turns)
    ports = _ports_of_links(rows, ranks, links) if machine.all_port else _one_port(rows, ranks)
    if along is not None:
        alone = ports.send.copy()
        alone[along[along != NONE]] = NONE
        ports = ports._replace(send=alone)
    passages = links is not None or isinstance(machine, Wormhole)
    return Law(
        rules, ports, gap, reach, entry, absorb, header, unit, links, shared, along, passages
    )


def readers_of(machine: Machine, ranks: int) -> Callable[[int], Collection[int]]:
    """A function that maps a rank to all ranks of its shared memory, or to () if there is none."""
    everybody = range(ranks)
    if not isinstance(machine, Levels):
        return lambda _: everybody if machine.shares_memory else ()
    placement = machine.placement
    groups = [frozenset(members) for members in placement.members[0]]
    return lambda rank: groups[placement.group(1, rank)] if machine.shares_memory else ()


def joined_publications(
    rows: Rows, lists: Sequence[Sequence[Operation]], machine: Machine, ranks: int
) -> Ints:
    """For each row, the row of its rank's next send of the same bytes in shared memory, or NONE.

    rows: the rows of the ranks' `lists`, rank by rank in list order.   ranks: number of all ranks.
    """
    readers = readers_of(machine, ranks)
    along = np.full(len(rows), NONE, np.int64)
    places = zip(rows.source.tolist(), rows.place_at_source.tolist(), strict=True)
    row_of = {place: row for row, place in enumerate(places)}
    for rank, operations in enumerate(lists):
        last: dict[int, int] = {}
        for place, first in enumerate(publications(operations, readers(rank))):
            if place != first:
                along[row_of[rank, last.get(first, first)]] = row_of[rank, place]
                last[first] = place
    return along


def _kinds(
    rows: Rows, levels: Levels | None, links: Links | None
) -> tuple[list[tuple[int, int, int]], Ints]:
    """A list of the distinct (bytes, level, number of links) of rows, and each row's index in it.

    The level of a combine is −1, that of a message without levels 0; without `links`, each row has
    one link.   levels: the machine, or None if it has no levels.
    """
    at = np.where(rows.combines, NONE, 0)
    if levels is not None:
        messages = np.flatnonzero((rows.source != NONE) & (rows.target != NONE))
        at[messages] = levels.placement.meetings(rows.source[messages], rows.target[messages])
    hops = np.ones_like(at) if links is None else np.diff(links.begins)
    table, which = (
        np.unique(np.column_stack((rows.nbytes, at, hops)), axis=0, return_inverse=True)
        if len(rows) and (hops.max() > 1 or hops.min() < 1)
        else _kinds_over_one_link(rows.nbytes, at)
    )
    return [tuple(kind) for kind in table.tolist()], which.ravel()


def _kinds_over_one_link(nbytes: Ints, at: Ints) -> tuple[Ints, Ints]:
    """A table of the distinct (bytes, level, 1) of rows with one link, and each row's index in it.

    at: the level of each row.
    """
    width = int(at.max(initial=0)) + 2
    if int(nbytes.max(initial=0)) > LARGEST // width - 1:
        table = np.column_stack((nbytes, at, np.ones_like(at)))
        return np.unique(table, axis=0, return_inverse=True)
    keys, which = np.unique(nbytes * width + at + 1, return_inverse=True)
    return np.column_stack((keys // width, keys % width - 1, np.ones_like(keys))), which


def _costs(
    machine: Machine,
    combine: Callable[[int], Fraction | None],
    nbytes: int,
    level: int,
    hops: int,
) -> tuple[Fraction, ...]:
    """A row's gap, reach, entry, absorb and header (see `Law`), then its times at shared ports.

    All are exact seconds.  The times at shared ports say for each level but the last how long the
    row keeps a port of this level busy.   level: the message's, or −1.   hops: links of its route.
    """
    zero = Fraction(0)
    if level == NONE:
        combining = combine(nbytes) or zero
        levels = len(machine.by_level) - 1 if isinstance(machine, Levels) else 0
        return (combining, combining, zero, zero, zero, *(zero,) * levels)
    if isinstance(machine, Levels):
        gap, latency = machine.at(level, nbytes) if level else (zero, zero)
        inner = range(1, len(machine.by_level))
        ports = [machine.port(j, nbytes) if j < level else zero for j in inner]
        receipt = machine.receipt_at(level, nbytes) if level else zero
        published = gap if level == 1 and machine.shares_memory else zero
        return (gap, latency, published, receipt, zero, *ports)
    if isinstance(machine, LogGP):
        body = max(nbytes - 1, 0) * machine.G
        return machine.g + body, machine.o + machine.L, machine.o, machine.o + body, zero
    if isinstance(machine, Wormhole):
        before = machine.send + nbytes * machine.copy
        header = before + hops * machine.hop
        sent = header + nbytes * machine.beta
        return sent, sent + machine.receive, before, zero, header
    gap, latency = machine.message(nbytes)
    header = machine.alpha if isinstance(machine, Hockney) else zero
    published = gap if machine.shares_memory else zero
    return gap, latency, published, machine.receipt(nbytes), header


def in_ticks(rows: Sequence[Sequence[Fraction]]) -> tuple[list[list[int]], Fraction]:
    """A table of times as columns of integer ticks, and the length of a tick in seconds, exactly.

    rows: exact seconds.   The tick is the longest with all times as multiples; 1 s if all are 0.
    """
    ratios = [x.as_integer_ratio() for row in rows for x in row]
    unit = Fraction(gcd(*(n for n, _ in ratios)), lcm(*(d for _, d in ratios))) or Fraction(1)
    return [[int(x / unit) for x in column] for column in zip(*rows, strict=True)], unit


def _one_port(rows: Rows, ranks: int) -> Ports:
    """Ports of a machine on which every rank has one send port and one receive port."""
    own = np.arange(ranks + 1, dtype=np.int64)
    answered = rows.place_at_target != NONE
    return Ports(own, own, rows.source, np.where(answered, rows.target, NONE))


def _links(rows: Rows, topology: Topology) -> Links:
    """The links on the routes of messages; combines, and receives without a send, have none."""
    routes: dict[tuple[int, int], Sequence[int]] = {}
    by_row: list[Sequence[int]] = []
    for source, target in zip(rows.source.tolist(), rows.target.tolist(), strict=True):
        if NONE in (source, target):
            by_row.append(())
            continue
        if (source, target) not in routes:
            routes[source, target] = topology.route(source, target)
        by_row.append(routes[source, target])
    begins = np.zeros(len(by_row) + 1, np.int64)
    np.cumsum([len(route) for route in by_row], out=begins[1:])
    links = np.array([link for route in by_row for link in route], np.int64)
    return Links(begins, links, int(links.max(initial=-1)) + 1)


def _ports_of_links(rows: Rows, ranks: int, links: Links | None) -> Ports:
    """The ports of an all-port machine: one per link that a rank uses, one for rows without links.

    Without a topology (links: None), every pair of ranks has a link of its own.
    """
    first = last = np.zeros(0, np.int64)
    if links is None:
        first, last = rows.target, rows.source
    else:
        padded = np.append(links.links, NONE)
        first = padded[links.begins[:-1]]
        last = padded[np.maximum(links.begins[1:] - 1, 0)]
    messages = (rows.source != NONE) & (rows.target != NONE)
    sends = _number_ports(rows.source, first, messages, ranks)
    last = np.where(messages, last, NONE - 1)  # no link is known for messages that nobody sends
    receives = _number_ports(rows.target, last, rows.place_at_target != NONE, ranks)
    return Ports(sends[0], receives[0], sends[1], receives[1])


def _number_ports(rank: Ints, key: Ints, use: NDArray[np.bool_], ranks: int) -> tuple[Ints, Ints]:
    """Number the ports of one direction; return the bounds of ranks' ports, and each row's port.

    A rank's first port is for rows without a link.   rank, key: each row's rank and link.   use: a
    mask of the rows that use a port; the port of other rows is NONE.
    """
    keys = np.column_stack((rank, key))[use]
    own = np.column_stack((np.arange(ranks), np.full(ranks, NONE - 1)))
    table, which = np.unique(np.concatenate((own, keys)), axis=0, return_inverse=True)
    port = np.full(len(rank), NONE, np.int64)
    port[use] = which.ravel()[ranks:]
    begins: Ints = np.searchsorted(table[:, 0], np.arange(ranks + 1)).astype(np.int64)
    return begins, port
