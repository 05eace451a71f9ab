"""Memory that ranks share: each rule worked out by hand."""

from fractions import Fraction
from typing import Any

import pytest
from tests.timing.comparing import check
from tests.timing.schedules import (
    IN,
    OUT,
    S0,
    combine,
    messages,
    recv,
    send,
    spelled,
    steps,
    written,
)

from collwise.errors import InvalidArgument
from collwise.model.machine import Cost, Machine
from collwise.model.measured_machine import measured
from collwise.model.placement import Placement
from collwise.schedule.dependencies import publications
from collwise.schedule.operations import (
    Block,
    Copy,
    Send,
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
    # Rank 0 could have read what rank 1 published at 4, but publishes itself until then.
    "a rank publishes, then it reads": (
        MEMORY,
        spelled(">1a >1b <1C", "<0A <0B >0c"),
        {(0, 0): (0, 2, 4), (0, 1): (2, 4, 6), (1, 2): (0, 2, 5)},
    ),
    # One way takes 6: then a long message is read while it is published.
    "an exchange is not as quick as one way": (
        Machine.memory(Machine.postal(t0_s=6, lam=1), read=3),
        spelled(">1a <1B", ">0b <0A"),
        {(0, 0): (0, 6, 9), (1, 0): (0, 6, 9)},
    ),
    # Rank 0 could read until 4, as here, while its message to the other node leaves.
    "messages to other nodes and memory are independent": (
        nodes(2, 2),
        messages(4, (0, 2), (1, 0)),
        {(0, 0): (0, 4, 20), (1, 0): (0, 2, 4)},
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
    crossing = Machine.memory(measured([[(4, 2, 2), (8, 6, 1)]]), read=[(4, 1), (8, 6)])
    assert crossing.receipt(16) == crossing.message(16).latency == 14
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


def test_publications_of_parts() -> None:
    """A copy ends the publications of the bytes that it changes, not those of others."""
    a, b = Block(0, 0, 4), Block(0, 4, 4)
    copy = Copy(IN, OUT, (a,))
    sends = [Send(peer, (block,), OUT) for peer, block in ((1, a), (1, b))]
    again = [Send(peer, (block,), OUT) for peer, block in ((2, a), (3, b))]
    assert publications([*sends, copy, *again], range(4)) == [0, 1, 2, 3, 1]
    assert publications([*sends, *again], range(4)) == [0, 1, 0, 1]
    assert publications([*sends, *again], ()) == [0, 1, 2, 3]
