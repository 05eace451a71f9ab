"""What is saved beside what was there before."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from collwise.profiles.profile import Profile, with_measurements
from collwise.profiles.records import CombineTime, RaceResult
from collwise.tuning.saving import Merged, merge, save_merged
from tests.profiles.example import FINGERPRINT, PROVENANCE, SIZES, point, profile
from tests.tuning.examples import NODE, WITH_NODES, outcome

(RACED,) = outcome(512).results[:1]


def race(nbytes: int, ranks: int = 5, **changes: Any) -> RaceResult:
    placed = {"nbytes": nbytes, "ranks": ranks, "ranks_per_node": f"1x{ranks}"}
    return msgspec.structs.replace(RACED, **(placed | changes))


def on(ranks: int, *results: RaceResult, **changes: Any) -> Profile:
    """A profile measured on so many ranks of one node."""
    made = msgspec.structs.replace(PROVENANCE, ranks=ranks, hosts={"node1": ranks})
    return profile(provenance=made, race_results=results, **changes)


def combined(op: str, median_s: float = 1e-6) -> CombineTime:
    return CombineTime(
        op=op, dtype="int64", nbytes=8, median_s=median_s, interval_s=(0, 1), repetitions=5
    )


def test_another_number_of_ranks_forgets_nothing() -> None:
    """40 races of 4 ranks were lost to two of 2 ranks."""
    four = on(4, *(race(8 * n, 4) for n in range(1, 41)))
    two = on(2, race(64, 2), points=[point(64, "nonblocking", 3.0)])
    merged = merge(four, two)
    assert merged.lines == ["kept     40 races on 4 ranks; t0 and λ on 4 ranks"]
    saved = Profile.from_json(merged.profile.to_json())
    assert len(saved.race_results) == 41
    assert saved.provenance == two.provenance
    assert saved.at(4).measurements == four.measurements
    assert saved.at(4).machine == four.machine
    assert saved.machine == two.machine
    again = merge(saved, four)
    assert again.profile.measurements == four.measurements
    assert again.profile.at(2).measurements == two.measurements
    assert set(again.document) == {"kept", "replaced", "dropped"}
    assert again.document["kept"] == ["1 race on 2 ranks", "t0 and λ on 2 ranks"]
    assert again.document["replaced"] == ["40 races on 4 ranks"]  # t0 and λ are those of before


def test_a_profile_saved_in_parts_tells_of_what_was_there_before(tmp_path: Path) -> None:
    """Its own first part is nothing that it keeps or replaces."""
    path = tmp_path / "profile.json"
    on(5, race(8), race(64), race(8, 4)).save(path)
    first = save_merged(on(5), path)
    part = save_merged(on(5, race(8)), path, first)
    whole = save_merged(on(5, race(8), race(16)), path, first)
    assert part.kept == ("1 race on 4 ranks", "1 race on 5 ranks")
    assert whole.kept == part.kept
    assert whole.replaced == ("1 race on 5 ranks",)
    assert len(Profile.load(path).race_results) == 4


def test_sizes_of_inner_levels_are_kept_as_well() -> None:
    """Only 512 bytes were measured again; the ports of the other sizes stay, too."""
    fresh = msgspec.structs.replace(NODE, points=(point(512, "nonblocking", 4.0),), port=())
    points = (point(512, "nonblocking", 9.0),)
    again = with_measurements(WITH_NODES, points=points, levels=(fresh,))
    (level,) = merge(WITH_NODES, again).profile.levels
    assert [p.nbytes for p in level.points] == [p.nbytes for p in NODE.points]
    assert [p.lam for p in level.points] == [2, 4, 2, 2]
    assert level.port == NODE.port


def test_other_levels_replace_everything_and_it_is_said() -> None:
    """t0 between nodes says nothing about messages of which some stay inside."""
    fresh = with_measurements(WITH_NODES, points=(point(512, "nonblocking", 9.0),), levels=())
    for old, new, said in (
        (WITH_NODES, fresh, "with 2 levels, for newer ones as one level"),
        (fresh, WITH_NODES, "as one level, for newer ones with 2 levels"),
    ):
        old = with_measurements(old, combining=(combined("sum"), combined("max")))
        new = with_measurements(new, combining=(combined("sum", 2e-6),))
        merged = merge(old, new)
        assert merged.dropped == (f"t0 and λ on {old.provenance.ranks} ranks {said}",)
        assert merged.profile.points == new.points
        assert merged.profile.levels == new.levels
        assert merged.profile.combining == (combined("max"), combined("sum", 2e-6))


def test_what_was_measured_again_is_replaced() -> None:
    """By size; what was not measured again stays, and counts in the verdict."""
    noisy = [point(nbytes, "nonblocking", disagreement=0.9) for nbytes in SIZES]
    old = on(5, race(8), race(64), points=noisy, combining=(combined("sum"), combined("max")))
    fresh = point(512, "nonblocking", 3.0, segment=0)
    new = on(
        5, race(64, ours_s=1.0), points=[fresh], medians=(), combining=(combined("sum", 2e-6),)
    )
    merged = merge(old, new)
    kept, made = merged.profile, merged.profile.machine
    assert merged.lines == [
        "kept     1 race on 5 ranks; t0 and λ of 8, 4096, 65536 bytes",
        "replaced 1 race on 5 ranks; t0 and λ of 512 bytes",
    ]
    assert [p.nbytes for p in kept.points] == list(SIZES)
    assert made.message(512) == new.machine.message(512)
    assert made.message(8) == old.machine.message(8)
    assert {m.nbytes for m in kept.medians} == {8, 4096, 65536}
    assert {(t.op, t.median_s) for t in kept.combining} == {("sum", 2e-6), ("max", 1e-6)}
    assert [r.ours_s for r in kept.race_results] == [RACED.ours_s, 1.0]
    assert kept.verdict == "noisy: the two experiments disagree at 3 of 4 points"
    assert kept.other_placements == ()


def test_it_is_said_that_cores_moved_between_two_sessions() -> None:
    times = ((9e-8,), (1e-7,)), ((6e-7,), (5e-7,))
    made = [msgspec.structs.replace(PROVENANCE, lines_s=lines_s) for lines_s in times]
    old, new = (
        profile([point(512, t0_s=t0)], provenance=one) for t0, one in zip((1, 2), made, strict=True)
    )
    *_, line = merge(old, new).profile.advice
    assert line.startswith(f"since the session of {PROVENANCE.created} cores moved: a cache line")
    assert "took 100 ns there and back, then 600 ns" in line
    assert not merge(old, profile([point(512)], provenance=made[0])).profile.advice


def test_races_without_a_placement_give_way() -> None:
    """Those of version 1; and races with another placement stay."""
    old = on(
        5, race(8, ranks_per_node=""), race(16, ranks_per_node=""), race(8, ranks_per_node="5x1")
    )
    merged = merge(old, on(5, race(8)))
    found = [(r.nbytes, r.ranks_per_node) for r in merged.profile.race_results]
    assert found == [(8, "1x5"), (8, "5x1"), (16, "")]
    assert merged.replaced[0] == "1 race on 5 ranks"


def test_what_is_dropped_is_said() -> None:
    gone = on(5, race(8, algorithm="broadcast/gone"), race(16))
    merged = merge(gone, on(5, race(64)))
    assert [r.nbytes for r in merged.profile.race_results] == [16, 64]
    assert merged.dropped == ("1 race on 5 ranks, whose algorithms there are no more",)
    elsewhere = msgspec.structs.replace(FINGERPRINT, mpi_library="Open MPI 5.0.8")
    stranger = msgspec.structs.replace(gone, fingerprint=elsewhere)
    assert merge(stranger, gone) == Merged(
        gone, dropped=("the profile of another machine (node1, 2025-01-02T03:04:05+00:00)",)
    )


@pytest.mark.parametrize("found", [None, on(5)])
def test_nothing_is_said_where_nothing_was(found: Profile | None) -> None:
    new = on(5, race(8))
    merged = merge(found, new)
    assert merged.profile == new
    assert merge(None, new).lines == []
