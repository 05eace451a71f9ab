"""Networks: all alike, and from files."""

from pathlib import Path

import pytest

from collwise.errors import InvalidArgument
from collwise.lab import Network

TWO_RACKS = """
latency = "5 ms"
rate = "10 Mbit/s"

[[groups]]
name = "left"
hosts = 2
latency = "200 us"
rate = "100 Mbit/s"

[[groups]]
name = "right"
hosts = 1

[[groups]]
name = "far"
hosts = 1

[[links]]
between = ["left", "right"]
latency = "1 ms"
rate = "20 Mbit/s"
"""


TWICE = '[[links]]\nbetween = ["right", "left"]\n\n[[links]]'
HOSTS, LATENCIES, RATES = (0, -1, 1000), ("1us", "0s", "-5ms", "10s"), ("1kbit", "0mbit", "100gbit")


def _load(folder: Path, text: str) -> Network:
    path = folder / "network.toml"
    path.write_text(text, encoding="utf-8")
    return Network.load(path)


def test_all_alike() -> None:
    network = Network.uniform(3, "5ms", "10mbit")
    assert network.hosts == 3
    assert network.rates == (10_000_000,) * 3
    assert network.latencies_ns == ((5_000_000,) * 3,) * 3
    assert network.least_latency_ns == 5_000_000
    assert network.trunks is None
    assert str(network) == "3 hosts, 5 ms one way, 10 Mbit/s"


def test_groups_and_links(tmp_path: Path) -> None:
    network = _load(tmp_path, TWO_RACKS)
    assert network.rates == (100_000_000, 100_000_000, 10_000_000, 10_000_000)
    near, linked, usual = 200_000, 1_000_000, 5_000_000
    assert network.latencies_ns == (
        (near, near, linked, usual),
        (near, near, linked, usual),
        (linked, linked, usual, usual),
        (usual, usual, usual, usual),
    )
    assert network.least_latency_ns == near
    assert network.trunk_rates == (20_000_000, 20_000_000)
    assert network.trunks == (
        (None, None, 0, None),
        (None, None, 0, None),
        (1, 1, None, None),
        (None, None, None, None),
    )
    assert str(network) == (
        "4 hosts, left 2 × 200 µs 100 Mbit/s; right 1 × 5 ms 10 Mbit/s; far 1 × 5 ms 10 Mbit/s;"
        " left–right 1 ms 20 Mbit/s shared; left–far 5 ms; right–far 5 ms"
    )


def test_without_trunks_there_are_none(tmp_path: Path) -> None:
    assert _load(tmp_path, TWO_RACKS.replace('rate = "20 Mbit/s"', "")).trunks is None


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        *[((n, "5ms", "10mbit"), rf"{n} emulated hosts: .*enough for 1 to \d+") for n in HOSTS],
        *[((2, t, "10mbit"), "can keep 100 µs to 2 s; choose") for t in LATENCIES],
        *[((2, "5ms", r), "can keep 64 kbit/s to 500 Mbit/s; choose") for r in RATES],
        ((2, "5", "10mbit"), r"a latency of '5'.*give a number with its unit"),
    ],
)
def test_what_no_emulation_keeps(parameters: tuple[int, str, str], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        Network.uniform(*parameters)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('latency = "5 ms"', "latency = ", "it is no TOML"),
        ('latency = "5 ms"', "", r"missing required field `latency`"),
        ('latency = "5 ms"', "latency = 5", r"Expected `str`, got `int` - at `\$.latency`"),
        ('latency = "5 ms"', 'latency = "5 kg"', "a latency of '5 kg'"),
        ('rate = "20 Mbit/s"', 'rate = "2 parsnips"', "a rate of '2 parsnips'"),
        ("hosts = 2", "hosts = 0", r"at `\$.groups\[0\].hosts`"),
        ("hosts = 2", "hosts = 2000", "2002 emulated hosts"),
        ("hosts = 2", "host = 2", "host"),
        ('name = "far"', 'name = "left"', "the group 'left': there are two"),
        ('name = "far"', 'name = "a b"', "name"),
        ('["left", "right"]', '["left", "wrong"]', "no group 'wrong'"),
        ('["left", "right"]', '["left", "left"]', "both ends are one group"),
        ('["left", "right"]', '["left"]', "between"),
        ("[[links]]", TWICE, "there are two"),
    ],
)
def test_malformed_files(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in TWO_RACKS
    with pytest.raises(InvalidArgument, match=message) as raised:
        _load(tmp_path, TWO_RACKS.replace(old, new, 1))
    assert str(raised.value).startswith(f"the network file {tmp_path / 'network.toml'}: ")


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="No such file"):
        Network.load(tmp_path / "none.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidArgument, match="it is no TOML"):
        Network.load(tmp_path / "binary.toml")
