"""The iPSC/860 of the paper, the paper's Versions of an allreduce, and their times by length."""

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any, TypeAlias

import collwise as cw
from collwise.model.measured_machine import measured

ALPHA, BETA, GAMMA = Fraction(525), Fraction(2), Fraction(35, 100)
COSTS = (ALPHA, BETA, GAMMA)
"""α, β, γ: microseconds to start a padded message, to send and to combine an item of 4 bytes."""
IPSC = cw.Machine.hockney(alpha_s=ALPHA, beta_s=BETA / 4, gamma_s=GAMMA / 4)
"""The machine with these costs, whose seconds stand for microseconds."""
LENGTHS = range(64, 2049, 64)
SHORT_LENGTHS = (*range(1, 64), *range(64, 257, 16), 512, 1024, 2048, 4096, 8192, 16384)
MAX_SHORT = 25
"""The largest number of items of a message that starts up faster."""
ClosedForm: TypeAlias = Callable[..., Fraction]
Times: TypeAlias = dict[str, dict[int, float]]


def _best_time(n: int, d: int, *costs: Fraction) -> Fraction:
    return cw.hybrid.time(cw.hybrid.best(n, d, *costs), n, *costs)


VERSIONS: dict[str, tuple[str, ClosedForm]] = {
    "Version 1": ("reduce_broadcast", cw.hybrid.version1),
    "Version 2": ("recursive_doubling", cw.hybrid.version2),
    "Version 3": ("halving_doubling", cw.hybrid.version3),
    "hybrid": ("hybrid", _best_time),
}
"""Maps each Version, and the hybrid, to its algorithm's name and the formula of its time."""


def unpadded_cost(nitems: int) -> Fraction:
    """µs of a message without padding: 480 µs to start up, 61 µs less if it is short."""
    return (419 if nitems <= MAX_SHORT else 480) + BETA * nitems


def combining_cost(nitems: int) -> Fraction:
    """µs that combining `nitems` items takes."""
    return GAMMA * nitems


def schedule(version: str, d: int, nitems: int) -> cw.Schedule:
    """The allreduce schedule of one of VERSIONS on 2^d ranks for `nitems` items of 4 bytes.

    The hybrid's strategy is that of Theorem 1.
    """
    hybrid = version == "hybrid"
    settings: Any = {"strategy": cw.hybrid.best(nitems, d, *COSTS)} if hybrid else {}
    algorithm = cw.ALGORITHMS[f"allreduce/{VERSIONS[version][0]}"]
    return algorithm.schedule(1 << d, 4 * nitems, itemsize=4, **settings)


@cache
def curve_times() -> Times:
    """Fig 7: simulated milliseconds on 64 ranks, by Version and number of items."""
    return {
        version: {
            n: float(cw.simulate(schedule(version, 6, n), IPSC).completion) / 1e3 for n in LENGTHS
        }
        for version in VERSIONS
    }


def unpadded() -> cw.Machine:
    """The machine of Fig 8, on which messages of up to 25 items start up faster."""
    pieces = ((1, MAX_SHORT), (MAX_SHORT + 1, 1 << 16))
    machine = measured([[(4 * n, unpadded_cost(n), 1) for n in piece] for piece in pieces])
    return machine.with_combining((4 * n, combining_cost(n)) for n in (1, 1 << 16))


@cache
def short_times() -> Times:
    """Fig 8: predicted milliseconds on 64 ranks on the machine `unpadded`, by Version and items.

    The hybrid's strategy is the best of all, by dynamic programming.
    """

    def milliseconds(version: str, n: int) -> float:
        hybrid = version == "hybrid"
        strategy = cw.hybrid.best_for(unpadded_cost, combining_cost, n, 6)
        settings: Any = {"strategy": strategy} if hybrid else {}
        algorithm = cw.ALGORITHMS[f"allreduce/{VERSIONS[version][0]}"]
        return float(algorithm.predict(machine, 64, 4 * n, itemsize=4, **settings)) / 1e3

    machine = unpadded()
    return {version: {n: milliseconds(version, n) for n in SHORT_LENGTHS} for version in VERSIONS}
