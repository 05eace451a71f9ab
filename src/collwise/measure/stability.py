"""Verdicts on how far a measurement can be trusted, on every size and on the whole, with advice.

The thresholds follow from the decisions: the best broadcast tree changes little while λ changes by
a tenth [Bruck1996 §2.6, Fig 13].
"""

from collections import Counter
from collections.abc import Sequence
from math import log
from typing import NamedTuple

from collwise.measure.probes import usual_ks
from collwise.profiles.records import Bounds, MeasuredSize, Measurements, Mode, Provenance
from collwise.system.integers import ratio

STABLE = "stable"
OPENING = 3
"""The fewest repetitions that a point should have."""
DISAGREEMENT = 0.2
"""A point is noisy if the two experiments' λ differ by more than this, relative to their mean."""
UNCERTAINTY = 0.1
"""A point is noisy if the relative uncertainty (±) of its t0 or λ exceeds this."""
UNKNOWN = 2.0
"""t0 or λ counts as unknown if its relative uncertainty exceeds this (a factor of 7)."""
MOVED = 2.0
"""Cores have moved if the time of a cache line between two ranks changes by this factor."""
SHARE = 0.25
"""The largest share of noisy points in a stable measurement."""


class Judgement(NamedTuple):
    """The verdict on a whole measurement, "stable" or "noisy: …", and advice for a better one."""

    verdict: str
    advice: tuple[str, ...]


def judge_point(point: MeasuredSize) -> str:
    """The verdict on one size: "stable", or "noisy: " and why."""
    return _verdict([text for _, text in _troubles(point)])


def judge(
    points: Sequence[MeasuredSize],
    made: Provenance,
    cores: int,
    unreached: Sequence[int] = (),
    *,
    asked: bool = True,
) -> Judgement:
    """The verdict on a measurement, and advice for a better one.

    Non-blocking sends, which plans use, decide; if none were measured, all points do.
    made: how the points were measured.   cores: how many cores of a node the ranks may use.
    unreached: sizes for which the budget did not suffice.   asked: whether the user named the
    sizes.
    """
    reasons: list[str] = []
    advice: list[str] = []
    remarks: list[str] = []  # what to do is said before them
    judged = [point for point in points if point.mode == "nonblocking"] or points
    troubles = [_troubles(point) for point in judged]
    kinds = Counter(kind for of_point in troubles for kind, _ in of_point)
    noisy = sum(map(bool, troubles))
    if moved := cores_moved(*made.lines_s[:1], *made.lines_s[-1:]):
        advice.append(
            f"while this was measured, {moved}: bind the ranks to cores, or measure again"
        )
    most = max(made.hosts.values(), default=0)
    if oversubscribed := most > cores:
        reasons.append(f"{most} ranks share {cores} core(s)")
        advice.append(
            f"start at most {cores} rank(s) on each node: waiting ranks take turns on its cores,"
            " and the time slices of the system are what is measured"
        )
    if noisy > SHARE * len(judged):
        reasons += [
            f"{_KINDS[kind]} at {number} of {len(judged)} points" for kind, number in kinds.items()
        ]
    elif kinds:
        remarks.append(f"{noisy} of {len(judged)} points are noisy: the verdict of each says why")
    if unreached:
        first, last = unreached[0], unreached[-1]
        sizes = f"{first} bytes" if first == last else f"{first} … {last} bytes"
        if asked:
            reasons.append(f"the budget of {made.budget_s:g} s ended before {sizes}")
        else:
            reached = max(point.nbytes for point in points)
            remarks.append(f"times of more than {reached} bytes are not measured but extrapolated")
    if unreached or kinds["few"] or kinds["wide"] or kinds["fitted"]:
        advice.append(
            "give more time: 4 times this --budget (intervals shrink with its square root)"
        )
    if kinds["disagree"] and not oversubscribed:
        advice.append(
            "the two experiments see different machines: measure while nothing else runs on these"
            " nodes, and bind the ranks to cores (--bind-to core)"
        )
    for mode, words in _MODES.items():
        fitted = [str(point.nbytes) for point in points if point.mode == mode and point.fitted]
        if fitted:
            advice.append(
                f"with {words} sends, t0 of {', '.join(fitted)} bytes is told by the sizes of the"
                " same protocol together: on its own it cannot be told from 0"
            )
    if any(k >= made.ranks for k in usual_ks(made.ranks)):
        advice.append(
            f"targets repeat: among {made.ranks} ranks some messages go to the same rank,"
            " where the model wants different ones; measure with more ranks (4 will do)"
        )
    early = sorted({point.nbytes for point in points if point.lam < 1})
    if early:
        advice.append(
            "λ < 1 is used as 1 at " + ", ".join(map(str, early)) + " bytes: the library takes"
            " longer to accept a message than to deliver it"
        )
    return Judgement(_verdict(reasons), (*advice, *remarks))


def cores_moved(*lines_s: Sequence[float]) -> str:
    """Words on the pair of ranks whose cache line's time changed most; empty if MOVED by none.

    lines_s: for two moments, the seconds for each pair; no words for fewer moments.
    """
    changes = [(max(pair) / min(pair), *pair) for pair in zip(*lines_s, strict=False)]
    change, *times = max(changes, default=(0.0,))
    if change < MOVED or len(times) < 2:
        return ""
    first, second = (f"{time_s * 1e9:.0f} ns" for time_s in times)
    return f"cores moved: a cache line between two ranks took {first} there and back, then {second}"


def state_lines(measured: Measurements) -> list[str]:
    """The verdict on measurements, and in what state of the machine they were made, if known."""
    lines, times = [f"verdict  {measured.verdict}"], measured.provenance.lines_s
    spans = [
        " … ".join(dict.fromkeys(f"{end(row) * 1e9:.0f}" for end in (min, max))) + " ns"
        for row in times
        if row
    ]
    if spans:
        told = ", then ".join(spans)
        lines.append(f"cores    a cache line goes from a rank to the next one and back in {told}")
    return lines


def known_to(points: Sequence[MeasuredSize], nbytes: int) -> tuple[str, int]:
    """How well times of messages of nbytes are known: a remark, and the number of digits to show.

    Both are those of the nearest size measured with non-blocking sends, or with blocking ones if
    there are no others.  With three digits the remark is empty.
    """
    nearest = min(points, key=lambda p: (p.mode != "nonblocking", ratio(p.nbytes, nbytes)))
    t0 = uncertainty(nearest.t0_s, nearest.t0_interval_s)
    lam = uncertainty(nearest.lam, nearest.lam_interval)
    if (shown := digits(max(t0, lam))) == 3:
        return "", shown
    remark = f"at {nearest.nbytes} bytes t0 is known to ± {t0:.0%}, λ to ± {lam:.0%}"
    return f"{remark}; measure again with more --budget, while nothing else runs", shown


def digits(width: float) -> int:
    """How many digits, 0 … 3, to show of a value known to ± `width`, relative to the value."""
    return sum(width <= most for most in (UNCERTAINTY, 5 * UNCERTAINTY, UNKNOWN))


_KINDS = {
    "disagree": "the two experiments disagree",
    "fitted": "t0 cannot be told from 0",
    "wide": "t0 or λ is uncertain",
    "few": f"fewer than {OPENING} repetitions",
}
_MODES: dict[Mode, str] = {"nonblocking": "non-blocking", "blocking": "blocking"}


def _troubles(point: MeasuredSize) -> list[tuple[str, str]]:
    """What makes a point noisy, as pairs (kind, words)."""
    troubles = []
    t0 = uncertainty(point.t0_s, point.t0_interval_s)
    lam = uncertainty(point.lam, point.lam_interval)
    if point.fitted:
        troubles.append(("fitted", "t0 alone cannot be told from 0"))
    elif point.disagreement is None:
        troubles.append(("disagree", "one experiment alone gives no λ"))
    elif point.disagreement > max(DISAGREEMENT, 2 * lam):  # and not just by chance
        troubles.append(("disagree", f"the experiments' λ differ by {point.disagreement:.0%}"))
    if point.repetitions < OPENING:
        troubles.append(("few", f"{point.repetitions} repetition(s)"))
    if max(t0, lam) > UNCERTAINTY:
        troubles.append(("wide", f"t0 ± {t0:.0%}, λ ± {lam:.0%}"))
    return troubles


def uncertainty(value: float, interval: Bounds | None) -> float:
    """The half-width of an interval, as log(upper end / value); 0 if it is None or not positive."""
    return round(log(interval[1] / value), 9) if interval and min(value, *interval) > 0 else 0.0


def _verdict(reasons: list[str]) -> str:
    return "noisy: " + "; ".join(reasons) if reasons else STABLE
