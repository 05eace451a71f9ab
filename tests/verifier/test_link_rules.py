"""Timings that break the law of a network."""

from fractions import Fraction
from typing import Any

import pytest
from tests.timing.schedules import messages, spelled
from tests.verifier.forged import forged

from collwise.algorithms import ALGORITHMS
from collwise.errors import InvalidArgument, InvalidSchedule
from collwise.model.machine import Machine
from collwise.model.topology import Complete, Hypercube, Mesh
from collwise.schedule.program import Schedule
from collwise.timing import Timing, ideal
from collwise.timing.times import LinkWait
from collwise.verifier import check_ports, verify

F = Fraction
LINE = Mesh(1, 5)
WORM = Machine.wormhole(send_s=3, receive_s=2, hop_s=1, beta_s="1/2")
HOCKNEY = Machine.hockney(alpha_s=3, beta_s="1/2")


def crossing() -> Schedule:
    """0 → 3 first; 1 → 2 waits for it; 4 → 3 waits for nobody but its receiver."""
    return messages(5, (0, 3), (1, 2), (4, 3))


def changed(timing: Timing, index: int, **new: Any) -> Any:
    """The timing with another passage, and its transfer as far as both tell the same."""
    passages, transfers = list(timing.passages), list(timing.transfers)
    passages[index] = passages[index]._replace(**new)
    same = {"start": "start", "end": "sent"}
    shared = {same[name]: value for name, value in new.items() if name in same}
    transfers[index] = transfers[index]._replace(**shared)
    return forged(timing, passages=tuple(passages), transfers=tuple(transfers))


@pytest.mark.parametrize("machine", [WORM, HOCKNEY])
def test_what_the_engine_says_is_right(machine: Machine) -> None:
    timing = ideal(crossing(), machine, LINE)
    assert [p.waited for p in timing.passages] == [None, LinkWait(4, 0), None]
    check_ports(crossing(), timing, machine, LINE)


EARLY = {"ready": F(1), "start": F(1), "entry": F(4), "header": F(5), "end": F(7), "waited": None}

BAD: dict[str, tuple[int, dict[str, Any], str]] = {
    "two at once": (1, EARLY, "link 4 still carries the message from rank 0 to 3"),
    "a detour": (1, {"route": (4, 8, 9)}, r"it takes the links \(4, 8, 9\), not its route"),
    "a shortcut": (0, {"route": ()}, "not its route"),
    "a fast header": (1, {"header": F(8)}, "another time than the machine's law says"),
    "links let go too soon": (1, {"end": F(10)}, "another time than the machine's law says"),
    "links taken too late": (1, {"entry": F(9)}, "another time than the machine's law says"),
    "a wait for nobody": (1, {"waited": None}, "begins 5 s late, and waits for nobody"),
    "a wait for another link": (1, {"waited": LinkWait(12, 0)}, "link 12, which was not held"),
    "a wait for another message": (1, {"waited": LinkWait(4, 2)}, "link 4, which was not held"),
    "a wait for no message": (1, {"waited": LinkWait(4, 9)}, "link 4, which was not held"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_breaks_the_law_is_found(case: str) -> None:
    index, new, seen = BAD[case]
    bad = changed(ideal(crossing(), WORM, LINE), index, **new)
    with pytest.raises(InvalidSchedule, match=seen) as caught:
        check_ports(crossing(), bad, WORM, LINE)
    source = bad.transfers[index].source
    assert (caught.value.rank, caught.value.step) == (source, 0)
    assert "network cannot do" in caught.value.remedy


def test_a_passage_is_at_the_time_of_its_transfer() -> None:
    timing = ideal(crossing(), WORM, LINE)
    moved = (timing.transfers[0]._replace(start=F(1)), *timing.transfers[1:])
    with pytest.raises(InvalidSchedule, match="passes at another time than it is sent"):
        check_ports(crossing(), forged(timing, transfers=moved), WORM, LINE)


def test_no_passage_is_missing() -> None:
    timing = ideal(crossing(), WORM, LINE)
    with pytest.raises(InvalidSchedule, match="2 passages of 3 messages"):
        check_ports(crossing(), forged(timing, passages=timing.passages[1:]), WORM, LINE)
    with pytest.raises(InvalidSchedule, match="0 passages of 3 messages"):
        check_ports(crossing(), ideal(crossing(), HOCKNEY), HOCKNEY, LINE)


def test_the_receivers_port_is_busy_from_the_start() -> None:
    """4 → 3 begins while 3 still receives from 0."""
    timing = ideal(crossing(), WORM, LINE)
    index = next(i for i, t in enumerate(timing.transfers) if t.source == 4)
    late = timing.transfers[index]
    assert late.start == 10
    early = {"ready": F(5), "start": F(5), "entry": F(8), "header": F(9), "end": F(11)}
    bad = changed(timing, index, **early)
    bad_transfers = tuple(
        t._replace(received=F(13)) if i == index else t for i, t in enumerate(bad.transfers)
    )
    finish = tuple(F(x) for x in (8, 11, 13, 13, 11))
    with pytest.raises(InvalidSchedule, match="it is less than t0 after the receipt of step 0"):
        check_ports(crossing(), forged(bad, transfers=bad_transfers, finish=finish), WORM, LINE)


def test_on_one_port_two_sends_take_turns() -> None:
    """What all ports may do at once, one port may not."""
    every = Machine.wormhole(send_s=3, receive_s=2, hop_s=1, beta_s="1/2", all_port=True)
    made = spelled(">1A >2A", "<0A", "<0A", "", nbytes=4)
    timing = ideal(made, every, Hypercube(2))
    check_ports(made, timing, every, Hypercube(2))
    with pytest.raises(InvalidSchedule, match="the send port is still busy with step 0"):
        check_ports(made, timing, WORM, Hypercube(2))


def test_verify_takes_a_topology() -> None:
    made = ALGORITHMS["allreduce/recursive_doubling"].schedule(8, 64, itemsize=8)
    for machine in (WORM, HOCKNEY):
        verify(made, machine, Hypercube(3))
        verify(made, machine, Complete(8))
        verify(made, machine)
    with pytest.raises(InvalidArgument, match="knows no links"):
        verify(made, None, Hypercube(3))
