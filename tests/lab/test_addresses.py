"""Address ranges: a free one, or the one that was asked for."""

from ipaddress import IPv4Network
from pathlib import Path

import pytest

from collwise.errors import InvalidArgument
from collwise.lab.addresses import DEFAULTS, choose, routed

ROUTES = """Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT
eth0\t00000000\t0100A8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0
eth0\t0000A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
tun0\t00004D0A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0
"""


def test_ranges_routed(tmp_path: Path) -> None:
    path = tmp_path / "route"
    path.write_text(ROUTES)
    assert routed(path) == [IPv4Network("192.168.0.0/24"), IPv4Network("10.77.0.0/16")]
    assert routed(tmp_path / "none") == []


def test_a_free_range_is_found() -> None:
    assert choose(3, None, []) == (["10.77.0.1", "10.77.0.2", "10.77.0.3"], "255.255.255.0")
    used = [IPv4Network("10.77.0.0/16"), IPv4Network("10.78.0.128/25")]
    assert choose(1, None, used)[0] == ["10.79.0.1"]


def test_the_range_that_was_asked_for() -> None:
    addresses, netmask = choose(2, "172.16.0.0/28", [])
    assert addresses == ["172.16.0.1", "172.16.0.2"]
    assert netmask == "255.255.255.240"


@pytest.mark.parametrize(
    ("asked", "used", "message"),
    [
        ("10.0.0.0/24", ["10.0.0.0/8"], "this machine has a route to 10.0.0.0/8"),
        ("10.0.0.0/29", [], "too small for 8 hosts"),
        ("10.0.0.1/24", [], "has host bits set"),
        ("everything", [], "give one such as 10.77.0.0/24"),
        (None, [*map(str, DEFAULTS)], "name a free range with --addresses"),
    ],
)
def test_ranges_that_cannot_be_had(asked: str | None, used: list[str], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        choose(8, asked, [*map(IPv4Network, used)])
