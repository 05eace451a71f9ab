"""Memory that ranks share: each rule worked out by hand, and an obvious twin at random."""

from collections.abc import Callable
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from tests.case import in_case
from tests.timing.comparing import check
from tests.timing.schedules import (
    IN,
    LAWS,
    OUT,
    S0,
    combine,
    messages,
    random_broadcast,
    random_schedule,
    recv,
    send,
    spelled,
    steps,
    written,
)

from collwise.errors import InvalidArgument, InvalidSchedule
from collwise.model.levels import Levels
from collwise.model.machine import Cost, Machine
from collwise.model.measured_machine import measured
from collwise.model.placement import Placement
from collwise.schedule.dependencies import dependencies, publications
from collwise.schedule.operations import (
    Block,
    Combine,
    Copy,
    Operation,
    Recv,
    Send,
    blocks_in,
    clobbers,
    size_of,
)
from collwise.schedule.program import Schedule
from collwise.timing import completion, ideal
from collwise.timing.law import only_own_ports
from collwise.verifier import check_ports

F = Fraction
INSIDE = Machine.postal(t0_s=2, lam=2)
MEMORY = Machine.memory(INSIDE, read=1)  # published in 2, read after 4, a read takes 1
BY_LENGTH = Machine.memory(measured([[(4, 2, 2), (8, 6, 2)]]), read=[(4, 1), (8, 3)])
COMBINING = Machine.memory(measured([[(8, 2, 2)]]).with_combining([(8, 5)]), read=1)
ACROSS = Machine.postal(t0_s=4, lam=5)


def nodes(count: int, size: int, port: Any = None) -> Machine:
    """Nodes whose ranks share memory."""
    return Machine.levels([MEMORY, ACROSS], Placement.regular(count, size), ports=[port])


RULES: dict[str, tuple[Machine, Schedule, dict[tuple[int, int], tuple[Any, ...]]]] = {
    "the port is busy once, however many read": (
        MEMORY,
        messages(4, (0, 1), (0, 2), (0, 3)),
        {(0, place): (0, 2, 4) for place in range(3)},
    ),
    "other bytes are another publication": (
        MEMORY,
        spelled(">1a >2b >3a", "<0A", "<0B", "<0A"),
        {(0, 0): (0, 2, 4), (0, 2): (0, 2, 4), (0, 1): (2, 4, 6)},
    ),
    # Both are there at 4; the second read takes 1 more, in the order of the list.
    "a reader is busy for each of its reads": (
        MEMORY,
        messages(3, (0, 2), (1, 2)),
        {(0, 0): (0, 2, 4), (1, 0): (0, 2, 5)},
    ),
    # A of rank 0 is there at 4, AB of rank 1 at 12, A of rank 3 at 4: it is read 1 after that.
    "a read is as long as what is read": (
        BY_LENGTH,
        spelled(">2a", ">2ab", "<0A <1AB <3A", ">2a"),
        {(0, 0): (0, 2, 4), (1, 0): (0, 6, 12), (3, 0): (0, 2, 13)},
    ),
    # Rank 1 passes on what it read, once, to two ranks.
    "what was read is published": (
        MEMORY,
        spelled(">1a", "<0A >2A >3A", "<1A", "<1A"),
        {(0, 0): (0, 2, 4), (1, 1): (4, 6, 8), (1, 2): (4, 6, 8)},
    ),
    # A goes to 1 twice: what comes second may not overtake, so it is published anew, for 2 as well.
    "nothing overtakes what was sent to the same rank": (
        MEMORY,
        spelled(">1a >1a >2a", "<0A <0A", "<0A"),
        {(0, 0): (0, 2, 4), (0, 1): (2, 4, 6), (0, 2): (2, 4, 6)},
    ),
    # The rank combines from 4 until 9, in both slots; what it then sends was not published before.
    "a combine ends a publication": (
        COMBINING,
        written(
            [send(1), recv(1, S0), combine(IN, S0, OUT), send(1, OUT), send(2, OUT)],
            [send(0), recv(0, S0), recv(0)],
            [recv(0)],
            collective="reduce",
        ),
        {(0, 0): (0, 2, 4), (1, 0): (0, 2, 4), (0, 2): (4, 9)}
        | {(0, 3): (9, 11, 13), (0, 4): (9, 11, 13)},
    ),
    # Messages to the other node take 4 of the port each; both ranks of the own one read at once.
    "only the ranks of a node share memory": (
        nodes(2, 3),
        messages(6, (0, 3), (0, 1), (0, 4), (0, 2)),
        {(0, 0): (0, 4, 20), (0, 1): (4, 6, 8), (0, 2): (6, 10, 26), (0, 3): (4, 6, 8)},
    ),
    "memory does not touch the port of a node": (
        nodes(2, 3, 3),
        messages(6, (0, 3), (1, 4), (2, 0), (2, 1)),
        {(0, 0): (0, 4, 20), (1, 0): (3, 7, 23), (2, 0): (0, 2, 4), (2, 1): (0, 2, 4)},
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_the_rules_by_hand(rule: str) -> None:
    machine, schedule, expected = RULES[rule]
    assert steps(ideal(schedule, machine)) == expected
    check_ports(schedule, ideal(schedule, machine), machine)
    check(schedule, machine)
    if not (isinstance(machine, Levels) and machine.shares_ports):
        assert twin(schedule, machine) == expected


def test_a_flat_tree_takes_one_publication_and_one_read() -> None:
    """However many ranks there are; by the postal law it takes (p − 2 + λ)·t0."""
    for ranks in (2, 3, 9, 40):
        flat = messages(ranks, *((0, rank) for rank in range(1, ranks)))
        assert completion(flat, MEMORY) == 4
        assert completion(flat, INSIDE) == 2 * (ranks - 2 + 2)


def test_which_machines_share_memory() -> None:
    for machine in (MEMORY, nodes(2, 3)):
        assert machine.shares_memory
        assert not only_own_ports(machine, None)
    assert not INSIDE.shares_memory
    assert MEMORY.ports_only() is MEMORY
    assert MEMORY.message(8) == INSIDE.message(8)
    assert BY_LENGTH.receipt(6) == 2
    assert BY_LENGTH.sizes() == (4, 8)
    assert Machine.memory(INSIDE, read=0).receipt(10) == 0
    slower = BY_LENGTH.with_overhead(1)
    assert slower.message(4) == Cost(F(3), F(5))
    assert slower.receipt(4) == 2
    assert Machine.memory(INSIDE, read=0).with_overhead(1).receipt(7) == 1


def test_bad_machines_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="its publications are hockney"):
        Machine.memory(Machine.hockney(alpha_s=1, beta_s=1), read=1)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="a read's times at"):
        Machine.memory(INSIDE, read=[(8, 2), (4, 1)])
    with pytest.raises(InvalidArgument, match="a read of 0 bytes takes longer than publishing and"):
        Machine.memory(INSIDE, read="4.1")
    with pytest.raises(InvalidArgument, match="below 0"):
        Machine.memory(INSIDE, read=-1)
    with pytest.raises(InvalidArgument, match="level 2 is memory"):
        Machine.levels([INSIDE, MEMORY], Placement.regular(2, 2))


# --- the obvious twin: it looks everything up anew, until nothing changes ---


def _same(operations: list[Operation] | tuple[Operation, ...], one: int, other: int) -> bool:
    """Whether two sends of a rank send the same bytes."""
    first, second = operations[one], operations[other]
    assert isinstance(first, Send)
    assert isinstance(second, Send)
    changed = [
        block
        for op in operations[one:other]
        if isinstance(op, Combine | Copy | Recv) and first.slot in clobbers(op)
        for block in blocks_in(op, first.slot)
    ]
    touched = any(
        a.owner == b.owner and a.offset < b.end and b.offset < a.end and a.length and b.length
        for a in changed
        for b in first.blocks
    )
    return (first.slot, first.blocks) == (second.slot, second.blocks) and not touched


def _published(operations: Any, inside: Callable[[int], bool]) -> dict[int, int]:
    """For each send inside the node, the send with which it is published."""
    published: dict[int, int] = {}
    for place, op in enumerate(operations):
        if isinstance(op, Send) and inside(op.peer):
            mine = [p for p, q in published.items() if operations[p].peer == op.peer]
            latest = max((published[p] for p in mine), default=-1)
            heads = [p for p, q in published.items() if p == q and _same(operations, p, place)]
            known = max(heads, default=-1)
            published[place] = known if known > latest else place
    return published


def twin(schedule: Schedule, machine: Machine) -> dict[tuple[int, int], tuple[Any, ...]]:
    """The steps of a schedule, on a machine without ports of groups; {} if some never end."""
    lists = schedule.lists
    waits = [dependencies(operations) for operations in lists]
    levels = machine if isinstance(machine, Levels) else None

    def meeting(one: int, other: int) -> int:
        return levels.placement.meeting(one, other) if levels else 1

    published = [
        _published(operations, lambda peer, rank=rank: meeting(rank, peer) == 1)  # type: ignore[misc]
        for rank, operations in enumerate(lists)
    ]
    order: dict[tuple[int, int], list[int]] = {}
    for rank, operations in enumerate(lists):
        for place, op in enumerate(operations):
            if isinstance(op, Send):
                order.setdefault((rank, op.peer), []).append(place)
    done: dict[tuple[int, int], tuple[Any, ...]] = {}  # of all operations; the last is its end

    def ready(rank: int, place: int) -> Any:
        ends = [done.get((rank, writer)) for writer in waits[rank][place]]
        return None if None in ends else max([F(0), *(end[-1] for end in ends if end)])

    def port(rank: int, place: int, kind: type) -> Any:
        """When what is before it at the port ends: None if that is unknown, −1 if it is nothing."""
        before = [
            done.get((rank, p))
            for p, op in enumerate(lists[rank][:place])
            if (isinstance(op, kind) and published[rank].get(p, p) == p)
            or (isinstance(op, Combine) and machine.combine(1) is not None)
        ]
        return None if None in before else max((end[1] for end in before if end), default=F(-1))

    def step(rank: int, place: int) -> tuple[Any, ...] | None:
        op = lists[rank][place]
        size = size_of(op)
        if isinstance(op, Send):
            if (first := published[rank].get(place, place)) != place:
                return done.get((rank, first))
            data, free = ready(rank, place), port(rank, place, Send)
            if data is None or free is None:
                return None
            gap = (levels.between(rank, op.peer, size) if levels else machine.message(size)).gap
            start = max(data, free, F(0))
            return start, start + gap, start
        if isinstance(op, Recv):
            number = sum(isinstance(o, Recv) and o.peer == op.peer for o in lists[rank][:place])
            sends = order.get((op.peer, rank), [])
            sent = done.get((op.peer, sends[number])) if number < len(sends) else None
            free = port(rank, place, Recv)
            if sent is None or free is None:
                return None
            cost = levels.between(op.peer, rank, size) if levels else machine.message(size)
            read = levels.receipt_at(meeting(op.peer, rank), size) if levels else None
            least = machine.receipt(size) if read is None else read
            time = max(sent[0] + cost.latency, F(0) if free < 0 else free + least)
            return sent[0], time, time
        data, takes = ready(rank, place), machine.combine(size)
        if isinstance(op, Copy) or takes is None:
            return None if data is None else (data, data, data)
        both = port(rank, place, Send), port(rank, place, Recv)
        if data is None or None in both:
            return None
        start = max(data, F(0), *both)
        return start, start + takes, start + takes

    while True:
        before = len(done)
        for rank, operations in enumerate(lists):
            for place in range(len(operations)):
                if (rank, place) not in done and (now := step(rank, place)) is not None:
                    done[rank, place] = now
        if len(done) == before:
            break
    if len(done) < sum(map(len, lists)):
        return {}
    result: dict[tuple[int, int], tuple[Any, ...]] = {}
    for rank, operations in enumerate(lists):
        heard: dict[int, int] = {}
        for place, op in enumerate(operations):
            if isinstance(op, Recv):
                number = heard[op.peer] = heard.get(op.peer, -1) + 1
                at = op.peer, order[op.peer, rank][number]
                result[at] = (done[at][0], done[at][1], done[rank, place][1])
            elif isinstance(op, Combine) and machine.combine(1) is not None:
                result[rank, place] = done[rank, place][:2]
    return result


@pytest.mark.no_cover
@pytest.mark.parametrize(
    "seeds", [range(40), pytest.param(range(40, 2000), marks=pytest.mark.exhaustive)]
)
def test_the_loop_and_the_obvious_twin(seeds: range) -> None:
    ended = 0
    for seed in seeds:
        random = Random(seed)
        ranks = random.randrange(2, 7)
        law = random.choice(("memory", "memory, combining", "memory, levels"))
        machine, _ = LAWS[law](random, ranks)
        if isinstance(machine, Levels):
            machine = Machine.levels([level.law for level in machine.by_level], machine.placement)
        some = random.choice((random_schedule, random_broadcast))
        schedule = some(random, ranks, random.randrange(1, 7))
        with in_case(seed, law):
            try:
                expected = steps(ideal(schedule, machine))
            except InvalidSchedule:
                expected = {}
            assert twin(schedule, machine) == expected
            ended += len(expected) > 3
    assert ended > len(seeds) // 3


def test_publications_of_parts() -> None:
    """A copy ends the publications of the bytes that it changes, not those of others."""
    a, b = Block(0, 0, 4), Block(0, 4, 4)
    copy = Copy(IN, OUT, (a,))
    sends = [Send(peer, (block,), OUT) for peer, block in ((1, a), (1, b))]
    again = [Send(peer, (block,), OUT) for peer, block in ((2, a), (3, b))]
    assert publications([*sends, copy, *again], range(4)) == [0, 1, 2, 3, 1]
    assert publications([*sends, *again], range(4)) == [0, 1, 0, 1]
    assert publications([*sends, *again], ()) == [0, 1, 2, 3]
