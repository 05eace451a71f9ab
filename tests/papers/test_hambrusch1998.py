"""The claims that hold go on to hold; those that do not say why."""

import pytest

from collwise.papers.findings import Check, Claim, Finding, Verdict, markdown
from collwise.papers.hambrusch1998 import CLAIMS, five_algorithms


@pytest.mark.parametrize(
    "claim",
    [
        five_algorithms.distributions,
        five_algorithms.wrong_dimension,
        five_algorithms.more_sources,
        five_algorithms.shapes,
    ],
    ids=lambda claim: claim.id,
)
def test_these_hold(claim: Claim) -> None:
    finding = claim.judge()
    assert finding.verdict == "holds", finding


def test_each_claim_has_an_id_a_place_and_a_sentence() -> None:
    assert [claim.id for claim in CLAIMS] == [f"H-c{n}" for n in range(1, 12)]
    assert all(claim.where.startswith(("Fig", "§")) for claim in CLAIMS)
    assert all(claim.sentence.endswith(".") for claim in CLAIMS)


@pytest.mark.exhaustive
def test_all_have_been_judged() -> None:
    for claim in CLAIMS:
        finding = claim.judge()
        assert finding.verdict == "holds" or finding.because, claim.id


@pytest.mark.parametrize(
    ("held", "verdict"),
    [((True, True), "holds"), ((True, False), "partly"), ((False,), "does not hold")],
)
def test_a_verdict_counts_sentences(held: tuple[bool, ...], verdict: Verdict) -> None:
    checks = [Check(f"sentence {i}", "1 ms", holds) for i, holds in enumerate(held)]
    finding = Finding(checks, "it is so" if verdict != "holds" else "")
    assert finding.verdict == verdict
    claim = Claim("X-c1", "Fig 1", "All is fast.", lambda: finding)
    table = markdown({claim: claim.judge()}).splitlines()
    assert table[2].startswith("| X-c1 (Fig 1) | sentence 0 | 1 ms |")
    assert len(table) == 2 + len(held) + (verdict != "holds")
    assert [("**no**" in line) for line in table[2 : 2 + len(held)]] == [not h for h in held]
