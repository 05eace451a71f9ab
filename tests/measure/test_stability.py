"""Verdicts in words that users can act on."""

from math import exp
from typing import Any

import msgspec
import pytest
from tests.profiles import example
from tests.profiles.example import FINGERPRINT, PROVENANCE

from collwise.measure.profile_building import build_profile
from collwise.measure.size_campaign import SizeCampaign
from collwise.measure.stability import STABLE, Judgement, judge, judge_point
from collwise.model.machine import Machine
from collwise.profiles.records import MeasuredSize, Provenance
from collwise.simulator import SimulatedProber

MADE = msgspec.structs.replace(PROVENANCE, hosts={"node1": 9}, ranks=9, budget_s=20)


def point(t0: float = 0.01, lam: float = 0.02, **changes: Any) -> MeasuredSize:
    """A size with t0 and λ known up to this, relatively."""
    known: dict[str, Any] = {
        "t0_interval_s": (exp(-t0), exp(t0)),
        "lam_interval": (2 * exp(-lam), 2 * exp(lam)),
        "disagreement": 0.0,
    }
    return example.point(512, lam=2.0, **({"t0_s": 1.0} | known | changes))


GOOD = point()
DISAGREE = point(disagreement=0.4)


def judged(*points: MeasuredSize, cores: int = 16, **more: Any) -> Judgement:
    """The verdict on points, of 1, 2, 4, … bytes."""
    made: Provenance = more.pop("made", MADE)
    sized = [msgspec.structs.replace(p, nbytes=2**i) for i, p in enumerate(points)]
    return judge(sized, made, cores, **more)


@pytest.mark.parametrize(
    ("one", "verdict"),
    [
        (GOOD, STABLE),
        (point(0.1, 0.1), STABLE),
        (point(0.02, 0.23), "noisy: t0 ± 2%, λ ± 23%"),
        (DISAGREE, "noisy: the experiments' λ differ by 40%"),
        (point(0.3, 0.25, disagreement=0.4), "noisy: t0 ± 30%, λ ± 25%"),  # by chance
        (point(disagreement=None), "noisy: one experiment alone gives no λ"),
        (point(t0_interval_s=None, lam_interval=None, repetitions=1), "noisy: 1 repetition(s)"),
        (point(0.5, 1.5, repetitions=2), "noisy: 2 repetition(s); t0 ± 50%, λ ± 150%"),
        (
            point(0.7, 0.8, disagreement=None, fitted=True),
            "noisy: t0 alone cannot be told from 0; t0 ± 70%, λ ± 80%",
        ),
    ],
)
def test_the_verdict_on_a_size(one: MeasuredSize, verdict: str) -> None:
    assert judge_point(one) == verdict


def test_a_quiet_machine_is_stable_and_needs_no_advice() -> None:
    prober = SimulatedProber(Machine.postal(t0_s=1e-6, lam=2))
    profile = build_profile(prober.conduct(SizeCampaign(9)), FINGERPRINT, MADE)
    assert (profile.verdict, profile.advice) == (STABLE, ())


def test_a_machine_with_noise_is_stable() -> None:
    """Of 10 %, in 5 seconds: hardly any measurement was."""
    prober = SimulatedProber(Machine.hockney(alpha_s=2e-6, beta_s=1e-9), noise=0.1, seed=1)
    campaign = SizeCampaign(9, sizes=(8, 4096), budget_s=1, seed=1, modes=(False,))
    assert build_profile(prober.conduct(campaign), FINGERPRINT, MADE).verdict == STABLE


def test_more_ranks_than_cores() -> None:
    judgement = judged(DISAGREE, cores=2)
    assert judgement.verdict.startswith("noisy: 9 ranks share 2 core(s)")
    assert "start at most 2 rank(s) on each node" in judgement.advice[0]
    assert not any("bind" in line for line in judgement.advice)  # would not help


def test_the_experiments_disagree() -> None:
    judgement = judged(GOOD, DISAGREE, DISAGREE)
    assert judgement.verdict == "noisy: the two experiments disagree at 2 of 3 points"
    assert len(judgement.advice) == 1
    assert "bind the ranks to cores" in judgement.advice[0]


def test_wide_intervals() -> None:
    wide = point(0.3, 0.4)
    judgement = judged(wide, wide, GOOD)
    assert judgement.verdict == "noisy: t0 or λ is uncertain at 2 of 3 points"
    assert "4 times this --budget" in judgement.advice[0]


def test_points_that_run_no_plan_do_not_count() -> None:
    """With those of blocking sends, hardly any measurement was stable."""
    unused = msgspec.structs.replace(DISAGREE, mode="blocking")
    assert judged(GOOD, unused, unused, unused).verdict == STABLE
    assert judged(unused).verdict != STABLE


def test_few_noisy_points_are_a_matter_for_advice() -> None:
    judgement = judged(*[GOOD] * 3, DISAGREE)
    assert judgement.verdict == STABLE
    assert judged(*[GOOD] * 2, DISAGREE).verdict != STABLE
    judgement = judged(*[GOOD] * 9, DISAGREE)
    assert judgement.verdict == STABLE
    assert judgement.advice[0].startswith("1 of 10 points are noisy")


@pytest.mark.parametrize(
    ("unreached", "words"), [((512,), "512 bytes"), ((512, 2048, 8192), "512 … 8192 bytes")]
)
def test_the_budget_ended_early(unreached: tuple[int, ...], words: str) -> None:
    judgement = judged(GOOD, unreached=unreached)
    assert judgement.verdict == f"noisy: the budget of 20 s ended before {words}"
    assert "4 times this --budget" in judgement.advice[0]
    nobody_asked = judged(GOOD, GOOD, unreached=unreached, asked=False)
    assert nobody_asked.verdict == STABLE
    assert nobody_asked.advice[0].startswith("times of more than 2 bytes are not measured")
    assert "4 times this --budget" in nobody_asked.advice[1]


def test_repeated_targets_are_mentioned() -> None:
    judgement = judged(GOOD, made=msgspec.structs.replace(MADE, ranks=2))
    assert judgement.verdict == STABLE
    assert "targets repeat: among 2 ranks" in judgement.advice[0]


def test_sizes_told_by_others_are_named() -> None:
    fitted = point(fitted=True)
    blocking = point(fitted=True, mode="blocking")
    judgement = judged(*[GOOD] * 20, fitted, blocking)
    assert judgement.verdict == STABLE
    assert f"with non-blocking sends, t0 of {2**20} bytes is told by" in judgement.advice[2]
    assert f"with blocking sends, t0 of {2**21} bytes is told by" in judgement.advice[3]
    assert judged(fitted, GOOD).verdict == "noisy: t0 cannot be told from 0 at 1 of 2 points"


def test_a_latency_below_one_is_explained() -> None:
    judgement = judged(GOOD, msgspec.structs.replace(GOOD, lam=0.5, lam_interval=(0.5, 0.5)))
    assert judgement.verdict == STABLE
    assert judgement.advice[0].startswith("λ < 1 is used as 1 at 2 bytes")
