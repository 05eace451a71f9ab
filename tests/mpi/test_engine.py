"""The engine's core by itself, with the sanitizers; and builds with and without a compiler."""

import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.mpi.launching import ROOT, Library, mpich

CORE = ROOT / "src" / "collwise" / "mpi" / "engine" / "core"
COMPILER = shutil.which("cc") or shutil.which("gcc")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
LIMIT_S = 120


@needs_compiler
def test_the_core_does_nothing_undefined(tmp_path: Path) -> None:
    program = tmp_path / "core_test"
    sources = [ROOT / "tests" / "mpi" / "core" / "core_test.c", *sorted(CORE.glob("*.c"))]
    command = [
        str(COMPILER), "-std=c11", "-D_POSIX_C_SOURCE=200809L", "-g", "-O1", "-Wall", "-Wextra",
        "-Werror", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", f"-I{CORE}",
        *map(str, sources), "-o", str(program), "-pthread",
    ]  # fmt: skip
    subprocess.run(command, check=True, timeout=LIMIT_S)
    ran = subprocess.run([program], capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize(
    ("chosen", "prints"), [("python", "python COLLWISE_ENGINE=python"), ("", "compiled ")]
)
def test_the_engine_is_chosen_by_the_environment(chosen: str, prints: str) -> None:
    if not chosen and not list(CORE.parent.glob("_engine.*so")):
        pytest.skip("the extension is not built")
    ran = _served_by(mpich(), COLLWISE_ENGINE=chosen)
    assert (ran.stdout.strip("\n"), ran.stderr) == (prints, "")


def test_an_unknown_engine_is_refused() -> None:
    ran = _served_by(mpich(), COLLWISE_ENGINE="rust")
    assert ran.returncode == 1
    assert "engine 'rust': there is none; known: compiled, python" in ran.stderr


def _served_by(library: Library, **environment: str) -> subprocess.CompletedProcess[str]:
    show = "from collwise.mpi.engine.loading import SERVING as s; print(s.name, s.why)"
    return subprocess.run(
        [str(library.python), "-c", show],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
        env=library.environment(**environment),
    )


@pytest.mark.exhaustive
@pytest.mark.parametrize("compiler", ["", "/bin/false"])
def test_a_wheel_and_a_source_distribution_are_built(tmp_path: Path, compiler: str) -> None:
    """Without a compiler, too: then Python walks."""
    environment = mpich().environment() | ({"CC": compiler} if compiler else {})
    command = ["uv", "build", "--quiet", "--out-dir", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, env=environment, check=True, timeout=600)
    [wheel], [source] = tmp_path.glob("*.whl"), tmp_path.glob("*.tar.gz")
    assert "-cp311-abi3-" in wheel.name
    names = zipfile.ZipFile(wheel).namelist()
    assert any("_engine" in name and name.endswith("so") for name in names) == (not compiler)
    assert {"collwise/py.typed", "collwise/lab/poll_shim.c"} <= set(names)
    assert any(name.endswith(".jinja") for name in names)
    with tarfile.open(source) as archive:
        packed = archive.getnames()
    assert {path.name for path in CORE.glob("*.h")} <= {name.rsplit("/")[-1] for name in packed}
