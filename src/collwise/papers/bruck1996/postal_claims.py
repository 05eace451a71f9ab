"""Claims of sections 2 and 3 on broadcasts and combining in the postal model, none measured."""

from bisect import bisect_left
from collections.abc import Iterable
from fractions import Fraction
from functools import partial
from math import log2, sqrt
from typing import Any

import collwise as cw
from collwise.measure.probes import Probe
from collwise.papers.claims import Claim, shown

GOLDEN = Fraction(round((sqrt(5) - 1) / 2 * 2**50), 2**50)
LARGE = 10**12
TABLE1 = (2.000, 1.618, 1.466, 1.380, 1.325, 1.285, 1.255, 1.232, 1.213, 1.197)
TABLE2 = (1.440, 2.518, 3.558, 4.584, 5.604, 6.618, 7.630, 8.640, 9.649)


def steps(name: str, ranks: int, lam: Fraction | int, /, **settings: Any) -> Fraction:
    """The simulated time, in t0, of the broadcast algorithm `name` at the latency λ = `lam`."""
    schedule = cw.ALGORITHMS[f"broadcast/{name}"].schedule(ranks, 1, **settings)
    return cw.simulate(schedule, cw.Machine.postal(t0_s=1, lam=lam)).completion


def alpha_steps(lam: Fraction, alphas: Iterable[Fraction]) -> dict[Fraction, Fraction]:
    """Time in t0, by α, of a broadcast to 64 ranks; a source keeps the share α of its ranks."""
    machine, algorithm = cw.Machine.postal(t0_s=1, lam=lam), cw.ALGORITHMS["broadcast/alpha"]
    return {a: algorithm.predict(machine, 64, 1, alpha=a) for a in alphas}


def in_thousandths(alphas: range) -> dict[Fraction, Fraction]:
    """The times of `alpha_steps` at λ = 1.8.   alphas: in thousandths."""
    return alpha_steps(Fraction(9, 5), [Fraction(x, 1000) for x in alphas])


def _splits(n: int, lam: int) -> list[tuple[int, int]]:
    """All first splits of n ranks that are optimal, found by trying them all."""
    time = cw.postal.broadcast_time
    tried = {k: max(time(k, lam) + 1, time(n - k, lam) + lam) for k in range(1, n)}
    return [(k, n - k) for k, t in tried.items() if t == min(tried.values())]


def _scaled(limit: int) -> list[int]:
    """N'(t') for λ = 1.8 and all t' < limit, by the recursion that the paper prints."""
    counts = [1] * 9
    while len(counts) < limit:
        counts.append(counts[-5] + counts[-9])
    return counts


def _corner(lam: Fraction, side: str) -> float:
    """The α of a corner ("top", "left" or "right") of the triangle that holds 10^12 ranks."""
    return float(getattr(cw.postal.corners(LARGE, lam), side).alpha)


def _beta(lam: Fraction) -> float:
    """About lim N'(t')/N'(t' + 1): the u-th root of N'(t')/N'(t' + u) at t' = 400u, with u = fλ."""
    f, u = cw.postal.scaling(lam)
    t = 400 * u
    ratio = Fraction(
        cw.postal.reached(Fraction(t, f), lam), cw.postal.reached(Fraction(t + u, f), lam)
    )
    return float(float(ratio) ** (1 / u))


_CORNERS = {lam: _beta(lam) for lam in (Fraction(2), Fraction(9, 5), Fraction(3, 2))}


def _serves_all(alpha: float | Fraction, n: int) -> bool:
    """Whether this fixed α splits every number of ranks up to n optimally at λ = 2."""
    both = cw.postal.alpha_intersection(n, 2)
    return both is not None and both[0] <= alpha < both[1]


def best_alphas(times: dict[Fraction, Fraction]) -> tuple[Fraction, Fraction]:
    """The lowest and the highest of the α that take the least time.   times: by rising α."""
    best = [a for a, t in times.items() if t == min(times.values())]
    return best[0], best[-1]


def _exact_alphas() -> tuple[Fraction, Fraction]:
    """The exact range [low, high) of the α that are best for 64 ranks at λ = 1.8."""
    ends = {Fraction(2 * j + 1, 2 * n) for n in range(2, 65) for j in range(n // 2, n)}
    near = [a for a in sorted(ends) if Fraction(11, 20) < a < Fraction(3, 5)]
    low, last = best_alphas(alpha_steps(Fraction(9, 5), near))
    return low, near[near.index(last) + 1]


def _censuses(n: int, lam: Fraction) -> dict[str, Fraction]:
    """Simulated times in t0 of both censuses of n ranks, by name, run as early as possible."""
    machine = cw.Machine.postal(t0_s=1, lam=lam)
    return {
        name: cw.simulate(
            cw.ALGORITHMS[f"allreduce/census_{name}"].schedule(n, 8, lam=lam), machine
        ).completion
        for name in ("delay_receive", "delay_send")
    }


def _earlier(_: object) -> str:
    """Say how often a census run as early as possible ends before or after the paper's time."""
    signs = [
        (ours > paper) - (ours < paper)
        for n in range(2, 41)
        for name, ours in _censuses(n, Fraction(5, 2)).items()
        for paper in [getattr(cw.postal, f"{name}_time")(n, "2.5")]
    ]
    return (
        f"Upper bounds: run as early as possible, {signs.count(-1)} of the {len(signs)} censuses of"
        f" 2 … 40 ranks are earlier, {signs.count(1)} later."
    )


def _contributions_as_printed(n: int, k: int) -> int:
    """How many contributions T_i combines at the end of the census that is printed; λ = k.

    Rank i starts with T_i = d_i and S_i empty.  In every round it combines both with what another
    rank sent k − 1 rounds earlier: that rank's S where ε = 0, that rank's T where ε = 1.  All ranks
    do the same, so counting contributions suffices.
    """
    with_own, without = [1] * k, [0] * k  # contributions in T and S after each round
    for epsilon in cw.postal.deficiencies(n, k):
        sent = with_own[-k] if epsilon else without[-k]
        with_own.append(with_own[-1] + sent)
        without.append(without[-1] + sent)
    return with_own[-1]


def _proved() -> list[int]:
    """Prove our censuses of 2 … 20 ranks right at λ = 1, 2, 3; return their number for each λ."""
    proved = [0, 0, 0]
    for k in (1, 2, 3):
        for n in range(2, 21):
            cw.verify(cw.ALGORITHMS["allreduce/census_delay_send"].schedule(n, 8, lam=k))
            proved[k - 1] += 1
    return proved


CLAIMS = (
    Claim(
        "B-c1, §2.1: N_1(t) = 2^t (here for t = 0 … 24)",
        paper=[2**t for t in range(25)],
        ours=lambda: [cw.postal.reached(t, 1) for t in range(25)],
    ),
    Claim(
        "B-c2, §2.1: N_2(t) for t = 0, 1, … is the Fibonacci sequence",
        paper=[1, 1, 2, 3, 5, 8, 13],
        ours=lambda: [cw.postal.reached(t, 2) for t in range(7)],
    ),
    Claim(
        "B-c3, §2.1, Figs 1, 2: 8 ranks at λ = 2: how many steps the two trees take",
        paper={"λ-tree": 5, "binomial": 6},
        ours=lambda: {
            "λ-tree": steps("postal_tree", 8, 2, lam=2),
            "binomial": steps("binomial", 8, 2),
        },
    ),
    Claim(
        "B-c4, §2.2: experiment 1 takes t0(k − 1 + 2λ), experiment 2 takes 2·t0(k − 1 + λ) (k = 1"
        " … 8, λ = 1.8)",
        paper=[e * (k - 1) + 2 * Fraction(9, 5) for e in (1, 2) for k in range(1, 9)],
        ours=lambda: [
            cw.simulate(
                Probe(e, 1, tuple(range(1, k + 1))).schedule(),
                cw.Machine.postal(t0_s=1, lam="1.8"),
            ).finish[0]
            for e in (1, 2)
            for k in range(1, 9)
        ],
        unit="t0",
    ),
    Claim(
        "B-c5a, §2.4: 13 ranks at λ = 2: (8, 5) is the only optimal split",
        paper=[(8, 5)],
        ours=lambda: _splits(13, 2),
    ),
    Claim(
        "B-c5b, §2.4: which the α from 7.5/13 to below 8.5/13 give",
        paper=(Fraction(15, 26), Fraction(17, 26)),
        ours=lambda: cw.postal.alpha_range(13, 2),
    ),
    Claim(
        "B-c6a, §2.4: 14 ranks at λ = 2: Δ = 21 − 14 = 7",
        paper=7,
        ours=lambda: cw.postal.reached(cw.postal.broadcast_time(14, 2), 2) - 14,
    ),
    Claim(
        "B-c6b, §2.4: all eight splits from (6, 8) to (13, 1) are optimal, and no other",
        paper=[(k, 14 - k) for k in range(6, 14)],
        ours=lambda: _splits(14, 2),
    ),
    Claim(
        "B-c7a, §2.4, Fig 6: λ = 2: one fixed α serves every n ≤ 250",
        paper="there is one",
        ours=lambda: cw.postal.alpha_intersection(250, 2),
        holds=lambda both: both is not None and both[0] < both[1],
    ),
    Claim(
        "B-c7b, §2.4: and (√5 − 1)/2 every n whatever (here up to 2^40)",
        paper="it can be shown",
        ours=lambda: cw.postal.alpha_intersection(2**40, 2),
        holds=lambda both: both is not None and both[0] <= GOLDEN < both[1],
        because=lambda _: (
            "The range shrinks to that irrational number: 0.618 fails at n ="
            f" {bisect_left(range(2**20), True, lo=2, key=lambda n: not _serves_all(0.618, n)):,}."
        ),
    ),
    Claim(
        "B-c8, §2.4, Fig 7: λ = 1.95: no fixed α serves all n of the figure; the first n from"
        " which on",
        paper="2 … 250",
        ours=lambda: next(
            n for n in range(2, 251) if cw.postal.alpha_intersection(n, "1.95") is None
        ),
        holds=lambda n: 2 <= n <= 250,
    ),
    Claim(
        "B-c9a, §2.5: λ = 1.8: gcd(1, λ), lcm(1, λ) and f",
        paper=(Fraction(1, 5), 9, 5),
        ours=lambda: (Fraction(1, cw.postal.scaling("1.8")[0]), *cw.postal.scaling("1.8")[::-1]),
    ),
    Claim(
        "B-c9b, §2.5 (2): λ = 1.8: N_λ(t) = N'(5t), N'(t') = N'(t' − 5) + N'(t' − 9) (t' < 100)",
        paper=_scaled(100),
        ours=lambda: [cw.postal.reached(Fraction(t, 5), "1.8") for t in range(100)],
    ),
    *(
        Claim(
            f"B-c10{letter}, §2.5: λ = {float(lam):g}: for large n (here 10^12) the triangles'"
            f" {says}",
            paper=value,
            tolerance=0.003,
            ours=partial(_corner, lam, side),
        )
        for lam, letters in ((Fraction(2), "ab"), (Fraction(9, 5), "cd"), (Fraction(3, 2), "ef"))
        for letter, side, says, value in (
            (letters[0], "top", "top is at α = β^f", _CORNERS[lam] ** cw.postal.scaling(lam)[0]),
            (
                letters[1],
                "left",
                "left bottom at 1 − β^(u−1)",
                1 - _CORNERS[lam] ** (cw.postal.scaling(lam)[1] - 1),
            ),
        )
    ),
    Claim(
        "B-c11a, §2.4, Fig 9: λ = 1.293: the table of α stays very small, about log² n at most",
        paper="very small in practice",
        ours=lambda: {
            f"n ≤ 2^{k}": sum(top <= 2**k for top in cw.postal.alpha_table(2**24, "1.293").tops)
            for k in (8, 16, 24)
        },
        holds=lambda sizes: all(
            n <= log2(top) ** 2 for n, top in zip(sizes.values(), (2**8, 2**16, 2**24), strict=True)
        ),
    ),
    Claim(
        "B-c11b, Fig 9: the sizes of the table that the figure shows",
        because="The scan has lost the figure's curve; ours is drawn in its place.",
    ),
    Claim(
        "B-c12a, §2.6, Fig 12: 64 ranks, 512 bytes (λ = 1.8): predicted best from α = 0.56 to 0.59",
        paper=(0.56, 0.59),
        tolerance=0.01,
        ours=lambda: best_alphas(in_thousandths(range(500, 800))),
        because=lambda _: (
            f"Exactly from {shown(_exact_alphas()[0])} to below {shown(_exact_alphas()[1])}; the"
            " paper drew steps of 0.01 or more."
        ),
    ),
    Claim(
        "B-c12b, Fig 12: there a broadcast takes fewer steps than the binomial tree's",
        paper="fewer",
        ours=lambda: {
            f"α = {a}": steps("alpha", 64, Fraction(9, 5), alpha=Fraction(a))
            for a in ("0.5", "0.58")
        },
        holds=lambda times: times["α = 0.5"] > times["α = 0.58"],
        unit="t0",
    ),
    Claim(
        "B-e1, §2.5: as printed, the right bottom corner tends to β^(u−1) (λ = 1.8)",
        paper=_CORNERS[Fraction(9, 5)] ** 8,
        tolerance=0.003,
        ours=lambda: _corner(Fraction(9, 5), "right"),
        because=lambda value: (
            f"It tends to β^(f−1) = {_CORNERS[Fraction(9, 5)] ** 4:.4f}; 1 for integer λ."
        ),
    ),
    Claim(
        "B-c15, §3.3, Table 1: γ(λ) for λ = 1 … 10",
        paper=TABLE1,
        tolerance=0.0005,
        ours=lambda: [cw.postal.growth(lam) for lam in range(1, 11)],
    ),
    Claim(
        "B-c16, §3.3, Table 2: the break-even λ for ⌊λ⌋ = 1 … 9",
        paper=TABLE2,
        tolerance=0.001,
        ours=lambda: [cw.postal.break_even(k) for k in range(1, 10)],
    ),
    Claim(
        "B-c21, §3.1: for integer λ and n = N_λ(t) the census takes t rounds (λ = 1 … 4, n ≤ 200:"
        " where not)",
        paper="always",
        ours=lambda: [
            n
            for lam in (1, 2, 3, 4)
            for n in {cw.postal.reached(t, lam) for t in range(1, 30)}
            if 1 < n <= 200
            and cw.postal.census_time(n, lam, lam) != cw.postal.broadcast_time(n, lam)
        ],
        holds=lambda late: not late,
    ),
    Claim(
        "B-e2, §3.1: as printed (S where ε = 0, T where ε = 1), the census of any n combines"
        " every contribution once (λ = 1, 2, 3; of n = 2 … 20, how many end so)",
        paper=[19, 19, 19],
        ours=lambda: [
            sum(_contributions_as_printed(n, k) == n for n in range(2, 21)) for k in (1, 2, 3)
        ],
        because=lambda _: f"With S and T exchanged, of 19: {shown(_proved())}, each proved.",
    ),
    Claim(
        "B-e3, §3.2, §3.3: as printed, delay-receive takes T_⌈λ⌉(n) and delay-send λ/⌊λ⌋·T_⌊λ⌋(n)"
        " (λ = 2.5, n = 40)",
        paper={
            "delay_receive": cw.postal.delay_receive_time(40, "2.5"),
            "delay_send": cw.postal.delay_send_time(40, "2.5"),
        },
        ours=lambda: _censuses(40, Fraction(5, 2)),
        because=_earlier,
        unit="t0",
    ),
    Claim(
        "B-e4, §3, §3.3, §4: as printed, delay-send is the better for every 1 < λ < 1.44 (λ ="
        " 1.4: the n ≤ 100 for which delay-receive takes less, by the paper's own formulas)",
        paper=[],
        ours=lambda: [
            n
            for n in range(2, 101)
            if cw.postal.delay_receive_time(n, "1.4") < cw.postal.delay_send_time(n, "1.4")
        ],
        because=lambda worse: (
            f"The break-even point is asymptotic: {len(worse)} of 99 numbers of ranks differ."
        ),
    ),
)
