"""What races of the library's default show, over samples that are made up."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import pytest

from collwise.measure.race import BLOCKING, LIBRARY, LIBRARY_PERSISTENT, Race
from collwise.planner.choose import problem_for
from collwise.report.scan_summary import scan_lines
from collwise.schedule.collectives import COLLECTIVES
from collwise.tuning.outcomes import Task
from collwise.tuning.scanning import (
    FAR,
    MESSAGES,
    NEXT,
    STEP,
    TWICE,
    Finding,
    Scan,
    findings,
    neighbours,
)

BINOMIAL = f"allreduce/library:binomial{BLOCKING}"
RING = f"allreduce/library:ring(k=4){BLOCKING}"
COMPOSED = f"Reduce + Bcast{BLOCKING}"
WAVES = (0.99, 1.01, 1.0, 0.98, 1.02, 1.0, 0.99, 1.01)
USUAL = {LIBRARY: 1.0, LIBRARY_PERSISTENT: 1.0, NEXT: 1.0, TWICE: 1.9}


def task(collective: str = "allreduce", nbytes: int = 64) -> Task:
    sources = range(4) if COLLECTIVES[collective].has_sources else None
    return Task(problem_for(collective, ranks=4, nbytes=nbytes, sources=sources)[0])


def race(medians: Mapping[str, float], repetitions: int = 24) -> Race:
    """Samples around these medians, each competitor in the same waves."""
    samples = {
        label: tuple(median * WAVES[i % len(WAVES)] for i in range(repetitions))
        for label, median in medians.items()
    }
    return Race("allreduce", 4, 64, 0, samples, {})


def shown(
    medians: Mapping[str, float], bound_s: float = 0.0, repetitions: int = 24
) -> dict[str, Finding]:
    return findings(task(), race({**USUAL, **medians}, repetitions), bound_s)


def test_nothing_is_found_where_nothing_is_faster() -> None:
    assert not shown({BINOMIAL: 0.99, COMPOSED: 1.1, NEXT: 1.4}, bound_s=0.5)


@pytest.mark.parametrize(
    ("label", "instead", "remedy"),
    [
        (BINOMIAL, "library:binomial", "let collwise tune or collwise export"),
        (RING, "library:ring(k=4)", "let collwise tune or collwise export"),
        (COMPOSED, "Reduce + Bcast", "make these calls"),
        (LIBRARY_PERSISTENT, "Allreduce_init", "make a persistent request"),
        (TWICE, "allreduce of 128 bytes", "pad the buffers"),
    ],
)
def test_what_is_faster_and_what_mends_it(label: str, instead: str, remedy: str) -> None:
    (found,) = shown({label: 0.25}).values()
    assert (found.what, found.instead) == ("allreduce of 64 bytes", instead)
    assert found.ratio == pytest.approx(4)
    assert found.interval[0] <= found.ratio <= found.interval[1]
    assert (found.takes_s, found.instead_s) == pytest.approx((1, 0.25))
    assert found.remedy.startswith(remedy)


def test_the_fastest_and_the_librarys_fastest() -> None:
    """With an algorithm of the library programs stay as they are, so it is shown, too."""
    assert list(shown({BINOMIAL: 0.6, RING: 0.5, COMPOSED: 0.3})) == [COMPOSED, RING]
    assert list(shown({BINOMIAL: 0.6, RING: 0.5, COMPOSED: 0.55})) == [RING]


def test_few_repetitions_and_those_that_left_show_nothing() -> None:
    assert not shown({COMPOSED: 0.1}, repetitions=5)
    left = race(USUAL | {BINOMIAL: 0.8})
    samples = {**left.samples, COMPOSED: (0.1,) * 7}  # it cannot have been behind; it has no say
    assert list(findings(task(), Race("allreduce", 4, 64, 0, samples, {}), 0)) == [BINOMIAL]


def test_noise_shows_nothing() -> None:
    """A median may be less than half, yet the repetitions do not agree."""
    quiet, noisy = (1.0,) * 24, (0.1, 0.4, 9.0) * 8
    samples = {LIBRARY: quiet, COMPOSED: noisy}
    assert not findings(task(), Race("allreduce", 4, 64, 0, samples, {}), 0)


def test_a_cliff() -> None:
    (found,) = shown({NEXT: 2 * STEP}).values()
    assert (found.what, found.instead) == ("allreduce of 72 bytes", "allreduce of 64 bytes")
    assert found.ratio == pytest.approx(2 * STEP)
    assert "last element" in found.remedy
    assert not shown({NEXT: 0.97 * STEP})
    assert list(shown({NEXT: 2 * STEP, BINOMIAL: 0.5})) == [BINOMIAL, NEXT]


def test_far_from_the_bound() -> None:
    """Only if nothing else is found, and if no repetition came near the bound."""
    (found,) = shown({}, bound_s=0.5 / FAR).values()
    assert (found.what, found.instead) == ("allreduce of 64 bytes", MESSAGES)
    assert (found.instead_s, found.ratio) == pytest.approx((0.5 / FAR, 2 * FAR))
    assert list(shown({BINOMIAL: 0.5}, bound_s=0.5 / FAR)) == [BINOMIAL]
    assert not shown({}, bound_s=0.985 / FAR)
    assert list(shown({NEXT: 3.0}, bound_s=0.5 / FAR)) == [MESSAGES, NEXT]


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_neighbours_are_the_next_sizes_that_there_are(collective: str) -> None:
    one = task(collective)
    others = neighbours(one)
    sizes = [t.problem.nbytes for t in (one, others[NEXT], others[TWICE])]
    assert all(before < after for before, after in pairwise(sizes))
    assert sizes[2] == 2 * sizes[0]
    unit = one.problem.kind.unit(4, one.problem.itemsize) * (4 if one.problem.sources else 1)
    assert sizes[1] == sizes[0] + unit


def lines_of(*found: Finding, left_out: Sequence[str] = ()) -> list[str]:
    scan = Scan(
        library="MPICH 5",
        ranks=4,
        spent_s=1.2,
        findings=found,
        medians_s={"allreduce of 64 bytes": {LIBRARY: 1e-6, BINOMIAL: 2e-6, RING: 3e-6}},
        left_out=left_out,
    )
    return scan_lines(scan)


def test_a_line_for_each_finding() -> None:
    own, cliff = (*shown({RING: 0.5}).values(), *shown({NEXT: 3.0}).values())
    (far,) = shown({}, bound_s=1e-3).values()
    lines = lines_of(cliff, own, far)
    assert [line.split(" ")[0] for line in lines[1:4]] == ["3.00", "2.00", "1000.00"]
    assert "allreduce of 64 bytes takes 1.00 s where library:ring(k=4) takes 500 ms" in lines[2]
    assert "allreduce of 64 bytes takes 1.00 s where messages allow 1.00 ms" in lines[3]
    assert "against 2 algorithms of its own" in lines[4]
    assert "collwise export mpich" in lines[-1]
    assert "export" not in lines_of(far, cliff)[-1]


def test_what_is_said_where_nothing_is_found() -> None:
    left = ("broadcast of 8 bytes", "reduce of 64 bytes", "broadcast of 64 bytes")
    nothing, tried, left_out = lines_of(left_out=left)
    assert nothing.startswith("found    nothing")
    assert tried.startswith("tried    1 call in 1 s on 4 ranks: the default of MPICH 5")
    assert left_out.startswith("left out 3 calls")
    assert left_out.endswith(": broadcast of 8 bytes, reduce of 64 bytes, and longer ones")
