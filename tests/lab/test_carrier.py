"""What carries packets, on sockets that keep them apart as the devices of hosts do."""

import contextlib
import socket
import time
from array import array
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from collwise.lab.carrier import DROPS, NBYTES, PACKETS, WORST_NS
from tests.lab.twins import TWINS

ADDRESSES = [bytes((10, 0, 0, number)) for number in (1, 2, 3)]
MS = 1_000_000
LIMIT_S = 20
FAST = 10**12
"""A rate at which a packet takes no time."""


class Wired:
    """Three hosts, whose packets a carrier reads and writes, and a control socket."""

    def __init__(self, kind: Any, rate: int, latency_ns: int) -> None:
        pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(3)]
        self.hosts, self.ends = zip(*pairs, strict=True)
        self.control, other = socket.socketpair()
        self.every = [*self.hosts, *self.ends, self.control, other]
        for one in self.every:
            one.setblocking(False)
        self.carrier = kind([rate] * 3, [[latency_ns] * 3] * 3)
        tuns = [end.fileno() for end in self.ends]
        self.carrier.attach(tuns, b"".join(ADDRESSES), other.fileno())
        self.counts, self.lateness = array("q", bytes(32)), array("Q", bytes(8 * 1001))

    def forward(self, for_ns: int) -> bool:
        until = time.monotonic_ns() + for_ns
        asked: bool = self.carrier.forward(until, self.counts, self.lateness)
        assert asked or time.monotonic_ns() >= until
        return asked

    def settle(self, packets: int) -> None:
        """Forward until so many packets were carried or dropped."""
        limit = time.monotonic() + LIMIT_S
        while self.counts[PACKETS] + self.counts[DROPS] < packets:
            assert time.monotonic() < limit, self.counts
            self.forward(1 * MS)

    def received(self, host: int) -> list[bytes]:
        packets = []
        with contextlib.suppress(BlockingIOError):
            while True:
                packets.append(self.hosts[host].recv(65536))
        return packets


@pytest.fixture(params=TWINS, ids=lambda kind: kind.__module__.rpartition(".")[2])
def wired(request: pytest.FixtureRequest) -> Iterator[Any]:
    made: list[Wired] = []

    def make(rate: int = FAST, latency_ns: int = 0) -> Wired:
        made.append(Wired(request.param, rate, latency_ns))
        return made[-1]

    yield make
    for one in made:
        for end in one.every:
            end.close()


def packet(target: int, text: bytes = b"", version: int = 4) -> bytes:
    return bytes([version << 4]) + bytes(15) + ADDRESSES[target] + text


def test_packets_reach_the_host_of_their_address(wired: Any) -> None:
    net = wired()
    net.hosts[0].send(packet(1, b"first"))
    net.hosts[0].send(packet(1, b"second"))
    net.hosts[2].send(packet(0, b"back"))
    net.settle(3)
    assert net.received(1) == [packet(1, b"first"), packet(1, b"second")]
    assert (net.received(0), net.received(2)) == ([packet(0, b"back")], [])
    assert net.counts[PACKETS] == sum(net.lateness) == 3
    assert net.counts[NBYTES] == sum(20 + len(text) for text in ("first", "second", "back"))
    assert net.counts[DROPS] == 0 < net.counts[WORST_NS]


@pytest.mark.parametrize(
    "strange",
    [b"x", packet(1)[:19], packet(1, version=6), packet(1)[:16] + bytes((9, 9, 9, 9))],
    ids=["short", "cut", "IPv6", "nobody's"],
)
def test_what_is_for_no_host_is_dropped(wired: Any, strange: bytes) -> None:
    net = wired()
    net.hosts[0].send(strange)
    net.hosts[0].send(packet(2))
    net.settle(2)
    assert [net.received(host) for host in range(3)] == [[], [], [packet(2)]]
    assert (net.counts[PACKETS], net.counts[DROPS]) == (1, 1)


def test_what_cannot_be_delivered_is_dropped(wired: Any) -> None:
    net = wired()
    net.hosts[1].close()
    net.hosts[0].send(packet(1))
    net.settle(1)
    assert (net.counts[PACKETS], net.counts[DROPS]) == (1, 1)


def test_nothing_is_early(wired: Any) -> None:
    net = wired(latency_ns=40 * MS)
    begin = time.monotonic_ns()
    net.hosts[0].send(packet(1))
    net.settle(1)
    assert net.received(1) == [packet(1)]
    assert time.monotonic_ns() - begin >= 40 * MS


def test_a_busy_sender_waits_in_its_own_queue(wired: Any) -> None:
    """Packets of 10 ms each: after the first the sender is not read again until 8 ms later."""
    net = wired(rate=1_000_000)
    for _ in range(3):
        net.hosts[0].send(packet(1, bytes(1230)))
    begin = time.monotonic_ns()
    net.forward(1 * MS)
    if time.monotonic_ns() - begin < 7 * MS:  # else a loaded machine kept us
        assert net.ends[0].recv(2000, socket.MSG_PEEK) == packet(1, bytes(1230))
    net.settle(3)
    assert len(net.received(1)) == 3
    with pytest.raises(BlockingIOError):
        net.ends[0].recv(2000, socket.MSG_PEEK)


def test_control_ends_it_at_once(wired: Any) -> None:
    net = wired()
    assert not net.forward(0)
    net.control.send(b"?")
    assert net.forward(60_000 * MS)
    assert net.forward(60_000 * MS)  # as long as nobody reads it


def test_twins_do_alike() -> None:
    random = Random(7)
    for _ in range(200):
        hosts, trunks = random.randrange(1, 6), random.randrange(3)
        every = range(hosts)
        ports = (
            [random.choice((10**6, 10**7, 10**9)) for _ in every],
            [[random.choice((0, 1000, MS, 20 * MS)) for _ in every] for _ in every],
            [random.choice((10**6, 10**8)) for _ in range(trunks)],
            [[random.choice((None, *range(trunks))) for _ in every] for _ in every],
        )
        twins = [kind(*ports) for kind in TWINS]
        now = 0
        for _ in range(random.randrange(40)):
            ends, nbytes = (random.choice(every), random.choice(every)), random.randrange(20, 1500)
            now += random.choice((0, 1, 1000, MS))
            assert len({twin.send(now, *ends, bytes(nbytes)) for twin in twins}) == 1
            if random.random() < 0.3:
                delivered = [twin.deliver(now) for twin in twins]
                assert all(one == delivered[0] for one in delivered)
        while (coming := twins[0].next_event) is not None:
            assert all(twin.next_event == coming for twin in twins)
            delivered = [twin.deliver(coming) for twin in twins]
            assert all(one == delivered[0] for one in delivered)
        assert all(twin.next_event is None for twin in twins)


@pytest.mark.parametrize("kind", TWINS[1:])
def test_the_compiled_one_refuses(kind: Any) -> None:
    for ports in (
        ([1], [[0, 0]]),
        ([1, 1], [[0, 0]]),
        ([1], [["x"]]),
        ([1], [[0]], [1], [[1]]),
        ([1], [[0]], [1], [[-2]]),
        ([1 << 70], [[0]]),
        ([0], [[0]]),
        ([1], [[0]], [-1]),
        (1, 2),
    ):
        with pytest.raises((ValueError, TypeError, OverflowError, IndexError)):
            kind(*ports)
    one = kind([1], [[0]])
    for source, target in ((-1, 0), (0, 1), (1, 0)):
        with pytest.raises(ValueError, match="bytes from"):
            one.send(0, source, target, b"")
    with pytest.raises(ValueError, match="attach it first"):
        one.forward(0, array("q", bytes(32)), array("Q", bytes(8)))
    with pytest.raises(ValueError, match="addresses"):
        one.attach([0], b"123", 0)
