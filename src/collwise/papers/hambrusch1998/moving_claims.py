"""Claims of sections 3, 4 and 5.2: ideal places of sources, and moving data to ideal places."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache, partial
from itertools import product
from random import Random
from statistics import mean

import collwise as cw
from collwise.algorithms.allgatherv.ideal_places import rows, snake
from collwise.model.sources import DISTRIBUTIONS
from collwise.papers.claims import Claim, shown
from collwise.papers.hambrusch1998 import runs

Numbers = dict[str, float]
WIDE = (16, 16)
MILLISECONDS = (
    "How long a Paragon's programs took to copy is known from one figure only (H-c5b); the order of"
    " the distributions in percent is H-c7's."
)
LEFT_AND_IDEAL = (*runs.IDEAL, "left_diagonal")
DRAWS = 3
"""How many random draws of the sources outside ideal places are averaged."""
MOVED_MS, MANY_MOVED_MS = (1.0, 2.0), 7.5
"""Milliseconds that moving took in the paper: 1 to 2 up to some 150 sources, else 7.5 (§5.2)."""
Case = tuple[runs.Shape, tuple[int, ...], int]
"""A mesh, its sources, and the bytes of each one's message."""


@cache
def _near_ideal(displaced: int) -> list[Case]:
    """Cases of 64 sources in ideal places, except that `displaced` sources are elsewhere."""
    best = sorted(rows(WIDE, 64))
    elsewhere = [rank for rank in range(256) if rank not in best]
    cases = []
    for seed in range(DRAWS if displaced else 1):
        draw = Random(seed).sample
        sources = (*draw(best, 64 - displaced), *draw(elsewhere, displaced))
        cases.append((WIDE, tuple(sorted(sources)), 6144))
    return cases


def _case(distribution: str, s: int, nbytes: int = 6144, shape: runs.Shape = WIDE) -> Case:
    return shape, cw.sources.distribute(distribution, shape, s), nbytes


def _pays(saved: Numbers) -> bool:
    return mean(saved.values()) > 0 and sum(x > 0 for x in saved.values()) > len(saved) / 2


def _from_ideal(
    name: str,
    s: int,
    mesh: runs.Shape = WIDE,
    nbytes: int = 6144,
    machine: cw.Machine = runs.PARAGON,
) -> float:
    """Milliseconds that an algorithm takes if its s sources are in its ideal places."""
    places = snake if name == "br_lin" else rows
    return runs.time_from(name, mesh, tuple(sorted(places(mesh, s))), nbytes, machine)


@cache
def _worst_meshes(quarter: bool, columns: tuple[int, ...] = (8, 10, 12)) -> Numbers:
    """By distribution, br_lin's time over its time on the best distribution, on the worst mesh.

    Meshes have 8 to 12 rows.   columns: the meshes' numbers of columns.
    quarter: True for a quarter of the ranks as sources, False for as many sources as rows.
    """
    behind = dict.fromkeys(LEFT_AND_IDEAL, 0.0)
    for r, c in product(range(8, 13), columns):
        s = r * c // 4 if quarter else r
        times = {d: runs.time_on("br_lin", (r, c), d, s, 6144) for d in LEFT_AND_IDEAL}
        for d, time in times.items():
            behind[d] = max(behind[d], time / min(times.values()))
    return behind


def _by_columns(quarter: bool, _: object) -> str:
    """Say how sensitive left diagonals are to the number of columns."""
    worst = {f"{c} columns": _worst_meshes(quarter, (c,))["left_diagonal"] for c in (8, 10, 12)}
    diagonals = runs.time_on("br_lin", WIDE, "left_diagonal", 64, 6144)
    worked_out = _from_ideal("br_lin", 64)
    return (
        f"It depends on the columns: left diagonals are behind by {shown(worst)}. Where columns are"
        " a power of two, ranks on two diagonals are partners in early rounds of the snake: with"
        f" 64 sources on 16 × 16, left diagonals take {diagonals:.1f} ms, places worked out for the"
        f" snake {worked_out:.1f} ms."
    )


@cache
def _by_placement() -> dict[str, Numbers]:
    return {
        a: {d: runs.time_on(a, WIDE, d, 64, 6144) for d in DISTRIBUTIONS} for a in runs.BRANCHING
    }


def _won(side: int, kind: str) -> int:
    """In how many of 16 cases on a square mesh part_`kind` is faster than repos_`kind`."""
    return sum(
        runs.time_on(f"part_{kind}", (side, side), d, s, 6144)
        < runs.time_on(f"repos_{kind}", (side, side), d, s, 6144)
        for d in runs.OTHERS
        for s in (16, 32, 48, 75)
    )


def _halves(nbytes: int = 6144, machine: cw.Machine = runs.PARAGON) -> Numbers:
    """By algorithm, the time from 32 ideal places on 128 ranks over that from 64 on 256 ranks."""
    return {
        name: _from_ideal(name, 32, (8, 16), nbytes, machine)
        / _from_ideal(name, 64, WIDE, nbytes, machine)
        for name in ("br_lin", "br_xy_source")
    }


@cache
def _added() -> tuple[float, float]:
    """Least and most milliseconds that moving 75 messages of 6 KB first adds to br_xy_source."""
    ideal = _from_ideal("br_xy_source", 75)
    added = [runs.time_on("repos_xy_source", WIDE, d, 75, 6144) - ideal for d in runs.OTHERS]
    return min(added), max(added)


def _moving() -> str:
    least, most = _added()
    return f"{least:.1f} to {most:.1f} ms"


def _saved_ms(cases: Mapping[str, Sequence[Case]]) -> Callable[[], Numbers]:
    """Return a function: for each name in `cases`, mean milliseconds saved by moving data first."""
    return lambda: {n: mean(runs.saved_from(*c)[0] for c in some) for n, some in cases.items()}


def _at_their_cost(cost_ms: float) -> Callable[[Numbers], bool]:
    """Return a condition: if moving data took `cost_ms`, as in the paper, it would save nothing."""
    return lambda saved: max(saved.values()) + _added()[1] <= cost_ms


def _cheap_moves(cost_ms: float, more: Callable[[], str] = str) -> Callable[[Numbers], str]:
    """Return a function: text on what moving would save if it took `cost_ms`, then `more()`."""

    def because(saved: Numbers) -> str:
        at_cost = {name: x + _added()[1] - cost_ms for name, x in saved.items()}
        low, high = MOVED_MS
        return (
            f"Moving adds {_moving()} here (s = 75): start-up, and 6 KB at the published rate. It"
            f" took the paper {low:g} to {high:g} ms, with many sources {MANY_MOVED_MS:g} ms. At"
            f" {cost_ms:g} ms it would save {shown(at_cost, 'ms')}.{more()}"
        )

    return because


def _saved(d: str) -> Numbers:
    return {f"s = {s}": x for s, x in runs.gains_by_sources()[d].items() if s < 128}


def _little_to_gain(saved: Numbers) -> str:
    """Say how much slower equal sources are than ideal ones where moving does not pay."""
    slower = {
        f"s = {s}": 100
        * (
            runs.time_on("br_xy_source", WIDE, "equal", s, 6144) / _from_ideal("br_xy_source", s)
            - 1
        )
        for s in [int(name[4:]) for name, percent in saved.items() if percent <= 0]
    }
    return (
        "Where it does not pay, equal sources are hardly slower than ideal ones (by"
        f" {shown(slower)} %), and moving adds {_moving()} (s = 75)."
    )


def _by_side(kind: str, _: object) -> str:
    """Say, by side of the mesh, how long two algorithms take and what their busiest ranks send."""
    sides, texts = (8, 10, 14, 16), []
    for name in (f"repos_{kind}", f"part_{kind}"):
        times = [runs.time_on(name, (r, r), "equal", 32, 6144) for r in sides]
        sent = [runs.busiest(name, (r, r), "equal", 32)[0] for r in sides]
        texts.append(
            f"{name} takes {shown(times, 'ms')}, and its busiest rank sends {shown(sent)} messages'"
            " worth"
        )
    return (
        "It depends on whether the sides of the mesh are powers of two: with 32 sources on sides of"
        f" {shown(sides)}, {'; '.join(texts)}. Where a half is odd, its unpaired rank is served by"
        " one that swaps as well; partitioning goes through one such halving less."
    )


def _crossed() -> str:
    """Say why a cross of many sources is slow, by what the busiest rank sends."""
    (sent, largest), (ideal, ideal_largest) = (
        runs.busiest(a, WIDE, "cross", 192) for a in ("br_xy_source", "repos_xy_source")
    )
    return (
        f" In a cross of 192 full columns meet: the busiest rank sends {sent} messages' worth, at"
        f" most {largest} at once; from ideal places, {ideal} and {ideal_largest}."
    )


def _more_than_half(_: object) -> str:
    """Give the ratios of `_halves` with longer messages, no start-ups, or no copies, as text."""
    free = replace(runs.PARAGON, send=Fraction(0), receive=Fraction(0))
    return (
        f"With messages of 16 KB, {shown(_halves(nbytes=16384))}, of 64 KB,"
        f" {shown(_halves(nbytes=65536))}; without start-ups, {shown(_halves(machine=free))};"
        f" without copies, {shown(_halves(machine=runs.without_copies()))}. Half the ranks need"
        " one round less, and half the bytes: where times are linear in both, half the time is the"
        " limit."
    )


def _gains_ms(distribution: str) -> tuple[float, float]:
    """Least and most milliseconds that moving first saves, over s up to half of the ranks."""
    saved = [
        runs.saved_from(WIDE, cw.sources.distribute(distribution, WIDE, s), 6144)[0]
        for s in runs.MOVED
        if s <= 128
    ]
    return min(saved), max(saved)


CLAIMS = (
    *(
        Claim(
            f"H-c7{letter}, Fig 8: repositioning pays on {d} (16 × 16, 6 KB, s < p/2; saved)",
            paper="it pays",
            ours=partial(_saved, d),
            holds=_pays,
            because=because,
            unit="%",
        )
        for letter, d, because in (
            ("a", "equal", _little_to_gain),
            ("b", "cross", ""),
            ("c", "square", ""),
        )
    ),
    Claim(
        "H-c7d, Fig 8: and costs up to about 6.5 % on band",
        paper="up to 6.5 %",
        ours=lambda: -min(runs.gains_by_sources()["band"].values()),
        holds=lambda percent: 3 < percent < 8,
        shape=lambda percent: percent > 0,
        because=lambda _: (
            "The worst is at s = 16, where all takes little; from s = 32 on it costs at most"
            f" {-min(x for s, x in runs.gains_by_sources()['band'].items() if s > 16):.1f} %."
        ),
        unit="%",
    ),
    *(
        Claim(
            f"{cited}; saved)",
            paper="it does not",
            ours=_saved_ms(cases),
            holds=lambda saved: max(saved.values()) <= 0,
            shape=_at_their_cost(cost_ms),
            because=_cheap_moves(cost_ms, *more),
            unit="ms",
        )
        for cited, cost_ms, cases, *more in (
            (
                "H-c7e, §5.2: it does not pay if s > p/2 (16 × 16, 6 KB, s = 192",
                MANY_MOVED_MS,
                {d: [_case(d, 192)] for d in runs.OTHERS},
                _crossed,
            ),
            (
                "H-c7f, §5.2: nor for p ≤ 16 (cross, s = p/4",
                MOVED_MS[0],
                {f"{r}×{r}": [_case("cross", r * r // 4, shape=(r, r))] for r in (2, 3, 4)},
            ),
            (
                "H-c7g, §5.2, Fig 9: nor for messages below 1 KB, except on cross (512 B, s = 75",
                MOVED_MS[0],
                {d: [_case(d, 75, 512)] for d in runs.OTHERS if d != "cross"},
            ),
            (
                "H-c7h, §5.2: nor if the input is near the ideal (0, 2, 4 of 64 sources anywhere"
                f" else, the mean of {DRAWS} draws",
                MOVED_MS[1],
                {str(n): _near_ideal(n) for n in (0, 2, 4)},
            ),
        )
    ),
    Claim(
        "H-c7i, Fig 9: with length the gain grows, then tapers (s = 75, square block; saved)",
        paper="grows, tapers",
        ours=lambda: {f"{n} B": x for n, x in runs.gains_by_length()["square"].items()},
        holds=lambda saved: (
            saved["512 B"] < saved["2048 B"] < saved["6144 B"]
            and saved["16384 B"] - saved["6144 B"] < saved["2048 B"] - saved["512 B"]
        ),
        unit="%",
    ),
    *(
        Claim(
            f"H-c8{letter}, §5.2: part_{kind} hardly ever beats repos_{kind} ({side} × {side}, 6"
            " KB): in so many of 16 cases",
            paper="hardly ever",
            ours=partial(_won, side, kind),
            holds=lambda won: won <= 2,
            because=partial(_by_side, kind),
        )
        for letter, side, kind in (
            *(("a", 16, "lin"), ("b", 16, "xy_source")),
            *(("c", 10, "lin"), ("d", 10, "xy_source")),
        )
    ),
    Claim(
        "H-c9a, §4: br_xy_source: R(20) on 10 × 10 in rows 1 and 6 brings no new sources in the"
        " first step, in rows 1 and 7 it does (6 KB)",
        paper="rows 1 and 7 are better",
        ours=lambda: {
            f"rows 1 and {second + 1}": runs.time_from(
                "br_xy_source", (10, 10), (*range(10), *range(10 * second, 10 * second + 10)), 6144
            )
            for second in (5, 6)
        },
        holds=lambda times: times["rows 1 and 7"] < times["rows 1 and 6"],
        unit="ms",
    ),
    *(
        Claim(
            f"H-c9{letter}, §4: left diagonals are the least sensitive to the mesh for br_lin (15"
            f" meshes, {s}: worst mesh, over the best distribution there)",
            paper="left diagonals",
            ours=partial(_worst_meshes, each),
            holds=lambda worst: worst["left_diagonal"] <= min(worst.values()),
            shape=lambda worst: worst["left_diagonal"] < sorted(worst.values())[2],
            because=partial(_by_columns, each),
        )
        for letter, s, each in (("b", "s = r", False), ("c", "s = p/4", True))
    ),
    Claim(
        "H-c10a, §3: placement alone changes an algorithm's time by up to a factor 2 (16 × 16, s"
        " = 64, 6 KB: slowest over fastest distribution)",
        paper={"br_lin": 2, "br_xy_source": 2, "br_xy_dim": 2},
        tolerance=0.5,
        ours=lambda: {
            a: max(times.values()) / min(times.values()) for a, times in _by_placement().items()
        },
        shape=lambda ratios: min(ratios.values()) > 1.25,
        because=lambda ratios: (
            "br_xy_dim exceeds it: "
            + ", ".join(
                f"{a} is slowest on {max(times, key=times.__getitem__)}"
                for a, times in _by_placement().items()
            )
            + ". On a square mesh br_xy_dim starts with rows whatever the sources are (H-c4)."
        ),
    ),
    Claim(
        "H-c10b, §3: s/2 sources on p/2 ranks take less than half the time of s on p (ideal"
        " places; 32 of 128, over 64 of 256, 6 KB)",
        paper="< 0.5",
        ours=_halves,
        holds=lambda halves: max(halves.values()) < 0.5,
        because=_more_than_half,
    ),
    Claim(
        "H-c14a, §5.2: in actual time, repositioning gains on cross (16 × 16, 6 KB, s ≤ p/2:"
        " least, most)",
        paper=(13, 31),
        tolerance=1,
        ours=lambda: _gains_ms("cross"),
        shape=lambda ends: ends[0] > 6 and ends[1] > 15,
        because=MILLISECONDS,
        unit="ms",
    ),
    Claim(
        "H-c14b, §5.2: and on square block",
        paper=(20, 31),
        tolerance=1,
        ours=lambda: _gains_ms("square"),
        because=MILLISECONDS,
        unit="ms",
    ),
)
