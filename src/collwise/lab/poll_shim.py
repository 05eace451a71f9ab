"""The shim that lets waiting ranks sleep (`poll_shim.c`), compiled where a compiler is there."""

import os
import shutil
import subprocess
from pathlib import Path

LONGEST_US = 1000
"""Microseconds that a waiting rank sleeps at most; data wakes it at once."""
LONGEST_SHARED_US = 50
"""The same where ranks also wait for messages in memory, which wake nobody."""
WAITING = "COLLWISE_LAB_QUIET_US"
NAME = "poll_shim.so"
_LIMIT_S = 30


def compiler() -> str | None:
    """A C compiler, if there is one."""
    return next((found for name in ("cc", "gcc", "clang") if (found := shutil.which(name))), None)


def compile_into(folder: Path) -> bool:
    """Compile the shim into a folder; False without a compiler that works."""
    if (program := compiler()) is None:
        return False
    source = Path(__file__).with_name("poll_shim.c")
    try:
        subprocess.run(
            [program, "-O2", "-shared", "-fPIC", "-o", str(folder / NAME), str(source), "-ldl"],
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "TMPDIR": str(folder)},
            timeout=_LIMIT_S,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return True
