"""Labs whose maker is gone.  They end by themselves; one that hangs is found and ended here."""

import contextlib
import os
import signal
import time
from pathlib import Path
from typing import NamedTuple

MARK = "collwise.lab.supervisor"
"""In the command line of every keeper, whose last argument is its maker's process id."""
_GRACE_S = 2.0


class Leftover(NamedTuple):
    """A keeper without its maker."""

    process: int
    maker: int


def find(folder: Path = Path("/proc")) -> list[Leftover]:
    """All leftovers on this machine, apart from those that are just ending."""
    seen = _orphans(folder)
    deadline = time.monotonic() + _GRACE_S
    while seen and time.monotonic() < deadline:
        time.sleep(0.05)
        seen = [one for one in seen if one in _orphans(folder)]
    return seen


def remove(found: list[Leftover]) -> None:
    """End leftovers; the kernel takes back everything they held."""
    for one in found:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(one.process, signal.SIGKILL)


def _orphans(folder: Path) -> list[Leftover]:
    found = []
    for entry in folder.iterdir():
        if not entry.name.isdigit():
            continue
        words = _read(entry / "cmdline").split("\0")
        if len(words) < 3 or not any(MARK in word for word in words) or not words[-2].isdigit():
            continue
        maker = int(words[-2])
        born, of_maker = _born(entry), _born(folder / str(maker))
        # A later process may have got the maker's number.
        if born is not None and (of_maker is None or of_maker > born):
            found.append(Leftover(int(entry.name), maker))
    return found


def _born(process: Path) -> int | None:
    """When a process started, in ticks since the system did; None if it is gone or dead."""
    fields = _read(process / "stat").rpartition(")")[2].split()
    return int(fields[19]) if len(fields) > 19 and fields[0] not in "ZX" else None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
