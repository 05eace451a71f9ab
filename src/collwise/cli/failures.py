"""How commands fail: a message, an exit code, no rank left waiting; a traceback if unexpected."""

import contextlib
import errno
import os
import sys
import time
import traceback
from collections.abc import Iterator
from io import StringIO
from typing import Any, NoReturn

import click

from collwise.errors import CollwiseError
from collwise.system.launcher import launched, status_file

_FIRST_WORD_S = 0.5
"""Seconds that other ranks leave rank 0 to say what is wrong: launchers end all when one fails."""
GRACE_S = 5.0
"""Seconds that a failing rank waits for all others to fail, too, before it ends them."""


class ScriptEnd(SystemExit):
    """The end of a user's script: nothing more is printed, and MPI is not aborted."""


@contextlib.contextmanager
def failing_clearly() -> Iterator[None]:
    """Turn what a command raises into a message and an exit code.

    After an error of collwise's or of usage, MPI is aborted only if some rank goes on: it would
    wait forever.  After an interrupt or an unexpected error, MPI is aborted at once.
    """
    stdout = sys.stdout
    try:
        yield
    except ScriptEnd:
        raise
    except SystemExit as end:
        # Where nobody reads any more, rich and click exit with 1, and click wraps the stream.
        if isinstance(end.__context__, BrokenPipeError) or sys.stdout is not stdout:
            leave(0)
        leave(end.code if isinstance(end.code, int) else 0 if end.code is None else 1)
    except (click.exceptions.Abort, KeyboardInterrupt):
        _interrupted()
    except click.ClickException as problem:
        message = StringIO()
        problem.show(message)
        _say(message.getvalue())
        leave(problem.exit_code)
    except CollwiseError as problem:
        _say(f"collwise: {problem}")
        leave(problem.exit_code)
    except BrokenPipeError:
        leave(0)
    except Exception as problem:
        if _stems_from_interrupt(problem):  # Ctrl-C in an import of compiled modules
            _interrupted()
        if isinstance(problem, OSError) and problem.errno in (errno.ENOSPC, errno.EDQUOT):
            sys.stderr.write(f"collwise: write the result: {problem.strerror}; make room for it\n")
        elif isinstance(problem, MemoryError):
            sys.stderr.write(f"collwise: no memory: {problem}; ask for fewer bytes or ranks\n")
        else:
            sys.stderr.write(f"collwise: unexpected error on rank {my_rank()}; please report it:\n")
            traceback.print_exc()
        leave(1, alone=True)


def _say(message: str) -> None:
    """Print to standard error on rank 0; do nothing on other ranks."""
    if my_rank() == 0:
        from collwise.cli.output import write  # imported here, since loading it takes a while

        write(*message.splitlines(), stream="err")


def _interrupted() -> NoReturn:
    """End all ranks at once: a rank inside an MPI call would notice the interruption much later."""
    if my_rank() == 0:
        if sys.stderr is not None and sys.stderr.isatty():
            sys.stderr.write("\x1b[?25h")  # a progress bar on a rank may have hidden the cursor
        click.echo("collwise: interrupted", err=True)
    leave(130, alone=True)


def _stems_from_interrupt(problem: BaseException | None) -> bool:
    while problem is not None and not isinstance(problem, KeyboardInterrupt):
        problem = problem.__cause__ or problem.__context__
    return problem is not None


def leave(code: int, *, alone: bool = False) -> NoReturn:
    """End the process with an exit code; after an error, abort MPI if other ranks go on.

    A rank that collwise started exits with 0 and tells the starter the code.   alone: whether to
    abort at once, rather than wait GRACE_S for the other ranks.
    """
    try:
        sys.stdout.flush()
    except OSError:  # nobody reads it, or there is no room: do not try again at the very end
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    mpi = running_mpi()
    others = mpi is not None and mpi.COMM_WORLD.Get_size() > 1
    if code and others and (alone or not _all_arrive(mpi)):
        if not alone:
            sys.stderr.write(f"collwise: rank {my_rank()} failed alone; ending the others\n")
        sys.stderr.flush()
        tell_starter(code)
        mpi.COMM_WORLD.Abort(code)
    if code and my_rank() > 0 and not others:
        time.sleep(_FIRST_WORD_S)
    if tell_starter(code):
        code = 0  # the parent exits with it; launchers print a banner for any other
    raise SystemExit(code)


def tell_starter(status: int | str) -> bool:
    """Tell a status to the collwise process that started the ranks; False if there is none.

    status: an exit code, or a line on what is done so far.  The starter exits with the highest exit
    code of all ranks.
    """
    path = status_file()
    if path is None:
        return False
    if my_rank() == 0 or status:
        with (
            contextlib.suppress(OSError),
            path.open("a", encoding="utf-8", errors="backslashreplace") as file,
        ):
            file.write(f"{status}\n")  # an error if that process has ended
    return True


def running_mpi() -> Any:
    """The module mpi4py.MPI; None unless it is loaded, and MPI initialized and not finalized."""
    module = sys.modules.get("mpi4py.MPI")
    return module if module and module.Is_initialized() and not module.Is_finalized() else None


def _all_arrive(mpi: Any) -> bool:
    """Whether all ranks call this function within GRACE_S."""
    arrived = mpi.COMM_WORLD.Ibarrier()
    deadline = time.monotonic() + GRACE_S
    while not arrived.Test():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def my_rank() -> int:
    """The rank of this process, from a world of several ranks, else from the launcher, else 0."""
    if (mpi := running_mpi()) is not None and mpi.COMM_WORLD.Get_size() > 1:
        return int(mpi.COMM_WORLD.Get_rank())
    launcher = launched()
    return launcher.rank if launcher is not None else 0
