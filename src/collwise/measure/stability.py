"""Whether a measurement can be trusted: verdicts on every size and on the whole, and advice.

The thresholds are those that matter for decisions: the best broadcast tree changes little while λ
changes by a tenth [Bruck1996 §2.6, Fig 13].
"""

from collections import Counter
from dataclasses import dataclass

from collwise.measure.campaign import OPENING, Measurement
from collwise.measure.fit import Fit

STABLE = "stable"
DISAGREEMENT = 0.2
"""More than this between the two experiments' λ, relative to their mean, is noisy."""
UNCERTAINTY = 0.1
"""A wider ± than this in t0 or λ, relative, is noisy."""
SHARE = 0.1
"""The whole is stable although this share of its points is noisy."""


@dataclass(frozen=True)
class Judgement:
    """The verdict on a whole measurement, "stable" or "noisy: …", and what to do about it."""

    verdict: str
    advice: tuple[str, ...]


def judge_fit(fit: Fit) -> str:
    """The verdict on one size: "stable", or "noisy: " and why."""
    return _verdict([text for _, text in _troubles(fit)])


def judge(
    measurement: Measurement, *, ranks_per_node: int | None = None, cores: int | None = None
) -> Judgement:
    """The verdict on a measurement.

    ranks_per_node: the most on any node.  cores: that the ranks of a node may use.
    """
    reasons: list[str] = []
    advice: list[str] = []
    count = len(measurement.fits)
    troubles = {i: _troubles(fit) for i, fit in enumerate(measurement.fits)}
    kinds = Counter(kind for of_fit in troubles.values() for kind, _ in of_fit)
    crowded = ranks_per_node is not None and cores is not None and ranks_per_node > cores
    if crowded:
        reasons.append(f"{ranks_per_node} ranks share {cores} core(s)")
        advice.append(
            f"start at most {cores} rank(s) on each node: waiting ranks take turns on its cores,"
            " and the time slices of the system are what is measured"
        )
    if sum(map(bool, troubles.values())) > SHARE * count:
        reasons += [
            f"{_KINDS[kind]} at {number} of {count} points" for kind, number in kinds.items()
        ]
    elif kinds:
        noisy = sum(map(bool, troubles.values()))
        advice.append(f"{noisy} of {count} points are noisy: the verdict of each says why")
    if measurement.unreached:
        first, last = measurement.unreached[0], measurement.unreached[-1]
        sizes = f"{first} bytes" if first == last else f"{first} … {last} bytes"
        reasons.append(f"the budget of {measurement.budget_s:g} s ended before {sizes}")
    if measurement.unreached or kinds["few"] or kinds["wide"]:
        advice.append(
            "give more time: 4 times this --budget (intervals shrink with its square root)"
        )
    if kinds["disagree"] and not crowded:
        advice.append(
            "the two experiments see different machines: measure while nothing else runs on these"
            " nodes, and bind the ranks to cores (--bind-to core)"
        )
    for mode, words in ((False, "non-blocking"), (True, "blocking")):
        left_out = [str(n) for n, blocking in measurement.unusable if blocking == mode]
        if left_out:
            advice.append(
                f"with {words} sends, no t0 for {', '.join(left_out)} bytes: it cannot be told from"
                " 0; plans for these sizes go by the sizes around them"
            )
    if measurement.repeats:
        advice.append(
            f"targets repeat: among {measurement.ranks} ranks some messages go to the same rank,"
            " where the model wants different ones; measure with more ranks (4 will do)"
        )
    early = sorted({fit.nbytes for fit in measurement.fits if fit.law.lam < 1})
    if early:
        advice.append(
            "λ < 1 is used as 1 at " + ", ".join(map(str, early)) + " bytes: the library takes"
            " longer to accept a message than to deliver it"
        )
    return Judgement(_verdict(reasons), tuple(advice))


_KINDS = {
    "disagree": "the two experiments disagree",
    "wide": "t0 or λ is uncertain",
    "few": f"fewer than {OPENING} repetitions",
}


def _troubles(fit: Fit) -> list[tuple[str, str]]:
    """What is wrong with a point: (kind, words)."""
    troubles = []
    t0, lam = fit.uncertainty or (0.0, 0.0)
    if fit.disagreement is None:
        troubles.append(("disagree", "one experiment alone gives no λ"))
    elif fit.disagreement > max(DISAGREEMENT, 2 * lam):  # and not just by chance
        troubles.append(("disagree", f"the experiments' λ differ by {float(fit.disagreement):.0%}"))
    if fit.repetitions < OPENING:
        troubles.append(("few", f"{fit.repetitions} repetition(s)"))
    if max(t0, lam) > UNCERTAINTY:
        troubles.append(("wide", f"t0 ± {t0:.0%}, λ ± {lam:.0%}"))
    return troubles


def _verdict(reasons: list[str]) -> str:
    return "noisy: " + "; ".join(reasons) if reasons else STABLE
