"""What became of a claim."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

Verdict: TypeAlias = Literal["holds", "partly", "does not hold"]


@dataclass(frozen=True)
class Check:
    """One sentence of a claim: the figures it was judged by, and whether it is so."""

    says: str
    figures: str
    holds: bool


@dataclass(frozen=True)
class Finding:
    """A claim of a paper, by its id, sentence by sentence; `because`: why not all of it holds."""

    claim: str
    where: str
    checks: Sequence[Check]
    because: str = ""

    @property
    def verdict(self) -> Verdict:
        """Whether all of it holds, some of it, or nothing."""
        held = [check.holds for check in self.checks]
        return "holds" if all(held) else "partly" if any(held) else "does not hold"


def markdown(findings: Iterable[Finding]) -> str:
    """All findings as one table, a row for every sentence."""
    lines = ["| claim | says | our figures | |", "|---|---|---|---|"]
    for finding in findings:
        for number, check in enumerate(finding.checks):
            name = f"{finding.claim} ({finding.where})" if not number else ""
            held = "yes" if check.holds else "**no**"
            lines.append(f"| {name} | {check.says} | {check.figures} | {held} |")
        if finding.because:
            lines.append(f"| | | *{finding.because}* | |")
    return "\n".join(lines) + "\n"
