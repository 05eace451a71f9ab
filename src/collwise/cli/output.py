"""What users see: tables and progress on a terminal, plain text in a pipe, JSON on request."""

import json
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from collwise.mpi.launcher import launched

_TERMINAL = "COLLWISE_TERMINAL"
"""Set for ranks that we start: which streams are a terminal, and its width, such as "err 120"."""

_NUMBER = re.compile(r"-|[\d.]+( [mµn]?s)?")

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
        return Console(file=file, force_terminal=terminal, width=int(width) if terminal else 160)
    if launched() is not None or not file.isatty():  # Open MPI gives ranks a terminal of its own
        return Console(file=file, force_terminal=False, width=160)
    return Console(file=file)


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; columns of numbers (with their units) are right-aligned."""
    made = Table(title=title, title_justify="left", title_style="bold", header_style="bold")
    for i, column in enumerate(columns):
        numeric = all(_NUMBER.fullmatch(row[i]) for row in rows)
        made.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        made.add_row(*row)
    console().print(made)


def write(*lines: str) -> None:
    """Print lines of text as they are, without markup."""
    for line in lines:
        console().print(line, markup=False, highlight=False, soft_wrap=True)


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
def progress(quiet: bool) -> Iterator[Any]:
    """A progress bar on standard error if that is a terminal: call it with (what, 0 … 1)."""
    err = console("err")
    if quiet or not err.is_terminal:
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
