"""Sizes, times, rates and numbers as people type them, all exact."""

from fractions import Fraction

import pytest

from collwise.errors import InvalidArgument
from collwise.system.quantities import parse_number, parse_rate, parse_size, parse_time


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [
        ("0", 0),
        ("0" * 30 + "5", 5),
        ("512", 512),
        ("512b", 512),
        ("64k", 65536),
        ("64 KiB", 65536),
        ("64KB", 65536),
        ("1M", 1 << 20),
        ("2gb", 1 << 31),
        ("1048576G", 1 << 50),
    ],
)
def test_sizes(text: str, nbytes: int) -> None:
    assert parse_size(text) == nbytes


@pytest.mark.parametrize(
    "text", ["x", "-5", "1.5", "4q", "", "²", "5_0", "0x10", "k", "1 2", "5ki"]
)
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(InvalidArgument, match="is no size; give a whole number of bytes, 0 to"):
        parse_size(text)


@pytest.mark.parametrize("text", ["9" * 20 + "G", "9" * 5000, "1048577G"])
def test_too_large_a_size(text: str) -> None:
    with pytest.raises(InvalidArgument, match="is too large; give at most 1048576G"):
        parse_size(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1.7e-3", Fraction(17, 10_000)),
        ("5", Fraction(5)),
        ("1.7ms", Fraction(17, 10_000)),
        ("1/3 ms", Fraction(1, 3000)),
        ("5 ms", Fraction(5, 1000)),
        (" 0.5ms ", Fraction(5, 10_000)),
        ("5.ms", Fraction(5, 1000)),
        ("200us", Fraction(200, 10**6)),
        ("200 µs", Fraction(200, 10**6)),
        ("200 \u03bcs", Fraction(200, 10**6)),
        ("87.5ns", Fraction(875, 10**10)),
        ("1e-1 s", Fraction(1, 10)),
        ("2 milliseconds", Fraction(2, 1000)),
        ("1 second", Fraction(1)),
    ],
)
def test_times(text: str, seconds: Fraction) -> None:
    assert parse_time(text) == seconds


@pytest.mark.parametrize("text", ["", "5", "ms", "5 kg", "5 parsnips", "nan s", "5 ms 3"])
def test_what_is_no_time_with_a_unit(text: str) -> None:
    with pytest.raises(InvalidArgument, match=r"a latency: .*give a number with its unit, such as"):
        parse_time(text, "a latency", unit_needed=True)


@pytest.mark.parametrize("text", ["", "ms", "5 kg", "nan", "nan s", "1/0 ms", "5..5ms"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(InvalidArgument, match=r"is no number; give a finite .* seconds, or 1.8ms"):
        parse_time(text)


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("10mbit", 10_000_000),
        ("10 Mbit/s", 10_000_000),
        ("10 mbits/sec", 10_000_000),
        ("10Mbps", 10_000_000),
        ("64kbit", 64_000),
        ("64 Kbit/s", 64_000),
        ("0.1gbit", 100_000_000),
        ("1.25 MB/s", 10_000_000),
        ("1 MiB/s", 8 * 2**20),
        ("1 kbytes/second", 8000),
        ("10 Mb/s", 10_000_000),
    ],
)
def test_rates(text: str, bits: int) -> None:
    assert parse_rate(text) == bits


@pytest.mark.parametrize(
    "text", ["", "10", "10 Hz", "10 ms", "mbit", "-1mbit", "10 Mbit/h", "inf", "1 megabyte"]
)
def test_what_is_no_rate(text: str) -> None:
    with pytest.raises(InvalidArgument, match=r"a rate: .*give a number with its unit, such as"):
        parse_rate(text)


@pytest.mark.parametrize(
    ("text", "number"),
    [("4", 4), ("9/5", Fraction(9, 5)), ("1E1", 10), ("-1e-3", Fraction(-1, 1000))],
)
def test_numbers(text: str, number: Fraction) -> None:
    assert parse_number(text) == number


@pytest.mark.parametrize("text", ["1e999999999", "1e-999999999", "9" * 5000, "1e99", "1e-0100"])
def test_numbers_beyond_all_measure(text: str) -> None:
    with pytest.raises(InvalidArgument, match="is beyond all measure; give 1e-98 to 1e98"):
        parse_number(text)
    with pytest.raises(InvalidArgument, match="is beyond all measure"):
        parse_time(text + "s")
