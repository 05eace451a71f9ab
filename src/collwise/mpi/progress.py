"""Keeps started schedules moving while the program is elsewhere.

A rank in the middle of a chain has to act between start and completion.  If it acted only in
`Wait`, legal programs would deadlock that the library's own persistent collectives complete.  So
every call of collwise moves all running schedules on, and a helper thread moves those that nobody
came back to for about a millisecond.  (The helper needs THREAD_MULTIPLE; without it the library's
own serves.)
"""

import threading
import time
from typing import Protocol

from mpi4py import MPI

PATIENCE_S = 0.001
SINGLY = 3
"""So many requests are started or completed faster one by one than as a list."""
_IDLE_ROUNDS = 100


class Running(Protocol):
    """A started schedule that still has to act."""

    def advance(self) -> bool:
        """Do what can be done now; True when nothing is left that needs us.  Never blocks."""


class Engine:
    """The running schedules of this process.  `lock` is held by whoever moves them."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.running: list[Running] = []
        self._wake = threading.Event()
        self._end = False
        self._helper: threading.Thread | None = None

    def add(self, schedule: Running) -> None:
        """Take a started schedule in."""
        with self.lock:
            self.running.append(schedule)
        if self._helper is None and MPI.Query_thread() >= MPI.THREAD_MULTIPLE:
            self._helper = threading.Thread(target=self._help, name="collwise", daemon=True)
            self._helper.start()
            _stop_before_mpi_ends(self)
        if not self._wake.is_set():
            self._wake.set()

    def advance(self) -> None:
        """Move everything that is running on, without blocking."""
        with self.lock:
            self.running = [schedule for schedule in self.running if not schedule.advance()]

    def remove(self, schedule: Running) -> None:
        """Forget a schedule that is done or given up."""
        with self.lock:
            if schedule in self.running:
                self.running.remove(schedule)

    def stop(self) -> None:
        """End the helper thread; before MPI does."""
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
                continue  # somebody else is moving them
            try:
                if self.running:
                    self.advance()
                    idle = 0
                elif (idle := idle + 1) > _IDLE_ROUNDS:
                    self._wake.clear()
                    idle = 0
            except MPI.Exception:
                pass  # the owner meets the same error in Wait
            finally:
                self.lock.release()


ENGINE = Engine()


def moving(*requests: MPI.Request) -> None:
    """Complete requests of ours, moving running schedules on meanwhile."""
    while ENGINE.running and not MPI.Request.Testall(requests):
        ENGINE.advance()
    if len(requests) <= SINGLY:
        for request in requests:
            request.Wait()
    else:
        MPI.Request.Waitall(requests)


def _stop_before_mpi_ends(engine: Engine) -> None:
    import atexit

    atexit.register(engine.stop)
    keyval = MPI.Comm.Create_keyval(delete_fn=lambda *_: engine.stop(), nopython=False)
    MPI.COMM_SELF.Set_attr(keyval, engine)
