"""Compiles the poll shim (`poll_shim.c`), a preloaded library that lets waiting ranks sleep."""

import os
import shutil
import subprocess
from pathlib import Path

LONGEST_US = 5000
"""Microseconds that a waiting rank sleeps at most; data wakes it at once.

With 1000, the ranks of a broadcast use 1.5 times as much of the cores (MPICH), or twice (Open MPI).
"""
LONGEST_SHARED_US = 200
"""Microseconds that a waiting rank sleeps at most where ranks share a host: messages in shared
memory do not wake it."""
LONGEST_VARIABLE = "COLLWISE_LAB_POLL_US"
"""The environment variable that tells the shim how many microseconds a rank may sleep."""
NAME = "poll_shim.so"
_LIMIT_S = 30


def compiler() -> str | None:
    """The path of a C compiler; None if there is none."""
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def compile_into(folder: Path) -> bool:
    """Compile the shim into a folder; return False if there is no compiler, or if it fails."""
    if (program := compiler()) is None:
        return False
    source = Path(__file__).with_name("poll_shim.c")
    try:
        subprocess.run(
            [program, "-O2", "-shared", "-fPIC", "-o", str(folder / NAME), str(source), "-ldl"],
            check=True,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env={**os.environ, "TMPDIR": str(folder)},
            timeout=_LIMIT_S,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return True
