"""A paper's claims, and what became of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import getdoc
from typing import Literal, TypeAlias

Verdict: TypeAlias = Literal["holds", "partly", "does not hold"]


@dataclass(frozen=True)
class Check:
    """One sentence of a claim, our figures by which it is judged, and whether it holds."""

    says: str
    figures: str
    holds: bool


@dataclass(frozen=True)
class Finding:
    """What became of a claim, sentence by sentence; `because`: why not all of it holds."""

    checks: Sequence[Check]
    because: str = ""

    @property
    def verdict(self) -> Verdict:
        """Whether all of it holds, some of it, or nothing."""
        held = [check.holds for check in self.checks]
        return "holds" if all(held) else "partly" if any(held) else "does not hold"


@dataclass(frozen=True)
class Claim:
    """Something a paper says: a short id, its figures or sections, a sentence, and how to judge."""

    id: str
    where: str
    sentence: str
    judge: Callable[[], Finding]


def claim(identifier: str, where: str) -> Callable[[Callable[[], Finding]], Claim]:
    """Make a claim of a function that judges it and has its sentence as docstring."""
    return lambda judge: Claim(identifier, where, getdoc(judge) or "", judge)


def markdown(findings: Mapping[Claim, Finding]) -> str:
    """All findings as one table, a row for every sentence."""
    lines = ["| claim | says | our figures | |", "|---|---|---|---|"]
    for claim, finding in findings.items():
        for number, check in enumerate(finding.checks):
            name = f"{claim.id} ({claim.where})" if not number else ""
            held = "yes" if check.holds else "**no**"
            lines.append(f"| {name} | {check.says} | {check.figures} | {held} |")
        if finding.because:
            lines.append(f"| | | *{finding.because}* | |")
    return "\n".join(lines) + "\n"
