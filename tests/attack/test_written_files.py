"""What all outputs do with devices and other odd files: there is one way to write."""

import ast
import json
import os
import stat
from pathlib import Path

import pytest

import collwise as cw
from tests.attack.test_command_line import RIGHT, odd_files  # noqa: F401
from tests.cli.conftest import Run, collwise, folder  # noqa: F401

WRITERS = {
    "system/files.py": "it replaces files",
    "cli/failures.py": "the exit code, for the process that waits for it",
    "lab/hosts.py": "files that only the lab sees",
    "lab/supervisor.py": "a script that only the lab sees",
}
"""Modules that write files themselves, and why they may; all others call `replace_file`."""
WRITING = {"write_text", "write_bytes", "to_file", "tofile", "savetxt", "dump"}


def test_one_way_to_write_files() -> None:
    """So that all outputs of all commands treat devices, pipes, links and full disks alike."""
    package = Path(cw.__file__).parent
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


@pytest.mark.usefixtures("odd_files")
def test_a_device_stays_a_device(null: Path, collwise: Run) -> None:  # noqa: F811
    told = collwise(*next(line for line in RIGHT if line[0] == "plan"), "--picture", null, "--json")
    assert (told.code, told.err) == (0, "")
    paths = [str(null), str(null.with_stem("null-timeline"))]
    assert json.loads(told.out)["pictures"] == paths
    assert stat.S_ISCHR(null.stat().st_mode)
