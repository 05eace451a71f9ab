"""Schedules written by hand or made at random, and machines of every law."""

import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import permutations
from random import Random
from typing import Any

from tests.algorithms.examples import fitting, roots, settings_of

from collwise.algorithms import Algorithm
from collwise.algorithms.registry import Settings
from collwise.algorithms.search import settings_to_try
from collwise.model.levels import Levels
from collwise.model.machine import Machine
from collwise.model.measured_machine import measured
from collwise.model.placement import Placement
from collwise.model.topology import Complete, Embedded, Hypercube, Mesh, Topology, Torus
from collwise.schedule.operations import Block, Combine, Copy, Operation, Recv, Send, Slot, scratch
from collwise.schedule.problem import Problem
from collwise.schedule.program import Schedule, Written
from collwise.timing import Timing

F = Fraction
IN, OUT = int(Slot.INPUT), int(Slot.OUTPUT)
S0, S1, S2, S3 = map(scratch, range(4))
BLOCKS = {"A": Block(0, 0, 4), "B": Block(0, 4, 4), "C": Block(0, 8, 2), "D": Block(0, 0, 16)}
A, B = (BLOCKS["A"],), (BLOCKS["B"],)
ALL = Block(0, 0, 8)


def written(
    *lists: Sequence[Operation], collective: str = "broadcast", nbytes: int = 8, **more: Any
) -> Schedule:
    """A schedule by the lists of its ranks."""
    problem = Problem(collective, len(lists), nbytes, **more)
    return Schedule(problem, Written(tuple(map(tuple, lists))))


def spelled(*lists: str, nbytes: int = 8) -> Schedule:
    """A schedule by its ranks' sends (`>1A`: A to rank 1) and receives (`<0AB`: A and B from 0).

    What is sent in small letters is sent from the input, and waits for no data.
    """
    return written(*map(operations_of, lists), nbytes=nbytes)


def operations_of(text: str) -> list[Operation]:
    """The operations of one rank, as `spelled` has them."""
    operations: list[Operation] = []
    for kind, peer, letters in re.findall(r"([<>])(\d+)(\w+)", text):
        blocks = tuple(BLOCKS[letter.upper()] for letter in letters)
        slot = Slot.INPUT if letters.islower() else Slot.OUTPUT
        operations.append((Send if kind == ">" else Recv)(int(peer), blocks, slot))
    return operations


def messages(ranks: int, *pairs: tuple[int, int]) -> Schedule:
    """Messages of 4 bytes that need no data from one another, in this order on every rank."""
    lists: list[list[Operation]] = [[] for _ in range(ranks)]
    for source, target in pairs:
        lists[source].append(Send(target, A, Slot.INPUT))
        lists[target].append(Recv(source, A))
    return written(*lists)


def send(peer: int, slot: int = IN, *blocks: Block) -> Operation:
    """A send of all 8 bytes, or of some blocks."""
    return Send(peer, blocks or (ALL,), slot)


def recv(peer: int, slot: int = OUT, *blocks: Block) -> Operation:
    """A receive of all 8 bytes, or of some blocks."""
    return Recv(peer, blocks or (ALL,), slot)


def combine(left: int, right: int, into: int = OUT, *blocks: Block) -> Operation:
    """A combine of all 8 bytes, or of some blocks."""
    return Combine(left, right, into, blocks or (ALL,))


def steps(timing: Timing) -> dict[tuple[int, int], tuple[Any, ...]]:
    """By rank and place: a send's start, its end, the receipt; a combine's start and end."""
    sends = {(t.source, t.place_at_source): (t.start, t.sent, t.received) for t in timing.transfers}
    return sends | {(c.rank, c.place): (c.start, c.end) for c in timing.combines}


def random_schedule(random: Random, ranks: int, messages: int) -> Schedule:
    """Messages between random ranks, some of them passed on, with combines and copies between."""
    lists: list[list[Operation]] = [[] for _ in range(ranks)]
    has: list[list[Block]] = [[] for _ in range(ranks)]
    for number in range(messages):
        source, target = random.sample(range(ranks), 2)
        blocks = [Block(number, 0, random.randrange(1, 9))]
        if has[source] and random.random() < 0.7:
            blocks = random.choices(has[source], k=random.randrange(1, 4))
        slot = random.choice((Slot.OUTPUT, scratch(0)))
        lists[source].append(Send(target, tuple(blocks), slot))
        lists[target].append(Recv(source, tuple(blocks), slot))
        has[target] += blocks
        if random.random() < 0.3:
            rank = random.randrange(ranks)
            some = tuple(random.choices(has[rank] or [Block(number, 0, 3)], k=2))
            into = random.choice((int(Slot.OUTPUT), scratch(0)))
            other = Slot.OUTPUT + scratch(0) - into
            local = Combine(other, into, into, some), Copy(other, into, some)
            lists[rank].append(random.choice(local))
    return written(*lists)


def random_broadcast(random: Random, ranks: int, cuts: int, *, mixed: bool = False) -> Schedule:
    """A broadcast of 40 bytes in pieces, several in a message, from whoever has them.

    mixed: some operations of different kinds or peers change places with their neighbours.
    """
    ends = [*sorted(random.sample(range(1, 40), cuts - 1)), 40]
    pieces = [Block(0, a, b - a) for a, b in zip([0, *ends], ends, strict=False)]
    held = [set(pieces), *(set[Block]() for _ in range(ranks - 1))]
    lists: list[list[Operation]] = [[] for _ in range(ranks)]
    while pairs := [(a, b) for a, b in permutations(range(ranks), 2) if held[a] - held[b]]:
        source, target = random.choice(pairs)
        new = sorted(held[source] - held[target])
        blocks = tuple(random.sample(new, random.randint(1, len(new))))
        lists[source].append(Send(target, blocks))
        lists[target].append(Recv(source, blocks))
        held[target] |= set(blocks)
    for operations in lists if mixed else []:
        for _ in range(random.randrange(3)):
            at = random.randrange(max(len(operations) - 1, 1))
            pair = operations[at : at + 2]
            if len({(type(op), getattr(op, "peer", None)) for op in pair}) == 2:
                operations[at : at + 2] = reversed(pair)
    return written(*lists, nbytes=40)


def random_run(random: Random, algorithm: Algorithm, ranks: int, machine: Machine) -> Schedule:
    """A schedule with any root, sources and bytes; now and then as the algorithm is planned."""
    nbytes = fitting(algorithm, ranks, 8 * random.choice((1, 3, ranks, 3 * ranks + 1)), itemsize=8)
    given: dict[str, Any] = {"nbytes": nbytes, "itemsize": 8}
    given["root"] = random.choice(roots(algorithm, ranks))
    if algorithm.kind.has_sources:
        sources = sorted(random.sample(range(ranks), random.randint(1, ranks)))
        given = {"sources": sources, "nbytes": [random.randint(1, 40) for _ in sources]}
        if random.random() < 0.4:
            given = {"sources": range(ranks), "nbytes": [8] * ranks}
    if isinstance(machine, Levels):
        given["placement"] = machine.placement
    problem = algorithm.problem(ranks, **given)
    sizes = {"segment": random.choice((16, 40)), "lam": random.choice((1, 2, 4))}
    choices: list[Settings] = [settings_of(algorithm, ranks, **sizes)]
    if random.random() < 0.3:
        choices = list(settings_to_try(algorithm, problem, machine)) or choices
    return algorithm.solve(problem, random.choice(choices))


def _seconds(random: Random) -> Fraction:
    return Fraction(random.randint(0, 30), random.choice((1, 2, 7)))


def _costs(random: Random, names: str, per_byte: str) -> dict[str, Fraction]:
    """Some seconds for each of these names, a hundredth for those that count bytes."""
    costs = {f"{name}_s": _seconds(random) for name in names.split()}
    return costs | {f"{name}_s": _seconds(random) / 100 for name in per_byte.split()}


def _postal(random: Random) -> Machine:
    lam = random.choice((1, 2, Fraction(9, 5), 4, 7))
    return Machine.postal(t0_s=random.randint(1, 20), lam=lam)


def _measured(random: Random) -> Machine:
    """Up to two protocols of up to three sizes, with jumps between them."""
    rows: list[tuple[int, Fraction, str]] = []
    t0 = F(1)
    for nbytes in sorted(random.sample(range(1, 60), random.randint(1, 6))):
        rows.append((nbytes, t0, random.choice(("1", "3/2", "2", "4"))))
        t0 += random.choice((0, F(1, 3), 2, 20))
    cut = random.randrange(len(rows))
    machine = measured([part for part in (rows[:cut], rows[cut:]) if part])
    return machine.with_combining([(1, 1), (50, random.randint(1, 9))])


def _hockney(random: Random, *, one_partner: bool = False) -> Machine:
    return Machine.hockney(**_costs(random, "alpha", "beta gamma"), exchange_only=one_partner)


def _wormhole(random: Random) -> Machine:
    costs = _costs(random, "send receive hop", "beta gamma copy")
    return Machine.wormhole(**costs, all_port=random.random() < 0.5)


def random_placement(random: Random, ranks: int, depth: int | None = None) -> Placement:
    """Any groups within groups, numbered in any way."""
    rows: list[list[int]] = []
    group = [random.randrange(4) for _ in range(ranks)]
    for _ in range((random.randrange(1, 4) if depth is None else depth) - 1):
        rows.append(group)
        above = [random.randrange(2) for _ in range(4)]
        group = [above[g] for g in group]
    return Placement.of(*rows, ranks=ranks)


def random_levels(
    random: Random, placement: Placement, *, combining: bool = False, memory: bool = False
) -> Levels:
    """Any costs, now and then cheaper at an outer level; ports that often collide."""
    laws: list[Machine] = []
    for level in range(placement.depth):
        t0 = random.choice((Fraction(1), Fraction(2), Fraction(1, 2), Fraction(5, 3)))
        lam = random.choice((Fraction(1), Fraction(3, 2), Fraction(2), Fraction(7, 2))) * (
            1 + level
        )
        law: Machine = Machine.postal(t0_s=t0, lam=lam)
        if random.random() < 0.5 or combining:
            law = measured([[(1, t0, lam), (6, 2 * t0, lam)], [(9, 3 * t0, 1)]])
            if combining:
                law = law.with_combining([(1, 1), (10, 3)])
        laws.append(law)
    ports = [random.choice((None, "1/2", 1, 3, [(2, 0), (8, 2)])) for _ in laws[1:]]
    laws[0] = _sharing_memory(random, laws[0]) if memory else laws[0]
    return Machine.levels(laws, placement, ports=ports)


def _levels(random: Random, ranks: int, *, memory: bool = False) -> Machine:
    placement = random_placement(random, ranks, random.choice((2, 2, 3)))
    return random_levels(random, placement, combining=random.random() < 0.5, memory=memory)


def _sharing_memory(random: Random, law: Any) -> Machine:
    """Publishing as it costs by a law, and reading for some share of the time until it is read."""
    share = random.choice((0, F(1, 5), F(1, 2), 1))
    sizes = law.sizes() or (1,)
    return Machine.memory(law, read=[(n, share * law.message(n).latency) for n in sizes])


def _network(random: Random, ranks: int) -> Topology:
    shapes: list[Topology] = [Mesh(1, ranks), Torus(1, ranks), Complete(ranks)]
    shapes.append(Embedded(Mesh(2, ranks), random.sample(range(2 * ranks), ranks)))
    if ranks % 2 == 0:
        shapes += [Mesh(2, ranks // 2), Torus(2, ranks // 2)]
    if ranks % 4 == 0:
        shapes.append(Torus(2, 2, ranks // 4))
    if ranks > 1 and ranks & (ranks - 1) == 0:
        shapes.append(Hypercube(ranks.bit_length() - 1))
    return random.choice(shapes)


LAWS: dict[str, Callable[[Random, int], tuple[Machine, Topology | None]]] = {
    "postal": lambda random, _: (_postal(random), None),
    "measured, combining": lambda random, _: (_measured(random), None),
    "levels": lambda random, ranks: (_levels(random, ranks), None),
    "memory": lambda random, _: (_sharing_memory(random, _postal(random)), None),
    "memory, combining": lambda random, _: (_sharing_memory(random, _measured(random)), None),
    "memory, levels": lambda random, ranks: (_levels(random, ranks, memory=True), None),
    "Hockney": lambda random, _: (_hockney(random), None),
    "one partner": lambda random, _: (_hockney(random, one_partner=True), None),
    "LogGP": lambda random, _: (Machine.loggp(**_costs(random, "L o g", "G")), None),
    "wormhole": lambda random, _: (_wormhole(random), None),
    "Hockney, links": lambda random, ranks: (_hockney(random), _network(random, ranks)),
    "one partner, links": lambda random, ranks: (
        _hockney(random, one_partner=True),
        _network(random, ranks),
    ),
    "wormhole, links": lambda random, ranks: (_wormhole(random), _network(random, ranks)),
}
"""By name, a machine of this law for so many ranks, and its network."""
