"""Odd command lines as processes of their own, and what every output does with odd files."""

import ast
import json
import os
import random
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import collwise
from tests.attack.test_command_line import RIGHT, generated, odd_files  # noqa: F401

PROCESSES, EXHAUSTIVE_PROCESSES = 3, 60
LIMIT_S = 120

WRITERS = {
    "system/files.py": "it replaces files",
    "cli/failures.py": "the exit code, for the process that waits for it",
    "lab/hosts.py": "files that only the lab sees",
    "lab/supervisor.py": "a script that only the lab sees",
}
"""Modules that write files themselves, and why they may; all others call `replace_file`."""
WRITING = {"write_text", "write_bytes", "to_file", "tofile", "savetxt", "dump"}


def ended(words: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "collwise", *words],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=LIMIT_S,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def attack(count: int, seed: int) -> None:
    chance = random.Random(seed)
    problems = []
    for _ in range(count):
        words = [word.replace("\0", "") for word in generated(chance)]
        told = ended(words)
        shown = " ".join(word[:40] for word in words)
        if told.returncode not in (0, 1, 2) or "Traceback" in told.stderr + told.stdout:
            problems.append(f"{shown}: {told.returncode}: {told.stderr[-400:]}")
        elif told.returncode and not told.stderr.strip():
            problems.append(f"{shown}: {told.returncode} without a word")
        elif not told.returncode and told.stdout.startswith("{"):
            json.loads(told.stdout)
    assert not problems, "\n".join(problems)
    assert not list(Path().rglob("*.tmp")), "half a file was left"


@pytest.mark.usefixtures("odd_files")
def test_odd_processes() -> None:
    attack(PROCESSES, 1)


@pytest.mark.exhaustive
@pytest.mark.usefixtures("odd_files")
def test_many_odd_processes() -> None:
    attack(EXHAUSTIVE_PROCESSES, 2)


def test_one_way_to_write_files() -> None:
    """So that all outputs of all commands treat devices, pipes, links and full disks alike."""
    package = Path(collwise.__file__).parent
    found = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in WRITING
    }
    assert found <= WRITERS.keys()


@pytest.fixture
def null(tmp_path: Path) -> Path:
    """A null device of the test's own; its name is one for pictures."""
    path = tmp_path / "null.png"
    try:
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 3))
        path.write_bytes(b"x")
    except PermissionError:
        pytest.skip("making a device needs root")
    return path


@pytest.mark.parametrize("command", ["plan", "simulate"])
@pytest.mark.usefixtures("odd_files")
def test_a_device_stays_a_device(null: Path, command: str) -> None:
    words = next(line for line in RIGHT if line[0] == command)
    told = ended([*words, "--picture", str(null), "--json"])
    assert (told.returncode, told.stderr) == (0, "")
    paths = [str(null), str(null.with_stem("null-timeline"))]
    assert json.loads(told.stdout)["pictures"] == paths
    assert stat.S_ISCHR(null.stat().st_mode)
