"""Times and rates as people write them."""

import pytest

from collwise.errors import InvalidArgument
from collwise.lab.units import latency_ns, latency_words, rate_bits, rate_words


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("5ms", 5_000_000),
        ("5 ms", 5_000_000),
        (" 0.5ms ", 500_000),
        ("200us", 200_000),
        ("200 µs", 200_000),
        ("1e-1 s", 100_000_000),
    ],
)
def test_latencies(text: str, nanoseconds: int) -> None:
    assert latency_ns(text) == nanoseconds


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("10mbit", 10_000_000),
        ("10 Mbit/s", 10_000_000),
        ("10Mbps", 10_000_000),
        ("64kbit", 64_000),
        ("64 Kbit/s", 64_000),
        ("0.1gbit", 100_000_000),
        ("1.25 MB/s", 10_000_000),
        ("1 MiB/s", 8 * 2**20),
    ],
)
def test_rates(text: str, bits: int) -> None:
    assert rate_bits(text) == bits


@pytest.mark.parametrize("text", ["", "5", "ms", "5 kg", "5 parsnips", "-5ms", "nan s", "5 ms 3"])
def test_what_is_no_latency(text: str) -> None:
    with pytest.raises(InvalidArgument, match=r"a latency of .*give a number with its unit"):
        latency_ns(text)


@pytest.mark.parametrize("text", ["", "10", "10 Hz", "10 ms", "mbit", "-1mbit", "10 Mbit/h", "inf"])
def test_what_is_no_rate(text: str) -> None:
    with pytest.raises(InvalidArgument, match=r"a rate of .*give a number with its unit"):
        rate_bits(text)


@pytest.mark.parametrize("text", ["1us", "0s", "10s"])
def test_latencies_that_no_emulation_keeps(text: str) -> None:
    with pytest.raises(InvalidArgument, match="can keep 100 us to 2 s; choose"):
        latency_ns(text)


@pytest.mark.parametrize("text", ["1kbit", "0mbit", "100gbit"])
def test_rates_that_no_emulation_keeps(text: str) -> None:
    with pytest.raises(InvalidArgument, match="can keep 64 kbit/s to 500 Mbit/s; choose"):
        rate_bits(text)


def test_words() -> None:
    assert [latency_words(n) for n in (200_000, 5_000_000, 1_500_000_000)] == [
        "200 µs",
        "5 ms",
        "1.5 s",
    ]
    assert [rate_words(b) for b in (500, 64_000, 10_000_000, 1_000_000_000)] == [
        "500 bit/s",
        "64 kbit/s",
        "10 Mbit/s",
        "1 Gbit/s",
    ]
