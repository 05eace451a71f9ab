"""Sections 4 and 5.2: which ranks meet first, and what moving saves in milliseconds."""

import collwise as cw
from collwise.model.topology import snake_rank
from collwise.papers.claims import Claim
from collwise.papers.hambrusch1998.runs import MOVED, Shape, saved_from, time_on

WIDE = (16, 16)
MILLISECONDS = (
    "How long a Paragon's programs took to copy is known from one figure only (H-c5b); the order of"
    " the distributions in percent is H-c7's."
)


def _gains_ms(distribution: str) -> tuple[float, float]:
    """The least and the most milliseconds that moving first saves; of up to half of the ranks."""
    saved = [
        saved_from(WIDE, cw.sources.distribute(distribution, WIDE, s), 6144)[0]
        for s in MOVED
        if s <= 128
    ]
    return min(saved), max(saved)


def _lin_over_xy() -> dict[str, float]:
    return {
        f"{r} × {c}": time_on("br_lin", (r, c), "row", r * c // 4, 6144)
        / time_on("br_xy_source", (r, c), "row", r * c // 4, 6144)
        for r, c in ((4, 8), (8, 8), (8, 16), WIDE)
    }


def _met(shape: Shape, distribution: str, s: int) -> int:
    """How many ranks have data after the first iteration of br_lin: p_i meets p_(i+p/2)."""
    ranks = shape[0] * shape[1]
    order = [snake_rank(position, shape[1]) for position in range(ranks)]
    sources = {order.index(rank) for rank in cw.sources.distribute(distribution, shape, s)}
    return len(sources | {(position + ranks // 2) % ranks for position in sources})


CLAIMS = (
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
