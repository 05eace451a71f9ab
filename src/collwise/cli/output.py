"""What users see: tables and progress on a terminal, plain text in a pipe, JSON on request.

`deliver` shows results, and saves each of them even if another cannot be saved.
"""

import json
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import click
import msgspec
from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table as Grid

from collwise.errors import CollwiseError
from collwise.report.tables import Saved, Table
from collwise.system.launcher import launched

_TERMINAL = "COLLWISE_TERMINAL"
"""Environment variable that tells started ranks which streams are a terminal, and its width."""

PIPED = 250
"""The width in characters where neither a terminal nor the variable COLUMNS gives one."""

_NUMBER = re.compile(r"-|[\d.,× ]+( ([mµn]?s|([KMG]i)?B))?")
_PROSE = 24
"""Cells of more characters than this are sentences or labels, which may wrap."""
_SHORT = 5
"""A column's title of at most this many characters stays on one line."""
_LABEL = re.compile(r"([^(]{1,32}?) ?(\((?:\w+=.*|[^()]*)\))")
"""A short text and, in brackets, the settings or the remark at its end."""
_GAP = re.compile(r"(?<=\S) {2,}(?=\S)")
"""The blanks between two columns in a line of text."""
_ROOM = 30
"""A line's last column is wrapped within the column if there is room for this many characters."""

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document, nothing else."
)


def passed_on() -> dict[str, str]:
    """Environment variables that tell started ranks about the terminal to which they write."""
    streams = [name for name in ("out", "err") if getattr(sys, f"std{name}").isatty()]
    width = shutil.get_terminal_size((100, 24)).columns
    return {_TERMINAL: " ".join([*streams, str(width)])}


def console(stream: str = "out") -> Console:
    """A console for "out" or "err": coloured on a terminal, plain and wide in a pipe."""
    file = sys.stdout if stream == "out" else sys.stderr
    told = os.environ.get(_TERMINAL, "").split()
    *terminals, width = told or ["0"]
    if stream in terminals:
        return Console(file=file, force_terminal=True, width=int(width))
    if not told and launched() is None and file.isatty():
        return Console(file=file)  # under a launcher Open MPI gives ranks a terminal of its own
    columns = os.environ.get("COLUMNS", "")
    piped = int(columns) if re.fullmatch("[1-9][0-9]{0,4}", columns) else PIPED
    return Console(file=file, force_terminal=False, width=piped)


def table(shown: Table, stream: str = "out") -> None:
    """Print a table; columns of numbers (with their units) are right-aligned.

    On a terminal that is too narrow, cells break before brackets, and sentences wrap.
    If that is not enough, optional columns are left out one by one, in their order.
    """
    out, optional = console(stream), tuple(shown.optional)
    unlimited = out.options.update(max_width=10_000)
    narrow = [(_PROSE, optional[:count]) for count in range(len(optional) + 1)]
    for least, left_out in ((0, ()), *narrow, (1, optional)):  # at last, cells break anywhere
        names = [name for name in shown.columns if name not in left_out]
        rows = [
            {name: _folded(row[name]) if least else row[name] for name in names}
            for row in shown.rows
        ]
        grid = _grid(shown.title, rows, least)
        measured = out.measure(grid, options=unlimited)
        if (measured.minimum if least else measured.maximum) <= out.width:
            break
    with out.capture() as drawn:
        out.print(grid)
    for line in drawn.get().splitlines():
        out.file.write(line.rstrip(" ") + "\n")
    if left_out:
        write(
            f"no room for {', '.join(left_out)}: widen the terminal, or take --json", stream=stream
        )


class Rows:
    """A table whose rows are printed as soon as they are added.

    widths: the least width of each column, in characters, by its title.
    """

    def __init__(self, widths: Mapping[str, int]) -> None:
        self.widths = {title: max(width, len(title)) for title, width in widths.items()}
        self.begun = False

    def add(self, row: Mapping[str, str]) -> None:
        """Print a row.  Before the first row the titles are printed."""
        if not self.begun:
            self._write(dict(zip(self.widths, self.widths, strict=True)))
            self.begun = True
        self._write(row)

    def _write(self, row: Mapping[str, str]) -> None:
        first, *middle, last = (row[title].rjust(width) for title, width in self.widths.items())
        out = console()
        out.file.write("  ".join([first.strip().ljust(len(first)), *middle, last.strip()]) + "\n")
        out.file.flush()


def _folded(cell: str) -> str:
    """The cell; brackets at the end of a label are put on a line of their own."""
    label = _LABEL.fullmatch(cell)
    return "\n".join(label.groups()) if label else cell


def _grid(title: str, rows: Sequence[Mapping[str, str]], least: int) -> Grid:
    """The rich table to print.

    least: on a narrow terminal, the least width in characters to wrap a column to; 0 elsewhere.
    """
    grid = Grid(
        title=title or None,
        title_justify="left",
        title_style="bold",
        header_style="bold",
        box=box.SIMPLE_HEAD if least else box.HEAVY_HEAD,
        collapse_padding=bool(least),
        pad_edge=not least,
    )
    for name in rows[0] if rows else ():
        cells = [row[name] for row in rows]
        header = name.replace(" ", "\n") if least and len(name) > _SHORT else name
        numeric = all(_NUMBER.fullmatch(cell) for cell in cells)
        lines = [line for cell in cells for line in cell.split("\n")]
        width = max(map(len, (*lines, *header.split("\n"))))
        grid.add_column(
            header,
            justify="right" if numeric else "left",
            overflow="fold",
            min_width=min(width, least) if least else None,
        )
    for row in rows:
        grid.add_row(*row.values())
    return grid


def write(*lines: str, stream: str = "out") -> None:
    """Print lines of text without markup, wrapped on a terminal and unchanged in a pipe."""
    to = console(stream)
    for line in lines:
        for piece in _wrapped(line, to.width) if to.is_terminal else [line]:
            to.print(piece, markup=False, highlight=False, soft_wrap=True)


def _wrapped(line: str, width: int) -> list[str]:
    """Cut a line between words at `width` characters; indent later pieces; a path stays whole."""
    if len(line) <= width:
        return [line]
    margin = len(line) - len(line.lstrip(" "))
    gaps = [gap.end() for gap in _GAP.finditer(line)]
    indent = gaps[-1] if gaps else margin
    if gaps and " " not in line[indent:]:
        return [line]  # a path, which can be copied as long as it is one line
    if indent > max(width - _ROOM, margin):
        indent = margin + 4
    hanging = " " * min(indent, width // 2)
    return textwrap.wrap(
        line, width, subsequent_indent=hanging, break_long_words=False, break_on_hyphens=False
    )


def write_json(document: Mapping[str, Any]) -> None:
    """Print a JSON document; its default "format" is the command's name.  NaN and ∞ become null."""
    header = {"format": click.get_current_context().command_path, "version": 1}
    finite = json.loads(msgspec.json.encode({**header, **document}, enc_hook=float))
    click.echo(json.dumps(finite, indent=2, ensure_ascii=False))


def deliver(
    as_json: bool,
    document: Callable[[], dict[str, Any]],
    show: Callable[[], object],
    savings: Iterable[Callable[[], Saved]],
) -> None:
    """Show results, and save all that can be saved, even if showing them fails.

    document: makes the results' JSON document, to which the saved files are added.   show: prints
    the results for people.   savings: functions that save one thing each.  All of them run, even
    if some raise CollwiseError; the last error is raised, earlier errors are printed.
    """
    if as_json:
        saved, troubles = _save(savings)
        complete = document()
        for files in saved:
            complete |= files.document
        write_json({**complete, "not_saved": list(map(str, troubles))})
    else:
        try:
            show()
        finally:
            saved, troubles = _save(savings)
        write(*(line for files in saved for line in files.lines))
    for trouble in troubles[:-1]:
        write(f"collwise: {trouble}", stream="err")
    for trouble in troubles[-1:]:
        raise trouble


def _save(savings: Iterable[Callable[[], Saved]]) -> tuple[list[Saved], list[CollwiseError]]:
    saved, troubles = [], []
    for save in savings:
        try:
            saved.append(save())
        except CollwiseError as trouble:
            troubles.append(trouble)
    return saved, troubles


@contextmanager
def progress(quiet: bool, beginning: str = "", *, bar: bool = True) -> Iterator[Any]:
    """A context with a function for a progress bar on standard error: call it with (what, 0 … 1).

    beginning: the line to print at the start if no bar is shown.   bar: whether to show a bar if
    standard error is a terminal; False if results are printed meanwhile.
    """
    err = console("err")
    if quiet or not bar or not err.is_terminal:
        if beginning and not quiet:
            click.echo(beginning, err=True)
        yield lambda what, done: None
        return
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        console=err,
        transient=True,
    ) as shown:
        task = shown.add_task("starting", total=1.0)
        yield lambda what, done: shown.update(task, description=what, completed=done)
