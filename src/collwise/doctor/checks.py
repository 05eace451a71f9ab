"""What `collwise doctor` looks at.  MPI is tried in other processes: a broken one may abort."""

import contextlib
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, NamedTuple

from collwise.errors import CollwiseError
from collwise.profiles.fingerprint import local_fingerprint
from collwise.profiles.profile import Profile
from collwise.profiles.store import default_path
from collwise.system import formatting
from collwise.system.host import usable_cores
from collwise.system.launcher import INSTALL, alone, command_line, find_mpiexec, launched

LIMIT_S = 60.0

_ASK_MPI = """
import json
import sys
from mpi4py import MPI
import collwise.mpi.runtime.world as world
seen = {
    "library": world.library_line(),
    "standard": "%d.%d" % MPI.Get_version(),
    "multiple": MPI.Query_thread() >= MPI.THREAD_MULTIPLE,
    "size": MPI.COMM_WORLD.size,
}
try:
    MPI.COMM_SELF.Bcast_init([bytearray(1), MPI.BYTE], 0).Free()
    seen["persistent"] = True
except (NotImplementedError, MPI.Exception):
    seen["persistent"] = False
sys.stdout.write("\\ncollwise:" + json.dumps(seen) + "\\n")
sys.stdout.flush()
"""


class Finding(NamedTuple):
    """One thing looked at: "ok", "note" or "wrong"; what was seen; what to do."""

    status: Literal["ok", "note", "wrong"]
    what: str
    seen: str
    remedy: str = ""


def checkup(progress: Callable[[str, float], None]) -> Iterator[Finding]:
    """Look at everything, in the order in which things depend on each other."""
    yield Finding("ok", "collwise", f"{version('collwise')}, Python {platform.python_version()}")
    progress("loading the MPI library", 0.1)
    seen, trouble = _ask([sys.executable, "-c", _ASK_MPI])
    if not seen:
        yield Finding("wrong", "MPI library", trouble, INSTALL)
    else:
        yield from _library(seen[0])
    progress("starting two ranks", 0.4)
    yield from _launcher(seen[0] if seen else None)
    progress("looking for a profile", 0.9)
    yield _cores()
    yield from _profile(seen[0] if seen else None)


def _library(seen: dict[str, Any]) -> Iterator[Finding]:
    line = f"{seen['library']} (MPI {seen['standard']}), mpi4py {version('mpi4py')}"
    yield Finding("ok", "MPI library", line)
    if seen["multiple"]:
        yield Finding(
            "ok", "threads", "MPI_THREAD_MULTIPLE: started schedules advance by themselves"
        )
    else:
        yield Finding(
            "note",
            "threads",
            "less than MPI_THREAD_MULTIPLE: the library's own collectives serve",
            "leave mpi4py.rc.thread_level at its default, or use a library built with threads",
        )
    if not seen["persistent"]:
        yield Finding(
            "note",
            "persistent collectives",
            "this library has none (MPI before 4.0)",
            "races compare with its blocking ones",
        )


def _launcher(library: dict[str, Any] | None) -> Iterator[Finding]:
    if (outside := launched()) is not None:
        yield Finding(
            "note",
            "launcher",
            f"doctor itself runs under {outside.launcher}",
            "run it alone, without a launcher",
        )
        return
    try:
        mpiexec = find_mpiexec()
        command = command_line(2, [sys.executable, "-c", _ASK_MPI])
    except (CollwiseError, OSError, subprocess.SubprocessError) as problem:
        remedy = problem.remedy if isinstance(problem, CollwiseError) else INSTALL
        seen_there = (
            f"{problem.asked}: {problem.seen}"
            if isinstance(problem, CollwiseError)
            else str(problem)
        )
        yield Finding("wrong", "launcher", seen_there, remedy)
        return
    if library is None:
        yield Finding("note", "launcher", f"{mpiexec}, not tried without an MPI library")
        return
    seen, trouble = _ask(command)
    sizes = [one["size"] for one in seen]
    if sizes == [2, 2]:
        yield Finding("ok", "launcher", f"{mpiexec} starts 2 ranks that see each other")
    elif sizes and set(sizes) == {1}:
        yield Finding(
            "wrong",
            "launcher",
            f"{mpiexec} starts ranks that are alone, each a world of one",
            f"it belongs to another MPI than {library['library']}: put that library's mpiexec first"
            " on the PATH, or name it in COLLWISE_MPIEXEC",
        )
    else:
        yield Finding(
            "wrong",
            "launcher",
            f"{mpiexec} did not start 2 ranks: {trouble}",
            "try `mpiexec -n 2 python -c 'from mpi4py import MPI'` and mend what it says",
        )


def _cores() -> Finding:
    cores = usable_cores()
    if cores < 4:
        return Finding(
            "note",
            "cores",
            f"{cores} usable",
            f"more than {formatting.count(cores, 'rank')} share them; timings are noisy then",
        )
    return Finding("ok", "cores", f"{cores} usable")


def _profile(library: dict[str, Any] | None) -> Iterator[Finding]:
    if library is None:
        return
    here = local_fingerprint(library["library"], "one node")
    path = default_path(here)
    if not path.exists():
        yield Finding(
            "note", "profile", f"none of this machine yet ({path})", "run `collwise tune`"
        )
    else:
        try:
            profile = Profile.load(path)
            profile.check(here)
        except CollwiseError as problem:
            yield Finding("wrong", "profile", f"{path}: {problem.seen}", problem.remedy)
        else:
            made = profile.provenance.created
            yield Finding("ok", "profile", f"{path}, of {made}: {profile.verdict}")
    folder = next(p for p in (path.parent, *path.parent.parents) if p.exists())
    if os.access(folder, os.W_OK | os.X_OK) and folder.is_dir():
        yield Finding("ok", "permissions", f"profiles can be saved in {path.parent}")
    else:
        yield Finding(
            "wrong",
            "permissions",
            f"{Path(folder)} cannot be written",
            "name another file in COLLWISE_PROFILE",
        )


def _ask(command: list[str]) -> tuple[list[dict[str, Any]], str]:
    """What every process of a command tells about MPI; and the last line it complained with."""
    try:
        ran = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
            stdin=subprocess.DEVNULL,
            env=alone(),
        )
    except subprocess.TimeoutExpired:
        return [], f"no answer within {LIMIT_S:.0f} s"
    except OSError as problem:
        return [], str(problem)
    told = list(_answers(ran.stdout))
    complaint = [line.strip() for line in ran.stderr.splitlines() if line.strip()]
    return told, complaint[-1] if complaint else f"exit code {ran.returncode}, no message"


def _answers(text: str) -> Iterator[dict[str, Any]]:
    """What processes told, on lines of their own or, as launchers may mix them, on one."""
    for piece in text.split("collwise:")[1:]:
        with contextlib.suppress(json.JSONDecodeError):  # torn apart by another's
            yield json.JSONDecoder().raw_decode(piece)[0]
