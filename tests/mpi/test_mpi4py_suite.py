"""mpi4py's own tests under `collwise run`, with no fallback for a call that a plan can serve.

Their sources are downloaded once, to `build/`.
"""

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from tests.mpi.launching import ROOT, Library, mpich

PROGRAM = ROOT / "benchmarks" / "mpi4py_suite.py"
SOURCES = ROOT / "build" / f"mpi4py-{version('mpi4py')}"
SAMPLE_LIMIT_S, FILE_LIMIT_S, LIMIT_S = 100, 900, 4 * 3600
IMPOSSIBLE = "testCAPI (test_objmodel.TestObjModel.testCAPI)"
"""For any subclass of mpi4py's communicators."""


@pytest.fixture(scope="module")
def sources() -> Path:
    if not SOURCES.exists():
        SOURCES.parent.mkdir(exist_ok=True)
        code = (
            "import sys, pathlib; sys.path.insert(0, sys.argv[1]); import mpi4py_suite;"
            "mpi4py_suite.download(sys.argv[2], pathlib.Path(sys.argv[3]))"
        )
        wanted = f"mpi4py=={version('mpi4py')}"
        words = [str(PROGRAM.parent), wanted, str(SOURCES.parent)]
        command = [sys.executable, "-c", code, *words]
        fetched = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        if fetched.returncode:
            said = fetched.stderr.strip().splitlines()[-1:]
            pytest.skip(f"the sources of {wanted} cannot be downloaded: {' '.join(said)}")
    return SOURCES


def outcomes(
    library: Library, sources: Path, folder: Path, limit_s: float, *words: str
) -> list[dict[str, Any]]:
    """What came of the tests; they are ended after so many seconds."""
    kept = folder / "kept.jsonl"
    from_here = os.path.relpath(sources)
    where = "--sources", from_here, "--keep", str(kept), "--out", str(folder)
    ran = library.run_alone(
        str(PROGRAM), *where, "--limit", str(limit_s), *words,
        limit_s=3 * limit_s if "--only" in words else LIMIT_S,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return [json.loads(line) for line in kept.read_text(encoding="utf-8").splitlines()]


def check(every: list[dict[str, Any]]) -> None:
    wrong = [
        f"{one['ranks']} ranks: {test}"
        for one in every
        for test in one["failed"]
        if test not in (*(one["plain"] or ()), IMPOSSIBLE)
    ]
    assert not wrong, "\n".join(wrong)
    assert all(one["tests"] for one in every)
    assert sum(one["planned"] for one in every) > 0


@pytest.mark.mpi
def test_a_sample(sources: Path, tmp_path: Path) -> None:
    words = "--only", "cco_obj", "--ranks", "2"
    check(outcomes(mpich(), sources, tmp_path, SAMPLE_LIMIT_S, *words))


@pytest.mark.mpi
@pytest.mark.exhaustive
def test_everything(mpi: Library, sources: Path, tmp_path: Path) -> None:
    check(outcomes(mpi, sources, tmp_path, FILE_LIMIT_S, "--ranks", "1,2,3,4,5"))
