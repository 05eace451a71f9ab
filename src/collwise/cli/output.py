"""What users see: tables and progress on a terminal, plain text in a pipe, JSON on request."""

import json
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import click
from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from collwise.system.launcher import launched

_TERMINAL = "COLLWISE_TERMINAL"
"""Set for ranks that we start: which streams are a terminal, and its width, such as "err 120"."""

PIPED = 250
"""Columns where no terminal says how many there are."""

_NUMBER = re.compile(r"-|[\d.,×]+( [mµn]?s)?")
_PROSE = 24
"""Characters: longer texts are sentences or labels, which may wrap."""
_SHORT = 5
"""Characters: the words of such a title stay together."""
_LABEL = 32
"""Characters: longer texts are sentences, which wrap anywhere."""
_SETTINGS = re.compile(r"(?<=\S)\((?=\w+=)")
_REMARK = re.compile(r"(?<=\S) \(")
_GAP = re.compile(r"(?<=\S) {2,}(?=\S)")
"""What stands between the columns of a line of text."""
_ROOM = 30
"""Characters that a text needs, to be wrapped beside what stands before it."""

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document, nothing else."
)


def passed_on() -> dict[str, str]:
    """The environment that tells started ranks about the terminal they write to."""
    streams = [name for name in ("out", "err") if getattr(sys, f"std{name}").isatty()]
    width = shutil.get_terminal_size((100, 24)).columns
    return {_TERMINAL: " ".join([*streams, str(width)])}


def console(stream: str = "out") -> Console:
    """A console for "out" or "err": coloured on a terminal, plain and wide in a pipe."""
    file = sys.stdout if stream == "out" else sys.stderr
    if told := os.environ.get(_TERMINAL):
        *streams, width = told.split()
        terminal = stream in streams
        return Console(file=file, force_terminal=terminal, width=int(width) if terminal else PIPED)
    if launched() is not None or not file.isatty():  # Open MPI gives ranks a terminal of its own
        return Console(file=file, force_terminal=False, width=PIPED)
    return Console(file=file)


def table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], spare: Sequence[str] = ()
) -> None:
    """Print a table; columns of numbers (with their units) are right-aligned.

    Where the terminal is too narrow, cells break before what is in brackets and sentences wrap;
    then columns are left out: the `spare` ones, in this order, as far as need be.
    """
    out = console()
    made = _table(title, columns, rows)
    if _measured(out, made).maximum <= out.width:
        out.print(made)
        return
    columns = [_broken(column) for column in columns]
    rows = [[_folded(cell) for cell in row] for row in rows]
    left_out: list[str] = []
    made = _table(title, columns, rows, narrow=True)
    for name in spare:
        if _measured(out, made).minimum <= out.width:
            break
        kept = [i for i, column in enumerate(columns) if column != _broken(name)]
        columns, rows = [columns[i] for i in kept], [[row[i] for i in kept] for row in rows]
        left_out.append(name)
        made = _table(title, columns, rows, narrow=True)
    if _measured(out, made).minimum > out.width:
        made = _table(title, columns, rows, narrow=True, least=0)  # cells are folded, somewhere
    out.print(made)
    if left_out:
        write(f"no room for {', '.join(left_out)}: widen the terminal, or take --json")


def _folded(cell: str) -> str:
    """A cell with what is in brackets on a line of its own, unless it is a sentence."""
    bracket = _SETTINGS if _SETTINGS.search(cell) or len(cell) > _LABEL else _REMARK
    return bracket.sub("\n(", cell, count=1)


def _broken(title: str) -> str:
    """A title with a line for each of its words, unless it is short."""
    return title.replace(" ", "\n") if len(title) > _SHORT else title


def _measured(out: Console, made: Table) -> Measurement:
    """The least and the largest width that a table can make use of."""
    return out.measure(made, options=out.options.update(max_width=10_000))


def _table(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    narrow: bool = False,
    least: int = _PROSE,
) -> Table:
    """A table.  least: where it is narrow, the width down to which cells are not wrapped."""
    made = Table(
        title=title or None,
        title_justify="left",
        title_style="bold",
        header_style="bold",
        box=box.SIMPLE_HEAD if narrow else box.HEAVY_HEAD,
        collapse_padding=narrow,
        pad_edge=not narrow,
    )
    for i, column in enumerate(columns):
        cells = [row[i] for row in rows]
        numeric = all(_NUMBER.fullmatch(cell) for cell in cells)
        width = max(len(line) for cell in (column, *cells) for line in cell.split("\n"))
        made.add_column(
            column,
            justify="right" if numeric else "left",
            overflow="fold",
            min_width=min(width, least) if narrow else None,
        )
    for row in rows:
        made.add_row(*row)
    return made


def write(*lines: str, stream: str = "out") -> None:
    """Print lines of text without markup: wrapped on a terminal, as they are in a pipe."""
    to = console(stream)
    for line in lines:
        for piece in _wrapped(line, to.width) if to.is_terminal else [line]:
            to.print(piece, markup=False, highlight=False, soft_wrap=True)


def _wrapped(line: str, width: int) -> list[str]:
    """A line in pieces of at most `width`, below the text of its last column; words stay whole."""
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
    """Print one JSON document: no NaN, no infinities, keys in their order."""
    click.echo(json.dumps(_finite(document), indent=2, ensure_ascii=False, allow_nan=False))


def _finite(value: Any) -> Any:
    """JSON has no infinity: an unbounded interval ends in null."""
    if isinstance(value, float) and (value != value or value in (float("inf"), -float("inf"))):
        return None
    if isinstance(value, Mapping):
        return {str(k): _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return value


@contextmanager
def progress(quiet: bool, beginning: str = "") -> Iterator[Any]:
    """A progress bar on standard error if that is a terminal: call it with (what, 0 … 1).

    beginning: what is said at the start, once, where there is no terminal.
    """
    err = console("err")
    if quiet or not err.is_terminal:
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
    ) as bar:
        task = bar.add_task("starting", total=1.0)
        yield lambda what, done: bar.update(task, description=what, completed=done)


def is_rank_zero() -> bool:
    """Whether this process is the one that prints (known before MPI is loaded)."""
    seen = launched()
    return seen is None or seen.rank == 0
