"""Section 5.1: the five algorithms as they are, where nothing is moved first."""

from collections.abc import Sequence
from itertools import pairwise
from random import Random
from statistics import correlation, linear_regression, mean

from collwise.model.sources import distribute
from collwise.papers.findings import Check, Finding, claim
from collwise.papers.hambrusch1998.runs import (
    ABOUT,
    BRANCHING,
    BRUTE,
    CLEARLY,
    HARD,
    IDEAL,
    listed,
    time_from,
    time_on,
    times_on,
)


@claim("H-c1", "Figs 2, 4")
def brute_force() -> Finding:
    """Two_Step and Xor are the slowest, unless there are few sources or few ranks."""
    names, nbytes = (*BRANCHING, *BRUTE), 4096
    many_sources = (8, 16, 30, 50, 75, 100)
    by_count = {s: times_on(names, (10, 10), "equal", s, nbytes) for s in many_sources}
    slowest = all(
        min(times[slow] for slow in BRUTE) > max(times[fast] for fast in BRANCHING)
        for times in by_count.values()
    )
    slopes = {
        name: linear_regression(many_sources, [t[name] for t in by_count.values()]).slope
        for name in BRUTE
    }

    def xor_behind(distribution: str, counts: dict[int, int]) -> dict[int, float]:
        """Xor's time over the best of the three, on square meshes: counts of sources by side."""
        return {
            side * side: time_on("xor", (side, side), distribution, s, nbytes)
            / min(times_on(BRANCHING, (side, side), distribution, s, nbytes).values())
            for side, s in counts.items()
        }

    behind = xor_behind("right_diagonal", {side: side for side in (2, 3, 4, 6, 8, 10, 12, 16)})
    all_sources = xor_behind("equal", {side: side * side for side in (2, 3, 4, 10)})
    checks = [
        Check(
            "`two_step` and `xor` are the slowest unless s is tiny (10×10, E(s), 4 KB)",
            "s = 30, ms: " + listed(by_count[30]),
            slowest,
        ),
        Check(
            "`two_step` is the steeper of them in s",
            "ms for each source: " + listed(slopes),
            slopes["two_step"] > slopes["xor"],
        ),
        Check(
            "with √p sources `xor` is good (no more than twice as slow) at p = 4 … 16 only",
            "times as slow as the best of the three: " + listed(behind, "p = {}"),
            all((x < 2) == (p <= 16) for p, x in behind.items()),
        ),
        Check(
            "and where s is close to p on small machines",
            "s = p, times as slow as the best of the three: " + listed(all_sources, "p = {}"),
            all(x < 2 for p, x in all_sources.items() if p <= 16),
        ),
    ]
    because = (
        "Copying is the sender's in this machine, and a source of `xor` copies its message p − 1"
        " times; still it falls back with p as the paper says, from 1.4 to 13.5 times."
    )
    return Finding(checks, because)


@claim("H-c2", "Figs 2, 3")
def growth() -> Finding:
    """Times grow linearly with the number of sources; with length little, then linearly."""
    shape = (10, 10)
    counts = (5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100)
    lengths = (32, 128, 512, 1024, 4096, 8192, 16384)
    by_count = [times_on(BRANCHING, shape, "equal", s, 4096) for s in counts]
    by_length = {n: times_on((*BRANCHING, "xor"), shape, "right_diagonal", 30, n) for n in lengths}
    fits = {name: correlation(counts, [t[name] for t in by_count]) ** 2 for name in BRANCHING}
    early = {name: by_length[1024][name] / by_length[32][name] for name in (*BRANCHING, "xor")}
    late = {name: by_length[16384][name] / by_length[1024][name] for name in BRANCHING}
    late_fits = {
        name: correlation(lengths[-4:], [by_length[n][name] for n in lengths[-4:]]) ** 2
        for name in BRANCHING
    }
    xor = early.pop("xor")
    checks = [
        Check(
            "`br_lin`, `br_xy_source`, `br_xy_dim` grow linearly with s (10×10, E(s), 4 KB)",
            "R² of a straight line: " + listed(fits, digits=3),
            min(fits.values()) > 0.95,
        ),
        Check(
            "in length `xor` is almost flat up to 1 KB (10×10, Dr(30))",
            f"1 KB takes {xor:.2f} times as long as 32 B",
            xor < 1.25,
        ),
        Check(
            "the three grow little to 1 KB (by less than half the factor from 1 to 16 KB), then"
            " linearly",
            f"1 KB against 32 B: {listed(early)}; R² from 1 KB on: {listed(late_fits, digits=4)}",
            min(late_fits.values()) > 0.999
            and all(early[name] < late[name] / 2 for name in BRANCHING),
        ),
    ]
    because = (
        "A start-up of 100 µs is only twice what 1 KB costs from end to end (56 ns per byte), so"
        " that it shows; a curve that is flat up to 1 KB needs short messages that are not copied."
    )
    return Finding(checks, because)


@claim("H-c3", "Fig 5")
def distributions() -> Finding:
    """Br_xy_source takes about the same on ideal distributions, and more on the others."""
    times = {d: times_on(BRANCHING, (10, 10), d, 30, 4096) for d in (*IDEAL, *HARD)}
    ideal = {d: times[d]["br_xy_source"] for d in IDEAL}
    hard = {d: times[d]["br_xy_source"] for d in HARD}
    checks = [
        Check(
            "`br_xy_source` takes about the same on R, C, E, Dr (10×10, s = 30, 4 KB)",
            "ms: " + listed(ideal),
            max(ideal.values()) < ABOUT * min(ideal.values()),
        ),
        Check(
            "and clearly more on cross and square block",
            "ms: " + listed(hard),
            min(hard.values()) > CLEARLY * max(ideal.values()),
        ),
    ]
    for d in ("square", "cross"):
        best = times[d]["br_lin"] <= min(times[d].values())
        checks.append(
            Check(f"`br_lin` is the best of the three on the {d}", "ms: " + listed(times[d]), best)
        )
    return Finding(checks)


@claim("H-c4", "Fig 5")
def wrong_dimension() -> Finding:
    """Br_xy_dim is slow on rows if the shape of the mesh picks the wrong dimension."""
    row, column = (time_on("br_xy_dim", (10, 10), d, 30, 4096) for d in ("row", "column"))
    says = "`br_xy_dim` pays heavily on the row distribution (10×10, s = 30, 4 KB)"
    return Finding([Check(says, f"ms: R {row:.1f}, C {column:.1f}", row > CLEARLY * column)])


@claim("H-c5", "Fig 6")
def more_sources() -> Finding:
    """The same data are broadcast faster from more sources."""
    times = {
        s: time_on("br_xy_source", (10, 10), "right_diagonal", s, 80 * 1024 // s)
        for s in (5, 10, 20, 40)
    }
    apart = [times[5] / 11.4 - 1, times[40] / 7.3 - 1]
    checks = [
        Check(
            "80 KB in all, 10×10, Dr: more sources are faster",
            "ms: " + listed(times, "s = {}"),
            all(fewer > more for fewer, more in pairwise(times.values())),
        ),
        Check(
            "5 sources about 11.4 ms, 40 about 7.3 ms (our estimates went by them)",
            " and ".join(f"{100 * x:+.0f} %" for x in apart),
            all(abs(x) < 0.1 for x in apart),
        ),
    ]
    return Finding(checks)


@claim("H-c6", "Fig 7")
def shapes() -> Finding:
    """The shape of the mesh matters for many sources, and little for few."""
    meshes = ((4, 30), (5, 24), (6, 20), (8, 15), (10, 12))
    times = {
        s: {f"{r}×{c}": time_on("br_lin", (r, c), "equal", s, 4096) for r, c in meshes}
        for s in (5, 15, 30, 60)
    }
    apart = {s: max(t.values()) - min(t.values()) for s, t in times.items()}
    slowest = max(times[30], key=times[30].__getitem__)
    checks = [
        Check(
            "the shape changes `br_lin` on E(s) considerably for large s (p = 120, 4 KB)",
            "s = 30, ms: " + listed(times[30]),
            max(times[30].values()) > CLEARLY * min(times[30].values()),
        ),
        Check(
            "and little for small s",
            "slowest less fastest shape, ms: " + listed(apart, "s = {}"),
            max(apart[5], apart[15]) < apart[30] / 2,
        ),
        Check("4×30 is the exception", f"the slowest at s = 30: {slowest}", slowest == "4×30"),
    ]
    because = (
        "It depends on how s divides the mesh, not on its size alone: at s = 60 every second rank"
        " is a source, which all five meshes spread alike."
    )
    return Finding(checks, because)


@claim("H-c11", "§5")
def lengths() -> Finding:
    """Messages of different lengths keep the ranking of the algorithms."""
    shape, random = (10, 10), Random(1998)
    different = tuple(random.randint(1, 8191) for _ in range(30))
    equal = sum(different) // len(different)
    times = {
        (name, d): tuple(
            time_from(name, shape, distribute(d, shape, 30), nbytes)
            for nbytes in (equal, different)
        )
        for name in (*BRANCHING, *BRUTE)
        for d in (*IDEAL, *HARD)
    }

    def kept(names: Sequence[str]) -> float:
        """Percent of pairs, 5 % and more apart with equal lengths, that keep their order."""
        return 100 * mean(
            times[a, d][1] > times[b, d][1]
            for a in names
            for b in names
            for d in (*IDEAL, *HARD)
            if times[a, d][0] > ABOUT * times[b, d][0]
        )

    checks = [
        Check(
            f"messages of different lengths keep the ranking of {who} (10×10, s = 30, 1 B … 8 KB)",
            f"of all pairs 5 % and more apart, {kept(names):.0f} % keep their order",
            kept(names) > 95,
        )
        for who, names in (("the three", BRANCHING), ("all five", BRANCHING + BRUTE))
    ]
    because = (
        "`xor` waits for whoever sends the longest message p − 1 times, and so falls behind"
        " `two_step`, which goes by the sum."
    )
    return Finding(checks, because)
