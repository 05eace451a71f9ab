"""Sizes, times, rates and numbers as people type them, all exact."""

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import pytest
from tests.case import in_case

from collwise.errors import InvalidArgument
from collwise.system.quantities import parse_number, parse_rate, parse_size, parse_time

SIZES = {
    "0": 0,
    "0" * 30 + "5": 5,
    "512": 512,
    "512b": 512,
    "64k": 65536,
    "64 KiB": 65536,
    "64KB": 65536,
    "1M": 1 << 20,
    "2gb": 1 << 31,
    "1048576G": 1 << 50,
}
TIMES = {
    "1.7e-3": Fraction(17, 10_000),
    "5": Fraction(5),
    "1.7ms": Fraction(17, 10_000),
    "1/3 ms": Fraction(1, 3000),
    "5 ms": Fraction(5, 1000),
    " 0.5ms ": Fraction(5, 10_000),
    "5.ms": Fraction(5, 1000),
    "200us": Fraction(200, 10**6),
    "200 µs": Fraction(200, 10**6),
    "200 \u03bcs": Fraction(200, 10**6),
    "87.5ns": Fraction(875, 10**10),
    "1e-1 s": Fraction(1, 10),
    "2 milliseconds": Fraction(2, 1000),
    "1 second": Fraction(1),
}
RATES = {
    "10mbit": 10_000_000,
    "10 Mbit/s": 10_000_000,
    "10 mbits/sec": 10_000_000,
    "10Mbps": 10_000_000,
    "64kbit": 64_000,
    "64 Kbit/s": 64_000,
    "0.1gbit": 100_000_000,
    "1.25 MB/s": 10_000_000,
    "1 MiB/s": 8 * 2**20,
    "1 kbytes/second": 8000,
    "10 Mb/s": 10_000_000,
}
NUMBERS = {"4": 4, "9/5": Fraction(9, 5), "1E1": 10, "-1e-3": Fraction(-1, 1000)}


@pytest.mark.parametrize(
    ("parse", "meant"),
    [(parse_size, SIZES), (parse_time, TIMES), (parse_rate, RATES), (parse_number, NUMBERS)],
)
def test_what_is_meant(parse: Callable[[str], Any], meant: dict[str, Any]) -> None:
    for text, value in meant.items():
        with in_case(text):
            assert parse(text) == value


latency = partial(parse_time, what="a latency", unit_needed=True)
BEYOND = ("1e999999999", "1e-999999999", "9" * 5000, "1e99", "1e-0100")


@pytest.mark.parametrize(
    ("parse", "texts", "said"),
    [
        (
            parse_size,
            ("x", "-5", "1.5", "4q", "", "²", "5_0", "0x10", "k", "1 2", "5ki"),
            "is no size; give a whole number of bytes, 0 to",
        ),
        (
            parse_size,
            ("9" * 20 + "G", "9" * 5000, "1048577G"),
            "is too large; give at most 1048576G",
        ),
        (
            latency,
            ("", "5", "ms", "5 kg", "5 parsnips", "nan s", "5 ms 3"),
            r"a latency: .*give a number with its unit, such as",
        ),
        (
            parse_time,
            ("", "ms", "5 kg", "nan", "nan s", "1/0 ms", "5..5ms"),
            r"is no number; give a finite .* seconds, or 1.8ms",
        ),
        (
            parse_rate,
            ("", "10", "10 Hz", "10 ms", "mbit", "-1mbit", "10 Mbit/h", "inf", "1 megabyte"),
            r"a rate: .*give a number with its unit, such as",
        ),
        (parse_number, BEYOND, "is beyond all measure; give 1e-98 to 1e98"),
        (parse_time, [f"{text}s" for text in BEYOND], "is beyond all measure"),
    ],
)
def test_what_is_refused(parse: Callable[[str], Any], texts: tuple[str, ...], said: str) -> None:
    for text in texts:
        with in_case(text), pytest.raises(InvalidArgument, match=said):
            parse(text)
