"""The arithmetic of the switch, on a clock that is only a number.

That the compiled one does the same is for `test_carrier.py`.
"""

from fractions import Fraction
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from collwise.lab.link_model import LinkModel

MS = 1_000_000
LATENCY = 5 * MS
PACKET = bytes(1250)  # 1 ms at 10 Mbit/s
RATE = 10_000_000


def _model(hosts: int, **trunks: Any) -> LinkModel:
    return LinkModel([RATE] * hosts, [[LATENCY] * hosts] * hosts, **trunks)


def _arrivals(links: LinkModel) -> list[tuple[int, int]]:
    """(when, where) of all packets in flight, delivered at each event as the switch does."""
    arrivals = []
    while (now := links.next_event) is not None:
        arrivals += [(due, target) for due, target, _ in links.deliver(now)]
    return arrivals


def test_nothing_is_in_flight_at_first() -> None:
    links = _model(2)
    assert links.next_event is None
    assert links.deliver(10**12) == []


def test_one_packet_takes_transmission_and_latency() -> None:
    links = _model(2)
    assert links.send(7, 0, 1, PACKET) == 7 + MS
    assert links.deliver(6 * MS + 6) == []
    assert links.deliver(6 * MS + 7) == [(6 * MS + 7, 1, PACKET)]


def test_a_sender_sends_one_packet_after_the_other() -> None:
    """The postal model: k messages to different hosts arrive t0 apart."""
    links = _model(4)
    ends = [links.send(0, 0, target, PACKET) for target in (1, 2, 3)]
    assert ends == [MS, 2 * MS, 3 * MS]
    assert _arrivals(links) == [(6 * MS, 1), (7 * MS, 2), (8 * MS, 3)]


def test_a_receiver_receives_one_packet_after_the_other() -> None:
    links = _model(4)
    for source in (1, 2, 3):
        links.send(0, source, 0, PACKET)
    assert _arrivals(links) == [(6 * MS, 0), (7 * MS, 0), (8 * MS, 0)]


def test_a_port_receives_in_the_order_in_which_first_bits_arrive() -> None:
    """A packet sent earlier, from farther away, comes second."""
    links = LinkModel([RATE] * 3, [[0, 0, LATENCY], [0, 0, MS], [0, 0, 0]])
    links.send(0, 0, 2, b"far!" * 300)
    links.send(2 * MS, 1, 2, b"near" * 300)
    packets = links.deliver(100 * MS)
    assert [packet[:4] for _, _, packet in packets] == [b"near", b"far!"]


def test_a_slow_receiver_holds_up_and_a_fast_one_does_not_hurry() -> None:
    slow = LinkModel([RATE, RATE // 2], [[LATENCY] * 2] * 2)
    slow.send(0, 0, 1, PACKET)
    assert _arrivals(slow) == [(LATENCY + 2 * MS, 1)]
    fast = LinkModel([RATE, RATE * 10], [[LATENCY] * 2] * 2)
    fast.send(0, 0, 1, PACKET)
    assert _arrivals(fast) == [(LATENCY + MS, 1)]


def test_sending_does_not_hold_up_receiving() -> None:
    links = _model(2)
    links.send(0, 0, 1, PACKET)
    links.send(0, 1, 0, PACKET)
    assert _arrivals(links) == [(6 * MS, 1), (6 * MS, 0)]


def test_a_trunk_is_shared_in_its_direction() -> None:
    trunks = [[None, None, 0], [None, None, 0], [1, 1, None]]
    links = _model(3, trunk_rates=[RATE // 2, RATE // 2], trunks=trunks)
    links.send(0, 0, 2, PACKET)
    links.send(0, 1, 2, PACKET)
    links.send(0, 2, 0, PACKET)
    links.send(0, 1, 0, PACKET)  # beside the trunk, behind the first packet at host 1's port
    assert _arrivals(links) == [(7 * MS, 2), (7 * MS, 0), (8 * MS, 0), (9 * MS, 2)]


@given(
    st.lists(
        st.tuples(
            st.integers(0, 3 * MS), st.integers(0, 3), st.integers(0, 3), st.integers(20, 1500)
        ),
        max_size=30,
    ),
    st.integers(0, 2**32),
)
def test_packets_may_be_delivered_late(sent: list[tuple[int, int, int, int]], delay: int) -> None:
    """Lateness of the switch never changes when packets should have arrived."""
    prompt, late = _model(4), _model(4)
    for links in (prompt, late):
        for now, source, target, size in sorted(sent):
            links.send(now, source, target, bytes(size))
    arrivals = []
    while (now_ns := late.next_event) is not None:
        arrivals += [(due, target) for due, target, _ in late.deliver(now_ns + delay)]
    assert sorted(arrivals) == sorted(_arrivals(prompt))


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(20, 1500)), max_size=30)
)
def test_no_port_is_faster_than_its_rate(sent: list[tuple[int, int, int]]) -> None:
    links = _model(4)
    for source, target, size in sent:
        links.send(0, source, target, bytes(size))
    arrivals = _arrivals(links)
    assert len(arrivals) == len(sent)
    for host in range(4):
        for end in (0, 1):
            nbytes = sum(one[2] for one in sent if one[end] == host)
            if nbytes:
                times = [due for due, target in arrivals if end == 0 or target == host]
                # Each packet's time is rounded down to a nanosecond.
                least = Fraction(nbytes * 8 * 10**9, RATE) + LATENCY - len(sent) * 2
                assert max(times) >= least
