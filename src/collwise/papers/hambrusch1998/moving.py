"""Sections 3, 4 and 5.2: places that are ideal, and moving the data there first."""

from statistics import mean

from collwise.algorithms.s_to_p.ideal_places import rows as ideal_rows
from collwise.algorithms.s_to_p.ideal_places import snake
from collwise.model.sources import DISTRIBUTIONS
from collwise.papers.findings import Check, Finding, claim
from collwise.papers.hambrusch1998.runs import BRANCHING, Shape, listed, time_from, time_on

OTHERS = ("equal", "cross", "square", "band")
"""The distributions from which moving is tried."""


@claim("H-c7", "Figs 8, 9")
def repositioning() -> Finding:
    """Moving the data to an ideal distribution first pays on most others."""
    shape, nbytes = (16, 16), 6144

    def gain(distribution: str, s: int, length: int = nbytes, mesh: Shape = shape) -> float:
        plain = time_on("br_xy_source", mesh, distribution, s, length)
        return 100 * (1 - time_on("repos_xy_source", mesh, distribution, s, length) / plain)

    def gain_near_ideal(displaced: int) -> float:
        """The same for 64 sources in ideal places, but for a few."""
        best = ideal_rows(shape, 64)
        elsewhere = [rank for rank in range(256) if rank not in best]
        sources = tuple(sorted((*best[displaced:], *elsewhere[:displaced])))
        plain = time_from("br_xy_source", shape, sources, nbytes)
        return 100 * (1 - time_from("repos_xy_source", shape, sources, nbytes) / plain)

    counts = (16, 32, 48, 64, 75, 96, 112)
    by_count = {d: {s: gain(d, s) for s in counts} for d in OTHERS}
    many_sources = {d: gain(d, 192) for d in OTHERS}
    few_ranks = {f"{r}×{r}": gain("cross", r * r // 4, mesh=(r, r)) for r in (2, 3, 4)}
    short = {d: gain(d, 75, 512) for d in OTHERS}
    near = {f"{displaced} of 64 elsewhere": gain_near_ideal(displaced) for displaced in (0, 4, 8)}
    lengths = (512, 1024, 2048, 4096, 6144, 8192, 16384)
    by_length = {n: gain("square", 75, n) for n in lengths}
    checks = [
        Check(
            f"repositioning pays on {d} (16×16, 6 KB, 16 ≤ s < p/2)",
            "% saved: " + listed(by_count[d], "s = {}"),
            mean(by_count[d].values()) > 0 and sum(g > 0 for g in by_count[d].values()) > 4,
        )
        for d in ("equal", "cross", "square")
    ]
    checks += [
        Check(
            "and costs up to about 6.5 % on band",
            "% saved: " + listed(by_count["band"], "s = {}"),
            all(-8 < g < 1 for g in by_count["band"].values()),
        ),
        Check(
            "it does not pay if s > p/2",
            "s = 192, % saved: " + listed(many_sources),
            all(g <= 0 for g in many_sources.values()),
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
            "square, % saved: " + listed(by_length, "{} B"),
            by_length[512] < by_length[2048] < by_length[6144]
            and by_length[16384] - by_length[6144] < by_length[2048] - by_length[512],
        ),
    ]
    because = (
        "Moving costs little on this machine: half a millisecond for 6 KB, where the paper's"
        " permutation took 1 to 7.5 ms. So it pays on cross and square block for short messages and"
        " many sources too. Equal sources are near the ideal already, to within how s divides the"
        " mesh. The planner of collwise looks at the sources and decides by itself."
    )
    return Finding(checks, because)


@claim("H-c8", "§5.2")
def partitioning() -> Finding:
    """Partitioning the mesh hardly ever beats repositioning alone."""
    checks = []
    for r in (16, 10):
        for kind in ("lin", "xy_source"):
            won = [
                time_on(f"part_{kind}", (r, r), d, s, 6144)
                < time_on(f"repos_{kind}", (r, r), d, s, 6144)
                for d in OTHERS
                for s in (16, 32, 48, 75)
            ]
            says = f"`part_{kind}` hardly ever beats `repos_{kind}` ({r}×{r}, 6 KB)"
            figures = f"it is faster in {sum(won)} of {len(won)} cases"
            checks.append(Check(says, figures, sum(won) <= len(won) // 8))
    because = (
        "Lines of 10 need four rounds, of 5 three, and every odd half costs a message more: half of"
        " such a mesh is worth more than half, and partitioning wins by up to a tenth."
    )
    return Finding(checks, because)


@claim("H-c9", "§4")
def ideal_places() -> Finding:
    """Rows, well placed, are ideal for Br_xy_source, and left diagonals for Br_Lin."""
    shape, nbytes = (10, 10), 6144
    one, other = (
        time_from("br_xy_source", shape, tuple(10 * r + c for r in rows for c in range(10)), nbytes)
        for rows in ((0, 5), (0, 6))
    )
    our_rows = ", ".join(str(rank // 10 + 1) for rank in ideal_rows(shape, 20)[::10])
    names = ("row", "column", "equal", "right_diagonal", "left_diagonal")
    worst = dict.fromkeys(names, 0.0)
    for mesh in ((r, c) for r in (8, 9, 10, 11, 12) for c in (8, 10, 12)):
        times = {d: time_on("br_lin", mesh, d, mesh[0] * mesh[1] // 4, nbytes) for d in names}
        for d in names:
            worst[d] = max(worst[d], times[d] / min(times.values()))
    ours = time_from("br_lin", (16, 16), tuple(sorted(snake((16, 16), 64))), nbytes)
    theirs = time_on("br_lin", (16, 16), "left_diagonal", 64, nbytes)
    checks = [
        Check(
            "`br_xy_source`: R(20) on 10×10 in rows 1 and 7 is better than in rows 1 and 6",
            f"ms: rows 1 and 6 {one:.1f}, rows 1 and 7 {other:.1f}; ours are {our_rows}",
            other < one,
        ),
        Check(
            "left diagonals are the least sensitive ones for `br_lin` (15 meshes, s = p/4)",
            "the worst mesh, times the best distribution there: " + listed(worst, digits=2),
            worst["left_diagonal"] <= min(worst.values()),
        ),
    ]
    because = (
        "Where the columns are a power of two, ranks on two diagonals are partners in early rounds"
        " of the snake (8×8: 1.6 times as long as from rows). `repos_lin` therefore takes places"
        f" worked out for the snake: {ours:.1f} ms for 64 sources on 16×16, where left diagonals"
        f" take {theirs:.1f}."
    )
    return Finding(checks, because)


@claim("H-c10", "§3")
def placement() -> Finding:
    """Where the sources are changes the time by up to a factor of 2."""
    shape, s, nbytes = (16, 16), 64, 6144
    ratios = {}
    for name in BRANCHING:
        times = [time_on(name, shape, d, s, nbytes) for d in DISTRIBUTIONS]
        ratios[name] = max(times) / min(times)
    halves = {
        name: time_on(name, (8, 16), "equal", s // 2, nbytes)
        / time_on(name, shape, "equal", s, nbytes)
        for name in ("repos_lin", "repos_xy_source")
    }
    checks = [
        Check(
            "placement alone changes the time by about a factor of 2 (16×16, s = 64, 6 KB)",
            "slowest over fastest distribution: " + listed(ratios),
            max(ratios[name] for name in ("br_lin", "br_xy_source")) > 1.5,
        ),
        Check(
            "s/2 sources on p/2 ranks take less than half the time of s on p (ideal places)",
            "times as long: " + listed(halves, digits=3),
            max(halves.values()) < 0.5,
        ),
    ]
    because = (
        "The data halve, the rounds do not (7 of 8 are left); without start-ups it would be half."
        " Less than half takes more messages that meet on links than there are here."
    )
    return Finding(checks, because)
