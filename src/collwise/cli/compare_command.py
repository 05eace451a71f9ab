"""`collwise compare`: two records, cell by cell.  Needs no MPI."""

from fractions import Fraction
from pathlib import Path

import click

from collwise.cli import output
from collwise.cli.grouped_command import GroupedCommand
from collwise.cli.parameter_types import EXACT, FILE


@click.command("compare", cls=GroupedCommand)
@click.argument("first", metavar="A", type=FILE)
@click.argument("second", metavar="B", type=FILE)
@click.option(
    "--fail-above",
    "above",
    type=EXACT,
    help="End with exit code 1 if a value of B is significantly worse than A's, by a ratio above"
    " this, such as 1.1.",
)
@output.json_option
def command(first: Path, second: Path, above: Fraction | None, as_json: bool) -> int:
    """Compare record B with record A, value by value, the worst first.

    A record is what bench (or its --record), tune or measure printed with --json, or a saved
    profile: yesterday's and today's, or two libraries', or two machines'.  B/A above 1 is slower.
    A difference is significant if the 95 % interval of the ratio does not hold 1: of many values
    that have not changed, one in 40 looks worse by chance, so leave room with --fail-above.

    \b
        collwise bench -n 2 --bytes 8:1M --record monday.json
        collwise bench -n 2 --bytes 8:1M --record tuesday.json
        collwise compare monday.json tuesday.json --fail-above 1.1
    """  # noqa: D301
    from collwise.report.comparison_tables import (
        compared_document,
        compared_lines,
        compared_table,
    )
    from collwise.tuning.comparison import compare
    from collwise.tuning.race_records import read_record

    compared = compare(read_record(first), read_record(second))
    limit = None if above is None else float(above)
    if as_json:
        output.write_json(compared_document(compared, str(first), str(second), limit))
    else:
        output.table(compared_table(compared, limit, f"A: {first}, B: {second}"))
        output.write(*compared_lines(compared, limit))
    return int(any(cell.fails(limit) for cell in compared.cells))
