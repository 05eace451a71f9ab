"""Section 3: combining in the postal model, exactly."""

from fractions import Fraction

import collwise as cw
from collwise.papers.claims import Claim, shown

TABLE1 = (2.000, 1.618, 1.466, 1.380, 1.325, 1.285, 1.255, 1.232, 1.213, 1.197)
TABLE2 = (1.440, 2.518, 3.558, 4.584, 5.604, 6.618, 7.630, 8.640, 9.649)


def _censuses(n: int, lam: Fraction) -> dict[str, Fraction]:
    """Delay-receive and delay-send, the schedules simulated, as early as possible."""
    machine = cw.Machine.postal(t0_s=1, lam=lam)
    return {
        name: cw.simulate(
            cw.ALGORITHMS[f"allreduce/census_{name}"].schedule(n, 8, lam=lam), machine
        ).completion
        for name in ("delay_receive", "delay_send")
    }


def _earlier(_: object) -> str:
    """How often a census run as early as possible is earlier, and later, than the paper says."""
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
    """How many contributions T_i combines in the end in the census of n ranks for λ = k.

    Rank i starts with T_i = d_i and S_i empty.  In every round it combines with both what somebody
    sent k − 1 rounds earlier: S where ε = 0, T where it is 1.  Whoever sends to whom, all do alike.
    """
    with_own, without = [1] * k, [0] * k  # contributions in T and S after each round
    for epsilon in cw.postal.deficiencies(n, k):
        sent = with_own[-k] if epsilon else without[-k]
        with_own.append(with_own[-1] + sent)
        without.append(without[-1] + sent)
    return with_own[-1]


def _proved() -> list[int]:
    """For λ = 1, 2, 3: how many of the censuses of 2 … 20 ranks as we run them are proved right."""
    proved = [0, 0, 0]
    for k in (1, 2, 3):
        for n in range(2, 21):
            cw.verify(cw.ALGORITHMS["allreduce/census_delay_send"].schedule(n, 8, lam=k))
            proved[k - 1] += 1
    return proved


CLAIMS = (
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
