"""Reads the code blocks of README and site, and runs them as a reader would.

A block's language says what becomes of it.  A `title` names a file, which is written.  Of `console`
blocks lines after `$` are run by bash, and what stands below is what they print, `…` for anything;
`python` is run, all such blocks of a page as one program; `toml` and `json` are read; `text` is
only shown, or is what the program before it prints.

A comment before a block says how: `<!-- test: … -->` with

- `exhaustive`: it takes longer than seconds, and runs under that marker only;
- `elsewhere, REASON`: it cannot run here; its commands are understood all the same;
- `ranks N`: a program for so many ranks;   - `exit N`: commands end with this code;
- `printed`: a `text` block is what the program before it printed.
"""

import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import click
import pytest

from collwise.cli import collwise, main
from tests.in_turn import printed_in_turn

ROOT = Path(__file__).resolve().parents[1]
LANGUAGES = {"console", "python", "toml", "json", "text"}
HERE = ("plan", "simulate", "export", "compare", "wisdom")
"""Commands that start no processes: they run in this one, which is quicker."""
OPERATORS = {"|", "&&", ";", ">"}
"""Of the shell, between commands."""
LIMIT_S = 240
"""For one command, or one program."""

_BLOCK = re.compile(
    r"(?:<!-- test: (?P<how>[^>]*) -->\n)?^```(?P<language>\w*)(?: title=\"(?P<title>[^\"]+)\")?\n"
    r"(?P<text>.*?)^```$",
    re.M | re.S,
)


@dataclass(frozen=True)
class Block:
    """A code block of a page; `line` is its first line."""

    line: int
    how: str
    language: str
    title: str | None
    text: str

    @property
    def waits(self) -> bool:
        """Whether it takes long, or cannot run here."""
        return self.how.startswith(("exhaustive", "elsewhere"))

    def commands(self) -> Iterator[tuple[str, str]]:
        """The commands of a console block, each with what it should print."""
        for part in re.split(r"^\$ ", self.text, flags=re.M)[1:]:
            lines = part.splitlines(keepends=True)
            last = next(k for k, line in enumerate(lines) if not line.endswith("\\\n"))
            yield "".join(lines[: last + 1]).strip(), "".join(lines[last + 1 :])


def pages() -> list[Path]:
    """README and whatever else is a page of the site."""
    others = (ROOT / name for name in ("CONTRIBUTING.md", "SECURITY.md"))
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *others]
    return [page for page in found if page.name != "contents.md"]


def blocks(page: Path) -> list[Block]:
    """The code blocks of a page, in their order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            text[: found.start("language")].count("\n") + 1,
            found["how"] or "",
            found["language"],
            found["title"],
            found["text"],
        )
        for found in _BLOCK.finditer(text)
    ]


@cache
def printed_on_ranks(ranks: int) -> dict[str, str]:
    """What the programs of all pages for so many ranks print, by their text."""
    every = (block for page in pages() for block in blocks(page))
    texts = [block.text for block in every if block.how == f"ranks {ranks}"]
    with TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{number}.py" for number in range(len(texts))]
        for path, text in zip(paths, texts, strict=True):
            path.write_text(text, encoding="utf-8")
        return dict(zip(texts, printed_in_turn(ranks, paths), strict=True))


def not_understood(block: Block) -> list[str]:
    """What collwise would not understand of a block's command lines."""
    troubles = []
    for command, _ in block.commands():
        words = shlex.split(command.replace("\\\n", " "), comments=True)
        while "collwise" in words:
            words = words[words.index("collwise") + 1 :]
            ends = [k for k, word in enumerate(words) if word in ("&&", "|", ";", "--", ">", "-m")]
            try:
                _parse(collwise, words[: ends[0] if ends else None])
            except click.UsageError as error:
                troubles.append(f"{command}: {error.message}")
    return troubles


def _parse(command: click.Command, words: list[str]) -> None:
    settings = {**collwise.context_settings, **command.context_settings}  # click keeps what -h is
    with click.Context(command, info_name=command.name, **settings) as context:
        _, rest, _ = command.make_parser(context).parse_args(list(words))
        if isinstance(command, click.Group) and rest:
            under = command.get_command(context, rest[0])
            if under is None:
                raise click.UsageError(f"there is no command {rest[0]!r}")
            _parse(under, rest[1:])


@dataclass
class Reader:
    """Runs the blocks of one page in a folder, one after another."""

    folder: Path
    names: dict[str, Any] = field(default_factory=dict)
    printed: str = ""

    def environment(self) -> dict[str, str]:
        """A home of its own, no settings, and the commands of this environment first."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("COLLWISE", "COLUMNS"))}
        return {
            **kept,
            "HOME": str(self.folder),
            "XDG_DATA_HOME": str(self.folder / "data"),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "MPLCONFIGDIR": str(self.folder / "matplotlib"),
        }

    def read(self, block: Block) -> None:
        """Run, write or read one block; raises AssertionError if it is not as the page says."""
        assert block.language in LANGUAGES, "a block says its language"
        if block.title is not None:
            path = self.folder / block.title
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        if block.language == "toml":
            tomllib.loads(block.text)
        elif block.language == "json":
            json.loads(block.text)
        elif block.language == "console":
            code = int(block.how.partition("exit ")[2] or 0)
            for command, shown in block.commands():
                self._command(command, shown, code)
        elif block.language == "python" and block.title is None:
            self._program(block)
        elif block.how == "printed":
            self._compare(self.printed, block.text)

    def _command(self, command: str, shown: str, code: int) -> None:
        words = shlex.split(command.replace("\\\n", " "))
        if words[0] == "collwise" and words[1] in HERE and not OPERATORS & {*words}:
            ended_with, printed = self._here(words)
        else:
            ended_with, printed = self._in_a_shell(command)
        assert ended_with == code, f"$ {command}\n{printed}"
        if shown:
            self._compare(printed, shown)

    def _here(self, arguments: list[str]) -> tuple[int, str]:
        output = io.StringIO()
        with (
            contextlib.chdir(self.folder),
            mock.patch.dict(os.environ, self.environment(), clear=True),
            mock.patch.object(sys, "argv", arguments),
            contextlib.redirect_stdout(output),
            contextlib.redirect_stderr(output),
            pytest.raises(SystemExit) as end,
        ):
            main()
        assert isinstance(end.value.code, int)
        return end.value.code, output.getvalue()

    def _in_a_shell(self, command: str) -> tuple[int, str]:
        ended = subprocess.run(
            ["bash", "-c", command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=LIMIT_S,
            cwd=self.folder,
            env=self.environment(),
            check=False,
        )
        return ended.returncode, ended.stdout

    def _program(self, block: Block) -> None:
        if ranks := block.how.partition("ranks ")[2]:
            self.printed = printed_on_ranks(int(ranks))[block.text]
            return
        output = io.StringIO()
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(output):
            exec(compile(block.text, f"line {block.line}", "exec"), self.names)
        self.printed = output.getvalue()

    def _compare(self, printed: str, shown: str) -> None:
        """Line by line, without blanks at the ends; `…` stands for anything, also lines."""

        def lines(text: str) -> str:
            return "".join(f"{line.rstrip()}\n" for line in text.strip("\n").splitlines())

        pattern = re.sub(r"^…\\\n", ".*?", re.escape(lines(shown)), flags=re.M)
        pattern = pattern.replace("…", ".*?")
        assert re.fullmatch(pattern, lines(printed), re.S), f"printed:\n{printed}\nshown:\n{shown}"
