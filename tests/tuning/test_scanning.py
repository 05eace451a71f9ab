"""What races of the library's default show, over samples that are made up."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from collwise.errors import InvalidArgument
from collwise.measure.race import (
    BLOCKING,
    END,
    FEWER,
    HALFWAY,
    LIBRARY,
    LIBRARY_PERSISTENT,
    NEXT,
    TWICE,
    Race,
    contenders,
)
from collwise.planner.choose import problem_for
from collwise.report.scan_summary import scan_lines
from collwise.schedule.collectives import COLLECTIVES
from collwise.tuning.outcomes import Task
from collwise.tuning.scan_races import scan
from collwise.tuning.scanning import (
    FAR,
    MESSAGES,
    STEP,
    Finding,
    Scan,
    Step,
    findings,
    neighbours,
    steep,
)

BINOMIAL = f"allreduce/library:binomial{BLOCKING}"
RING = f"allreduce/library:ring(k=4){BLOCKING}"
COMPOSED = f"Reduce + Bcast{BLOCKING}"
WAVES = (0.99, 1.01, 1.0, 0.98, 1.02, 1.0, 0.99, 1.01)
USUAL = {LIBRARY: 1.0, LIBRARY_PERSISTENT: 1.0, NEXT: 1.0, TWICE: 1.9, FEWER: 0.9}


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


def test_fewer_ranks_that_take_longer() -> None:
    (found,) = shown({FEWER: 1.2}).values()
    assert found.what == "allreduce of 64 bytes on 3 ranks"
    assert found.instead == "allreduce of 64 bytes on 4 ranks"
    assert (found.takes_s, found.instead_s, found.ratio) == pytest.approx((1.2, 1.0, 1.2))
    assert "one more rank" in found.remedy
    assert not shown({FEWER: 1.02})
    assert list(shown({FEWER: 1.2, NEXT: 2 * STEP})) == [NEXT, FEWER]


def test_calls_of_other_problems_stay_in_a_race() -> None:
    """They are not compared with each other: a call behind them may be a cliff."""
    medians_s = {LIBRARY: 2.0, FEWER: 1.0, NEXT: 9.0, COMPOSED: 1.5}
    assert contenders(medians_s, 1.5) == list(medians_s)


def settled(step: Step, time_s: Callable[[Task], float]) -> Step | None:
    """What halving comes to, where tasks take these seconds."""
    left: Step | None = step
    while left is not None and (halfway := left.halfway) is not None:
        sizes = {LIBRARY: left.low, HALFWAY: halfway, END: left.high}
        samples = {label: (time_s(one),) * 8 for label, one in sizes.items()}
        left = left.steeper_half(halfway, Race("broadcast", 4, 8, 0, samples, {}))
    return left


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("element", [0, 1, 77, 127])
def test_halving_finds_the_cliff(collective: str, element: int) -> None:
    """Wherever it is, below a line that rises by itself."""
    low = task(collective, 64)
    unit = low.next.size - low.size
    high, last = low.resized(low.size + 128 * unit), low.size + element * unit

    def time_s(one: Task) -> float:
        return (1 + one.size / high.size) * (2 if one.size > last else 1)

    (step,) = steep([(high, time_s(high), 2.0), (low, time_s(low), 1 + low.size / high.size)])
    assert step.halvings == 7
    found = settled(step, time_s)
    assert found is not None
    assert (found.low.size, found.high) == (last, found.low.next)


def test_no_cliff_where_times_rise_slowly() -> None:
    low, high = task("broadcast", 64), task("broadcast", 4096)
    (step,) = steep([(low, 1.0, 1.0), (high, 2.0, 1.1)])
    assert settled(step, lambda one: 1 + one.size / 4096) is None


def test_which_steps_are_steep() -> None:
    """More than the model's line; neighbours in size, of one collective; the worst first."""
    sizes = [task("broadcast", n) for n in (64, 256, 1024, 1025, 4096)]
    other = task("reduce", 64)
    times = dict(zip(sizes, (1.0, 4.0, 12.0, 60.0, 60.0), strict=True))
    modelled = dict(zip(sizes, (1.0, 3.0, 3.0, 3.0, 0.0), strict=True))
    scanned = [(one, times[one], modelled[one]) for one in (*sizes[::-1],)]
    steps = steep([*scanned, (other, 99.0, 1.0)])
    assert [(step.low, step.high) for step in steps] == [(sizes[1], sizes[2])]
    assert steps[0].excess == pytest.approx(3)
    assert str(steps[0]) == "broadcast of 256 bytes and of 1024"
    free = [(sizes[0], 1.0, 0.0), (sizes[1], 2.0, 1.0), (sizes[2], 9.0, 1.0)]
    assert [step.excess for step in steep(free)] == pytest.approx([4.5, 2.0])


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_a_task_on_one_rank_fewer(collective: str) -> None:
    for nbytes in (32, 96, 4096):
        one = task(collective, nbytes)
        fewer = neighbours(one)[FEWER].problem
        assert (fewer.ranks, fewer.root, fewer.order) == (3, 0, one.problem.order)
        assert 0 < fewer.nbytes <= one.problem.nbytes
    last = Task(problem_for("broadcast", ranks=4, nbytes=8, root=3)[0])
    assert last.on_fewer.problem.root == 2
    two = Task(problem_for("broadcast", ranks=2, nbytes=8)[0])
    assert FEWER not in neighbours(two)


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_neighbours_are_the_next_sizes_that_there_are(collective: str) -> None:
    one = task(collective)
    others = neighbours(one)
    sizes = [t.problem.nbytes for t in (one, others[NEXT], others[TWICE])]
    assert all(before < after for before, after in pairwise(sizes))
    assert sizes[2] == 2 * sizes[0]
    unit = one.problem.kind.unit(4, one.problem.itemsize) * (4 if one.problem.sources else 1)
    assert sizes[1] == sizes[0] + unit


def lines_of(
    *found: Finding, left_out: Sequence[str] = (), unsettled: Sequence[str] = ()
) -> list[str]:
    scan = Scan(
        library="MPICH 5",
        ranks=4,
        spent_s=1.2,
        findings=found,
        medians_s={"allreduce of 64 bytes": {LIBRARY: 1e-6, BINOMIAL: 2e-6, RING: 3e-6}},
        left_out=left_out,
        unsettled=unsettled,
    )
    return scan_lines(scan)


def test_one_rank_is_refused() -> None:
    alone: Any = SimpleNamespace(private=SimpleNamespace(comm=SimpleNamespace(size=1)))
    with pytest.raises(InvalidArgument, match="scan 1 rank: one rank sends nothing; use 2 ranks"):
        scan(alone, [task()], 1.0)


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
    step = (f"{task('broadcast', 8)} and of 64",)
    nothing, tried, left_out, steps = lines_of(left_out=left, unsettled=step)
    assert nothing.startswith("found    nothing")
    assert tried.startswith("tried    1 call in 1 s on 4 ranks: the default of MPICH 5")
    assert left_out.startswith("left out 3 calls")
    assert left_out.endswith(": broadcast of 8 bytes, reduce of 64 bytes, and longer ones")
    assert steps.endswith("rises steeply, between broadcast of 8 bytes and of 64")
