"""What a program called, and who served it: a table, and a document that `collwise tune` reads."""

from collections.abc import Sequence
from typing import Any

from collwise.comm.recording import Calls
from collwise.measure.race import LIBRARY
from collwise.planner.worth import Worth
from collwise.report.tables import Table
from collwise.system import formatting
from collwise.tuning.occurred import FORMAT


def calls_table(calls: Sequence[Calls]) -> Table:
    """Calls by collective, size and form, the most frequent first."""
    rows = [
        {
            "calls": str(one.times),
            "method": one.method,
            "form": one.way,
            "ranks": str(one.ranks),
            "size": _size(one),
            "served by": "the library" if one.algorithm == LIBRARY else one.algorithm,
            "took": "-" if one.spent_s is None else formatting.time(one.spent_s),
            "saved": "-" if one.saved_s is None else formatting.time(one.saved_s),
            "a tuning is worth": _worth(one.worth),
            "why": one.why,
        }
        for one in sorted(calls, key=lambda one: -one.times)
    ]
    return Table("Collectives, as rank 0 called them", rows, optional=("why", "form"))


def calls_lines(calls: Sequence[Calls], tuning: str) -> list[str]:
    """What the calls come to, and what to do next.   tuning: a command."""
    if not calls:
        return ["no collective was called"]
    total = sum(one.times for one in calls)
    ours = sum(one.times for one in calls if one.algorithm != LIBRARY)
    saved = sum(one.saved_s or 0 for one in calls)
    lines = [f"{formatting.count(ours, 'call')} of {total} served by plans of collwise"]
    if ours:
        lines[0] += f"; {formatting.time(saved)} saved, according to the races that decided"
    if any(one.asked is not None and one.ranks > 1 and one.saved_s is None for one in calls):
        known = [one for one in calls if one.worth.seconds is not None]
        if known:
            worth = formatting.time(sum(one.worth.seconds or 0 for one in known))
            best = max(known, key=lambda one: one.worth.seconds or 0)
            lines.append(f"a tuning would be worth {worth} on the evidence that there is, such as")
            lines.append(f"  {best.method} of {_size(best)}: {best.worth.evidence}")
        elif reasons := {one.worth.evidence for one in calls if one.worth.evidence}:
            took = formatting.time(sum(one.spent_s or 0 for one in calls if one.asked is not None))
            lines.append(f"what a tuning would be worth is not known: {min(reasons)}")
            lines.append(f"these calls took {took} on rank 0, so it is no more")
        lines.append(f"tune for these sizes: {tuning}")
    return lines


def _size(one: Calls) -> str:
    return "-" if one.asked is None else formatting.size(one.asked.problem.nbytes)


def _worth(worth: Worth) -> str:
    return "-" if worth.seconds is None else formatting.time(worth.seconds)


def calls_document(calls: Sequence[Calls], library: str, ranks: int, tuning: str) -> dict[str, Any]:
    """The same as JSON."""
    return {
        "format": FORMAT,
        "version": 1,
        "mpi_library": library,
        "ranks": ranks,
        "calls": [_call_document(one) for one in calls],
        "saved_s": sum(one.saved_s or 0 for one in calls),
        "worth_s": sum(one.worth.seconds or 0 for one in calls),
        "tune": tuning,
    }


def _call_document(one: Calls) -> dict[str, Any]:
    document: dict[str, Any] = {"method": one.method, "form": one.way, "ranks": one.ranks}
    if one.asked is not None:
        problem, elements, _ = one.asked
        document |= {
            "collective": problem.collective,
            "nbytes": problem.nbytes,
            "root": problem.root,
            "sources": [list(source) for source in problem.sources],
            "op": elements and elements.op,
            "dtype": elements and elements.dtype,
        }
    return document | {
        "times": one.times,
        "algorithm": one.algorithm,
        "why": one.why,
        "saved_s": one.saved_s,
        "spent_s": one.spent_s,
        "worth_s": one.worth.seconds,
        "evidence": one.worth.evidence,
    }
