"""The lowest versions of all dependencies that pyproject.toml allows are installed, and work."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.mpi.launching import Library, outcomes

ROOT = Path(__file__).resolve().parents[1]
PURE = ("model", "schedule", "profiles", "timing", "measure", "planner", "verifier")
"""Rooms that need no MPI."""


def install(folder: Path, *words: str) -> None:
    """Install into the environment `folder`, whose mpicc compiles mpi4py."""
    here = {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "CFLAGS": "-O0"}
    command = [os.environ.get("UV", "uv"), "pip", "install", "--quiet", "--python"]
    command += [str(folder / "bin" / "python"), *words]
    subprocess.run(command, cwd=ROOT, env=here, check=True, timeout=1500)


@pytest.mark.exhaustive
@pytest.mark.mpi
def test_the_lowest_versions(tmp_path: Path) -> None:
    """numpy 1.26 had no np.bool: nothing could be imported."""
    folder = tmp_path / "lowest"
    uv = os.environ.get("UV", "uv")
    subprocess.run([uv, "venv", "--quiet", "--python", "3.11", folder], check=True, timeout=120)
    install(folder, "mpich", "--group", "test")
    install(folder, "--resolution", "lowest-direct", "--no-binary", "mpi4py", ".")
    library = Library("mpich", folder / "bin" / "python")
    said = "from importlib.metadata import version as v; print(v('numpy'), v('mpi4py'))"
    assert library.run_alone("-c", said).stdout.split() == ["1.26.0", "4.0.0"]
    tests = [f"tests/{room}" for room in PURE]
    words = ["-m", "pytest", "-q", "-n0", "--no-cov", "-p", "no:cacheprovider", *tests]
    ran = library.run_alone(*words, limit_s=1500, PYTHONPATH="")
    assert ran.returncode == 0, ran.stdout[-3000:]
    told = outcomes(library, "compiled", [3], ["drop_in", "choosing", "requests"], limit_s=120)
    assert (told.end, [*filter(None, told.complaints.values())]) == ("", [])
    assert told.complaints
