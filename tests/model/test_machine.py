"""Machines: what a message costs, exactly; what is refused."""

from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collwise.errors import InvalidArgument
from collwise.model.machine import Cost, Machine
from collwise.model.measured_machine import PICOSECOND, measured

F = Fraction
US = F(1, 10**6)


def test_postal() -> None:
    machine = Machine.postal(t0_s=1.7e-3, lam=4)
    assert machine.message(0) == machine.message(10**9) == Cost(F(17, 10_000), F(68, 10_000))
    assert machine.message(7).lam == machine.planning_lam(7) == 4
    assert machine.sizes() == ()
    assert machine.independent_ports
    assert machine.describe() == "postal: t0 = 1.7 ms, λ = 4"
    assert machine == Machine.postal(t0_s="0.0017", lam="4.0")
    assert len({machine, Machine.postal(t0_s="0.0017", lam="4.0")}) == 1


def test_hockney() -> None:
    machine = Machine.hockney(alpha_s=525e-6, beta_s=0.5e-6, gamma_s=0.0875e-6)
    assert machine.message(1000) == Cost(1025 * US, 1025 * US)
    assert machine.message(0).gap == 525 * US
    assert machine.message(64).lam == 1
    assert machine.independent_ports
    assert machine.describe() == "Hockney: α = 525 µs, β = 500 ns/B, γ = 87.5 ns/B"
    assert Machine.hockney(alpha_s=0, beta_s=0).message(9) == Cost(F(0), F(0))
    assert Machine.hockney(alpha_s=0, beta_s=0).message(9).lam == 1


def test_loggp() -> None:
    machine = Machine.loggp(L_s=10, o_s=2, g_s=3, G_s="1/2")
    assert machine.message(1) == Cost(F(3), F(14))
    assert machine.message(5) == Cost(F(5), F(16))  # g + 4G; L + 2o + 4G
    assert machine.message(0) == machine.message(1)
    assert Machine.loggp(L_s=10, o_s=4, g_s=3, G_s=0).message(9).gap == 4
    assert not machine.independent_ports
    assert machine.describe() == "LogGP: L = 10 s, o = 2 s, g = 3 s, G = 500 ms/B"


# --- measured ---

EAGER: list[tuple[int, Any, Any]] = [(8, 1e-6, 3), (1008, 2e-6, "2.5")]
RENDEZVOUS: list[tuple[int, Any, Any]] = [(2000, 6e-6, 2), (4000, 8e-6, 2)]


def test_measured_by_hand() -> None:
    machine = measured([EAGER, RENDEZVOUS])
    assert machine.message(8) == machine.message(0) == Cost(US, 3 * US)
    assert machine.message(508) == Cost(F(3, 2) * US, 4 * US)  # half-way
    assert machine.message(1008) == Cost(2 * US, 5 * US)
    assert machine.message(1508) == Cost(F(5, 2) * US, 6 * US)  # the eager line goes on
    assert machine.message(2000) == Cost(6 * US, 12 * US)
    assert machine.message(3000) == Cost(7 * US, 14 * US)
    assert machine.message(10_000) == Cost(14 * US, 28 * US)  # beyond the last point
    assert machine.sizes() == (8, 1008, 2000, 4000)
    assert machine.describe() == "measured from 8 to 4000 bytes in 2 protocol segments"
    assert machine.kind == "measured"
    assert machine.independent_ports


def test_one_point_is_a_postal_machine() -> None:
    machine = measured([[(64, 1e-6, "9/5")]])
    for nbytes in (0, 64, 10**6):
        assert machine.message(nbytes) == Machine.postal(t0_s=1e-6, lam="9/5").message(nbytes)


def test_noise_is_smoothed() -> None:
    """λ < 1 is used as 1; what falls with the size is raised to what was before."""
    machine = measured([[(1, 2e-6, 0.5), (2, 1e-6, 3)], [(4, 1e-6, 1)]])
    assert machine.message(1) == Cost(2 * US, 2 * US)
    assert machine.message(2) == Cost(2 * US, 3 * US)
    assert machine.message(4) == Cost(2 * US, 3 * US)


def test_times_are_kept_to_the_picosecond() -> None:
    machine = measured([[(1, "1/3", 1), (2, "1e-20", 1)]])
    assert machine.message(1).gap == F(333333333333, 10**12)
    assert measured([[(1, "1e-20", 1)]]).message(1).gap == PICOSECOND


def test_trees_are_built_for_a_simple_latency() -> None:
    machine = measured([[(1, 1e-6, "1.7321"), (2, 1e-6, "1.7321")]])
    assert machine.planning_lam(1) == F(26, 15)
    assert machine.message(1).lam == F("1.732100")


rows = st.tuples(
    st.integers(1, 5000),
    st.floats(1e-9, 1e-3, allow_nan=False),
    st.floats(0.2, 30, allow_nan=False),
)


@given(st.lists(rows, min_size=1, max_size=8, unique_by=lambda row: row[0]), st.data())
def test_a_measured_machine_is_sound(table: list[tuple[int, Any, Any]], data: Any) -> None:
    """λ >= 1 everywhere, also far beyond the points; within a protocol nothing falls."""
    table.sort()
    cut = data.draw(st.integers(0, len(table)))
    machine = measured([part for part in (table[:cut], table[cut:]) if part])
    points = [p for segment in machine.segments for p in segment]
    for p in points:
        assert machine.message(p.nbytes) == Cost(p.gap, p.latency)
        assert p.gap % PICOSECOND == p.latency % PICOSECOND == 0
    for a, b in pairwise(points):
        assert a.gap <= b.gap
        assert a.latency <= b.latency
    at = data.draw(st.lists(st.integers(0, 10**7), min_size=2, max_size=20))
    for nbytes in at:
        assert machine.message(nbytes).lam >= 1
        assert machine.message(nbytes).gap > 0
    for a, b in pairwise(sorted(at)):
        if len(machine.segments) == 1:
            assert machine.message(a).gap <= machine.message(b).gap
            assert machine.message(a).latency <= machine.message(b).latency


def test_a_line_for_every_protocol() -> None:
    machine = measured(
        [[(100, "1e-6", 2), (200, "2e-6", 2), (300, "3e-6", 2)], [(1000, "5e-6", "1.5")]]
    )
    first, second = machine.lines()
    assert (first.first, first.last, second.first, second.last) == (100, 300, 1000, 1000)
    assert first.alpha_s == pytest.approx(0, abs=1e-15)
    assert first.beta_s == pytest.approx(2e-8)
    assert second.alpha_s == pytest.approx(7.5e-6)
    assert second.beta_s == 0


def test_combining_on_a_measured_machine() -> None:
    machine = measured([[(8, "1e-6", 2)]])
    assert machine.combine(8) is None
    combines = machine.with_combining([(64, "1e-6"), (128, "3e-6"), (256, "2e-6")])
    assert combines != machine
    assert hash(combines) != hash(machine)
    assert [combines.combine(n) for n in (1, 64, 96, 128, 256, 512)] == [
        Fraction(x, 10**6) for x in (1, 1, 2, 3, 3, 3)
    ]


def test_wormhole_between_neighbours() -> None:
    machine = Machine.wormhole(
        send_s=3, receive_s=2, hop_s=1, beta_s="1/2", gamma_s="1/8", copy_s="1/4"
    )
    assert machine.message(4) == Cost(Fraction(7), Fraction(9))
    assert machine.message(0) == Cost(Fraction(4), Fraction(6))
    assert machine.combine(16) == 2
    assert machine.planning_lam(4) == Fraction(9, 7)
    assert (machine.kind, machine.independent_ports, machine.all_port) == ("wormhole", False, False)
    assert machine.describe() == (
        "wormhole: send = 3 s, receive = 2 s, hop = 1 s, β = 500 ms/B, copy = 250 ms/B,"
        " γ = 125 ms/B"
    )
    plain = Machine.wormhole(send_s=1, receive_s=0, hop_s=0, beta_s=0, all_port=True)
    assert plain.all_port
    assert plain.describe() == (
        "wormhole: send = 1 s, receive = 0 s, hop = 0 s, β = 0 s/B, all ports"
    )
    assert hash(plain) == hash(Machine.wormhole(
        send_s=1, receive_s=0, hop_s=0, beta_s=0, all_port=True
    ))  # fmt: skip


@pytest.mark.parametrize("name", ["send_s", "receive_s", "hop_s", "beta_s", "gamma_s", "copy_s"])
def test_a_wormhole_machine_takes_no_time_back(name: str) -> None:
    numbers: dict[str, Any] = {"send_s": 1, "receive_s": 1, "hop_s": 1, "beta_s": 1, name: -1}
    with pytest.raises(InvalidArgument, match=f"{name}: -1 is below 0; give a time of 0 or more"):
        Machine.wormhole(**numbers)
