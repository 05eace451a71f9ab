"""Verdicts in words that users can act on."""

from math import exp
from typing import Any

import msgspec
import pytest
from tests.profiles import example
from tests.profiles.example import FINGERPRINT, PROVENANCE
from tests.simulator.noisy_prober import NoisyProber

from collwise.measure.profile_building import build_profile
from collwise.measure.size_campaign import SizeCampaign
from collwise.measure.stability import (
    STABLE,
    Judgement,
    cores_moved,
    judge,
    judge_point,
    state_lines,
)
from collwise.model.machine import Machine
from collwise.profiles.records import MeasuredSize, Provenance

MADE = msgspec.structs.replace(PROVENANCE, hosts={"node1": 9}, ranks=9, budget_s=20)


def point(t0: float = 0.01, width: float = 0.02, **changes: Any) -> MeasuredSize:
    """A size with t0 and λ known up to this, relatively."""
    known: dict[str, Any] = {
        "t0_interval_s": (exp(-t0), exp(t0)),
        "lam_interval": (2 * exp(-width), 2 * exp(width)),
        "disagreement": 0.0,
    }
    return example.point(512, **({"t0_s": 1.0, "lam": 2.0} | known | changes))


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


def test_a_machine_with_noise_is_stable() -> None:
    """Of 10 %, in 5 seconds: hardly any measurement was."""
    prober = NoisyProber(Machine.hockney(alpha_s=2e-6, beta_s=1e-9), noise=0.1, seed=1)
    campaign = SizeCampaign(9, sizes=(8, 4096), budget_s=1, seed=1, modes=(False,))
    assert build_profile(prober.conduct(campaign), FINGERPRINT, MADE).verdict == STABLE


NEAR, FAR = (9e-8, 9e-8), (9e-8, 5e-7)


def test_cores_that_moved_are_named() -> None:
    """A virtual machine moves them: then times of before and after are those of two machines."""
    said = "cores moved: a cache line between two ranks took 90 ns there and back, then 500 ns"
    assert cores_moved(NEAR, FAR) == said
    assert not any(cores_moved(*moments) for moments in ((), (FAR,), (FAR, FAR), (NEAR, ())))
    for lines_s, moved in (((NEAR, FAR), [said]), ((FAR, FAR), []), ((), [])):
        made = msgspec.structs.replace(MADE, lines_s=lines_s)
        judgement = judged(GOOD, made=made)
        assert judgement.verdict == STABLE
        assert [line.split(", ", 1)[1].split(": bind")[0] for line in judgement.advice] == moved


def test_the_state_of_the_machine_is_told() -> None:
    made = msgspec.structs.replace(MADE, lines_s=(NEAR, FAR))
    prober = NoisyProber(Machine.postal(t0_s=1e-6, lam=2))
    found = prober.conduct(SizeCampaign(2, sizes=(8,), budget_s=1, repetitions=3))
    verdict, cores = state_lines(build_profile(found, FINGERPRINT, made).measurements)
    assert verdict == f"verdict  {STABLE}"
    assert cores.endswith("from a rank to the next one and back in 90 ns, then 90 … 500 ns")
    assert len(state_lines(build_profile(found, FINGERPRINT, MADE).measurements)) == 1


BLOCKING = point(disagreement=0.4, mode="blocking")
FITTED = [point(fitted=True), point(fitted=True, mode="blocking")]
MORE_TIME = "give more time: 4 times this --budget (intervals shrink with its square root)"
EARLY, THIRD = (512,), (512, 2048, 8192)
NOT_ASKED = "times of more than 2 bytes are not measured but extrapolated"


@pytest.mark.parametrize(
    ("points", "options", "verdict", "advice"),
    [
        ([DISAGREE], {"cores": 2}, "noisy: 9 ranks share 2 core(s); the two experiments disagree"
         " at 1 of 1 points", ["start at most 2 rank(s) on each node"]),  # binding would not help
        ([GOOD, DISAGREE, DISAGREE], {}, "noisy: the two experiments disagree at 2 of 3 points",
         ["bind the ranks to cores"]),
        ([point(0.3, 0.4)] * 2 + [GOOD], {}, "noisy: t0 or λ is uncertain at 2 of 3 points",
         [MORE_TIME]),
        # Points of sends that run no plan do not count: hardly any measurement was stable.
        ([GOOD, BLOCKING, BLOCKING, BLOCKING], {}, STABLE, []),
        ([BLOCKING], {}, "noisy: the two experiments disagree at 1 of 1 points", ["the two"]),
        # Few noisy points are a matter for advice.
        ([GOOD] * 3 + [DISAGREE], {}, STABLE, ["the two", "1 of 4 points are noisy"]),
        ([GOOD] * 2 + [DISAGREE], {}, "noisy: the two experiments disagree at 1 of 3 points",
         ["the two"]),
        ([GOOD], {"unreached": EARLY}, "noisy: the budget of 20 s ended before 512 bytes",
         [MORE_TIME]),
        ([GOOD], {"unreached": THIRD}, "noisy: the budget of 20 s ended before 512 … 8192 bytes",
         [MORE_TIME]),
        ([GOOD, GOOD], {"unreached": THIRD, "asked": False}, STABLE,
         [MORE_TIME, NOT_ASKED]),  # first what to do, which doctor shows
        ([GOOD], {"made": msgspec.structs.replace(MADE, ranks=2)}, STABLE,
         ["targets repeat: among 2 ranks"]),
        ([GOOD] * 20 + FITTED, {}, STABLE,
         ["give more time",
          f"with non-blocking sends, t0 of {2**20} bytes is told by",
          f"with blocking sends, t0 of {2**21} bytes is told by", "1 of 21 points are noisy"]),
        ([FITTED[0], GOOD], {}, "noisy: t0 cannot be told from 0 at 1 of 2 points",
         ["give more time", "with non-blocking"]),
        ([GOOD, point(lam_interval=(0.5, 0.5), lam=0.5)], {}, STABLE,
         ["λ < 1 is used as 1 at 2 bytes"]),
    ],
)  # fmt: skip
def test_the_verdict_on_a_measurement(
    points: list[MeasuredSize], options: dict[str, Any], verdict: str, advice: list[str]
) -> None:
    judgement = judged(*points, **options)
    assert judgement.verdict == verdict
    assert all(words in line for words, line in zip(advice, judgement.advice, strict=True))
