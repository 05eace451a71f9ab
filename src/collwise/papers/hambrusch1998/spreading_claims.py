"""Claims on the five algorithms as they are, where nothing is moved first: most of §4 and §5.1.

What the paper judges by eye is judged here by numbers: CLEARLY for "clearly, heavily,
considerably", FLAT for "almost flat" and "little increase", ABOUT for "the same".
"""

from collections.abc import Mapping
from functools import partial
from itertools import pairwise
from statistics import correlation, linear_regression, mean

import collwise as cw
from collwise.model.topology import snake_rank
from collwise.papers.claims import Claim, shown
from collwise.papers.hambrusch1998 import runs
from collwise.papers.measured import overheads

CLEARLY, ABOUT, FLAT = 1.1, 1.05, 1.25
"""Ratios of times: above CLEARLY is clearly longer; below ABOUT, the same; below FLAT, flat."""
SLIGHT = 0.25
"""The slope, where both axes are logarithmic, below which a curve looks like a flat one."""
Numbers = dict[str, float]


def spread(times: Numbers) -> float:
    """The longest of the times over the shortest."""
    return max(times.values()) / min(times.values())


def _on(distribution: str) -> Numbers:
    return runs.by_distribution()[distribution]


def _behind(
    distribution: str, counts: dict[int, int], machine: cw.Machine = runs.PARAGON
) -> Numbers:
    """By p, xor's time over that of the best BRANCHING algorithm.   counts: sources, by √p."""
    return {
        f"p = {r * r}": runs.time_on("xor", (r, r), distribution, s, 4096, machine)
        / min(runs.time_on(a, (r, r), distribution, s, 4096, machine) for a in runs.BRANCHING)
        for r, s in counts.items()
    }


def _good_without_copies(_: object) -> str:
    small = _behind("right_diagonal", {r: r for r in (2, 3, 4, 6)}, runs.without_copies())
    return (
        "A source of xor copies its message p − 1 times, one that branches a few times. On this"
        f" machine without any copies: {shown(small)}."
    )


def _growth(machine: cw.Machine, low: int, high: int, names: tuple[str, ...]) -> Numbers:
    """By algorithm, how many times as long messages of `high` bytes take as those of `low`."""
    curves = runs.by_length(machine)
    return {a: curves[a][high] / curves[a][low] for a in names}


def _kept(names: tuple[str, ...]) -> float:
    """Percent of pairs of algorithms that keep their order if messages differ in length.

    A pair counts for each distribution on which it is more than 5 % apart with equal lengths.
    """
    times = runs.of_different_lengths()
    return 100 * mean(
        times[a, d][1] > times[b, d][1]
        for a in names
        for b in names
        for d in (*runs.IDEAL, *runs.HARD)
        if times[a, d][0] > ABOUT * times[b, d][0]
    )


def _copying(names: tuple[str, ...], low: int, high: int) -> str:
    bare = _growth(runs.without_copies(), low, high, names)
    return (
        "Start-up is 100 µs; with the copies of the system and of programs, which the preset"
        f" estimates, 1 KB takes 50 µs more. Without any copies the factor is {shown(bare)}: it is"
        " copying that bends the curve, so NX must have copied short messages less than assumed."
    )


def _who_loses(lost: Mapping[str, tuple[float, float, float]]) -> str:
    """Say which algorithms lose more than 5 % beyond doubt.   lost: (median, low, high) by name."""
    sure = [name for name, (_, low, _) in lost.items() if low > 5]
    return f"Even the low end of its interval is above 5 % for {shown(sure)} of {len(lost)}."


def _lin_over_xy() -> dict[str, float]:
    return {
        f"{r} × {c}": runs.time_on("br_lin", (r, c), "row", r * c // 4, 6144)
        / runs.time_on("br_xy_source", (r, c), "row", r * c // 4, 6144)
        for r, c in ((4, 8), (8, 8), (8, 16), (16, 16))
    }


def _met(shape: runs.Shape, distribution: str, s: int) -> int:
    """How many ranks have data after br_lin's first iteration, where p_i and p_(i+p/2) exchange."""
    ranks = shape[0] * shape[1]
    order = [snake_rank(position, shape[1]) for position in range(ranks)]
    sources = {order.index(rank) for rank in cw.sources.distribute(distribution, shape, s)}
    return len(sources | {(position + ranks // 2) % ranks for position in sources})


CLAIMS = (
    Claim(
        "H-c1a, Fig 2: two_step and xor are the slowest unless s is tiny (10 × 10, E(s), 4 KB;"
        " from which s of ours on)",
        paper="more than about 4",
        ours=lambda: min(
            s
            for s in runs.by_sources()["xor"]
            if all(
                min(runs.by_sources()[slow][n] for slow in runs.BRUTE)
                > max(runs.by_sources()[fast][n] for fast in runs.BRANCHING)
                for n in runs.by_sources()["xor"]
                if n >= s
            )
        ),
        holds=lambda s: s <= 8,
    ),
    Claim(
        "H-c1b, Fig 2: two_step is the steeper of them in s (ms for each source)",
        paper="steeper",
        ours=lambda: {
            a: linear_regression(list(curve := runs.by_sources()[a]), list(curve.values())).slope
            for a in runs.BRUTE
        },
        holds=lambda slopes: slopes["two_step"] > slopes["xor"],
    ),
    Claim(
        "H-c1c, Fig 4: with √p sources xor is good at p = 4 … 16 only (its time over the best of"
        " the three; good: less than twice as long)",
        paper="p = 4 … 16",
        ours=lambda: _behind("right_diagonal", {r: r for r in runs.SIDES}),
        holds=lambda behind: all((x < 2) == (int(p[4:]) <= 16) for p, x in behind.items()),
        shape=lambda behind: list(behind.values()) == sorted(behind.values()),
        because=_good_without_copies,
    ),
    Claim(
        "H-c1d, §5.1: and where s is close to p on small machines (s = p; its time over the best"
        " of the three)",
        paper="good up to p = 16",
        ours=lambda: _behind("equal", {2: 4, 3: 9, 4: 16}),
        holds=lambda behind: max(behind.values()) < 2,
    ),
    Claim(
        "H-c2a, Fig 2: the three others grow linearly with s (R² of a straight line)",
        paper="linear",
        ours=lambda: {
            a: correlation(list(curve := runs.by_sources()[a]), list(curve.values())) ** 2
            for a in runs.BRANCHING
        },
        holds=lambda fits: min(fits.values()) > 0.95,
    ),
    Claim(
        "H-c2b, Fig 3: in length xor is almost flat up to 1 KB (10 × 10, Dr(30): 1 KB over 32 B)",
        paper="almost flat",
        ours=lambda: _growth(runs.PARAGON, 32, 1024, ("xor",)),
        holds=lambda growth: max(growth.values()) < FLAT,
        shape=lambda growth: max(growth.values()) < (1024 / 32) ** SLIGHT,
        because=lambda _: _copying(("xor",), 32, 1024),
    ),
    Claim(
        "H-c2c, Fig 3: the three grow little at first (up to which length, the scan has lost; 128"
        " B over 32 B)",
        paper="little increase",
        ours=lambda: _growth(runs.PARAGON, 32, 128, runs.BRANCHING),
        holds=lambda growth: max(growth.values()) < FLAT,
        shape=lambda growth: max(growth.values()) < (128 / 32) ** SLIGHT,
        because=lambda _: (
            "To 1 KB, "
            + shown(_growth(runs.PARAGON, 32, 1024, runs.BRANCHING))
            + ". Thirty messages of 1 KB are merged into 30 KB. "
            + _copying(runs.BRANCHING, 32, 1024)
        ),
    ),
    Claim(
        "H-c2d, Fig 3: and then linearly (R² from 1 KB to 16 KB)",
        paper="linear",
        ours=lambda: {
            a: correlation(list(curve := runs.by_length()[a])[3:], list(curve.values())[3:]) ** 2
            for a in runs.BRANCHING
        },
        holds=lambda fits: min(fits.values()) > 0.999,
    ),
    Claim(
        "H-c3a, Fig 5: br_xy_source takes about the same on R, C, E and Dr (10 × 10, s = 30, 4 KB)",
        paper="about the same",
        ours=lambda: {d: runs.by_distribution()[d]["br_xy_source"] for d in runs.IDEAL},
        holds=lambda times: spread(times) < ABOUT,
        unit="ms",
    ),
    Claim(
        "H-c3b, Fig 5: and clearly more on square block and cross (times as long as on R, C, E,"
        " Dr)",
        paper="considerable increase",
        ours=lambda: {
            d: runs.by_distribution()[d]["br_xy_source"]
            / max(runs.by_distribution()[other]["br_xy_source"] for other in runs.IDEAL)
            for d in runs.HARD
        },
        holds=lambda ratios: min(ratios.values()) > CLEARLY,
    ),
    *(
        Claim(
            f"H-c3{letter}, Fig 5: br_lin is the best of the three on the {d}",
            paper="br_lin",
            ours=partial(_on, d),
            holds=lambda times: times["br_lin"] <= min(times.values()),
            unit="ms",
        )
        for letter, d in zip("cd", runs.HARD, strict=True)
    ),
    Claim(
        "H-c4, Fig 5: br_xy_dim pays heavily on rows where the shape picks the wrong dimension",
        paper="big increase",
        ours=lambda: {d: runs.by_distribution()[d]["br_xy_dim"] for d in ("row", "column")},
        holds=lambda times: times["row"] > CLEARLY * times["column"],
        unit="ms",
    ),
    Claim(
        "H-c5a, Fig 6: 80 KB in all, br_xy_source on 10 × 10, Dr(s): more sources are faster",
        paper="falling",
        ours=lambda: {f"s = {s}": t for s, t in runs.of_80_kb()["br_xy_source"].items() if s <= 40},
        holds=lambda times: all(a > b for a, b in pairwise(times.values())),
        unit="ms",
    ),
    Claim(
        "H-c5b, Fig 6: from 5 and from 40 sources it takes about",
        paper=(11.4, 7.3),
        tolerance=0.8,
        ours=lambda: tuple(runs.of_80_kb()["br_xy_source"][s] for s in (5, 40)),
        fitted=True,
        because="Programs' copying was fitted to these two numbers.",
        unit="ms",
    ),
    Claim(
        "H-c6a, Fig 7: the shape of the mesh changes br_lin on E(30) considerably (120 ranks, 4"
        " KB)",
        paper="considerably",
        ours=lambda: runs.by_shape()[30],
        holds=lambda times: spread(times) > CLEARLY,
        because=lambda _: (
            "It depends on how s divides the mesh: at s = 60, where every second rank is a source"
            f" in all five, the slowest takes {spread(runs.by_shape()[60]):.2f} times as long as"
            " the fastest."
        ),
        unit="ms",
    ),
    Claim(
        "H-c6b, Fig 7: and little for few sources (slowest less fastest shape)",
        paper="little",
        ours=lambda: {
            f"s = {s}": max(t.values()) - min(t.values())
            for s, t in runs.by_shape().items()
            if s <= 30
        },
        holds=lambda apart: max(apart["s = 5"], apart["s = 15"]) < apart["s = 30"] / 2,
        unit="ms",
    ),
    Claim(
        "H-c6c, Fig 7: 4 × 30 is the exception: the slowest shape for E(30)",
        paper="4×30",
        ours=lambda: runs.by_shape()[30],
        holds=lambda times: max(times, key=times.__getitem__) == "4×30",
        unit="ms",
    ),
    *(
        Claim(
            f"H-c11{letter}, §5: messages of different lengths keep the ranking of {who} (10 ×"
            " 10, s = 30, 1 B … 8 KB): of all pairs 5 % and more apart, so many keep their order",
            paper="all",
            ours=partial(_kept, names),
            holds=lambda percent: percent > 95,
            shape=lambda percent: percent > 75,
            because=because,
            unit="%",
        )
        for letter, who, names, because in (
            ("a", "the three", runs.BRANCHING, ""),
            (
                "b",
                "all five",
                runs.FIVE,
                lambda _: (
                    f"Of pairs without xor, {_kept((*runs.BRANCHING, 'two_step')):.0f} % keep it:"
                    " xor waits p − 1 times for whoever sends the longest message; two_step goes by"
                    " the sum."
                ),
            ),
        )
    ),
    Claim(
        "H-c12, §6: over MPI every algorithm loses 2 to 5 % against the native library (here: our"
        " persistent requests against the same messages by mpi4py alone, p/2 sources of 4 KB, at"
        " most 5 %; the median, and the ends of its 95 % interval)",
        paper="2 to 5 %",
        measure=overheads(runs.FIVE, 4096),
        holds=lambda lost: max(median for median, _, _ in lost.values()) <= 5,
        shape=lambda lost: max(low for _, low, _ in lost.values()) <= 5,
        because=_who_loses,
        unit="%",
    ),
    Claim(
        "H-c13, abstract: on the T3D, too, times depend on the distribution (4 × 4 × 8, seen as 8"
        " × 16; s = 32, 4 KB; slowest over fastest distribution)",
        paper="they do",
        ours=lambda: {
            a: spread({d: times[a] for d, times in runs.on_the_t3d().items()})
            for a in runs.BRANCHING
        },
        holds=lambda ratios: min(ratios.values()) > CLEARLY,
    ),
    Claim(
        "H-c15a, §4: R(s) with a power of two of rows: br_lin is br_xy_source (its time over the"
        " other's, s = p/4, 6 KB)",
        paper={"4 × 8": 1, "8 × 8": 1, "8 × 16": 1, "16 × 16": 1},
        tolerance=0.001,
        ours=_lin_over_xy,
    ),
    Claim(
        "H-c15b, §4: with an even number of rows a column gains no sources in the first iteration"
        " of br_lin (C(r): sources before and after)",
        paper={"8 × 8": (8, 8), "10 × 10": (10, 10)},
        ours=lambda: {f"{r} × {r}": (r, _met((r, r), "column", r)) for r in (8, 10)},
        shape=lambda both: both["8 × 8"] == (8, 8),
        because="p_(i+p/2) is in the same column of a snake only if half of the rows are even in"
        " number: with 10 rows every source finds a new one.",
    ),
    Claim(
        "H-c15c, §4: Dr(10) on 10 × 10 does not double in the first iteration, as p_(i+50) may"
        " lie on the diagonal as well (sources after it)",
        paper="< 20",
        ours=lambda: _met((10, 10), "right_diagonal", 10),
        holds=lambda met: met < 20,
        because=lambda _: (
            f"From left diagonals there are {_met((10, 10), 'left_diagonal', 10)}: here they are no"
            " better. The scan has lost the words around."
        ),
    ),
)
