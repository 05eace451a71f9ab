"""The papers' machines: complete, and like what the papers measured."""

from dataclasses import fields
from fractions import Fraction
from random import Random

import pytest

import collwise as cw
from collwise.algorithms import ALGORITHMS
from collwise.errors import InvalidArgument
from collwise.model.machine import Hockney
from collwise.model.presets import ITEM, PRESETS, Preset
from collwise.model.topology import Embedded, Mesh
from collwise.timing import ideal


@pytest.mark.parametrize("preset", PRESETS.values(), ids=lambda p: p.name)
def test_every_number_says_where_it_is_from(preset: Preset) -> None:
    numbers = [f"{f.name}_s" for f in fields(preset.machine) if f.name != "all_port"]
    curve = ["contention_free"] * (preset.contention_free is not None)
    assert sorted(preset.notes) == sorted(numbers + curve)
    for name, note in preset.notes.items():
        assert any(word in note for word in ("published", "estimate", "0: ")), name
        zero = name.endswith("_s") and getattr(preset.machine, name[:-2]) == 0
        assert note.startswith("0: ") == zero, name
    told = preset.describe()
    assert told.startswith(f"{preset.name}: ")
    assert all(note in told for note in preset.notes.values())


@pytest.mark.parametrize("preset", PRESETS.values(), ids=lambda p: p.name)
def test_a_broadcast_runs_on_it(preset: Preset) -> None:
    topology = preset.topology()
    schedule = ALGORITHMS["broadcast/binomial"].schedule(topology.size, 1024)
    trace = cw.simulate(schedule, preset.machine, topology)
    assert 0.0001 < trace.completion_s < 0.01
    assert trace.completion >= ideal(schedule, preset.machine).completion


def test_they_are_found_by_name() -> None:
    assert cw.presets is PRESETS
    assert list(PRESETS) == sorted(PRESETS)
    assert PRESETS["paragon"].topology(10, 10) == Mesh(10, 10)
    with pytest.raises(InvalidArgument):
        PRESETS["paragon"].topology(0, 10)


def test_the_delta_has_the_latency_that_was_measured() -> None:
    """[Bruck1996] Fig 3: λ is 1.8 at 512 bytes; the claims on its curve have the rest."""
    curve = PRESETS["delta"].contention_free
    assert curve is not None
    assert curve.message(512).lam == Fraction(9, 5)
    for n in (512, 700, 16384, 1 << 20):
        assert curve.message(n) == PRESETS["delta"].machine.message(n)


def test_the_delta_gains_by_an_order_free_of_contention() -> None:
    """[Bruck1996] Fig 14, as the note of copy_s says: in row-major order no message waits."""
    preset, random, mesh = PRESETS["delta"], Random(14), Mesh(8, 8)
    schedule = ALGORITHMS["broadcast/binomial"].schedule(64, 1 << 16)
    ordered = ideal(schedule, preset.machine, mesh)
    assert all(p.waited is None for p in ordered.passages)
    orders = [random.sample(range(64), 64) for _ in range(10)]
    shuffled = [ideal(schedule, preset.machine, Embedded(mesh, order)) for order in orders]
    assert any(p.waited for timing in shuffled for p in timing.passages)
    mean_s = sum(timing.completion_s for timing in shuffled) / len(shuffled)
    assert 0.14 < 1 - ordered.completion_s / mean_s < 0.22


def test_the_ipsc_has_the_papers_numbers_per_byte() -> None:
    """[vandeGeijn1991] §6, for 100 items."""
    machine, effective = PRESETS["ipsc860"].machine, PRESETS["ipsc860"].contention_free
    assert machine.message(100 * ITEM).latency == Fraction("136e-6") + 100 * Fraction("1.6e-6")
    assert machine.combine(100 * ITEM) == 100 * Fraction("0.35e-6")
    assert isinstance(effective, Hockney)
    assert effective.message(100 * ITEM).latency == Fraction("525e-6") + 100 * Fraction("2e-6")
    assert effective.combine(100 * ITEM) == machine.combine(100 * ITEM)


@pytest.mark.parametrize(
    ("sources", "simulated_ms", "measured_ms"), [(5, 10.7, 11.4), (40, 7.9, 7.3)]
)
def test_the_paragon_is_as_fast_as_it_was(
    sources: int, simulated_ms: float, measured_ms: float
) -> None:
    """[Hambrusch1998]: 80 KB in all on right diagonals, as the note of copy_s says."""
    preset, shape = PRESETS["paragon"], (10, 10)
    given = cw.sources.distribute("right_diagonal", shape, sources)
    schedule = ALGORITHMS["allgatherv/br_xy_source"].schedule(
        100, 81920 // sources, sources=given, shape=shape
    )
    found = 1e3 * ideal(schedule, preset.machine, preset.topology(*shape)).completion_s
    assert round(found, 1) == simulated_ms
    assert f"{simulated_ms:g}" in preset.notes["copy_s"]
    assert abs(found / measured_ms - 1) < 0.1
