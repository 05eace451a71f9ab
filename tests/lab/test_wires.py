"""The arithmetic of the switch, on a clock that is only a number."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from collwise.lab.wires import Wires

MS = 1_000_000
LATENCY = 5 * MS
PACKET = bytes(1250)  # 1 ms at 10 Mbit/s
RATE = 10_000_000


def _wires(hosts: int, **trunks: object) -> Wires:
    return Wires([RATE] * hosts, [[LATENCY] * hosts] * hosts, **trunks)  # type: ignore[arg-type]


def _arrivals(wires: Wires) -> list[tuple[int, int]]:
    """(when, where) of everything on its way, collecting at each event as the switch does."""
    found = []
    while (now := wires.next_event) is not None:
        found += [(due, target) for due, target, _ in wires.collect(now)]
    return found


def test_nothing_is_on_its_way_at_first() -> None:
    wires = _wires(2)
    assert wires.next_event is None
    assert wires.on_the_way == 0
    assert wires.collect(10**12) == []


def test_one_packet_takes_transmission_and_latency() -> None:
    wires = _wires(2)
    assert wires.accept(7, 0, 1, PACKET) == 7 + MS
    assert wires.on_the_way == 1
    assert wires.collect(6 * MS + 6) == []
    assert wires.collect(6 * MS + 7) == [(6 * MS + 7, 1, PACKET)]


def test_a_sender_sends_one_packet_after_the_other() -> None:
    """The postal model: k messages to different hosts arrive t0 apart."""
    wires = _wires(4)
    ends = [wires.accept(0, 0, target, PACKET) for target in (1, 2, 3)]
    assert ends == [MS, 2 * MS, 3 * MS]
    assert _arrivals(wires) == [(6 * MS, 1), (7 * MS, 2), (8 * MS, 3)]


def test_a_receiver_receives_one_packet_after_the_other() -> None:
    wires = _wires(4)
    for source in (1, 2, 3):
        wires.accept(0, source, 0, PACKET)
    assert _arrivals(wires) == [(6 * MS, 0), (7 * MS, 0), (8 * MS, 0)]


def test_a_port_receives_in_the_order_in_which_first_bits_arrive() -> None:
    """A packet sent earlier, from farther away, comes second."""
    wires = Wires([RATE] * 3, [[0, 0, LATENCY], [0, 0, MS], [0, 0, 0]])
    wires.accept(0, 0, 2, b"far!" * 300)
    wires.accept(2 * MS, 1, 2, b"near" * 300)
    packets = wires.collect(100 * MS)
    assert [packet[:4] for _, _, packet in packets] == [b"near", b"far!"]


def test_a_slow_receiver_holds_up_and_a_fast_one_does_not_hurry() -> None:
    slow = Wires([RATE, RATE // 2], [[LATENCY] * 2] * 2)
    slow.accept(0, 0, 1, PACKET)
    assert _arrivals(slow) == [(LATENCY + 2 * MS, 1)]
    fast = Wires([RATE, RATE * 10], [[LATENCY] * 2] * 2)
    fast.accept(0, 0, 1, PACKET)
    assert _arrivals(fast) == [(LATENCY + MS, 1)]


def test_sending_does_not_hold_up_receiving() -> None:
    wires = _wires(2)
    wires.accept(0, 0, 1, PACKET)
    wires.accept(0, 1, 0, PACKET)
    assert _arrivals(wires) == [(6 * MS, 1), (6 * MS, 0)]


def test_a_trunk_is_shared_in_its_direction() -> None:
    trunks = [[None, None, 0], [None, None, 0], [1, 1, None]]
    wires = _wires(3, trunk_rates=[RATE // 2, RATE // 2], trunks=trunks)
    wires.accept(0, 0, 2, PACKET)
    wires.accept(0, 1, 2, PACKET)
    wires.accept(0, 2, 0, PACKET)
    wires.accept(0, 1, 0, PACKET)  # beside the trunk, behind the first packet at host 1's port
    assert _arrivals(wires) == [
        (7 * MS, 2),
        (7 * MS, 0),
        (8 * MS, 0),
        (9 * MS, 2),
    ]


@given(
    st.lists(
        st.tuples(
            st.integers(0, 3 * MS), st.integers(0, 3), st.integers(0, 3), st.integers(20, 1500)
        ),
        max_size=30,
    ),
    st.integers(0, 2**32),
)
def test_events_may_be_collected_late(sent: list[tuple[int, int, int, int]], delay: int) -> None:
    """Lateness of the switch never changes when packets should have arrived."""
    prompt, late = _wires(4), _wires(4)
    for wires in (prompt, late):
        for now, source, target, size in sorted(sent):
            wires.accept(now, source, target, bytes(size))
    found = []
    while (now_ns := late.next_event) is not None:
        found += [(due, target) for due, target, _ in late.collect(now_ns + delay)]
    assert sorted(found) == sorted(_arrivals(prompt))


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(20, 1500)), max_size=30)
)
def test_no_port_is_faster_than_its_rate(sent: list[tuple[int, int, int]]) -> None:
    wires = _wires(4)
    for source, target, size in sent:
        wires.accept(0, source, target, bytes(size))
    got = _arrivals(wires)
    assert len(got) == len(sent)
    for host in range(4):
        for end in (0, 1):
            nbytes = sum(one[2] for one in sent if one[end] == host)
            if nbytes:
                times = [due for due, target in got if end == 0 or target == host]
                # Each packet's time is rounded down to a nanosecond.
                least = Fraction(nbytes * 8 * 10**9, RATE) + LATENCY - len(sent) * 2
                assert max(times) >= least
