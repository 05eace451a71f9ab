"""What a program called, and who served it: a table, and a document that `collwise tune` reads."""

from collections.abc import Sequence
from typing import Any

from collwise.comm.recording import Calls
from collwise.measure.race import LIBRARY, by_library
from collwise.report.tables import Table, attributes, optional_time
from collwise.system import formatting
from collwise.tuning.occurred import FORMAT


def calls_table(calls: Sequence[Calls]) -> Table:
    """A table of calls by collective, size and form, the most frequent first."""
    rows = [
        {
            "calls": str(group.times),
            "method": group.method,
            "form": group.way,
            "ranks": str(group.ranks),
            "size": _size(group),
            "served by": "the library" if group.algorithm == LIBRARY else group.algorithm,
            "took": optional_time(group.spent_s),
            "saved": optional_time(group.saved_s),
            "a tuning is worth": optional_time(group.worth.seconds),
            "why": group.why,
        }
        for group in sorted(calls, key=lambda group: -group.times)
    ]
    optional = "form", "ranks", "a tuning is worth", "saved", "why"  # lines below have the totals
    return Table("Collectives, as rank 0 called them", rows, optional)


def calls_lines(calls: Sequence[Calls], tuning: str) -> list[str]:
    """Lines on calls served by collwise and on a tuning's worth.   tuning: the command to tune."""
    if not calls:
        return ["no collective was called"]
    total = sum(group.times for group in calls)
    changed = sum(group.times for group in calls if group.algorithm != LIBRARY)
    ours = sum(group.times for group in calls if not by_library(group.algorithm))
    saved = sum(group.saved_s or 0 for group in calls)
    lines = [f"{formatting.count(ours, 'call')} of {total} served by plans of collwise"]
    if changed > ours:
        lines[0] += f", {changed - ours} by algorithms of the library that won races"
    if changed:
        lines[0] += f"; {formatting.time(saved)} saved, according to the races that decided"
    if any(group.asked and group.ranks > 1 and group.saved_s is None for group in calls):
        known = [group for group in calls if group.worth.seconds is not None]
        if known:
            worth = formatting.time(sum(group.worth.seconds or 0 for group in known))
            best = max(known, key=lambda group: group.worth.seconds or 0)
            lines.append(f"a tuning would be worth {worth} on the evidence that there is, such as")
            lines.append(f"  {best.method} of {_size(best)}: {best.worth.evidence}")
        elif reasons := {group.worth.evidence for group in calls if group.worth.evidence}:
            took = formatting.time(
                sum(group.spent_s or 0 for group in calls if group.asked is not None)
            )
            lines.append(f"what a tuning would be worth is not known: {min(reasons)}")
            lines.append(f"these calls took {took} on rank 0, so it is no more")
        lines.append(f"tune for these sizes: {tuning}")
    return lines


def _size(group: Calls) -> str:
    return "-" if group.asked is None else formatting.size(group.asked.problem.nbytes)


def calls_document(calls: Sequence[Calls], library: str, ranks: int, tuning: str) -> dict[str, Any]:
    """The calls, who served them and what a tuning is worth, as JSON."""
    return {
        "format": FORMAT,
        "version": 1,
        "mpi_library": library,
        "ranks": ranks,
        "calls": [_call_document(group) for group in calls],
        "saved_s": sum(group.saved_s or 0 for group in calls),
        "worth_s": sum(group.worth.seconds or 0 for group in calls),
        "tune": tuning,
    }


def _call_document(group: Calls) -> dict[str, Any]:
    document = group._asdict()
    asked, worth, document["form"] = (document.pop(name) for name in ("asked", "worth", "way"))
    document |= {"worth_s": worth.seconds, "evidence": worth.evidence}
    if asked is not None:
        problem, elements, _ = asked
        document |= attributes(problem, "collective", "nbytes", "root", "sources")
        document |= {"op": elements and elements.op, "dtype": elements and elements.dtype}
    return document
