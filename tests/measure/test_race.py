"""Which repetitions of a race count, what they must show, and who runs to its end."""

import numpy as np
import pytest

from collwise.measure.race import (
    ALWAYS_RACED,
    APART,
    BLOCKING,
    CALLS,
    LIBRARIES,
    LIBRARY,
    LIBRARY_PERSISTENT,
    WIDEST,
    Load,
    Race,
    contenders,
    form_of,
    method_name,
    punctual,
)
from collwise.profiles.records import FORMS

TIMES = np.full((10, 2), 8e-3)


def test_late_starts_are_dropped_not_counted() -> None:
    """An allreduce of 8 ms came out at 27 ms: a rank had lost its core while it waited."""
    apart = np.full((10, 2), 1e-5)
    times = TIMES.copy()
    for row, column in ((1, 0), (4, 1), (5, 0)):
        apart[row, column] = 19e-3
        times[row, column] += 19e-3
    seen = punctual(times, apart)
    assert (seen.dropped, len(seen.kept)) == (3, 7)
    assert seen.kept.max() == 8e-3
    assert seen.tolerance_s == pytest.approx(APART * 8e-3)


def test_a_repetition_counts_for_all_competitors_or_for_none() -> None:
    apart = np.zeros((10, 2))
    apart[3, 1] = 1.0
    assert punctual(TIMES, apart).kept.shape == (9, 2)


def test_half_of_the_repetitions_count_however_late() -> None:
    """As on nodes with more ranks than cores; the tolerance says how late."""
    apart = np.arange(1, 11)[:, None] * np.array([[1e-3, 0.0]])
    seen = punctual(TIMES, apart)
    assert (seen.dropped, len(seen.kept), seen.tolerance_s) == (5, 5, 5e-3)
    assert punctual(TIMES[:1], apart[:1]).dropped == 0


def test_a_verdict_tells_of_cores_that_moved() -> None:
    """A race may have two modes then."""
    samples = {LIBRARY: (2e-3,) * 20, "ours": (1e-3,) * 20}
    lines_s = (9e-8,), (5e-7,)
    still, moved = (
        Race("broadcast", 2, 8, 0, samples, {}, load=Load(lines_s=two)).verdict
        for two in (lines_s[:1] * 2, lines_s)
    )
    assert moved.startswith(f"{still}; cores moved: a cache line between two ranks took 90 ns")


def test_a_small_share_of_the_fastest_time_does_not_matter() -> None:
    apart = np.zeros((10, 2))
    apart[:3] = 0.04 * 1e-3
    times = TIMES.copy()
    times[:, 1] = 1e-3
    assert punctual(times, apart).dropped == 0
    apart[:3] = 0.06 * 1e-3
    assert punctual(times, apart).dropped == 3


def raced(*ours_s: float) -> Race:
    samples = {"library": (1.0,) * len(ours_s), "ours": ours_s}
    return Race("broadcast", 2, 8, 0, samples, {})


def test_a_wide_interval_is_no_win() -> None:
    """Of 13 repetitions on busy cores: "138 times as fast"."""
    noisy = raced(*[0.5] * 4, *[1 / 138] * 5, *[1 / 400] * 4)
    gain = noisy.speedup("ours")
    assert gain.middle == pytest.approx(138)
    assert gain.low > 1.03
    assert gain.high > WIDEST * gain.low
    assert noisy.winner == "library"
    assert noisy.verdict == "too noisy to tell: the library's own stays"
    sure = raced(*[0.5] * 13)
    assert sure.winner == "ours"
    said = "2.00× as fast as the library's own (2.00 … 2.00 with 95 % confidence)"
    assert sure.verdict == said
    assert raced(*[0.5] * 5).winner == "library", "too few repetitions"


def test_who_is_behind_the_best_of_its_form_leaves() -> None:
    """The library's own never does, and of each form of ours the best stays."""
    medians_s = {
        LIBRARY: 9e-3, LIBRARY_PERSISTENT: 1e-6, "a": 1e-3, "b": 1.4e-3, "c": 1.6e-3,
        f"a{BLOCKING}": 7e-3, f"b{BLOCKING}": 5e-3, f"c{BLOCKING}": 8e-3,
    }  # fmt: skip
    staying = contenders(medians_s, 1.5)
    assert set(medians_s) - set(staying) == {"c", f"c{BLOCKING}"}
    assert contenders(medians_s, np.inf) == [*medians_s]


def test_each_form_of_calls_has_a_best_of_its_own() -> None:
    """A nonblocking call may take many times as long as a blocking one."""
    later = CALLS["nonblocking"]
    own = [f"bcast/library:{name}{later.ending}" for name in "ab"]
    medians_s = {
        LIBRARY: 1.0, later.defaults[0]: 30.0, f"a{BLOCKING}": 2.0, f"a{later.ending}": 10.0,
        f"b{later.ending}": 16.0, own[0]: 14.0, own[1]: 15.1,
    }  # fmt: skip
    staying = contenders(medians_s, 1.5)
    assert set(medians_s) - set(staying) == {f"b{later.ending}", own[1]}


def test_the_forms_of_calls() -> None:
    """The table has each, in the order of C; a label names one of them."""
    assert [*CALLS] == [*FORMS]
    assert [method_name("Reduce_scatter_block", form) for form in FORMS] == [
        "Reduce_scatter_block", "Ireduce_scatter_block", "Reduce_scatter_block_init"
    ]  # fmt: skip
    for form, named in CALLS.items():
        assert form_of(f"broadcast/flat{named.ending}") == form
        assert LIBRARY in named.defaults or form_of(named.defaults[0]) == form
    assert LIBRARIES[0] == LIBRARY
    assert {*ALWAYS_RACED} < {*FORMS}


def test_the_fastest_of_the_librarys_own_stays_as_long_as_it_beats_the_default() -> None:
    own = [f"reduce/library:{name}{BLOCKING}" for name in "abc"]
    medians_s = dict(
        zip([LIBRARY, f"ours{BLOCKING}", *own], (9.0, 1.0, 8.0, 7.0, 9.5), strict=True)
    )
    assert contenders(medians_s, 1.5) == [LIBRARY, f"ours{BLOCKING}", own[1]]
    assert contenders({**medians_s, LIBRARY: 6.0}, 1.5) == [LIBRARY, f"ours{BLOCKING}"]
    race = Race("reduce", 2, 8, 0, {name: (s,) * 7 for name, s in medians_s.items()}, {})
    assert (race.best, race.best_own) == (f"ours{BLOCKING}", own[1])
    assert raced(*[0.5] * 13).best_own == "library"


def test_who_left_early_is_not_the_best_and_counts_only_as_long_as_it_ran() -> None:
    samples = {
        LIBRARY: (4.0, 4.0, 4.0, 8.0, 8.0, 8.0), "ours": (3.0,) * 6, "left": (2.0, 2.0, 2.0)
    }  # fmt: skip
    race = Race("broadcast", 2, 8, 0, samples, {})
    assert race.best == "ours"
    assert race.against(LIBRARY, "left").middle == 2
    assert race.speedup("ours").middle == 2


def test_repetitions_without_those_who_left() -> None:
    times = TIMES.copy()
    times[4:, 1] = np.nan
    assert punctual(times, np.zeros((10, 2))).tolerance_s == APART * 8e-3
