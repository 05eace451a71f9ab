import pytest
from tests.figures.examples import T0

from collwise.system import formatting


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 s"),
        (8.3e-7, "830 ns"),
        (1.2546e-3, "1.25 ms"),
        (0.9999e-3, "1.00 ms"),
        (0.99949e-3, "999 µs"),
        (3.5e-5, "35.0 µs"),
        (12.0, "12.0 s"),
        (4567.0, "4567 s"),
        (2e-13, "0.000200 ns"),
        (-1e-6, "−1.00 µs"),
        (float("inf"), "∞"),
        (float("nan"), "unknown"),
    ],
)
def test_times_have_three_digits_and_a_unit(seconds: float, text: str) -> None:
    assert formatting.time(seconds) == text


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [(0, "0 B"), (512, "512 B"), (4096, "4 KiB"), (1000000, "1,000,000 B"), (3 << 20, "3 MiB")],
)
def test_sizes_are_exact(nbytes: int, text: str) -> None:
    assert formatting.size(nbytes) == text


def test_chosen_times_and_rates_keep_their_digits() -> None:
    assert [formatting.chosen_time(s) for s in (200e-6, 5e-3, 1.5, 87.5e-9)] == [
        "200 µs",
        "5 ms",
        "1.5 s",
        "87.5 ns",
    ]
    assert [formatting.rate(bits) for bits in (500, 64_000, 10_000_000, 1_000_000_000)] == [
        "500 bit/s",
        "64 kbit/s",
        "10 Mbit/s",
        "1 Gbit/s",
    ]


def test_an_interval_shares_the_unit_of_its_middle() -> None:
    assert formatting.time_between(0.9e-3, 1.1e-3, 1e-3) == "0.900 … 1.10"
    assert formatting.time_between(1.0e-6, 1.2e-3, 1e-5) == "1.00 … 1200"


def test_a_scale_drops_needless_zeros() -> None:
    scale = formatting.scale_for(5 * T0)
    assert (scale.unit, scale.name) == ("µs", "µs")
    assert [scale.text(x * T0) for x in (0, 1, 5)] == ["0", "1.7", "8.5"]


def test_times_in_units_of_t0() -> None:
    scale = formatting.scale_for(5 * T0, T0)
    assert scale.name == "in t0 = 1.70 µs"
    assert scale.text_with_unit(5 * T0) == "5 t0"
    assert scale.text(5 * T0 / 3) == "1.67"


def test_nouns() -> None:
    assert [formatting.count(n, "rank") for n in (0, 1, 1000)] == [
        "0 ranks",
        "1 rank",
        "1,000 ranks",
    ]


def test_decimals_that_tell_times_apart() -> None:
    scale = formatting.scale_for(10.4e-3)
    assert [scale.text(t) for t in (10.345e-3, 10.35e-3)] == ["10.3", "10.3"]
    finer = scale.telling_apart((10.345e-3, 10.35e-3, 10.35e-3))
    assert [finer.text(t) for t in (0, 10.345e-3, 10.35e-3)] == ["0", "10.345", "10.35"]
    assert scale.telling_apart((1, 1 + 1e-12)).places == 4
