"""Machines with levels: each rule worked out by hand; and with one level the postal law."""

from fractions import Fraction
from typing import Any

import pytest
from tests.algorithms.examples import COMBINES, MEASURED, settings_of, sources_for
from tests.timing.comparing import check
from tests.timing.schedules import messages, spelled, steps

from collwise.algorithms import ALGORITHMS, Algorithm
from collwise.errors import InvalidArgument
from collwise.model.machine import Machine
from collwise.model.placement import Placement
from collwise.model.topology import Mesh
from collwise.schedule.program import Schedule
from collwise.timing import ideal
from collwise.verifier import check_ports

F = Fraction
INSIDE, ACROSS = Machine.postal(t0_s=1, lam=2), Machine.postal(t0_s=4, lam=5)  # there after 20
OUTERMOST = Machine.postal(t0_s=10, lam=2)  # there after 20, too


def nodes(count: int, size: int, port: Any = 3) -> Machine:
    return Machine.levels([INSIDE, ACROSS], Placement.regular(count, size), ports=[port])


def racks(port: Any, of_racks: Any = 6) -> Machine:
    """Two racks of two nodes of two ranks."""
    placement = Placement.regular(2, 2, 2)
    return Machine.levels([INSIDE, ACROSS, OUTERMOST], placement, ports=[port, of_racks])


RULES: dict[str, tuple[Machine, Schedule, dict[tuple[int, int], tuple[Any, ...]]]] = {
    "each level has its costs": (
        nodes(2, 3, None),
        messages(6, (0, 1), (0, 3), (0, 2)),
        {(0, 0): (0, 1, 2), (0, 1): (1, 5, 21), (0, 2): (5, 6, 7)},
    ),
    # Three leave at once, 3 apart; they come in 3 apart.  Inside of the node there is no port.
    "ranks of a node share its port on the way out, ties go by source": (
        nodes(2, 3),
        messages(6, (2, 5), (0, 3), (1, 4), (1, 0)),
        {(0, 0): (0, 4, 20), (1, 0): (3, 7, 23), (2, 0): (6, 10, 26), (1, 1): (7, 8, 9)},
    ),
    "the two directions have ports of their own": (
        nodes(2, 3),
        messages(6, (2, 5), (3, 0)),
        {(2, 0): (0, 4, 20), (3, 0): (0, 4, 20)},
    ),
    # From two nodes into one: both arrive at 20, the second passes 3 later.
    "ranks of a node share its port on the way in": (
        nodes(3, 2),
        messages(6, (4, 0), (2, 1)),
        {(2, 0): (0, 4, 20), (4, 0): (0, 4, 23)},
    ),
    # They pass the port at 20 and 23, the first of the list last; the other one's receipt waits.
    "receipts are t0 apart, in list order, after the port": (
        nodes(3, 2),
        messages(6, (4, 0), (2, 0)),
        {(2, 0): (0, 4, 27), (4, 0): (0, 4, 23)},
    ),
    # 8 bytes leave at 0 and keep the port for 5; going in, 4 bytes pass 3 after them, and those of
    # rank 7, which come last, 5 after these.
    "out, the first one's bytes count; in, the second one's": (
        nodes(3, 3, [(4, 3), (8, 5)]),
        spelled("<3AB", "<4A", "<7AB", ">0ab", ">1a", "", "", ">2ab", ""),
        {(3, 0): (0, 4, 20), (4, 0): (5, 9, 28), (7, 0): (0, 4, 25)},
    ),
    # Two nodes of a rack send to another rack: the rack's port makes the second one wait, until 6,
    # and only then it keeps the port of its node, for which 3 → 1 waits.
    "a message passes the ports of all groups that it leaves, together": (
        racks(1),
        messages(8, (0, 4), (2, 6), (1, 3), (3, 1)),
        {(0, 0): (0, 10, 20), (1, 0): (1, 5, 21), (2, 0): (6, 16, 26), (3, 1): (7, 11, 27)},
    ),
    "only where they have one": (
        racks(None),
        messages(8, (0, 4), (2, 6), (1, 3)),
        {(0, 0): (0, 10, 20), (1, 0): (0, 4, 20), (2, 0): (6, 16, 26)},
    ),
    # Rank 2 asks for its sixth message at 20, when rank 0 has what it passes on, and asks, too.
    "arrivals come before requests": (
        nodes(2, 3),
        spelled("<3A >4A", "", ">5a" * 6, ">0a", "<0A", "<2A" * 6),
        {(2, k): (4 * k, 4 * k + 4, 4 * k + 20) for k in range(5)}
        | {(3, 0): (0, 4, 20), (0, 1): (20, 24, 40), (2, 5): (23, 27, 43)},
    ),
    # Both arrive at 20: 0 → 4 at its rack, 6 → 5 at its node, where then the source counts.
    "outer ports come before inner ones": (
        racks(1),
        messages(8, (0, 4), (6, 5)),
        {(0, 0): (0, 10, 20), (6, 0): (0, 4, 21)},
    ),
    # C of rank 4 leaves although 3 keeps the port, and passes at 24, before 6 → 1 does at 26.
    "a message that keeps a port for no time does not touch it": (
        nodes(3, 3, [(2, 0), (4, 6)]),
        spelled("<3A", "<6A", "<4C <4C", ">0a", ">2c >2c", "", ">1a", "", ""),
        {(3, 0): (0, 4, 20), (4, 0): (0, 4, 20), (4, 1): (4, 8, 24), (6, 0): (0, 4, 26)},
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_the_rules_by_hand(rule: str) -> None:
    machine, schedule, expected = RULES[rule]
    assert steps(ideal(schedule, machine)) == expected
    check_ports(schedule, ideal(schedule, machine), machine)
    check(schedule, machine)


@pytest.mark.parametrize("algorithm", [*ALGORITHMS.values()][::8], ids=lambda a: a.name)
def test_one_level_is_the_postal_law(algorithm: Algorithm) -> None:
    """To the last digit, message by message."""
    settings, sources = settings_of(algorithm, 7), sources_for(algorithm, 7)
    schedule = algorithm.schedule(7, 7 * 160, itemsize=8, **sources, **settings)
    for law in (Machine.postal(t0_s=F(1, 1000), lam="9/5"), MEASURED, COMBINES):
        machine = Machine.levels([law], Placement.of(ranks=7))
        timing, expected = ideal(schedule, machine), ideal(schedule, law)
        assert timing.finish == expected.finish
        assert sorted(timing.transfers) == sorted(expected.transfers)
        assert sorted(timing.combines) == sorted(expected.combines)


def test_a_machine_for_other_ranks_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="it places 6 ranks, and the schedule has 7"):
        ideal(messages(7, (0, 1)), nodes(2, 3))
    with pytest.raises(InvalidArgument, match="knows no links"):
        ideal(messages(6, (0, 1)), nodes(2, 3), Mesh(2, 3))
