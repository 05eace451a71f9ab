"""Commands that run on ranks, which collwise starts (-n) or a launcher has started."""

import fcntl
import functools
import os
import platform
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from collwise.cli.failures import tell_starter
from collwise.cli.output import passed_on
from collwise.cli.parameter_types import POSITIVE
from collwise.errors import InvalidArgument, NoMPI, RanksLost
from collwise.model.placement import check_placement
from collwise.system import formatting
from collwise.system.host import usable_cores
from collwise.system.launcher import STATUS_FILE, Launched, launched, start, status_file

if TYPE_CHECKING:
    from collwise.mpi.runtime.world import Communicator as Communicator
    from collwise.mpi.runtime.world import World as World
else:
    Communicator = World = Any  # help needs no MPI

_WORKING = "working"
"""The line that ranks leave once they have begun."""
_KILLED = (-signal.SIGKILL, signal.SIGKILL, 128 + signal.SIGKILL)
"""Exit codes of launchers when a rank, or they themselves, were killed."""
START_UP_S = 120.0
"""Seconds allowed on top of a command's budget, for starting Python on all ranks and ending MPI."""
MAX_PER_CORE, MAX_PER_MACHINE = 16, 64
"""How many ranks may be started here, per core and on a machine: the larger number counts."""


def on_ranks(
    budget_s: Callable[[dict[str, Any]], float],
    check: Callable[[dict[str, Any]], None] = lambda options: None,
    *,
    optional: bool = False,
) -> Callable[[Any], Any]:
    """Make a command run on ranks, with an option -n.

    The command gets the communicator of all ranks as `comm` and the `World` as `here`.  It returns
    a function without arguments; rank 0 calls this function to show the results.

    budget_s: maps the command's options to the seconds that its work may take.   check: raises an
    error for wrong options before ranks are started.   optional: whether the command runs without
    MPI if there is no -n and no launcher of several ranks; then `comm` and `here` are None.
    """

    def decorate(command: Callable[..., Callable[[], None]]) -> Callable[..., Any]:
        @click.option(
            "-n",
            "--ranks",
            type=POSITIVE,
            help="Start so many ranks here  [default: "
            + ("none]." if optional else "one per core, 2 to 16]."),
        )
        @functools.wraps(command)
        def run(ranks: int | None, **options: Any) -> Any:
            check(options)
            launcher = launched()
            ours = STATUS_FILE in os.environ
            if (status := status_file()) is not None:
                _end_with_starter(status)
            if optional and ranks is None and (launcher is None or launcher.size == 1):
                command(comm=None, here=None, **options)()
                return
            if not ours and (launcher is None or (launcher.size == 1 and ranks is not None)):
                count = ranks or min(max(usable_cores(), 2), 16)
                if (placement := options.get("placement")) is not None:
                    check_placement(placement, count)
                sys.exit(start_ranks(count, budget_s(options), sys.argv[1:]))
            if not ours and launcher is not None and ranks not in (None, launcher.size):
                raise already_started(ranks, launcher)
            from collwise.mpi.runtime.world import describe, world  # NoMPI if there is no library

            comm = world()
            if ours and comm.Get_rank() == 0:
                tell_starter(_WORKING)
            named = options.get("profile_path") or options.get("save_path")
            show_results = command(comm=comm, here=describe(comm, profile=named), **options)
            from collwise.mpi.runtime.agreement import on_root

            on_root(comm, show_results, takes_long=True)

        return run

    return decorate


def already_started(ranks: int | None, launcher: Launched) -> InvalidArgument:
    """The error if -n is given to a command that a launcher has started."""
    seen = f"a launcher has started {launcher.size}"
    return InvalidArgument(
        f"{formatting.count(ranks or 1, 'rank')} (-n {ranks})",
        seen,
        "leave out -n under a launcher",
    )


def check_startable(count: int) -> None:
    """Raise InvalidArgument for more ranks than this machine should run."""
    if count > (most := max(MAX_PER_MACHINE, MAX_PER_CORE * usable_cores())):
        raise InvalidArgument(
            f"{count} ranks on this machine (-n {count})",
            f"it has {formatting.count(usable_cores(), 'core')}; more than {most} would only wait"
            " for each other",
            "use fewer, or start them on a cluster: mpiexec -hosts … collwise …",
        )


def start_ranks(
    count: int,
    budget_s: float,
    words: Sequence[str],
    python: str | None = None,
    *,
    quiet: bool = False,
) -> int:
    """Run `collwise` with `words` on `count` ranks of this machine; return its exit code.

    python: the interpreter; None for this one.   quiet: whether to drop the ranks' standard output.
    Raises InvalidArgument for too many ranks, RanksLost if ranks were killed, NoMPI if none began,
    or if they run longer than `budget_s` + START_UP_S seconds.
    """
    check_startable(count)
    with _status_file() as (file, name):
        fcntl.flock(file, fcntl.LOCK_EX)  # held until this process ends, however it does
        environment = {STATUS_FILE: f"{name}@{platform.node()}", **passed_on()}
        arguments = [python or sys.executable, "-m", "collwise", *words]
        try:
            code = start(count, arguments, environment, budget_s + START_UP_S, quiet=quiet)
        except (SystemExit, KeyboardInterrupt):
            if (told := _lines(file)) and told[-1] != _WORKING and not told[-1].isdigit():
                click.echo(f"collwise: ended by a signal; {told[-1]}", err=True)
            raise
        status = _lines(file)
    if codes := [int(line) for line in status if line.isdigit()]:
        return max(codes)
    if code == -signal.SIGPIPE:
        raise BrokenPipeError
    ended = f"the launcher ended with code {code} before the command was done"
    if status or code in _KILLED:
        raise RanksLost(
            f"this command on {formatting.count(count, 'rank')}",
            f"a rank was ended from outside; {ended}",
            "run it again; if memory ran out, use fewer ranks or smaller messages",
        )
    raise NoMPI(
        formatting.count(count, "rank"),
        f"{ended} (what it said, if anything, is above)",
        "try fewer ranks; `collwise doctor` checks launcher and library",
    )


def _lines(file: IO[str]) -> list[str]:
    """What the ranks have told so far, a line each time."""
    file.seek(0)
    return file.read().splitlines()


@contextmanager
def _status_file() -> Iterator[tuple[IO[str], str]]:
    """A temporary file for the status of started ranks, and the path by which they open it."""
    if hasattr(os, "memfd_create"):
        with open(os.memfd_create("collwise"), "w+", encoding="utf-8") as file:  # noqa: PTH123
            yield file, f"/proc/{os.getpid()}/fd/{file.fileno()}"
    else:
        with tempfile.NamedTemporaryFile("w+", encoding="utf-8", prefix="collwise-") as named:
            yield named.file, named.name


def _end_with_starter(status: Path) -> None:
    """Start a thread that ends this rank when the process that started the rank has ended.

    That process locks the file `status`.  The thread waits until the kernel frees the lock.
    """

    def wait() -> None:
        with suppress(OSError), status.open() as file:
            fcntl.flock(file, fcntl.LOCK_SH)
        os._exit(1)

    threading.Thread(target=wait, name="collwise", daemon=True).start()
