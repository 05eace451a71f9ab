"""The checks of `collwise doctor`.  MPI runs in other processes: a broken MPI may abort them."""

import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Literal, NamedTuple

from collwise.errors import CollwiseError, LabUnavailable
from collwise.lab import requirements
from collwise.lab.cluster import Cluster
from collwise.measure.stability import STABLE
from collwise.profiles.fingerprint import Fingerprint, local_fingerprint
from collwise.profiles.profile import Profile
from collwise.profiles.store import default_path, transport_of
from collwise.system import formatting
from collwise.system.host import NODE, TRANSPORTS, usable_cores
from collwise.system.launcher import (
    INSTALL,
    NO_PROVIDER,
    Answer,
    ask,
    command_line,
    find_mpiexec,
    launched,
)

FEW_CORES = 4
_PROVIDER = (
    "libfabric has no such provider here: unset FI_PROVIDER, or set it to tcp; for Intel MPI,"
    " I_MPI_ROOT names the folder with its lib and libfabric"
)
SHARED_MEMORY, LEAST_SHARED = Path("/dev/shm"), 16 << 20  # bytes
_LAB, _LAB_LIMIT_S = "emulated hosts (lab)", 10.0

_MPI_PROBE = """
import json
import sys
from mpi4py import MPI
import collwise.mpi.runtime.world as world
from collwise.mpi.engine.loading import SERVING
from collwise.mpi.engine.node_transport import why_no_memory
from collwise.mpi.library.own_algorithms import to_set_before
answer = {
    "engine": SERVING.name,
    "why": SERVING.why,
    "no_memory": why_no_memory(MPI.COMM_SELF, (0,)),
    "library": world.library_line(),
    "standard": "%d.%d" % MPI.Get_version(),
    "multiple": MPI.Query_thread() >= MPI.THREAD_MULTIPLE,
    "size": MPI.COMM_WORLD.size,
    "own": to_set_before(),
}
try:
    MPI.COMM_SELF.Bcast_init([bytearray(1), MPI.BYTE], 0).Free()
    answer["persistent"] = True
except (NotImplementedError, MPI.Exception):
    answer["persistent"] = False
sys.stdout.write("\\ncollwise:" + json.dumps(answer) + "\\n")
sys.stdout.flush()
"""


class CheckResult(NamedTuple):
    """The result of one check.   what: its subject.   seen: its finding.   remedy: what to do."""

    status: Literal["ok", "note", "wrong"]
    what: str
    seen: str
    remedy: str = ""


ok, note, wrong = (partial(CheckResult, status) for status in ("ok", "note", "wrong"))


def checkup(progress: Callable[[str, float], None]) -> Iterator[CheckResult]:
    """Yield the results of the checks; without an MPI library those about profiles are left out.

    progress: called before slow checks with what comes next, and the fraction that is done.
    """
    yield ok("collwise", f"{version('collwise')}, Python {platform.python_version()}")
    progress("loading the MPI library", 0.1)
    answers, trouble = ask([sys.executable, "-c", _MPI_PROBE])
    mpi = answers[0] if answers else None
    if mpi is None:
        yield _no_library(trouble)
    else:
        yield from _library(mpi)
    yield from _shared_memory()
    progress("starting two ranks", 0.4)
    yield _launcher(mpi)
    progress("looking for a profile", 0.9)
    yield _cores()
    if mpi is not None:
        chosen = os.environ.get(NODE) or transport_of(None) or "memory"
        transport = "messages" if mpi["no_memory"] else chosen
        here = local_fingerprint(mpi["library"], "one node", transport=transport)
        try:
            path = default_path(here)
        except CollwiseError as problem:  # of a user without a home
            yield note("profile", f"{problem.asked}: {problem.seen}", problem.remedy)
        else:
            yield _profile(path, here, mpi["engine"])
            yield _permissions(path)
    yield from _lab()


def _no_library(trouble: str) -> CheckResult:
    """Why no process could use MPI."""
    if (installed := version("mpi4py")).split(".")[0] in ("1", "2", "3"):
        return wrong("mpi4py", f"{installed} is too old", "install mpi4py 4.0 or newer")
    if NO_PROVIDER in trouble:
        return wrong("MPI library", trouble, _PROVIDER)
    if re.search("no MPI library|cannot load MPI|no such file|no module", trouble, re.IGNORECASE):
        return wrong("MPI library", trouble, INSTALL)
    remedy = "mend what it says; `python -m mpi4py.bench helloworld` shows it without collwise"
    return wrong("MPI library", f"it is there and does not start: {trouble}", remedy)


def _shared_memory() -> Iterator[CheckResult]:
    with suppress(OSError):
        room = os.statvfs(SHARED_MEMORY)
        if (nbytes := room.f_bavail * room.f_frsize) < LEAST_SHARED:
            seen = f"{SHARED_MEMORY} has room for {formatting.size(nbytes)}"
            remedy = "some MPI libraries need 64 MiB to start: docker run --shm-size, or mount"
            yield note("shared memory", seen, remedy)


def _library(mpi: Answer) -> Iterator[CheckResult]:
    standard = f"{mpi['library']} (MPI {mpi['standard']})"
    yield ok("MPI library", f"{standard}, mpi4py {version('mpi4py')}")
    if mpi["library"].startswith("MPICH 4.0"):
        seen = "4.0.2's Allgather_init leaves wrong data on later starts, Reduce in place may crash"
        yield note("MPI library", seen, "use MPICH 4.2 or newer, for plain programs, too")
    if why := mpi["own"]:
        yield note("library's algorithms", f"not raced: {why}", "set it, if they are to be")
    if mpi["multiple"]:
        yield ok("threads", "MPI_THREAD_MULTIPLE: started schedules advance by themselves")
    else:
        seen = "less than MPI_THREAD_MULTIPLE: plans serve only inside one node, through its memory"
        remedy = "leave mpi4py.rc.thread_level at its default, or use a library built with threads"
        yield note("threads", seen, remedy)
    yield _engine(mpi)
    if (word := os.environ.get(NODE, "")) not in ("", *TRANSPORTS):
        known = " or ".join(TRANSPORTS)
        yield wrong("memory inside a node", f"{NODE}={word} names nothing", f"set it to {known}")
    elif why := mpi["no_memory"]:
        seen = f"not possible here: {why}"
        yield note("memory inside a node", seen, "MPI's messages serve, and share makes copies")
    else:
        yield ok("memory inside a node", f"possible ({NODE}=messages: MPI's messages instead)")
    if not mpi["persistent"]:
        seen = "this library has none (MPI before 4.0)"
        yield note("persistent collectives", seen, "races compare with its blocking ones")


def _engine(mpi: Answer) -> CheckResult:
    if mpi["engine"] == "compiled":
        return ok("engine", "compiled (COLLWISE_ENGINE=python: Python instead)")
    remedy = (
        "install collwise where there is a C compiler (such as gcc, with Python's headers);"
        " COLLWISE_ENGINE must not be python"
    )
    seen = f"Python, whose calls cost several times as much: {mpi['why']}"
    return note("engine", seen, remedy)


def _launcher(mpi: Answer | None) -> CheckResult:
    if (outside := launched()) is not None:
        seen = f"doctor itself runs under {outside.launcher}"
        return note("launcher", seen, "run it alone, without a launcher")
    try:
        mpiexec = find_mpiexec()
        command = command_line(2, [sys.executable, "-c", _MPI_PROBE])
    except CollwiseError as problem:
        return wrong("launcher", f"{problem.asked}: {problem.seen}", problem.remedy)
    except (OSError, subprocess.SubprocessError) as problem:
        return wrong("launcher", str(problem), "mend that, or name another in COLLWISE_MPIEXEC")
    if mpi is None:
        return note("launcher", f"{mpiexec}, not tried without an MPI library")
    answers, trouble = ask(command)
    sizes = [answer["size"] for answer in answers]
    if sizes == [2, 2]:
        return ok("launcher", f"{mpiexec} starts 2 ranks that see each other")
    if set(sizes) == {1}:
        seen = f"{mpiexec} starts ranks that are alone, each a world of one"
        remedy = (
            f"it belongs to another MPI than {mpi['library']}: put that library's mpiexec first on"
            " the PATH, or name it in COLLWISE_MPIEXEC, or install mpi4py anew for this mpiexec:"
            " pip install --force-reinstall --no-cache-dir --no-binary mpi4py mpi4py"
        )
    else:
        seen = f"{mpiexec} did not start 2 ranks: {trouble}"
        remedy = "try `mpiexec -n 2 python -c 'from mpi4py import MPI'` and mend what it says"
    return wrong("launcher", seen, remedy)


def _cores() -> CheckResult:
    cores = usable_cores()
    if cores >= FEW_CORES:
        return ok("cores", f"{cores} usable")
    remedy = f"more than {formatting.count(cores, 'rank')} share them; timings are noisy then"
    return note("cores", f"{cores} usable", remedy)


def _profile(path: Path, here: Fingerprint, engine: str) -> CheckResult:
    if not path.exists():
        return note("profile", f"none of this machine yet ({path})", "run `collwise tune`")
    try:
        profile = Profile.load(path)
        profile.check(here)
    except CollwiseError as problem:
        return wrong("profile", f"{path}: {problem.seen}", problem.remedy)
    made = profile.provenance
    seen = f"{path}, of {made.created}: {profile.verdict}"
    if made.engine not in ("", engine):
        seen += f"; measured with the {made.engine} engine, while {engine} serves"
        return note("profile", seen, "tune again: `collwise tune`")
    if profile.verdict != STABLE:
        usual = "tune again with more --budget, while nothing else runs"
        return note("profile", seen, next(iter(profile.advice), usual))
    return ok("profile", seen)


def _permissions(path: Path) -> CheckResult:
    folder = next(p for p in (path.parent, *path.parent.parents) if p.exists())
    if os.access(folder, os.W_OK | os.X_OK) and folder.is_dir():
        return ok("permissions", f"profiles can be saved in {path.parent}")
    remedy = "name another file in COLLWISE_PROFILE"
    return wrong("permissions", f"{folder} cannot be written", remedy)


def _lab() -> Iterator[CheckResult]:
    """Check what a lab needs and, if nothing vital is missing, that two hosts start."""
    unmet = requirements.unmet()
    if missing := [requirement for requirement in unmet if requirement.needed]:
        for lacking in missing:
            seen = f"needs {lacking.what}: {lacking.problem}"
            yield note(_LAB, seen, lacking.remedy)
        return
    begin = time.monotonic()
    try:
        with Cluster(2, "1ms", "100mbit", mpi="none") as cluster:
            cluster.run(["true"], capture=True, timeout_s=_LAB_LIMIT_S)
    except LabUnavailable as problem:
        yield note(_LAB, problem.seen, "run it as root on the machine itself, not in a chroot")
        return
    except CollwiseError as problem:
        yield wrong(_LAB, problem.seen, problem.remedy)
        return
    took_s = time.monotonic() - begin
    yield ok(_LAB, f"two hosts started and ended in {took_s:.1f} s")
    for lacking in unmet:
        yield note(_LAB, f"no {lacking.what.removeprefix('a ')}", lacking.remedy)
