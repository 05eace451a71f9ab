"""Labs whose maker has ended.  They end by themselves; one that hangs is found and killed here."""

import contextlib
import os
import signal
import time
from pathlib import Path
from typing import NamedTuple

MARK = "collwise.lab.supervisor"
"""In the command line of every supervisor, whose last argument is its maker's process id."""
_GRACE_S = 2.0


class Leftover(NamedTuple):
    """The process ids of a supervisor and of its maker, which has ended."""

    process: int
    maker: int


def find(folder: Path = Path("/proc"), grace_s: float = _GRACE_S) -> list[Leftover]:
    """All leftovers on this machine that have not ended by themselves after `grace_s` seconds."""
    orphans = _orphans(folder)
    deadline = time.monotonic() + grace_s
    while orphans and time.monotonic() < deadline:
        time.sleep(0.05)
        remaining = _orphans(folder)
        orphans = [orphan for orphan in orphans if orphan in remaining]
    return orphans


def remove(leftovers: list[Leftover]) -> None:
    """Kill leftovers; the kernel frees everything they held."""
    for leftover in leftovers:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(leftover.process, signal.SIGKILL)


def _orphans(folder: Path) -> list[Leftover]:
    orphans = []
    for entry in folder.iterdir():
        if not entry.name.isdigit():
            continue
        *arguments, last, _ = ["", *_read(entry / "cmdline").split("\0")]
        if not last.isdigit() or not any(MARK in argument for argument in arguments):
            continue
        started, maker_started = _start_time(entry), _start_time(folder / last)
        # A later process may have got the maker's id.
        if started is not None and (maker_started is None or maker_started > started):
            orphans.append(Leftover(int(entry.name), int(last)))
    return orphans


def _start_time(process: Path) -> int | None:
    """When a process started, in clock ticks since the system did; None if it has ended."""
    fields = _read(process / "stat").rpartition(")")[2].split()
    return int(fields[19]) if len(fields) > 19 and fields[0] not in "ZX" else None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
