"""Hambrusch, Khokhar, Liu: s-to-p broadcasting on a Paragon's mesh, in simulation.

The paper's curves cannot be read from the scan; what is checked is who is faster and how curves
bend.  Every transfer waits for ports and links (`schedule.wormhole`), on the machine of the preset
"paragon", whose notes say which of its numbers are estimates.  What was judged by eye in the paper
is judged by two numbers here: CLEARLY for "clearly, heavily, considerably", ABOUT for "the same".
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from random import Random
from statistics import linear_regression, mean
from typing import TypeAlias

from collwise.algorithms.ideal_places import rows as ideal_rows
from collwise.algorithms.ideal_places import snake
from collwise.algorithms.registry import ALGORITHMS
from collwise.model.presets import PRESETS
from collwise.model.sources import DISTRIBUTIONS, distribute
from collwise.model.topology import Mesh
from collwise.papers.findings import Check, Finding
from collwise.schedule.timing import ideal

Shape: TypeAlias = tuple[int, int]
Claim: TypeAlias = Callable[[], Finding]

BRANCHING = ("br_lin", "br_xy_source", "br_xy_dim")
BRUTE = ("two_step", "xor")
IDEAL = ("row", "column", "equal", "right_diagonal")
HARD = ("cross", "square")
CLEARLY, ABOUT = 1.1, 1.05
"""Times as long: clearly longer, and about the same."""


@cache
def time_ms(
    name: str, shape: Shape, sources: tuple[int, ...], nbytes: int | tuple[int, ...]
) -> float:
    """Milliseconds of an algorithm on a Paragon's mesh, for sources of so many bytes each."""
    algorithm = ALGORITHMS[f"s_to_p/{name}"]
    ranks = shape[0] * shape[1]
    schedule = algorithm.schedule(ranks, nbytes, sources=sources, shape=shape)
    return 1e3 * ideal(schedule, PRESETS["paragon"].machine, Mesh(*shape)).completion_s


def on(name: str, shape: Shape, distribution: str, count: int, nbytes: int) -> float:
    """The same for a distribution of sources."""
    return time_ms(name, shape, distribute(distribution, shape, count), nbytes)


def _listed(times: Mapping[str, float] | Iterable[tuple[object, float]]) -> str:
    pairs = times.items() if isinstance(times, Mapping) else times
    return ", ".join(f"{name} {time:.1f}" for name, time in pairs)


def _straight(x: Sequence[float], y: Sequence[float]) -> float:
    """R² of the straight line through points: 1 if they lie on one."""
    line = linear_regression(x, y)
    middle = mean(y)
    off = sum((b - line.intercept - line.slope * a) ** 2 for a, b in zip(x, y, strict=True))
    return 1 - off / sum((b - middle) ** 2 for b in y)


def brute_force() -> Finding:
    """H-c1, Figs 2 and 4: one rank as a bottleneck, or many messages, are slow."""
    shape, nbytes = (10, 10), 4096
    counts = (1, 2, 4, 8, 16, 30, 50, 75, 100)
    times = {
        name: [on(name, shape, "equal", s, nbytes) for s in counts] for name in BRANCHING + BRUTE
    }
    beyond = [i for i, s in enumerate(counts) if s > 4]
    slowest = all(
        min(times[slow][i] for slow in BRUTE) > max(times[fast][i] for fast in BRANCHING)
        for i in beyond
    )
    slopes = {
        name: linear_regression([counts[i] for i in beyond], [times[name][i] for i in beyond]).slope
        for name in BRUTE
    }
    sizes = [(r, r) for r in (2, 3, 4, 6, 8, 10, 12, 16)]
    behind = {
        f"p = {r * c}": on("xor", (r, c), "right_diagonal", r, nbytes)
        / min(on(name, (r, c), "right_diagonal", r, nbytes) for name in BRANCHING)
        for r, c in sizes
    }
    small = {
        f"p = {r * c}": on("xor", (r, c), "equal", r * c, nbytes)
        / min(on(name, (r, c), "equal", r * c, nbytes) for name in BRANCHING)
        for r, c in ((2, 2), (3, 3), (4, 4), (10, 10))
    }
    return Finding(
        "H-c1",
        "Figs 2, 4",
        [
            Check(
                "`two_step` and `xor` are the slowest unless s is tiny (10×10, E(s), 4 KB)",
                "s = 30, ms: " + _listed((n, times[n][counts.index(30)]) for n in times),
                slowest,
            ),
            Check(
                "`two_step` is the steeper of them in s",
                "ms for each source: " + _listed(slopes),
                slopes["two_step"] > slopes["xor"],
            ),
            Check(
                "with √p sources `xor` is good (no more than twice as slow) at p = 4 … 16 only",
                "times as slow as the best of the three: " + _listed(behind),
                max(behind[f"p = {p}"] for p in (4, 9, 16))
                < 2
                < min(behind[f"p = {p}"] for p in (36, 64, 100, 144, 256)),
            ),
            Check(
                "and where s is close to p on small machines",
                "s = p, times as slow as the best of the three: " + _listed(small),
                max(small[f"p = {p}"] for p in (4, 9, 16)) < 2,
            ),
        ],
    )


def growth() -> Finding:
    """H-c2, Figs 2 and 3: straight in the number of sources; in length, flat and then straight."""
    shape = (10, 10)
    counts = (5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100)
    straight = {
        name: _straight(counts, [on(name, shape, "equal", s, 4096) for s in counts])
        for name in BRANCHING
    }
    lengths = (32, 128, 512, 1024, 4096, 8192, 16384)
    long = {
        name: [on(name, shape, "right_diagonal", 30, n) for n in lengths]
        for name in (*BRANCHING, "xor")
    }
    early = {name: times[lengths.index(1024)] / times[0] for name, times in long.items()}
    late = {name: _straight(lengths[-4:], long[name][-4:]) for name in BRANCHING}
    return Finding(
        "H-c2",
        "Figs 2, 3",
        [
            Check(
                "`br_lin`, `br_xy_source`, `br_xy_dim` grow linearly with s (10×10, E(s), 4 KB)",
                "R² of a straight line: " + ", ".join(f"{n} {r:.3f}" for n, r in straight.items()),
                min(straight.values()) > 0.95,
            ),
            Check(
                "in length `xor` is almost flat up to 1 KB (10×10, Dr(30))",
                f"1 KB takes {early['xor']:.2f} times as long as 32 B",
                early["xor"] < 1.25,
            ),
            Check(
                "the three grow little at first, and then linearly",
                "1 KB against 32 B: "
                + _listed((name, early[name]) for name in BRANCHING)
                + "; R² from 1 KB on: "
                + ", ".join(f"{n} {r:.4f}" for n, r in late.items()),
                min(late.values()) > 0.999
                and all(
                    early[n] < long[n][-1] / long[n][lengths.index(1024)] / 2 for n in BRANCHING
                ),
            ),
        ],
        "A start-up of 100 µs is only twice what 1 KB costs from end to end (56 ns per byte), so"
        " that it shows; a curve that is flat up to 1 KB needs short messages that are not copied.",
    )


def distributions() -> Finding:
    """H-c3, Fig 5: where the sources are."""
    shape, s, nbytes = (10, 10), 30, 4096
    times = {
        name: {d: on(name, shape, d, s, nbytes) for d in (*IDEAL, *HARD)} for name in BRANCHING
    }
    source = times["br_xy_source"]
    ideal_times = [source[d] for d in IDEAL]
    return Finding(
        "H-c3",
        "Fig 5",
        [
            Check(
                "`br_xy_source` takes about the same on R, C, E, Dr (10×10, s = 30, 4 KB)",
                "ms: " + _listed((d, source[d]) for d in IDEAL),
                max(ideal_times) < ABOUT * min(ideal_times),
            ),
            Check(
                "and clearly more on cross and square block",
                "ms: " + _listed((d, source[d]) for d in HARD),
                all(source[d] > CLEARLY * max(ideal_times) for d in HARD),
            ),
            *(
                Check(
                    f"`br_lin` is the best of the three on the {d}",
                    "ms: " + _listed((n, times[n][d]) for n in BRANCHING),
                    times["br_lin"][d] <= min(times[n][d] for n in BRANCHING),
                )
                for d in ("square", "cross")
            ),
        ],
    )


def wrong_dimension() -> Finding:
    """H-c4, Fig 5: the shape picks the dimension."""
    shape, s, nbytes = (10, 10), 30, 4096
    row, column = (on("br_xy_dim", shape, d, s, nbytes) for d in ("row", "column"))
    return Finding(
        "H-c4",
        "Fig 5",
        [
            Check(
                "`br_xy_dim` pays heavily on the row distribution (10×10, s = 30, 4 KB)",
                f"ms: R {row:.1f}, C {column:.1f}",
                row > CLEARLY * column,
            )
        ],
    )


def more_sources() -> Finding:
    """H-c5, Fig 6: the same data, spread over more sources."""
    counts = (5, 10, 20, 40)
    times = {s: on("br_xy_source", (10, 10), "right_diagonal", s, 80 * 1024 // s) for s in counts}
    return Finding(
        "H-c5",
        "Fig 6",
        [
            Check(
                "80 KB in all, 10×10, Dr: more sources are faster",
                "ms: " + _listed((f"s = {s}", t) for s, t in times.items()),
                all(times[a] > times[b] for a, b in pairwise(counts)),
            ),
            Check(
                "5 sources about 11.4 ms, 40 about 7.3 ms (our estimates went by them)",
                f"{100 * (times[5] / 11.4 - 1):+.0f} % and {100 * (times[40] / 7.3 - 1):+.0f} %",
                all(abs(times[s] / ms - 1) < 0.1 for s, ms in ((5, 11.4), (40, 7.3))),
            ),
        ],
    )


def shapes() -> Finding:
    """H-c6, Fig 7: the same ranks as other meshes."""
    meshes = ((4, 30), (5, 24), (6, 20), (8, 15), (10, 12))
    spread: dict[int, dict[str, float]] = {
        s: {f"{r}×{c}": on("br_lin", (r, c), "equal", s, 4096) for r, c in meshes}
        for s in (5, 15, 30, 60)
    }
    apart = {s: max(t.values()) - min(t.values()) for s, t in spread.items()}
    worst = max(spread[30], key=spread[30].__getitem__)
    return Finding(
        "H-c6",
        "Fig 7",
        [
            Check(
                "the shape changes `br_lin` on E(s) considerably for large s (p = 120, 4 KB)",
                "s = 30, ms: " + _listed(spread[30]),
                max(spread[30].values()) > CLEARLY * min(spread[30].values()),
            ),
            Check(
                "and little for small s",
                "slowest less fastest shape, ms: "
                + _listed((f"s = {s}", d) for s, d in apart.items()),
                max(apart[5], apart[15]) < apart[30] / 2,
            ),
            Check("4×30 is the exception", f"the slowest at s = 30: {worst}", worst == "4×30"),
        ],
        "It depends on how s divides the mesh, not on its size alone: at s = 60 every second rank"
        " is a source, which all five meshes spread alike.",
    )


def repositioning() -> Finding:
    """H-c7, Figs 8 and 9: move the data first."""
    shape, nbytes = (16, 16), 6144

    def gain(distribution: str, s: int, length: int, mesh: Shape = shape) -> float:
        """Percent that repositioning saves."""
        plain = on("br_xy_source", mesh, distribution, s, length)
        return 100 * (1 - on("repos_xy_source", mesh, distribution, s, length) / plain)

    counts = (16, 32, 48, 64, 75, 96, 112)
    by_count = {
        d: {s: gain(d, s, nbytes) for s in counts} for d in ("equal", "cross", "square", "band")
    }
    large = {d: gain(d, 192, nbytes) for d in by_count}
    few_ranks = {f"{r}×{r}": gain("cross", r * r // 4, nbytes, (r, r)) for r in (2, 3, 4)}
    short = {d: gain(d, 75, 512) for d in by_count}
    best = ideal_rows(shape, 64)
    elsewhere = [rank for rank in range(256) if rank not in best]
    near = {}
    for displaced in (0, 4, 8):
        sources = tuple(sorted((*best[displaced:], *elsewhere[:displaced])))
        plain = time_ms("br_xy_source", shape, sources, nbytes)
        moved = time_ms("repos_xy_source", shape, sources, nbytes)
        near[f"{displaced} of 64 elsewhere"] = 100 * (1 - moved / plain)
    lengths = (512, 1024, 2048, 4096, 6144, 8192, 16384)
    long = {n: gain("square", 75, n) for n in lengths}
    return Finding(
        "H-c7",
        "Figs 8, 9",
        [
            *(
                Check(
                    f"repositioning pays on {d} (16×16, 6 KB, 16 ≤ s < p/2)",
                    "% saved: " + _listed((f"s = {s}", g) for s, g in by_count[d].items()),
                    mean(by_count[d].values()) > 0 and sum(g > 0 for g in by_count[d].values()) > 4,
                )
                for d in ("equal", "cross", "square")
            ),
            Check(
                "and costs up to about 6.5 % on band",
                "% saved: " + _listed((f"s = {s}", g) for s, g in by_count["band"].items()),
                all(-8 < g < 1 for g in by_count["band"].values()),
            ),
            Check(
                "it does not pay if s > p/2",
                "s = 192, % saved: " + _listed(large),
                all(g <= 0 for g in large.values()),
            ),
            Check(
                "nor for p ≤ 16",
                "cross, s = p/4, % saved: " + _listed(few_ranks),
                all(g <= 0 for g in few_ranks.values()),
            ),
            Check(
                "nor for messages below 1 KB, except on cross",
                "512 B, s = 75, % saved: " + _listed(short),
                all(g <= 0 for d, g in short.items() if d != "cross"),
            ),
            Check(
                "nor if the input is near the ideal",
                "% saved: " + _listed(near),
                all(g < 1 for g in near.values()),
            ),
            Check(
                "with length the gain grows, then tapers (s = 75)",
                "square, % saved: " + _listed((f"{n} B", g) for n, g in long.items()),
                long[512] < long[2048] < long[6144]
                and long[16384] - long[8192] < long[2048] - long[1024],
            ),
        ],
        "Moving costs little on this machine: half a millisecond for 6 KB, where the paper's"
        " permutation took 1 to 7.5 ms. So it pays on cross and square block for short messages and"
        " many sources too. Equal sources are near the ideal already, to within how s divides the"
        " mesh. The planner of collwise looks at the sources and decides by itself (H9).",
    )


def partitioning() -> Finding:
    """H-c8, §5.2: two halves, and one exchange of long messages."""

    def wins(mesh: Shape, kind: str) -> list[bool]:
        return [
            on(f"part_{kind}", mesh, d, s, 6144) < on(f"repos_{kind}", mesh, d, s, 6144)
            for d in ("equal", "cross", "square", "band")
            for s in (16, 32, 48, 75)
        ]

    found = {(r, kind): wins((r, r), kind) for r in (16, 10) for kind in ("lin", "xy_source")}
    return Finding(
        "H-c8",
        "§5.2",
        [
            Check(
                f"`part_{kind}` hardly ever beats `repos_{kind}` ({r}×{r}, 6 KB)",
                f"it is faster in {sum(won)} of {len(won)} cases",
                sum(won) <= len(won) // 8,
            )
            for (r, kind), won in found.items()
        ],
        "Lines of 10 need four rounds, of 5 three, and every odd half costs a message more: half of"
        " such a mesh is worth more than half, and partitioning wins by up to a tenth.",
    )


def ideal_places() -> Finding:
    """H-c9, §4: which rows, and which diagonals."""
    nbytes = 6144
    one, other = (
        time_ms(
            "br_xy_source", (10, 10), tuple(10 * r + c for r in rows for c in range(10)), nbytes
        )
        for rows in ((0, 5), (0, 6))
    )
    meshes = [(r, c) for r in (8, 9, 10, 11, 12) for c in (8, 10, 12)]
    share = 4  # a quarter of the ranks

    def excess(distribution: str) -> float:
        """How far the worst mesh is behind the best distribution there."""
        worst = 0.0
        for r, c in meshes:
            times = {
                d: on("br_lin", (r, c), d, r * c // share, nbytes)
                for d in ("row", "column", "equal", "right_diagonal", "left_diagonal")
            }
            worst = max(worst, times[distribution] / min(times.values()))
        return worst

    behind = {d: excess(d) for d in ("row", "column", "equal", "right_diagonal", "left_diagonal")}
    ours = time_ms("br_lin", (16, 16), tuple(sorted(snake((16, 16), 64))), nbytes)
    theirs = on("br_lin", (16, 16), "left_diagonal", 64, nbytes)
    return Finding(
        "H-c9",
        "§4",
        [
            Check(
                "`br_xy_source`: R(20) on 10×10 in rows 1 and 7 is better than in rows 1 and 6",
                f"ms: rows 1 and 6 {one:.1f}, rows 1 and 7 {other:.1f};"
                f" ours are {', '.join(str(r // 10 + 1) for r in ideal_rows((10, 10), 20)[::10])}",
                other < one,
            ),
            Check(
                "left diagonals are the least sensitive ones for `br_lin` (15 meshes, s = p/4)",
                "the worst mesh, times the best distribution there: "
                + ", ".join(f"{d} {x:.2f}" for d, x in behind.items()),
                behind["left_diagonal"] <= min(behind.values()),
            ),
        ],
        "Where the columns are a power of two, ranks on two diagonals are partners in early rounds"
        " of the snake (8×8: 1.6 times as long as from rows). `repos_lin` therefore takes places"
        f" worked out for the snake: {ours:.1f} ms for 64 sources on 16×16, where left diagonals"
        f" take {theirs:.1f}.",
    )


def placement() -> Finding:
    """H-c10, §3: what placing is worth, and what half a machine is."""
    shape, s, nbytes = (16, 16), 64, 6144
    ratios = {}
    for name in BRANCHING:
        times = [on(name, shape, d, s, nbytes) for d in DISTRIBUTIONS]
        ratios[name] = max(times) / min(times)
    halves = {
        name: on(name, (8, 16), "equal", s // 2, nbytes) / on(name, shape, "equal", s, nbytes)
        for name in ("repos_lin", "repos_xy_source")
    }
    return Finding(
        "H-c10",
        "§3",
        [
            Check(
                "placement alone changes the time by up to a factor of 2 (16×16, s = 64, 6 KB)",
                "slowest over fastest distribution: " + _listed(ratios),
                max(ratios[name] for name in ("br_lin", "br_xy_source")) > 1.5,
            ),
            Check(
                "s/2 sources on p/2 ranks take less than half the time of s on p (ideal places)",
                "times as long: " + ", ".join(f"{n} {x:.3f}" for n, x in halves.items()),
                all(x < 0.5 for x in halves.values()),
            ),
        ],
        "The data halve, the rounds do not (7 of 8 are left); without start-ups it would be half."
        " Less than half takes more messages that meet on links than there are here.",
    )


def lengths() -> Finding:
    """H-c11, §5: messages of different lengths."""
    shape, s = (10, 10), 30
    random = Random(1998)
    various = tuple(random.randint(1, 8191) for _ in range(s))
    same = sum(various) // s
    kept = []
    for d in (*IDEAL, *HARD):
        sources = distribute(d, shape, s)
        equal = {n: time_ms(n, shape, sources, same) for n in BRANCHING + BRUTE}
        mixed = {n: time_ms(n, shape, sources, various) for n in BRANCHING + BRUTE}
        pairs = [(a, b) for a in equal for b in equal if equal[a] > 1.05 * equal[b]]
        kept.append(mean([mixed[a] > mixed[b] for a, b in pairs]))
    return Finding(
        "H-c11",
        "§5",
        [
            Check(
                "messages of different lengths keep the ranking (10×10, s = 30, 1 B … 8 KB)",
                f"of all pairs 5 % and more apart, {100 * mean(kept):.0f} % keep their order",
                mean(kept) > 0.95,
            )
        ],
    )


CLAIMS: Sequence[Claim] = (
    brute_force,
    growth,
    distributions,
    wrong_dimension,
    more_sources,
    shapes,
    repositioning,
    partitioning,
    ideal_places,
    placement,
    lengths,
)
"""All claims that simulation can check; H-c12 is about MPI, see `benchmarks/overhead.py`."""
