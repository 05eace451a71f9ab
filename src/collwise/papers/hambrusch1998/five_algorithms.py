"""Section 5.1: the five algorithms as they are, where nothing is moved first."""

from collections.abc import Sequence
from itertools import pairwise
from random import Random
from statistics import linear_regression, mean

from collwise.model.sources import distribute
from collwise.papers.findings import Check, Finding
from collwise.papers.hambrusch1998.runs import (
    ABOUT,
    BRANCHING,
    BRUTE,
    CLEARLY,
    HARD,
    IDEAL,
    listed,
    on,
    straightness,
    time_ms,
)


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
                "s = 30, ms: " + listed((n, times[n][counts.index(30)]) for n in times),
                slowest,
            ),
            Check(
                "`two_step` is the steeper of them in s",
                "ms for each source: " + listed(slopes),
                slopes["two_step"] > slopes["xor"],
            ),
            Check(
                "with √p sources `xor` is good (no more than twice as slow) at p = 4 … 16 only",
                "times as slow as the best of the three: " + listed(behind),
                max(behind[f"p = {p}"] for p in (4, 9, 16))
                < 2
                < min(behind[f"p = {p}"] for p in (36, 64, 100, 144, 256)),
            ),
            Check(
                "and where s is close to p on small machines",
                "s = p, times as slow as the best of the three: " + listed(small),
                max(small[f"p = {p}"] for p in (4, 9, 16)) < 2,
            ),
        ],
        "Copying is the sender's in this machine, and a source of `xor` copies its message p − 1"
        " times; still it falls back with p as the paper says, from 1.4 to 13.5 times.",
    )


def growth() -> Finding:
    """H-c2, Figs 2 and 3: straight in the number of sources; in length, flat and then straight."""
    shape = (10, 10)
    counts = (5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100)
    straight = {
        name: straightness(counts, [on(name, shape, "equal", s, 4096) for s in counts])
        for name in BRANCHING
    }
    lengths = (32, 128, 512, 1024, 4096, 8192, 16384)
    long = {
        name: [on(name, shape, "right_diagonal", 30, n) for n in lengths]
        for name in (*BRANCHING, "xor")
    }
    early = {name: times[lengths.index(1024)] / times[0] for name, times in long.items()}
    late = {name: straightness(lengths[-4:], long[name][-4:]) for name in BRANCHING}
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
                "the three grow little to 1 KB (by less than half the factor from 1 to 16 KB), then"
                " linearly",
                "1 KB against 32 B: "
                + listed((name, early[name]) for name in BRANCHING)
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
                "ms: " + listed((d, source[d]) for d in IDEAL),
                max(ideal_times) < ABOUT * min(ideal_times),
            ),
            Check(
                "and clearly more on cross and square block",
                "ms: " + listed((d, source[d]) for d in HARD),
                all(source[d] > CLEARLY * max(ideal_times) for d in HARD),
            ),
            *(
                Check(
                    f"`br_lin` is the best of the three on the {d}",
                    "ms: " + listed((n, times[n][d]) for n in BRANCHING),
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
                "ms: " + listed((f"s = {s}", t) for s, t in times.items()),
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
                "s = 30, ms: " + listed(spread[30]),
                max(spread[30].values()) > CLEARLY * min(spread[30].values()),
            ),
            Check(
                "and little for small s",
                "slowest less fastest shape, ms: "
                + listed((f"s = {s}", d) for s, d in apart.items()),
                max(apart[5], apart[15]) < apart[30] / 2,
            ),
            Check("4×30 is the exception", f"the slowest at s = 30: {worst}", worst == "4×30"),
        ],
        "It depends on how s divides the mesh, not on its size alone: at s = 60 every second rank"
        " is a source, which all five meshes spread alike.",
    )


def lengths() -> Finding:
    """H-c11, §5: messages of different lengths."""
    shape, s = (10, 10), 30
    random = Random(1998)
    various = tuple(random.randint(1, 8191) for _ in range(s))
    same = sum(various) // s
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in BRANCHING + BRUTE}
    for d in (*IDEAL, *HARD):
        sources = distribute(d, shape, s)
        for name, found in times.items():
            found.append(
                (time_ms(name, shape, sources, same), time_ms(name, shape, sources, various))
            )

    def kept(names: Sequence[str]) -> float:
        """Percent of pairs, 5 % and more apart with equal lengths, that keep their order."""
        return 100 * mean(
            one[1] > other[1]
            for a in names
            for b in names
            for one, other in zip(times[a], times[b], strict=True)
            if one[0] > ABOUT * other[0]
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
    return Finding("H-c11", "§5", checks, because)
