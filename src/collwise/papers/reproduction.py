"""Runs papers again: judges their claims, makes their figures, measures on ranks."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias

from matplotlib.figure import Figure

from collwise.errors import UnknownName
from collwise.papers import bruck1996, hambrusch1998, vandegeijn1991
from collwise.papers.claims import Finding, Measure, MeasuredValue, counted
from collwise.papers.exhibits import HERE, Paper, Rows

if TYPE_CHECKING:  # computing needs no MPI
    from collwise.tuning.session import Session

PAPERS: Mapping[str, Paper] = {
    module.PAPER.key: module.PAPER for module in (bruck1996, vandegeijn1991, hambrusch1998)
}
Progress: TypeAlias = Callable[[str, float], None]
Drawn: TypeAlias = dict[str, Figure | Rows]
"""Figures and tables by the id of the exhibit, with HERE at its end if it was measured."""


@dataclass(frozen=True)
class Reproduction:
    """The results of running a paper again, or a part of it: findings, figures and tables."""

    paper: Paper
    findings: Sequence[Finding]
    drawn: Drawn

    @property
    def document(self) -> dict[str, Any]:
        """The results as a JSON object, with tables but without pictures."""
        return {
            "paper": self.paper.key,
            "title": self.paper.title,
            "verdicts": dict(counted(self.findings)),
            "claims": [finding.row for finding in self.findings],
            "exhibits": [
                {"id": e.id, "title": e.title, "caption": e.caption, "kind": e.kind}
                | ({"rows": self.drawn[e.id]} if isinstance(self.drawn.get(e.id), list) else {})
                for e in self.paper.exhibits
            ],
        }


def chosen(key: str | None, items: Sequence[str]) -> list[Paper]:
    """All papers if `key` is None; else this one, cut to `items` if any.  Raises UnknownName."""
    if key is None:
        return list(PAPERS.values())
    if key.lower() not in PAPERS:
        raise UnknownName.of("paper", key, PAPERS)
    return [PAPERS[key.lower()].selected(items)]


def measurable(papers: Iterable[Paper], draws: bool = True) -> list[Measure]:
    """The measurements that claims and (if `draws`) exhibits need, each once."""
    measures: list[Measure | None] = []
    for paper in papers:
        measures += [claim.measure for claim in paper.claims]
        measures += [exhibit.measure for exhibit in paper.exhibits if draws]
    return [measure for measure in dict.fromkeys(measures) if measure]


def measure(
    measures: Sequence[Measure], session: "Session", budget_s: float, progress: Progress
) -> dict[Measure, MeasuredValue]:
    """Run measurements on all ranks of a session, each in an equal share of `budget_s` seconds."""
    measured: dict[Measure, MeasuredValue] = {}
    for i, measure in enumerate(measures):
        progress("measuring on MPI", i / len(measures))
        measured[measure] = measure(session, budget_s / len(measures))
    return measured


def reproduce(
    papers: Sequence[Paper],
    measured: Mapping[Measure, MeasuredValue],
    *,
    draws: bool = True,
    progress: Progress = lambda what, done: None,
) -> Iterator[Reproduction]:
    """Judge each paper's claims, make its figures and tables, and yield the results.

    measured: the results of `measure`.   draws: whether figures and tables are made, too.
    """
    steps = sum(len(p.claims) + (len(p.exhibits) if draws else 0) for p in papers)
    numbers = count()
    for paper in papers:
        findings = []
        for claim in paper.claims:
            progress(f"{paper.key} {claim.id}", next(numbers) / steps)
            findings.append(claim.judge(measured.get(claim.measure) if claim.measure else None))
        drawn: Drawn = {}
        for exhibit in paper.exhibits if draws else ():
            progress(f"{paper.key} {exhibit.id}", next(numbers) / steps)
            drawn[exhibit.id] = exhibit.draw()
            here = measured.get(exhibit.measure) if exhibit.measure else None
            if here and here.draw:
                drawn[exhibit.id + HERE] = here.draw()
        yield Reproduction(paper, findings, drawn)
