"""Two records compared: a table and lines."""

from collwise.report.tables import Table
from collwise.system import formatting
from collwise.tuning.comparison import ComparedCell, Comparison


def compared_table(compared: Comparison) -> Table:
    """A table of every value that both records have, the worst first."""
    rows = [
        {
            "what": cell.what,
            "value": cell.value,
            "A": _value(cell, cell.a),
            "B": _value(cell, cell.b),
            "B/A": f"{cell.ratio:.2f}",
            "95 %": "{:.2f} … {:.2f}".format(*cell.interval) if cell.interval else "not known",
            "verdict": "fails" if cell.fails else cell.verdict,
        }
        for cell in compared.cells
    ]
    return Table(f"A: {compared.a}, B: {compared.b}", rows, ("95 %",))


def _value(cell: ComparedCell, value: float) -> str:
    return formatting.time(value) if cell.unit == "s" else formatting.significant(value)


def compared_lines(compared: Comparison) -> list[str]:
    """Lines: how many values are worse, better, failing or left out; how the machines differ."""
    verdicts = [cell.verdict for cell in compared.cells]
    worse, better = verdicts.count("worse"), verdicts.count("better")
    lines = [
        f"compared {formatting.count(len(verdicts), 'value')}: B is significantly worse in {worse},"
        f" better in {better}"
    ]
    if compared.fail_above is not None:
        failed = sum(cell.fails for cell in compared.cells)
        said = "none is" if not failed else f"{failed} {'is' if failed == 1 else 'are'}"
        ratio = f"{compared.fail_above:g}"
        lines.append(f"guard    {said} significantly worse by a ratio above {ratio}")
    for name, count in (("A", compared.only_in_a), ("B", compared.only_in_b)):
        if count:
            lines.append(f"left out {formatting.count(count, 'value')} that only {name} has")
    return lines + [f"machines {line}" for line in compared.machines]
