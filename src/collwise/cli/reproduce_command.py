"""`collwise reproduce`: the papers' figures, tables and claims from our own computation."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from collwise.cli import output
from collwise.cli.grouped_command import GroupedCommand
from collwise.cli.parameter_types import BUDGET, FOLDER
from collwise.cli.ranks_option import Communicator, World, on_ranks

COMPUTING_S = 1800.0
"""Seconds that computing everything may take on a slow machine, for a launcher's time limit."""


def _check(options: dict[str, Any]) -> None:
    from collwise.papers.papers_page import make_folder
    from collwise.papers.reproduction import chosen

    chosen(options["paper"], options["items"])
    if not options["only_claims"]:
        make_folder(options["folder"])


@click.command("reproduce", cls=GroupedCommand)
@click.argument("paper", required=False)
@click.argument("items", nargs=-1)
@click.option("--claims", "only_claims", is_flag=True, help="Only judge claims; draw nothing.")
@click.option(
    "--out",
    "folder",
    type=FOLDER,
    default=Path("collwise-papers"),
    help="The folder for the page and the pictures.",
)
@click.option("--budget", type=BUDGET, default=30.0, help="Seconds to measure, on ranks (-n).")
@output.json_option
@on_ranks(lambda options: options["budget"] + COMPUTING_S, _check, optional=True)
def command(
    comm: Communicator | None,
    here: World | None,
    paper: str | None,
    items: tuple[str, ...],
    only_claims: bool,
    folder: Path,
    budget: float,
    as_json: bool,
) -> Callable[[], None]:
    """Run papers again: every figure, every table, and a verdict on every claim.

    PAPER is bruck1996, vandegeijn1991 or hambrusch1998; all if none is given.  ITEMS are figures,
    tables or claims of it, such as fig6, table1, B-c5.  Writes one page with everything, and each
    figure as SVG and PNG.  Needs no MPI; with -n, what the papers measured is also measured on
    that many ranks here.

    \b
        collwise reproduce
        collwise reproduce bruck1996 fig6
        collwise reproduce vandegeijn1991 --claims --json
        collwise lab --hosts 8 -- collwise reproduce bruck1996 fig13
    """  # noqa: D301
    from collwise.papers.claims import counted
    from collwise.papers.papers_page import write
    from collwise.papers.reproduction import chosen, measurable, measure, reproduce
    from collwise.report.tables import Table

    papers = chosen(paper, items)
    measures, measured = measurable(papers, draws=not only_claims), {}
    if comm is not None and here is not None and measures:
        from collwise.tuning.session import Session

        beginning = f"measuring on {comm.size} ranks for about {budget:g} s"
        with (
            output.progress(as_json or comm.rank > 0, beginning) as progress,
            Session(comm, here) as session,
        ):
            measured = measure(measures, session, budget, progress)

    def show_results() -> None:
        with output.progress(as_json, "computing") as progress:
            done = list(reproduce(papers, measured, draws=not only_claims, progress=progress))
            written = [] if only_claims else write(done, folder)
        if as_json:
            files = {"files": [str(path) for path in written]} if written else {}
            output.write_json({"papers": [part.document for part in done], **files})
            return
        for part in done:
            rows = [finding.row for finding in part.findings]
            if rows:
                output.table(Table(part.paper.title, rows, optional=("because", "where")))
                counts = counted(part.findings)
                output.write(", ".join(f"{n} {verdict}" for verdict, n in counts.items() if n))
        output.write(*(str(path) for path in written))

    return show_results
