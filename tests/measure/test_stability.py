"""Verdicts in words that users can act on."""

from dataclasses import replace
from fractions import Fraction

import pytest

from collwise.measure import Campaign, Fit, Law, Measurement, judge
from collwise.measure.stability import STABLE, judge_fit
from collwise.model.machine import Machine
from collwise.simulator import SimulatedProber

GOOD = Fit(
    nbytes=512,
    blocking=False,
    law=Law(Fraction(1), Fraction(2)),
    experiments=(Law(Fraction(1), Fraction(2)), Law(Fraction(1), Fraction(2))),
    uncertainty=(0.01, 0.02),
    repetitions=20,
)
DISAGREE = replace(GOOD, experiments=(Law(Fraction(1), Fraction(2)), Law(Fraction(1), Fraction(3))))


def _measurement(*fits: Fit, **changes: object) -> Measurement:
    fields: dict[str, object] = {
        "ranks": 9,
        "seed": 0,
        "budget_s": 20.0,
        "elapsed_s": 20.0,
        "fits": tuple(replace(fit, nbytes=2**i) for i, fit in enumerate(fits)),
        "segments": (0,) * len(fits),
        "medians": (),
    }
    return Measurement(**(fields | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fit", "verdict"),
    [
        (GOOD, STABLE),
        (replace(GOOD, uncertainty=(0.1, 0.1)), STABLE),
        (replace(GOOD, uncertainty=(0.02, 0.23)), "noisy: t0 ± 2%, λ ± 23%"),
        (DISAGREE, "noisy: the experiments' λ differ by 40%"),
        (replace(DISAGREE, uncertainty=(0.3, 0.25)), "noisy: t0 ± 30%, λ ± 25%"),  # by chance
        (
            replace(GOOD, experiments=(None, GOOD.law)),
            "noisy: one experiment alone gives no λ",
        ),
        (replace(GOOD, repetitions=1, uncertainty=None), "noisy: 1 repetition(s)"),
        (
            replace(GOOD, repetitions=2, uncertainty=(0.5, 1.5)),
            "noisy: 2 repetition(s); t0 ± 50%, λ ± 150%",
        ),
    ],
)
def test_the_verdict_on_a_size(fit: Fit, verdict: str) -> None:
    assert judge_fit(fit) == verdict


def test_a_quiet_machine_is_stable_and_needs_no_advice() -> None:
    prober = SimulatedProber(Machine.postal(t0_s=1e-6, lam=2))
    judgement = judge(prober.conduct(Campaign(9)), ranks_per_node=2, cores=2)
    assert (judgement.verdict, judgement.advice) == (STABLE, ())


def test_more_ranks_than_cores() -> None:
    judgement = judge(_measurement(DISAGREE), ranks_per_node=8, cores=2)
    assert judgement.verdict.startswith("noisy: 8 ranks share 2 core(s)")
    assert "start at most 2 rank(s) on each node" in judgement.advice[0]
    assert not any("bind" in line for line in judgement.advice)  # would not help


def test_the_experiments_disagree() -> None:
    judgement = judge(_measurement(GOOD, DISAGREE, DISAGREE))
    assert judgement.verdict == "noisy: the two experiments disagree at 2 of 3 points"
    assert len(judgement.advice) == 1
    assert "bind the ranks to cores" in judgement.advice[0]


def test_wide_intervals() -> None:
    wide = replace(GOOD, uncertainty=(0.3, 0.4))
    judgement = judge(_measurement(wide, wide, GOOD))
    assert judgement.verdict == "noisy: t0 or λ is uncertain at 2 of 3 points"
    assert "4 times this --budget" in judgement.advice[0]


def test_few_noisy_points_are_a_matter_for_advice() -> None:
    judgement = judge(_measurement(*[GOOD] * 9, DISAGREE))
    assert judgement.verdict == STABLE
    assert judgement.advice[0].startswith("1 of 10 points are noisy")


@pytest.mark.parametrize(
    ("unreached", "words"), [((512,), "512 bytes"), ((512, 2048, 8192), "512 … 8192 bytes")]
)
def test_the_budget_ended_early(unreached: tuple[int, ...], words: str) -> None:
    judgement = judge(_measurement(GOOD, unreached=unreached, budget_s=0.5))
    assert judgement.verdict == f"noisy: the budget of 0.5 s ended before {words}"
    assert "4 times this --budget" in judgement.advice[0]


def test_repeated_targets_are_mentioned() -> None:
    judgement = judge(_measurement(GOOD, repeats=True, ranks=2))
    assert judgement.verdict == STABLE
    assert "targets repeat: among 2 ranks" in judgement.advice[0]


def test_sizes_left_out_are_named() -> None:
    judgement = judge(_measurement(GOOD, unusable=((8, False), (32, False), (8, True))))
    assert "with non-blocking sends, no t0 for 8, 32 bytes" in judgement.advice[0]
    assert "with blocking sends, no t0 for 8 bytes" in judgement.advice[1]


def test_a_latency_below_one_is_explained() -> None:
    law = Law(Fraction(2), Fraction(1))
    early = replace(GOOD, law=law, experiments=(law, law))
    judgement = judge(_measurement(GOOD, early))
    assert judgement.verdict == STABLE
    assert judgement.advice[0].startswith("λ < 1 is used as 1 at 2 bytes")
