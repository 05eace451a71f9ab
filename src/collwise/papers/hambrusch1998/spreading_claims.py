"""Section 5.1: the five algorithms as they are, where nothing is moved first.

What the paper judges by eye is judged here by numbers: CLEARLY for "clearly, heavily,
considerably", FLAT for "almost flat" and "little increase", ABOUT for "the same".
"""

from collections.abc import Mapping
from functools import partial
from itertools import pairwise
from statistics import correlation, linear_regression, mean

import collwise as cw
from collwise.papers.claims import Claim, shown
from collwise.papers.hambrusch1998.runs import (
    BRANCHING,
    BRUTE,
    FIVE,
    HARD,
    IDEAL,
    PARAGON,
    SIDES,
    by_distribution,
    by_length,
    by_shape,
    by_sources,
    of_80_kb,
    of_different_lengths,
    on_the_t3d,
    time_on,
    times_on,
    without_copies,
)
from collwise.papers.measured import overheads

CLEARLY, ABOUT, FLAT = 1.1, 1.05, 1.25
"""Times as long: clearly longer, about the same, and hardly growing."""
SLIGHT = 0.25
"""The slope, where both axes are logarithmic, below which a curve looks like a flat one."""
Numbers = dict[str, float]


def spread(times: Numbers) -> float:
    """The slowest over the fastest."""
    return max(times.values()) / min(times.values())


def _on(distribution: str) -> Numbers:
    return by_distribution()[distribution]


def _behind(distribution: str, counts: dict[int, int], machine: cw.Machine = PARAGON) -> Numbers:
    """Xor's time over the best of the three on square meshes; counts of sources by side."""
    return {
        f"p = {r * r}": time_on("xor", (r, r), distribution, s, 4096, machine)
        / min(times_on(BRANCHING, (r, r), distribution, s, 4096, machine).values())
        for r, s in counts.items()
    }


def _good_without_copies(_: object) -> str:
    small = _behind("right_diagonal", {r: r for r in (2, 3, 4, 6)}, without_copies())
    return (
        "A source of xor copies its message p − 1 times, one that branches a few times. On this"
        f" machine without any copies: {shown(small)}."
    )


def _growth(machine: cw.Machine, low: int, high: int, names: tuple[str, ...]) -> Numbers:
    """How many times as long messages of `high` bytes take as those of `low`."""
    curves = by_length(machine)
    return {a: curves[a][high] / curves[a][low] for a in names}


def _little_growth(value: Numbers) -> bool:
    return max(value.values()) < FLAT


def _kept(names: tuple[str, ...]) -> float:
    """Percent of pairs, 5 % and more apart with equal lengths, that keep their order."""
    times = of_different_lengths()
    return 100 * mean(
        times[a, d][1] > times[b, d][1]
        for a in names
        for b in names
        for d in (*IDEAL, *HARD)
        if times[a, d][0] > ABOUT * times[b, d][0]
    )


def _copying(names: tuple[str, ...], low: int, high: int) -> str:
    bare = _growth(without_copies(), low, high, names)
    return (
        "Start-up is 100 µs; with the copies of the system and of programs, which the preset"
        f" estimates, 1 KB takes 50 µs more. Without any copies the factor is {shown(bare)}: it is"
        " copying that bends the curve, so NX must have copied short messages less than assumed."
    )


def _who_loses(lost: Mapping[str, tuple[float, float, float]]) -> str:
    """Of the algorithms that lose more, how many do so beyond doubt."""
    sure = [name for name, (_, low, _) in lost.items() if low > 5]
    return f"Even the low end of its interval is above 5 % for {shown(sure)} of {len(lost)}."


CLAIMS = (
    Claim(
        id="H-c1a",
        where="Fig 2",
        says="two_step and xor are the slowest unless s is tiny (10 × 10, E(s), 4 KB; from which s"
        " of ours on)",
        paper="more than about 4",
        ours=lambda: min(
            s
            for s in by_sources()["xor"]
            if all(
                min(by_sources()[slow][n] for slow in BRUTE)
                > max(by_sources()[fast][n] for fast in BRANCHING)
                for n in by_sources()["xor"]
                if n >= s
            )
        ),
        holds=lambda s: s <= 8,
    ),
    Claim(
        id="H-c1b",
        where="Fig 2",
        says="two_step is the steeper of them in s (ms for each source)",
        paper="steeper",
        ours=lambda: {
            a: linear_regression(list(by_sources()[a]), list(by_sources()[a].values())).slope
            for a in BRUTE
        },
        holds=lambda slopes: slopes["two_step"] > slopes["xor"],
    ),
    Claim(
        id="H-c1c",
        where="Fig 4",
        says="with √p sources xor is good at p = 4 … 16 only (its time over the best of the three;"
        " good: less than twice as long)",
        paper="p = 4 … 16",
        ours=lambda: _behind("right_diagonal", {r: r for r in SIDES}),
        holds=lambda behind: all((x < 2) == (int(p[4:]) <= 16) for p, x in behind.items()),
        shape=lambda behind: list(behind.values()) == sorted(behind.values()),
        because=_good_without_copies,
    ),
    Claim(
        id="H-c1d",
        where="§5.1",
        says="and where s is close to p on small machines (s = p; its time over the best of the"
        " three)",
        paper="good up to p = 16",
        ours=lambda: _behind("equal", {2: 4, 3: 9, 4: 16}),
        holds=lambda behind: max(behind.values()) < 2,
    ),
    Claim(
        id="H-c2a",
        where="Fig 2",
        says="the three others grow linearly with s (R² of a straight line)",
        paper="linear",
        ours=lambda: {
            a: correlation(list(by_sources()[a]), list(by_sources()[a].values())) ** 2
            for a in BRANCHING
        },
        holds=lambda fits: min(fits.values()) > 0.95,
    ),
    Claim(
        id="H-c2b",
        where="Fig 3",
        says="in length xor is almost flat up to 1 KB (10 × 10, Dr(30): 1 KB over 32 B)",
        paper="almost flat",
        ours=lambda: _growth(PARAGON, 32, 1024, ("xor",)),
        holds=_little_growth,
        shape=lambda growth: max(growth.values()) < (1024 / 32) ** SLIGHT,
        because=lambda _: _copying(("xor",), 32, 1024),
    ),
    Claim(
        id="H-c2c",
        where="Fig 3",
        says="the three grow little at first (up to which length, the scan has lost; 128 B over"
        " 32 B)",
        paper="little increase",
        ours=lambda: _growth(PARAGON, 32, 128, BRANCHING),
        holds=_little_growth,
        shape=lambda growth: max(growth.values()) < (128 / 32) ** SLIGHT,
        because=lambda _: (
            "To 1 KB, "
            + shown(_growth(PARAGON, 32, 1024, BRANCHING))
            + ". Thirty messages of 1 KB are merged into 30 KB. "
            + _copying(BRANCHING, 32, 1024)
        ),
    ),
    Claim(
        id="H-c2d",
        where="Fig 3",
        says="and then linearly (R² from 1 KB to 16 KB)",
        paper="linear",
        ours=lambda: {
            a: correlation(list(by_length()[a])[3:], list(by_length()[a].values())[3:]) ** 2
            for a in BRANCHING
        },
        holds=lambda fits: min(fits.values()) > 0.999,
    ),
    Claim(
        id="H-c3a",
        where="Fig 5",
        says="br_xy_source takes about the same on R, C, E and Dr (10 × 10, s = 30, 4 KB)",
        paper="about the same",
        ours=lambda: {d: by_distribution()[d]["br_xy_source"] for d in IDEAL},
        holds=lambda times: spread(times) < ABOUT,
        unit="ms",
    ),
    Claim(
        id="H-c3b",
        where="Fig 5",
        says="and clearly more on square block and cross (times as long as on R, C, E, Dr)",
        paper="considerable increase",
        ours=lambda: {
            d: by_distribution()[d]["br_xy_source"]
            / max(by_distribution()[other]["br_xy_source"] for other in IDEAL)
            for d in HARD
        },
        holds=lambda ratios: min(ratios.values()) > CLEARLY,
    ),
    *(
        Claim(
            id=f"H-c3{letter}",
            where="Fig 5",
            says=f"br_lin is the best of the three on the {d}",
            paper="br_lin",
            ours=partial(_on, d),
            holds=lambda times: times["br_lin"] <= min(times.values()),
            unit="ms",
        )
        for letter, d in zip("cd", HARD, strict=True)
    ),
    Claim(
        id="H-c4",
        where="Fig 5",
        says="br_xy_dim pays heavily on rows where the shape picks the wrong dimension",
        paper="big increase",
        ours=lambda: {d: by_distribution()[d]["br_xy_dim"] for d in ("row", "column")},
        holds=lambda times: times["row"] > CLEARLY * times["column"],
        unit="ms",
    ),
    Claim(
        id="H-c5a",
        where="Fig 6",
        says="80 KB in all, br_xy_source on 10 × 10, Dr(s): more sources are faster",
        paper="falling",
        ours=lambda: {f"s = {s}": t for s, t in of_80_kb()["br_xy_source"].items() if s <= 40},
        holds=lambda times: all(a > b for a, b in pairwise(times.values())),
        unit="ms",
    ),
    Claim(
        id="H-c5b",
        where="Fig 6",
        says="from 5 and from 40 sources it takes about",
        paper=(11.4, 7.3),
        tolerance=0.8,
        ours=lambda: tuple(of_80_kb()["br_xy_source"][s] for s in (5, 40)),
        fitted=True,
        because="Programs' copying was fitted to these two numbers.",
        unit="ms",
    ),
    Claim(
        id="H-c6a",
        where="Fig 7",
        says="the shape of the mesh changes br_lin on E(30) considerably (120 ranks, 4 KB)",
        paper="considerably",
        ours=lambda: by_shape()[30],
        holds=lambda times: spread(times) > CLEARLY,
        because=lambda _: (
            "It depends on how s divides the mesh: at s = 60, where every second rank"
            f" is a source in all five, the slowest takes {spread(by_shape()[60]):.2f} times as"
            " long as the fastest."
        ),
        unit="ms",
    ),
    Claim(
        id="H-c6b",
        where="Fig 7",
        says="and little for few sources (slowest less fastest shape)",
        paper="little",
        ours=lambda: {
            f"s = {s}": max(t.values()) - min(t.values()) for s, t in by_shape().items() if s <= 30
        },
        holds=lambda apart: max(apart["s = 5"], apart["s = 15"]) < apart["s = 30"] / 2,
        unit="ms",
    ),
    Claim(
        id="H-c6c",
        where="Fig 7",
        says="4 × 30 is the exception: the slowest shape for E(30)",
        paper="4×30",
        ours=lambda: by_shape()[30],
        holds=lambda times: max(times, key=times.__getitem__) == "4×30",
        unit="ms",
    ),
    *(
        Claim(
            id=f"H-c11{letter}",
            where="§5",
            says=f"messages of different lengths keep the ranking of {who} (10 × 10, s = 30, 1 B …"
            " 8 KB): of all pairs 5 % and more apart, so many keep their order",
            paper="all",
            ours=partial(_kept, names),
            holds=lambda percent: percent > 95,
            shape=lambda percent: percent > 75,
            because=because,
            unit="%",
        )
        for letter, who, names, because in (
            ("a", "the three", BRANCHING, ""),
            (
                "b",
                "all five",
                FIVE,
                lambda _: (
                    "Of pairs without xor, "
                    f"{_kept((*BRANCHING, 'two_step')):.0f} % keep it: xor waits p − 1 times for"
                    " whoever sends the longest message; two_step goes by the sum."
                ),
            ),
        )
    ),
    Claim(
        id="H-c12",
        where="§6",
        says="over MPI every algorithm loses 2 to 5 % against the native library (here: our"
        " persistent requests against the same messages by mpi4py alone, p/2 sources of 4 KB, at"
        " most 5 %; the median, and the ends of its 95 % interval)",
        paper="2 to 5 %",
        measure=overheads(FIVE, 4096),
        holds=lambda lost: max(median for median, _, _ in lost.values()) <= 5,
        shape=lambda lost: max(low for _, low, _ in lost.values()) <= 5,
        because=_who_loses,
        unit="%",
    ),
    Claim(
        id="H-c13",
        where="abstract",
        says="on the T3D, too, times depend on the distribution (4 × 4 × 8, seen as 8 × 16; s = 32,"
        " 4 KB; slowest over fastest distribution)",
        paper="they do",
        ours=lambda: {
            a: spread({d: times[a] for d, times in on_the_t3d().items()}) for a in BRANCHING
        },
        holds=lambda ratios: min(ratios.values()) > CLEARLY,
    ),
)
