"""The claims that hold go on to hold; those that do not say why."""

import pytest

from collwise.papers import hambrusch1998
from collwise.papers.findings import Check, Finding, Verdict, markdown
from collwise.papers.hambrusch1998 import five_algorithms


@pytest.mark.parametrize(
    "claim",
    [
        five_algorithms.distributions,
        five_algorithms.wrong_dimension,
        five_algorithms.more_sources,
        five_algorithms.shapes,
    ],
)
def test_these_hold(claim: hambrusch1998.Claim) -> None:
    finding = claim()
    assert finding.verdict == "holds", finding


@pytest.mark.exhaustive
def test_all_have_been_judged() -> None:
    found = [claim() for claim in hambrusch1998.CLAIMS]
    assert [f.claim for f in found] == [f"H-c{n}" for n in range(1, 12)]
    for finding in found:
        assert finding.verdict == "holds" or finding.because


@pytest.mark.parametrize(
    ("held", "verdict"),
    [((True, True), "holds"), ((True, False), "partly"), ((False,), "does not hold")],
)
def test_a_verdict_counts_sentences(held: tuple[bool, ...], verdict: Verdict) -> None:
    checks = [Check(f"sentence {i}", "1 ms", holds) for i, holds in enumerate(held)]
    finding = Finding("X-c1", "Fig 1", checks, "it is so" if verdict != "holds" else "")
    assert finding.verdict == verdict
    table = markdown([finding]).splitlines()
    assert table[2].startswith("| X-c1 (Fig 1) | sentence 0 | 1 ms |")
    assert len(table) == 2 + len(held) + (verdict != "holds")
    assert [("**no**" in line) for line in table[2 : 2 + len(held)]] == [not h for h in held]
