"""Sections 3, 4 and 5.2: places that are ideal, and moving the data there first."""

from statistics import mean

from collwise.algorithms.s_to_p.ideal_places import rows as ideal_rows
from collwise.algorithms.s_to_p.ideal_places import snake
from collwise.model.sources import DISTRIBUTIONS
from collwise.papers.findings import Check, Finding
from collwise.papers.hambrusch1998.runs import BRANCHING, Shape, listed, on, time_ms


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
                    "% saved: " + listed((f"s = {s}", g) for s, g in by_count[d].items()),
                    mean(by_count[d].values()) > 0 and sum(g > 0 for g in by_count[d].values()) > 4,
                )
                for d in ("equal", "cross", "square")
            ),
            Check(
                "and costs up to about 6.5 % on band",
                "% saved: " + listed((f"s = {s}", g) for s, g in by_count["band"].items()),
                all(-8 < g < 1 for g in by_count["band"].values()),
            ),
            Check(
                "it does not pay if s > p/2",
                "s = 192, % saved: " + listed(large),
                all(g <= 0 for g in large.values()),
            ),
            Check(
                "nor for p ≤ 16",
                "cross, s = p/4, % saved: " + listed(few_ranks),
                all(g <= 0 for g in few_ranks.values()),
            ),
            Check(
                "nor for messages below 1 KB, except on cross",
                "512 B, s = 75, % saved: " + listed(short),
                all(g <= 0 for d, g in short.items() if d != "cross"),
            ),
            Check(
                "nor if the input is near the ideal",
                "% saved: " + listed(near),
                all(g < 1 for g in near.values()),
            ),
            Check(
                "with length the gain grows, then tapers (s = 75)",
                "square, % saved: " + listed((f"{n} B", g) for n, g in long.items()),
                long[512] < long[2048] < long[6144]
                and long[16384] - long[6144] < long[2048] - long[512],
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
                "placement alone changes the time by about a factor of 2 (16×16, s = 64, 6 KB)",
                "slowest over fastest distribution: " + listed(ratios),
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
