"""Progress of started schedules while the program does something else.

A rank in the middle of a chain has to forward data between `Start` and `Wait`.  If it did so only
in `Wait`, some programs would deadlock, although they are legal and complete with MPI's own.  So
calls of collwise advance all running schedules.  A helper thread advances them if there is no such
call for about a millisecond.  The compiled engine does the same in C, with a helper thread of its
own.  Below MPI_THREAD_MULTIPLE a helper may not call MPI.  Then the library's hooks, if it has any,
advance schedules; otherwise only those in shared memory advance, and the library serves the rest.
"""

import atexit
import os
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import wraps
from typing import TYPE_CHECKING, Any

from mpi4py import MPI

from collwise.mpi.engine.loading import COMPILED

if TYPE_CHECKING:
    from collwise.mpi.execution.interpreter import BoundPlan

PATIENCE_S = 0.001
END_LIMIT_S = 5.0
"""The most seconds that MPI_Finalize waits for collectives that the program did not complete."""
_IDLE_ROUNDS = 100


class ProgressEngine:
    """Advances the schedules that the Python engine runs in this process.

    A thread that advances schedules holds `lock`, and never blocks in MPI while it does.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.running: list[BoundPlan] = []
        self._wake = threading.Event()
        self._end = False
        self._helper: threading.Thread | None = None

    def add(self, schedule: "BoundPlan") -> None:
        """Advance a started schedule from now on."""
        with self.lock:
            self.running.append(schedule)
        if self._helper is None and MPI.Query_thread() >= MPI.THREAD_MULTIPLE:
            self._helper = threading.Thread(target=self._help, name="collwise", daemon=True)
            self._helper.start()
            before_mpi_ends(self.stop)
        if not self._wake.is_set():
            self._wake.set()

    def advance(self) -> None:
        """Advance all running schedules, without blocking."""
        with self.lock:
            for one in self.running.copy():
                if one.advance():
                    self.remove(one)

    def remove(self, schedule: "BoundPlan") -> None:
        """Advance a schedule no longer; it may have been removed before."""
        with self.lock:
            if schedule in self.running:
                self.running.remove(schedule)

    def stop(self) -> None:
        """End the helper thread, before MPI ends."""
        self._end = True
        self._wake.set()
        if self._helper is not None and self._helper is not threading.current_thread():
            self._helper.join(timeout=5)
        self._helper = None

    def _help(self) -> None:
        idle = 0
        while not self._end:
            self._wake.wait()
            time.sleep(PATIENCE_S)
            if self._end or not self.lock.acquire(blocking=False):
                continue  # another thread is advancing them
            try:
                if self.running:
                    self.advance()
                    idle = 0
                elif (idle := idle + 1) > _IDLE_ROUNDS:
                    self._wake.clear()
                    idle = 0
            finally:
                self.lock.release()


ENGINE = ProgressEngine()
"""The schedules that the Python engine runs."""


def may_call_mpi() -> bool:
    """Whether a started schedule may call MPI while the program does something else.

    True if the library has progress hooks, or if MPI runs with MPI_THREAD_MULTIPLE.
    """
    hooks = COMPILED is not None and COMPILED.hooks()
    return hooks or MPI.Query_thread() >= MPI.THREAD_MULTIPLE


def running() -> bool:
    """Whether a started schedule still has to forward data."""
    return bool(ENGINE.running) or (COMPILED is not None and COMPILED.running() > 0)


def requests_run() -> bool:
    """Whether non-blocking collectives run that the library's progress executes."""
    return COMPILED is not None and COMPILED.requests() > 0


def advance() -> None:
    """Advance all running schedules, without blocking."""
    if ENGINE.running:
        ENGINE.advance()
    if COMPILED is not None:
        COMPILED.advance()


def wait_with_progress(requests: Iterable[Any]) -> None:
    """Complete requests, or objects with a request's methods, while running schedules advance."""
    for request in requests:  # one by one: MPICH's Testall fails on persistent collectives
        while running() and not request.Test():
            advance()
        request.Wait()


_PROCESS = os.getpid()
_endings: list[Callable[[], None]] = []


def forked() -> bool:
    """Whether this is a forked child, which has copies of what is the process's that runs MPI."""
    return os.getpid() != _PROCESS


def before_mpi_ends(act: Callable[[], None]) -> None:
    """Call `act` before MPI or Python ends, the latest one first; never in a forked child."""
    _endings.append(act)


def _end(*_: object) -> None:
    with ExitStack() as acts:  # all of them, whatever one raises
        for act in () if forked() else _endings:
            acts.callback(act)


def _finalize(library: Callable[[], None] = MPI.Finalize) -> None:
    _end()
    library()


# MPI_Finalize deletes COMM_SELF's attributes, whoever calls it.  Before that it may wait for
# running collectives, or end what a helper thread uses, so Python's function is replaced, too.
MPI.COMM_SELF.Set_attr(MPI.Comm.Create_keyval(delete_fn=_end, nopython=False), _end)
MPI.Finalize = wraps(MPI.Finalize)(_finalize)
atexit.register(_end)


def _stop_compiled() -> None:
    """Wait up to END_LIMIT_S for non-blocking collectives, then stop the compiled engine."""
    assert COMPILED is not None
    latest = time.monotonic() + END_LIMIT_S
    never: MPI.Request | None = None  # testing a request runs MPICH's hooks; a probe does not
    while COMPILED.requests() and time.monotonic() < latest:
        never = never or MPI.COMM_SELF.Irecv(bytearray(1), 0, 32767)
        never.Test()
    if never is not None:
        never.Cancel()
        never.Wait()
    COMPILED.stop()


if COMPILED is not None:
    multiple = MPI.Query_thread() >= MPI.THREAD_MULTIPLE
    if multiple or not COMPILED.hooks():
        COMPILED.allow_helper(multiple)
    before_mpi_ends(_stop_compiled)
