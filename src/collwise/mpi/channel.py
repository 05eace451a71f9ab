"""A private duplicate of a communicator: our messages can meet nobody else's.

It also remembers what belongs to it: tags in use, requests not yet freed, and whether a collective
was interrupted half-way, after which nothing on it can be trusted.
"""

import weakref
from typing import Any, Protocol

from mpi4py import MPI

from collwise.errors import BrokenCommunicator
from collwise.mpi.memory import Arena


class Freeable(Protocol):
    """What a channel frees before MPI ends."""

    def Free(self) -> None:  # noqa: N802
        """Give back what MPI holds for it."""


BLOCKING_TAG = 0
_FIRST_TAG = 1


class Channel:
    """The private side of one communicator.  Making one is collective over it."""

    def __init__(self, comm: MPI.Intracomm) -> None:
        # The base class: a subclass's Dup would wrap the duplicate in that subclass again.
        self.comm = MPI.Intracomm(comm).Dup()
        self.rank = self.comm.Get_rank()
        self.size = self.comm.Get_size()
        self.broken = ""
        self.arena = Arena()
        self._next_tag = _FIRST_TAG
        self._last_tag = int(self.comm.Get_attr(MPI.TAG_UB) or 32767)
        self._live: weakref.WeakSet[Any] = weakref.WeakSet()
        _open.add(self)
        _free_before_mpi_ends()

    def take_tag(self) -> int:
        """A tag for one persistent operation; all ranks make these in the same order."""
        tag = self._next_tag
        self._next_tag = tag + 1 if tag < self._last_tag else _FIRST_TAG
        return tag

    def own(self, request: Freeable) -> None:
        """Remember a request, to free it before MPI ends if nobody else does."""
        self._live.add(request)

    def check(self) -> None:
        """Raise BrokenCommunicator if a collective on this channel was interrupted."""
        if self.broken:
            raise BrokenCommunicator(
                "a collective on this communicator",
                f"an earlier one was interrupted ({self.broken})",
                "make a new communicator, or end the program",
            )

    def mark_broken(self, why: BaseException) -> None:
        """From now on every call raises; messages may still be under way."""
        self.broken = self.broken or f"{type(why).__name__}: {why}".rstrip(": ")

    def free(self) -> None:
        """Free the requests and the duplicate.  Collective."""
        for request in list(self._live):
            request.Free()
        if self.comm != MPI.COMM_NULL:
            self.comm.Free()
        _open.discard(self)


class Private:
    """The channel of a communicator, made at the first planned use: MPI libraries have few."""

    def __init__(self, comm: MPI.Intracomm) -> None:
        self._comm = MPI.Intracomm(comm)
        self._channel: Channel | None = None

    def channel(self) -> Channel:
        """The channel, unbroken; collective when it is made.  Raises BrokenCommunicator."""
        if self._channel is None:
            self._channel = Channel(self._comm)
        self._channel.check()
        return self._channel

    def free(self) -> None:
        """Free what was made.  Collective."""
        if self._channel is not None:
            self._channel.free()
            self._channel = None


_open: "weakref.WeakSet[Channel]" = weakref.WeakSet()
_watching = False


def _free_before_mpi_ends() -> None:
    """MPI deletes the attributes of COMM_SELF first when it finalizes, however it comes to that."""
    global _watching
    if _watching:
        return
    _watching = True

    def delete(_comm: MPI.Comm, _keyval: int, _value: object) -> None:
        for channel in list(_open):
            for request in list(channel._live):
                request.Free()

    keyval = MPI.Comm.Create_keyval(delete_fn=delete, nopython=False)
    MPI.COMM_SELF.Set_attr(keyval, _open)
