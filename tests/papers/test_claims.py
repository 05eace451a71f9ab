"""Verdicts: computed from values alone; every one of them flips for some wrong value."""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from collwise.papers.claims import Claim, Finding, MeasuredValue, Verdict, close, counted, shown
from collwise.papers.reproduction import PAPERS, measurable

QUICK = {
    "bruck1996": ("B-c1", "B-c2", "B-c3", "B-c5", "B-c6", "B-c7", "B-c8", "B-c9", "B-c10", "B-c11",
                  "B-c12", "B-c15", "B-c16", "B-c17", "B-c20", "B-c21", "B-c22", "B-e1", "B-e3",
                  "B-e4"),
    "vandegeijn1991": ("G-c1", "G-c3", "G-c4", "G-c5c", "G-c6c", "G-c6d", "G-c7", "G-c8",
                       "G-c10", "G-c11", "G-c12", "G-e1", "G-e2"),
    "hambrusch1998": ("H-c3", "H-c4", "H-c5b", "H-c9a", "H-c12", "H-c15"),
}  # fmt: skip
"""Claims that take a moment; all are judged under `exhaustive`."""
CHANGES = (
    lambda x: x * 2 + 1,
    lambda x: x / 2 - 1,
    lambda x: x * 1.1,
    lambda x: x * 0.9,
    lambda x: x * 30 + 10,
    lambda x: x * 0,
    lambda x: -x - 1,
)


def variants(value: Any) -> Iterator[Any]:
    """Other values: one number of it changed, all of them, their order, fewer or more of them."""
    if isinstance(value, Mapping):
        for values in variants(list(value.values())):
            if len(values) == len(value):
                yield dict(zip(value, values, strict=True))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        yield from (list(reversed(value)), sorted(value), value[:-1], [*value, 7], [])
        for change in CHANGES:
            yield [changed(x, change) for x in value]
        for i, x in enumerate(value):
            yield from ([*value[:i], other, *value[i + 1 :]] for other in variants(x))
    elif value is None:
        yield (Fraction(1), Fraction(2))
    else:
        yield from (changed(value, change) for change in CHANGES)


def changed(value: Any, change: Any) -> Any:
    if isinstance(value, Sequence):
        return [changed(x, change) for x in value]
    return change(value)


def flips(claim: Claim, value: Any) -> bool:
    """Whether some other value has another verdict; one that does not fit the claim is skipped."""
    verdict = claim.verdict(value)
    candidates = [*variants(value)]
    if not isinstance(claim.paper, str):
        candidates.append(claim.paper)
    for other in candidates:
        try:
            if claim.verdict(other) != verdict:
                return True
        except (TypeError, ValueError, IndexError, KeyError, ZeroDivisionError):
            continue
    return False


COMMITTED = (Path(__file__).parents[2] / "docs" / "papers.md").read_text(encoding="utf-8")


def check(claim: Claim) -> Finding:
    finding = claim.judge()
    assert f"| {' | '.join(finding.row.values())} |" in COMMITTED, "make docs/papers.md again"
    assert finding.verdict in ("holds", "holds in shape") or finding.because, claim.id
    if claim.ours is None:
        assert finding.verdict == ("not measured" if claim.measure else "not recoverable")
        assert finding.row["ours"] == ""
    else:
        assert flips(claim, finding.value), (
            f"{claim.id}: no wrong value changes {finding.verdict!r}"
        )
    if claim.is_erratum:
        assert finding.verdict == "does not hold", claim.id
    return finding


def quick_claims() -> list[Any]:
    return [
        pytest.param(claim, id=claim.id)
        for key, items in QUICK.items()
        for claim in PAPERS[key].selected(items).claims
    ]


@pytest.mark.parametrize("claim", quick_claims())
def test_a_wrong_value_flips_the_verdict(claim: Claim) -> None:
    finding = check(claim)
    if claim.id[0] != "H" and claim.ours and not claim.is_erratum:
        assert finding.verdict.startswith("holds"), finding.verdict  # what is exact does


@pytest.mark.exhaustive
@pytest.mark.parametrize("key", PAPERS)
def test_all_claims(key: str) -> None:
    findings = [check(claim) for claim in PAPERS[key].claims]
    print(key, counted(findings))
    for finding in findings:
        if finding.verdict == "does not hold":
            assert len(finding.because) > 20, finding.claim.id


@pytest.mark.parametrize("key", PAPERS)
def test_ids_places_and_sentences(key: str) -> None:
    claims, exhibits = PAPERS[key].claims, PAPERS[key].exhibits
    names = [claim.id for claim in claims]
    assert len(set(names)) == len(names)
    assert len({exhibit.id for exhibit in exhibits}) == len(exhibits)
    numbers = sorted({int(name[3:].rstrip("abcdefghi")) for name in names if "-c" in name})
    assert numbers == list(range(1, numbers[-1] + 1))
    for claim in claims:
        assert claim.where
        assert claim.says
        assert claim.ours is not None or claim.because
        value = claim.ours or claim.measure
        assert value is None or claim.holds or not isinstance(claim.paper, str), claim.id


def verdict_on(value: Any, **more: Any) -> Verdict:
    return Claim("X-c1, §1: so", ours=lambda: value, **more).judge().verdict


def test_how_a_verdict_comes_about() -> None:
    assert verdict_on(5, paper=5) == "holds"
    assert verdict_on(5.1, paper=5, tolerance=0.2) == "holds"
    assert verdict_on(5.3, paper=5, tolerance=0.2) == "does not hold"
    assert verdict_on(5.3, paper=5, shape=lambda x: x > 4) == "holds in shape"
    assert verdict_on(3.9, paper=5, shape=lambda x: x > 4) == "does not hold"
    assert verdict_on(5, paper="about 5") == "does not hold"  # words are compared with nothing
    assert verdict_on(5, paper="about 5", holds=lambda x: 4 < x < 6) == "holds"
    assert verdict_on(5, paper=5, holds=lambda x: x > 6) == "does not hold"
    assert verdict_on(5, paper=5, fitted=True) == "holds as fitted"
    assert verdict_on(6, paper=5, fitted=True) == "does not hold"
    nothing = Claim("X-c1, §1: so", because="it is lost")
    assert nothing.judge().verdict == "not recoverable"


@pytest.mark.parametrize(
    ("name", "value", "verdict"),
    [
        ("B-c13b", 12.9, "does not hold"),  # of about 21
        ("B-c18", 12.9, "does not hold"),  # of more than 20
        ("B-c14", 0.1, "does not hold"),  # of about 10
        ("B-c14", 18.5, "holds in shape"),
        ("B-c17a", (1.8, 1.05), "holds as fitted"),
        ("H-c5b", (11.0, 7.5), "holds as fitted"),
        ("G-c6a", {"Version 1": 13.0, "Version 2": 13.0, "Version 3": 0}, "holds in shape"),
        ("G-c6a", {"Version 1": 40.0, "Version 2": 40.0, "Version 3": 0}, "holds"),
        ("G-c6d", 12.2, "holds in shape"),  # "appears to give satisfactory results"
    ],
)
def test_verdicts_that_were_too_kind(name: str, value: Any, verdict: Verdict) -> None:
    (claim,) = (c for paper in PAPERS.values() for c in paper.claims if c.id == name)
    assert claim.verdict(value) == verdict


MEASURED = {
    "B-c20c": ({"8 B": (1.2, 0.9), "32 B": (1.1, 1.0)}, {"8 B": (0.9, 1.02), "32 B": (1.1, 1.0)}),
    "H-c12": ({"xor": (4.0, 3.0, 5.0)}, {"xor": (9.0, 8.0, 9.5), "br_lin": (-9.0, -9.5, -8.0)}),
}


@pytest.mark.parametrize("name", MEASURED)
def test_what_is_measured_is_judged_like_what_is_computed(name: str) -> None:
    (claim,) = (c for paper in PAPERS.values() for c in paper.claims if c.id == name)
    assert claim.measure in measurable(PAPERS.values(), draws=False)
    good, bad = (claim.judge(MeasuredValue(None, value)) for value in MEASURED[name])
    assert (good.verdict, bad.verdict) == ("holds", "does not hold")
    assert "1 of 2" in bad.because or "xor of 2" in bad.because
    assert good.row["ours"]
    assert flips(claim, good.value)


def test_several_numbers_are_compared_one_by_one() -> None:
    assert close([1, 2.04], (1, 2), 0.05)
    assert not close([1, 2.06], (1, 2), 0.05)
    assert not close([1], (1, 2), 9)
    assert close({"a": 1}, {"a": 1}, 0)
    assert not close({"b": 1}, {"a": 1}, 0)
    assert not close(None, 1, 9)
    assert not close("one", "two", 9)


def test_the_committed_page_has_every_claim() -> None:
    for paper in PAPERS.values():
        for claim in paper.claims:
            assert f"| {claim.id} | {claim.where} | {claim.says} |" in COMMITTED, claim.id


def test_errata_are_not_counted() -> None:
    claim = Claim("X-c1, §1: so", paper=1, ours=lambda: 1)
    erratum = Claim("X-e1, §1: so", paper=1, ours=lambda: 2, because="not so")
    found = counted([claim.judge(), erratum.judge()])
    assert list(found.values()) == [1, 0, 0, 0, 0, 0]


def test_values_as_text() -> None:
    assert shown({"a": Fraction(1, 3), "b": 0.5}, "ms") == "a: 1/3, b: 0.5 ms"
    assert shown([(8, 5), (7, 6)]) == "(8, 5), (7, 6)"
    assert shown(list(range(99))).endswith("…, 98")
    assert shown([]) == shown(None) == "none"
    assert shown(-1.5) == "−1.5"
    assert shown(10**6) == "1,000,000"
    assert shown(True) == "yes"
    assert shown("as it is") == "as it is"
    assert shown(Fraction(46, 5), "t0") == "9.2 t0"
