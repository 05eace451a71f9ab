"""Two records compared: a table, lines, and a JSON document."""

from math import isfinite
from typing import Any

from collwise.report.tables import Table
from collwise.system import formatting
from collwise.tuning.comparison import ComparedCell, Comparison, Quantity

FORMAT = "collwise comparison"
VERSION = 1


def compared_table(compared: Comparison, above: float | None, title: str = "") -> Table:
    """Every cell that both records have, the worst first.   above: beyond which a cell fails."""
    rows = [
        {
            "what": cell.what,
            "value": cell.quantity,
            "A": _value(cell.first),
            "B": _value(cell.second),
            "B/A": f"{cell.ratio.middle:.2f}",
            "95 %": _interval(cell),
            "verdict": "fails" if cell.fails(above) else cell.verdict,
        }
        for cell in compared.cells
    ]
    return Table(title, rows, ("95 %",))


def _value(quantity: Quantity) -> str:
    if quantity.seconds:
        return formatting.time(quantity.value)
    return formatting.significant(quantity.value)


def _interval(cell: ComparedCell) -> str:
    if not isfinite(cell.ratio.high):
        return "not known"
    return f"{cell.ratio.low:.2f} … {cell.ratio.high:.2f}"


def compared_lines(compared: Comparison, above: float | None) -> list[str]:
    """What it comes to: how many cells are worse, better or fail, and what was not compared."""
    verdicts = [cell.verdict for cell in compared.cells]
    worse, better = verdicts.count("worse"), verdicts.count("better")
    lines = [
        f"compared {formatting.count(len(verdicts), 'value')}: B is significantly worse in {worse},"
        f" better in {better}"
    ]
    if above is not None:
        failed = sum(cell.fails(above) for cell in compared.cells)
        said = "none is" if not failed else f"{failed} {'is' if failed == 1 else 'are'}"
        lines.append(f"guard    {said} significantly worse by a ratio above {above:g}")
    for name, count in (("A", compared.only_first), ("B", compared.only_second)):
        if count:
            lines.append(f"left out {formatting.count(count, 'value')} that only {name} has")
    return lines + [f"machines {line.replace('there', 'in A').replace('here', 'in B')}"
                    for line in compared.differences]  # fmt: skip


def compared_document(compared: Comparison, a: str, b: str, above: float | None) -> dict[str, Any]:
    """A comparison as JSON; times in seconds, ratio is B's value over A's.   a, b: the files."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "a": a,
        "b": b,
        "fail_above": above,
        "failed": any(cell.fails(above) for cell in compared.cells),
        "cells": [
            {
                "what": cell.what,
                "value": cell.quantity,
                "a": cell.first.value,
                "b": cell.second.value,
                "ratio": cell.ratio.middle,
                "interval": list(cell.ratio[1:]),
                "verdict": cell.verdict,
                "fails": cell.fails(above),
            }
            for cell in compared.cells
        ],
        "only_in_a": compared.only_first,
        "only_in_b": compared.only_second,
        "machines": list(compared.differences),
    }
