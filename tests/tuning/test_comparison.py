"""Two records side by side: what is worse, how surely, and what cannot be compared."""

from math import inf, isfinite
from pathlib import Path

import msgspec
import pytest

from collwise.errors import InvalidArgument
from collwise.measure.race import LIBRARY
from collwise.profiles.profile import with_measurements
from collwise.profiles.records import MeasuredSize
from collwise.tuning.comparison import compare
from collwise.tuning.race_records import Record
from tests.profiles.example import example
from tests.tuning.examples import PROFILE, WITH_NODES, alone, outcome, session
from tests.tuning.test_race_records import sweep


def raced(*outcomes: object, name: str = "a") -> Record:
    made = sweep(*outcomes)  # type: ignore[arg-type]
    return Record(Path(name), "a sweep", made.fingerprint, made.races)


def known(profile: object = PROFILE, name: str = "p") -> Record:
    return Record(Path(name), "a profile", profile.fingerprint, profile=profile)  # type: ignore


def test_a_record_equals_itself() -> None:
    for record in (raced(outcome(8), outcome(40, sources=(0, 2))), known(), known(WITH_NODES)):
        found = compare(record, record)
        assert found.cells
        assert {cell.ratio.middle for cell in found.cells} == {1}
        assert {cell.verdict for cell in found.cells} == {"no clear difference"}
        assert (found.only_first, found.only_second, found.differences) == (0, 0, ())
        assert not any(cell.fails(1.0) for cell in found.cells)


def test_where_nothing_of_ours_ran_the_library_is_compared() -> None:
    found = compare(raced(alone(8)), raced(alone(8)))
    assert {cell.quantity for cell in found.cells} == {LIBRARY, "library_init"}


def test_what_became_slower_comes_first() -> None:
    """Ours took 1/1.5 of the library's time; now 1/1.2.  The library's own is as it was."""
    before, after = raced(outcome(4096, gain=1.5), outcome(8)), raced(outcome(4096, gain=1.2))
    found = compare(before, after)
    worst, *others = found.cells
    assert worst.what == "broadcast of 4 KiB on 5 ranks, root 1"
    assert (worst.quantity, worst.verdict) == ("ours, persistent", "worse")
    assert worst.ratio.middle == pytest.approx(1.25, rel=0.02)
    assert worst.ratio.low < 1.25 < worst.ratio.high
    assert {cell.quantity for cell in others} == {LIBRARY, "library_init", "ours, blocking"}
    assert {cell.verdict for cell in others} == {"no clear difference"}
    assert (found.only_first, found.only_second) == (4, 0)
    assert [worst.fails(above) for above in (None, 1.1, 1.3)] == [False, True, False]
    back = compare(after, before)
    assert back.cells[-1].verdict == "better"
    assert back.only_second == 4


def test_noise_is_no_difference() -> None:
    """However large the ratio, an interval that holds 1 fails nothing."""
    found = compare(raced(outcome(8)), raced(outcome(8, gain=0.9, repetitions=2)))
    assert found.cells[0].ratio.middle > 1.5
    assert {cell.ratio.high for cell in found.cells} == {inf}
    assert not any(cell.fails(1.0) for cell in found.cells)


def measured(nbytes: int, t0_s: float, interval: tuple[float, float] | None) -> MeasuredSize:
    point = PROFILE.points[0]
    return msgspec.structs.replace(point, nbytes=nbytes, t0_s=t0_s, t0_interval_s=interval)


def test_profiles_are_compared_by_their_intervals() -> None:
    ones = (measured(8, 1e-6, (0.9e-6, 1.1e-6)), measured(64, 1e-6, None))
    others = (measured(8, 2e-6, (1.8e-6, 2.2e-6)), measured(64, 3e-6, None))
    first, second = (known(with_measurements(PROFILE, points=points)) for points in (ones, others))
    cells = {(c.what.split(" on")[0], c.quantity): c for c in compare(first, second).cells}
    small, large = cells["8 B", "t0"], cells["64 B", "t0"]
    assert (small.ratio.middle, small.verdict) == (2, "worse")
    assert small.ratio.low == pytest.approx(2 / (11 / 9) ** 0.5**0.5, rel=1e-3)
    assert small.ratio.low * small.ratio.high == pytest.approx(4)
    assert large.ratio.middle == pytest.approx(3)
    assert large.verdict == "no clear difference"
    assert not isfinite(large.ratio.high)


def test_the_races_of_profiles() -> None:
    """By their ratios, which have intervals."""
    slow, quick = (known(session(outcome(4096, gain=gain)).profile) for gain in (1.2, 1.5))
    worst = compare(quick, slow).cells[0]
    assert worst.what.startswith("race of broadcast of 4 KiB on 5 ranks (")
    assert (worst.quantity, worst.verdict) == ("ratio, persistent", "worse")
    assert worst.ratio.middle == pytest.approx(1.25, rel=0.02)


def test_other_machines_are_named() -> None:
    other = example()
    found = compare(known(other), known(msgspec.structs.replace(other, fingerprint=elsewhere())))
    assert found.differences == ("MPI library: 'Test MPI 1.0' there, 'MPI 9' here",)


def elsewhere() -> object:
    return msgspec.structs.replace(example().fingerprint, mpi_library="MPI 9")


def test_what_has_nothing_in_common() -> None:
    for first, second, words in (
        (raced(outcome(8)), known(), "p is a profile of "),
        (raced(outcome(8)), raced(outcome(16), name="b"), "b is a sweep of 4 values, such as b"),
        (raced(), raced(outcome(8)), "a is a sweep of 0 values, a is a sweep of 4"),
    ):
        with pytest.raises(InvalidArgument, match="they have nothing in common: ") as refusal:
            compare(first, second)
        assert words in str(refusal.value)
