"""Starts ranks for tests, on each MPI library, with a time limit on every wait."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.mpi.turns import Turns

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 150
"""For one program."""
OPTIONS = {"openmpi": ("--oversubscribe", "--bind-to", "none")}
"""What a library's launcher is told in addition."""


@dataclass(frozen=True)
class Library:
    """An MPI library in an environment of its own."""

    name: str
    python: Path

    def command(self, ranks: int, *arguments: str) -> list[str]:
        return [
            str(self.python.parent / "mpiexec"), *OPTIONS.get(self.name, ()), "-n", str(ranks),
            str(self.python), *arguments,
        ]  # fmt: skip

    def environment(self, **more: str) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("COLLWISE")}
        return {
            **kept,
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "I_MPI_PIN": "0",
            "XDG_DATA_HOME": str(ROOT / "no-such-folder"),
            **more,
        }

    def run(
        self, ranks: int, *arguments: str, limit_s: float = LIMIT_S, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run Python with these arguments on ranks; a hang fails the test with its output."""
        return self._run(self.command(ranks, *arguments), limit_s, environment)

    def run_alone(
        self, *arguments: str, limit_s: float = LIMIT_S, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run Python with these arguments in one process, without a launcher."""
        return self._run([str(self.python), *arguments], limit_s, environment)

    def _run(
        self, command: list[str], limit_s: float, environment: dict[str, str]
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=limit_s,
            env=self.environment(**environment),
            cwd=ROOT,
            check=False,
            stdin=subprocess.DEVNULL,
        )


def mpich() -> Library:
    """The library of this very environment."""
    return Library("mpich", Path(sys.executable))


def openmpi() -> Library:
    return _in_its_own_environment("openmpi", "ompi")


def intel() -> Library:
    return _in_its_own_environment("intel", "intel")


def _in_its_own_environment(name: str, group: str) -> Library:
    """The library's wheel, in an environment of its own that is made when it is missing."""
    folder = ROOT / f".venv-{group}"
    subprocess.run(
        [
            os.environ.get("UV", "uv"), "sync", "--quiet", "--frozen",
            "--no-default-groups", "--group", group, "--group", "test",
        ],
        cwd=ROOT,
        env={**os.environ, "UV_PROJECT_ENVIRONMENT": str(folder)},
        check=True,
        timeout=600,
    )  # fmt: skip
    return Library(name, folder / "bin" / "python")


@dataclass(frozen=True)
class Outcomes:
    """What ranks told.

    complaints: by the number of ranks, program and check, those of the ranks (none: it passed).
    end: what was wrong with the end of the run; empty if nothing was.
    """

    complaints: dict[tuple[int, str, str], list[str]]
    end: str


def rounds(sizes: Iterable[int]) -> list[list[int]]:
    """These numbers of ranks, those together that the greatest of them has room for."""
    packed: list[list[int]] = []
    for size in sorted(sizes, reverse=True):
        for one in packed:
            if sum(one) + size <= packed[0][0]:
                one.append(size)
                break
        else:
            packed.append([size])
    return packed


def outcomes(
    library: Library,
    engine: str,
    sizes: Iterable[int],
    programs: Sequence[str],
    turns: Turns = (),
    limit_s: float = LIMIT_S,
    without: Sequence[str] = (),
    **environment: str,
) -> Outcomes:
    """Start ranks once, for all the checks of these programs on these numbers of ranks.

    turns: groups of numbers of ranks; of each, a check runs on one only.
    engine: "python", or "compiled", which is what runs where nothing is said, if it is built.
    limit_s: for each program in each round.   without: checks that are left out.
    """
    parts = rounds(sizes)
    ranks, words = parts[0][0], ["+".join(map(str, one)) for one in parts]
    limit_s *= len(parts) * len(programs)
    words += ["|".join(map(str, group)) for group in turns if len(group) > 1]
    words += [f"-{check}" for check in without]
    try:
        command = "-m", "tests.mpi.programs", *words, *programs
        environment["COLLWISE_ENGINE"] = engine.replace("compiled", "")
        ran = library.run(ranks, *command, limit_s=limit_s, **environment)
        said, errors, end = ran.stdout, ran.stderr, f"exit code {ran.returncode}"
        well = ran.returncode == 0 and not errors.strip()
    except subprocess.TimeoutExpired as late:
        said, errors = (_text(pipe) for pipe in (late.stdout, late.stderr))
        end, well = f"{ranks} ranks hung", False
    complaints = {}
    for line in said.splitlines():
        if line.startswith("check:"):
            one = json.loads(line.removeprefix("check:"))
            complaints[one["ranks"], one["program"], one["name"]] = one["complaints"]
    return Outcomes(complaints, "" if well else f"{end}\n{errors}\n{said[-2000:]}")


def _text(pipe: bytes | str | None) -> str:
    return pipe.decode(errors="replace") if isinstance(pipe, bytes) else pipe or ""
