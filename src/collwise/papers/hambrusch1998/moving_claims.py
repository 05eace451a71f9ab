"""Sections 3, 4 and 5.2: places that are ideal, and moving the data there first."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache, partial
from random import Random
from statistics import mean

import collwise as cw
from collwise.algorithms.s_to_p.ideal_places import rows, snake
from collwise.model.sources import DISTRIBUTIONS
from collwise.papers.claims import Claim, shown
from collwise.papers.hambrusch1998.runs import (
    BRANCHING,
    IDEAL,
    OTHERS,
    PARAGON,
    Shape,
    gain,
    gains_by_length,
    gains_by_sources,
    saved_from,
    time_from,
    time_on,
    without_copies,
)

Numbers = dict[str, float]
WIDE = (16, 16)
LEFT_AND_IDEAL = (*IDEAL, "left_diagonal")
DRAWS = 3
"""Of sources that are not in their places."""
Case = tuple[Shape, tuple[int, ...], int]
"""A mesh, its sources, and the bytes of each one's message."""


@cache
def _near_ideal(displaced: int) -> list[Case]:
    """64 sources in ideal places, but for a few, which are anywhere."""
    best = sorted(rows(WIDE, 64))
    elsewhere = [rank for rank in range(256) if rank not in best]
    cases = []
    for seed in range(DRAWS if displaced else 1):
        draw = Random(seed).sample
        sources = (*draw(best, 64 - displaced), *draw(elsewhere, displaced))
        cases.append((WIDE, tuple(sorted(sources)), 6144))
    return cases


def _case(distribution: str, s: int, nbytes: int = 6144, shape: Shape = WIDE) -> Case:
    return shape, cw.sources.distribute(distribution, shape, s), nbytes


def _pays(saved: Numbers) -> bool:
    return mean(saved.values()) > 0 and sum(x > 0 for x in saved.values()) > len(saved) / 2


def _loses(saved: Numbers) -> bool:
    return all(x <= 0 for x in saved.values())


@cache
def _of_rows() -> Numbers:
    """R(20) on 10 × 10, 6 KB, its two rows in two places."""
    return {
        f"rows 1 and {second + 1}": time_from(
            "br_xy_source", (10, 10), (*range(10), *range(10 * second, 10 * second + 10)), 6144
        )
        for second in (5, 6)
    }


def _worst_meshes() -> Numbers:
    """By distribution: br_lin on its worst of 15 meshes, over the best distribution there."""
    return {d: max(_behind_best(d, c) for c in (8, 10, 12)) for d in LEFT_AND_IDEAL}


def _behind_best(distribution: str, columns: int) -> float:
    """On the worst mesh of 8 to 12 rows: br_lin's time over that from the best distribution."""
    behind = []
    for r in range(8, 13):
        times = {
            d: time_on("br_lin", (r, columns), d, r * columns // 4, 6144) for d in LEFT_AND_IDEAL
        }
        behind.append(times[distribution] / min(times.values()))
    return max(behind)


@cache
def _by_placement() -> dict[str, Numbers]:
    return {a: {d: time_on(a, WIDE, d, 64, 6144) for d in DISTRIBUTIONS} for a in BRANCHING}


def _slowest(name: str) -> str:
    times = _by_placement()[name]
    return max(times, key=times.__getitem__)


def _on_the_snake() -> tuple[int, ...]:
    return tuple(sorted(snake(WIDE, 64)))


def _won(side: int, kind: str) -> int:
    """In how many of 16 cases partitioning beats repositioning."""
    return sum(
        time_on(f"part_{kind}", (side, side), d, s, 6144)
        < time_on(f"repos_{kind}", (side, side), d, s, 6144)
        for d in OTHERS
        for s in (16, 32, 48, 75)
    )


def _halves(name: str, machine: cw.Machine = PARAGON, linked: bool = True) -> float:
    """Half the sources on half the ranks, over all on all."""
    half, whole = (
        time_from(
            name,
            *_case("equal", s, shape=mesh),
            machine,
            None if linked else cw.topology.Complete(4 * s),
        )
        for mesh, s in (((8, 16), 32), (WIDE, 64))
    )
    return half / whole


def _moving() -> str:
    """What moving 75 messages of 6 KB adds to the time from ideal places."""
    ideal = time_from("br_xy_source", WIDE, tuple(sorted(rows(WIDE, 75))), 6144)
    added = [time_on("repos_xy_source", WIDE, d, 75, 6144) - ideal for d in OTHERS]
    return f"{min(added):.1f} to {max(added):.1f} ms"


def _cheap_moves(cases: Callable[[], Sequence[Case]]) -> Callable[[object], str]:
    """Why moving pays where it did not: what it saves, also where nobody copies."""

    def because(_: object) -> str:
        most, bare = (
            max(0.0, *(saved_from(*case, machine)[0] for case in cases()))
            for machine in (PARAGON, without_copies())
        )
        return (
            f"It saves at most {most:.1f} ms, without any copies {bare:.1f} ms. The paper's"
            f" permutation took 1 to 7.5 ms; here moving adds {_moving()} (s = 75)."
        )

    return because


def _saved(d: str) -> Numbers:
    return {f"s = {s}": x for s, x in gains_by_sources()[d].items() if s < 128}


def _little_to_gain(saved: Numbers) -> str:
    """Percent by which equal sources are slower than ideal ones, where moving does not pay."""
    losing = [int(s[4:]) for s, percent in saved.items() if percent <= 0]
    slower = {
        f"s = {s}": 100
        * (
            time_on("br_xy_source", WIDE, "equal", s, 6144)
            / time_from("br_xy_source", WIDE, tuple(sorted(rows(WIDE, s))), 6144)
            - 1
        )
        for s in losing
    }
    return (
        "Where it does not pay, equal sources are hardly slower than ideal ones (by"
        f" {shown(slower)} %), and moving adds {_moving()} (s = 75)."
    )


def _by_side(kind: str, _: object) -> str:
    """What moving and partitioning take on squares whose sides are powers of two, and others."""
    times = {
        name: [time_on(f"{name}_{kind}", (r, r), "equal", 32, 6144) for r in (8, 10, 14, 16)]
        for name in ("repos", "part")
    }
    return (
        "It depends on whether the sides of the mesh are powers of two: with 32 sources on sides of"
        f" 8, 10, 14, 16, repos_{kind} takes {shown(times['repos'], 'ms')}, part_{kind}"
        f" {shown(times['part'], 'ms')}."
    )


def _more_than_half(_: object) -> str:
    """The same ratio on machines that lack one thing each."""
    free = replace(PARAGON, send=Fraction(0), receive=Fraction(0))
    ratios = {
        "without start-ups": _halves("repos_xy_source", free),
        "without copies": _halves("repos_xy_source", without_copies()),
        "without links": _halves("repos_xy_source", PARAGON, linked=False),
    }
    return f"repos_xy_source on machines that lack one thing: {shown(ratios)}."


CLAIMS = (
    *(
        Claim(
            id=f"H-c7{letter}",
            where="Fig 8",
            says=f"repositioning pays on {d} (16 × 16, 6 KB, s < p/2; saved)",
            paper="it pays",
            ours=partial(_saved, d),
            holds=_pays,
            because=because,
            unit="%",
        )
        for letter, d, because in (
            (
                "a",
                "equal",
                _little_to_gain,
            ),
            ("b", "cross", ""),
            ("c", "square", ""),
        )
    ),
    Claim(
        id="H-c7d",
        where="Fig 8",
        says="and costs up to about 6.5 % on band",
        paper="up to 6.5 %",
        ours=lambda: -min(gains_by_sources()["band"].values()),
        holds=lambda percent: 3 < percent < 8,
        shape=lambda percent: percent > 0,
        because=lambda _: (
            "The worst is at s = 16, where all takes little; from s = 32 on it costs"
            f" at most {-min(x for s, x in gains_by_sources()['band'].items() if s > 16):.1f} %."
        ),
        unit="%",
    ),
    Claim(
        id="H-c7e",
        where="§5.2",
        says="it does not pay if s > p/2 (s = 192; saved)",
        paper="it does not",
        ours=lambda: {d: gains_by_sources()[d][192] for d in OTHERS},
        holds=_loses,
        because=_cheap_moves(lambda: [_case(d, 192) for d in OTHERS]),
        unit="%",
    ),
    Claim(
        id="H-c7f",
        where="§5.2",
        says="nor for p ≤ 16 (cross, s = p/4; saved)",
        paper="it does not",
        ours=lambda: {f"{r}×{r}": gain("cross", r * r // 4, shape=(r, r)) for r in (2, 3, 4)},
        holds=_loses,
        because=_cheap_moves(lambda: [_case("cross", 4, shape=(4, 4))]),
        unit="%",
    ),
    Claim(
        id="H-c7g",
        where="§5.2, Fig 9",
        says="nor for messages below 1 KB, except on cross (512 B, s = 75; saved)",
        paper="it does not",
        ours=lambda: {d: gains_by_length()[d][512] for d in OTHERS if d != "cross"},
        holds=_loses,
        because=_cheap_moves(lambda: [_case(d, 75, 512) for d in OTHERS if d != "cross"]),
        unit="%",
    ),
    Claim(
        id="H-c7h",
        where="§5.2",
        says="nor if the input is near the ideal (0, 4, 8 of 64 sources anywhere else, the mean of"
        f" {DRAWS} draws; saved)",
        paper="it does not",
        ours=lambda: {str(n): mean(saved_from(*c)[1] for c in _near_ideal(n)) for n in (0, 4, 8)},
        holds=_loses,
        because=_cheap_moves(lambda: [*_near_ideal(4), *_near_ideal(8)]),
        unit="%",
    ),
    Claim(
        id="H-c7i",
        where="Fig 9",
        says="with length the gain grows, then tapers (s = 75, square block; saved)",
        paper="grows, tapers",
        ours=lambda: {f"{n} B": x for n, x in gains_by_length()["square"].items()},
        holds=lambda saved: (
            saved["512 B"] < saved["2048 B"] < saved["6144 B"]
            and saved["16384 B"] - saved["6144 B"] < saved["2048 B"] - saved["512 B"]
        ),
        unit="%",
    ),
    *(
        Claim(
            id=f"H-c8{letter}",
            where="§5.2",
            says=f"part_{kind} hardly ever beats repos_{kind} ({side} × {side}, 6 KB): in so many"
            " of 16 cases",
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
        id="H-c9a",
        where="§4",
        says="br_xy_source: R(20) on 10 × 10 in rows 1 and 6 brings no new sources in the first"
        " step, in rows 1 and 7 it does (6 KB)",
        paper="rows 1 and 7 are better",
        ours=_of_rows,
        holds=lambda times: times["rows 1 and 7"] < times["rows 1 and 6"],
        unit="ms",
    ),
    Claim(
        id="H-c9b",
        where="§4",
        says="left diagonals are the least sensitive to the mesh for br_lin (15 meshes, s = p/4:"
        " worst mesh, over the best distribution there)",
        paper="left diagonals",
        ours=_worst_meshes,
        holds=lambda worst: worst["left_diagonal"] <= min(worst.values()),
        because=lambda _: (
            "It depends on the columns: with "
            + shown({f"{c} columns": _behind_best("left_diagonal", c) for c in (8, 10, 12)})
            + ". Where they are a power of two, ranks on two diagonals are partners in early rounds"
            " of the snake: with 64 sources on 16 × 16, left diagonals take"
            f" {time_on('br_lin', WIDE, 'left_diagonal', 64, 6144):.1f} ms, places worked"
            f" out for the snake {time_from('br_lin', WIDE, _on_the_snake(), 6144):.1f} ms."
        ),
    ),
    Claim(
        id="H-c10a",
        where="§3",
        says="placement alone changes an algorithm's time by up to a factor 2 (16 × 16, s = 64,"
        " 6 KB: slowest over fastest distribution)",
        paper={"br_lin": 2, "br_xy_source": 2, "br_xy_dim": 2},
        tolerance=0.5,
        ours=lambda: {
            a: max(times.values()) / min(times.values()) for a, times in _by_placement().items()
        },
        shape=lambda ratios: min(ratios.values()) > 1.25,
        because=lambda ratios: (
            "br_xy_dim exceeds it: "
            + ", ".join(f"{a} is slowest on {_slowest(a)}" for a in BRANCHING)
            + ". On a square mesh br_xy_dim starts with rows whatever the sources are (H-c4)."
        ),
    ),
    Claim(
        id="H-c10b",
        where="§3",
        says="s/2 sources on p/2 ranks take less than half the time of s on p (ideal places)",
        paper="< 0.5",
        ours=lambda: {a: _halves(a) for a in ("repos_lin", "repos_xy_source")},
        holds=lambda halves: max(halves.values()) < 0.5,
        because=_more_than_half,
    ),
)
