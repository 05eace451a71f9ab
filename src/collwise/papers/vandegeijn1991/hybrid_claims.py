"""The routines as they are printed, Lemma 2 and Note 3."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import chain, product
from random import Random

import collwise as cw
from collwise.papers.claims import Claim
from collwise.papers.vandegeijn1991.cube_claims import machines
from collwise.papers.vandegeijn1991.ipsc import COSTS, IPSC


def _strategies() -> Iterator[cw.hybrid.Strategy]:
    return chain.from_iterable(product((0, 1), repeat=d) for d in range(1, 6))


def _to_root_apart() -> list[cw.hybrid.Strategy]:
    """The strategies with which a combine to the root is simulated to take another time."""
    algorithm = cw.ALGORITHMS["reduce/hybrid"]
    return [
        s
        for s in _strategies()
        if cw.simulate(
            algorithm.schedule(1 << len(s), 12 << len(s), itemsize=4, strategy=s), IPSC
        ).completion
        != cw.hybrid.time(s, 3 << len(s), *COSTS)
    ]


def _wrong_sums(*, to_root: bool) -> list[cw.hybrid.Strategy]:
    """The strategies with which the routine of Fig 4, or Fig 6, leaves a wrong sum."""

    def run(own: list[range], d: int) -> None:
        if not d:
            return
        bit, kept, before = 1 << (d - 1), own, [row[:] for row in x]
        if halves := strategy[d - 1]:
            half = len(own[0]) // 2
            kept = [part[half:] if i & bit else part[:half] for i, part in enumerate(own)]
        for i in nodes:
            for item in kept[i] if halves or not (to_root and i & bit) else ():
                x[i][item] += before[i ^ bit][item]
        run(kept, d - 1)
        before = [row[:] for row in x]
        for i in nodes:
            for item in kept[i ^ bit] if halves and not (to_root and i & bit) else ():
                x[i][item] = before[i ^ bit][item]

    wrong = []
    for strategy in _strategies():
        nodes = range(1 << len(strategy))
        x = [[1 << i] * len(nodes) for i in nodes]  # every sum of different ones is another
        run([nodes] * len(nodes), len(strategy))
        vectors = x[:1] if to_root else x
        if any(total != sum(1 << i for i in nodes) for vector in vectors for total in vector):
            wrong.append(strategy)
    return wrong


def _lemma_2_wrong() -> list[int]:
    """On how many random machines each statement is wrong; of d' and strategies, a random one."""
    time, random, wrong = cw.hybrid.time, Random(2), [0] * 5
    for n, d, a, b, c in machines(300, 6):
        if not b + c:
            continue
        s, more, p = tuple(random.randint(0, 1) for _ in range(d)), random.randint(1, 3), 1 << d
        n <<= more
        statements = (
            time((0,) * d, n, a, b, c) == d * (a + n * b + n * c),
            time((1,) * d, n, a, b, c) == 2 * d * a + Fraction((p - 1) * n, p) * (2 * b + c),
            time(s, n // 2, a, b, c) < time(s, n, a, b, c),
            time((*s, *(0,) * more), n, a, b, c)
            == time((0,) * more, n, a, b, c) + time(s, n, a, b, c),
            time((*(1,) * more, *s), n, a, b, c)
            == time(s, n, a, b, c) + time((1,) * more, Fraction(n, 1 << sum(s)), a, b, c),
        )
        wrong = [count + (not true) for count, true in zip(wrong, statements, strict=True)]
    return wrong


def _note_3_apart() -> int:
    """On how many random machines the strategy of Note 3 takes another time than S̄."""
    apart = 0
    for n, d, *costs in machines(1000, 10):
        a, b, c = costs
        length, strategy = Fraction(n), list[int]()
        for stage in range(d, 0, -1):
            strategy.insert(0, int(length * ((stage - 1) * (b + c) + c) >= 2 * a))
            length /= 1 + strategy[0]
        best = cw.hybrid.time(cw.hybrid.best(n, d, *costs), n, *costs)
        apart += cw.hybrid.time(tuple(strategy), n, *costs) != best
    return apart


CLAIMS = (
    Claim(
        "G-c7, §5, Fig 6: combining to the root takes T(S, n, d): by a tree alone the time of"
        " Version 2, by halving and gathering that of Version 3 (d ≤ 5; where it is not simulated"
        " so)",
        paper=[],
        ours=_to_root_apart,
    ),
    Claim(
        "G-c10a, §3.4, Fig 4: the hybrid routine, run as it is printed, leaves the sum of all on"
        " every node (all strategies, d ≤ 5: with which it does not)",
        paper=[],
        ours=lambda: _wrong_sums(to_root=False),
    ),
    Claim(
        "G-c10b, §5, Fig 6: the one that combines to the root, run as it is printed, leaves it on"
        " node 0",
        paper=[],
        ours=lambda: _wrong_sums(to_root=True),
        because="The needless messages of its gather (G-e2) do no harm.",
    ),
    Claim(
        "G-c11, §4, Lemma 2: its five statements (300 random machines on which items take time;"
        " on how many each is wrong)",
        paper=[0] * 5,
        ours=_lemma_2_wrong,
        because="Where neither sending nor combining an item takes time, a shorter vector takes as"
        " long as a longer one, so the third is no inequality.",
    ),
    Claim(
        "G-c12, §4, Note 3: asking n < 2α/((d − 1)(β + γ) + γ) at every stage gives the time of"
        " S̄ (1,000 random machines: on how many it does not)",
        paper=0,
        ours=_note_3_apart,
    ),
)
