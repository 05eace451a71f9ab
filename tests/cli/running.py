"""Runs the command line for tests, in this process or in others, and says how it ended."""

import json
import os
import subprocess
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema
import pytest
from json_documents import schema

from tests.mpi.launching import LIMIT_S, Library

LIBRARIES = {"mpich", "openmpi"}
POSTAL = ("--t0", "1e-3", "--lam", "4")
HOCKNEY = ("--alpha", "50us", "--beta", "10ns")


def on_one(library: str) -> pytest.MarkDecorator:
    """The fixture `mpi` is this library; the other one under `exhaustive` only.

    What ranks do under each is for `tests/mpi/programs/`; commands that start them take turns.
    """
    others = [pytest.param(o, marks=pytest.mark.exhaustive) for o in sorted(LIBRARIES - {library})]
    return pytest.mark.parametrize("mpi", [library, *others], indirect=True)


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    def refused(self, *words: str) -> None:
        """It was a bad request: one message that holds these words, and nothing else."""
        assert self.code == 2, self
        assert self.out == "", self
        self.explained(*words)

    def explained(self, *words: str) -> None:
        assert "Traceback" not in self.err, self.err
        assert "report it" not in self.err, self.err
        for word in words:
            assert self.err.count(word) == 1, f"{word!r} should be said once in:\n{self.err}"

    def printed(self, code: int = 0) -> str:
        """It ended with this code, and printed this, without a word on standard error."""
        assert (self.code, self.err) == (code, ""), self
        return self.out

    def document(self, schema: str, code: int = 0) -> dict[str, Any]:
        """It ended with this code, and printed this one document, of the schema of this name."""
        found: dict[str, Any] = json.loads(self.printed(code))
        check_schema(schema, found)
        return found


def document(collwise: Callable[..., Ended], *arguments: object, code: int = 0) -> dict[str, Any]:
    """The one JSON document that a command prints, which is what its schema says."""
    words = [str(word) for word in arguments]
    name = words[0]
    if name == "wisdom":
        name += f"-{words[1]}"
    elif name == "export" and words[1] in ("mpich", "openmpi", "intel"):
        name += "-rules"
    elif name == "simulate" and "--goal" in words:
        name += "-goal"
    return collwise(*arguments, "--json").document(name, code)


@cache
def _validator(name: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(schema(name))


def check_schema(name: str, made: dict[str, Any]) -> None:
    """The document is what the schema of this name says: no field less, none more."""
    validator = _validator(name)
    wrong = [f"{list(e.absolute_path)}: {e.message}" for e in validator.iter_errors(made)]
    assert not wrong, wrong
    assert not validator.is_valid({**made, "surplus": 1})


def run(
    command: Sequence[str | Path],
    folder: Path,
    environment: dict[str, str],
    limit_s: float = LIMIT_S,
    **more: Any,
) -> Ended:
    """Run a process in a folder; a hang fails the test with what was said."""
    ran = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env=environment,
        text=True,
        timeout=limit_s,
        check=False,
        stdin=subprocess.DEVNULL,
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more},
    )
    return Ended(ran.returncode, ran.stdout or "", ran.stderr or "")


def alone(library: Library, *arguments: str) -> list[str]:
    """The command line without a launcher."""
    return [str(library.python), "-m", "collwise", *arguments]


def launched(library: Library, *arguments: str) -> list[str]:
    """The command line on 2 ranks that a launcher starts."""
    return library.command(2, "-m", "collwise", *arguments)


def process(library: Library, folder: Path, *arguments: str, **more: Any) -> Ended:
    """How the command line ended in a folder, without a launcher."""
    return run(alone(library, *arguments), folder, environment(library, folder), **more)


def environment(library: Library, folder: Path, **more: str) -> dict[str, str]:
    """Where a profile is looked for and saved in `folder`, and nowhere else."""
    return library.environment(
        COLLWISE_PROFILE=str(folder / "profile.json"), XDG_DATA_HOME=str(folder), **more
    )


def processes_with(*marks: str) -> list[int]:
    """Processes that have these texts in their environment (their children inherit it)."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            try:
                variables = (folder / "environ").read_bytes()
                if all(mark.encode() in variables for mark in marks):
                    found.append(int(folder.name))
            except OSError:
                pass  # it has ended, or is not ours
    return found


def await_none(mark: str, limit_s: float = LIMIT_S) -> list[int]:
    """Wait until no such process is left; those that are after the limit."""
    deadline = time.monotonic() + limit_s
    while (left := processes_with(mark)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left
