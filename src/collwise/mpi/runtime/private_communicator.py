"""A private duplicate of a user's communicator, so that our messages never match the user's.

The duplicate also keeps the next tag, the requests not yet freed, and whether an error interrupted
a collective: messages may be pending then, so nothing else may run on the duplicate.
"""

import logging
import weakref
from array import array
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, partial
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

from collwise.errors import BrokenCommunicator
from collwise.mpi.buffers.memory import SharedScratch
from collwise.mpi.engine.node_transport import node_transport
from collwise.mpi.runtime.agreement import everywhere
from collwise.mpi.runtime.progress import (
    END_LIMIT_S,
    before_mpi_ends,
    forked,
    may_call_mpi,
    requests_run,
)

if TYPE_CHECKING:
    from collwise.mpi.execution.executor import Bound

log = logging.getLogger("collwise")


MOST = 256
"""The most duplicates in a process.  The library's collectives serve further communicators: MPI
libraries allow about 2,000 communicators, and the program may need most of them."""
NO_ROOM = f"there are {MOST} duplicates of other communicators, or no room for one"
BLOCKING_TAG = 0
"""All blocking calls share this tag: MPI requires all ranks to make them in one order."""
_FIRST_TAG = 1
_MOST_TAGS = 1 << 26
"""Most tags of a duplicate: `node.c` counts the requests that ask for a lane of its memory."""


@cache
def largest_tag() -> int:
    """The largest tag that MPI allows.  Open MPI tells it of COMM_WORLD, not of what is derived."""
    world = MPI.COMM_WORLD.Get_attr(MPI.TAG_UB) if MPI.Is_initialized() else None
    return min(world or 32767, _MOST_TAGS)


held: set[int] = set()
"""The handles of the duplicates that MPI has, also of those that a program dropped without Free."""


def plain_duplicate(comm: MPI.Intracomm) -> MPI.Intracomm:
    """A communicator of the same ranks, without the user's attributes.  Collective."""
    # By the communicator's own ranks: MPICH's group of a smaller Cartcomm has too many.
    # Through the base class: a subclass's method would wrap it in that subclass again.
    made = MPI.Intracomm(MPI.Intracomm(comm).Split(0, comm.Get_rank()))
    held.add(made.handle)
    return made


def free_duplicate(made: MPI.Intracomm) -> None:
    """Free what `plain_duplicate` made.  Collective."""
    held.discard(made.handle)
    made.Free()


class PrivateCommunicator:
    """A duplicate of `comm`.  Making one is collective: if a rank has no room, all ranks raise.

    broken: why a collective on the duplicate was interrupted; empty if none was.   when_broken:
    functions to call when a collective was interrupted.   tags: the next tag for a persistent or
    non-blocking collective, and the last one that the compiled engine, which uses this memory, too,
    may take.   due: whether half of the tags are used, so that another duplicate is to take its
    place.   when_due: functions to call when that comes.
    nodes: each rank's node number, if messages inside a node go through shared memory; otherwise
    empty.   transport: the shared memory of this rank's node; None if MPI carries its messages.
    progress: whether started schedules may call MPI meanwhile, on all ranks.
    """

    def __init__(self, comm: MPI.Intracomm, nodes: Sequence[int] = ()) -> None:
        self.comm = everywhere(comm, partial(plain_duplicate, comm))
        self.nodes, self.transport = nodes, node_transport(self.comm, nodes)
        everybody = np.array([may_call_mpi()])
        self.comm.Allreduce(MPI.IN_PLACE, everybody, MPI.LAND)
        self.progress = bool(everybody[0])
        self.rank = self.comm.Get_rank()
        self.size = self.comm.Get_size()
        self.broken = ""
        self.when_broken: list[Callable[[], object]] = []
        self.due = False
        self.when_due: list[Callable[[], object]] = []
        self.scratch = SharedScratch()
        self.tags = bytearray(16)
        self._tags = memoryview(self.tags).cast("q")
        self._tags[:] = array("q", (_FIRST_TAG, largest_tag() // 2))
        self._owned: weakref.WeakSet[Any] = weakref.WeakSet()
        self._left: list[Bound] = []
        _open.add(self)

    @property
    def next_tag(self) -> int:
        """The tag for the next persistent or non-blocking collective."""
        return self._tags[0]

    def use_tag(self) -> None:
        """Advance `next_tag` by one."""
        self._tags[0] += 1

    def has_tag(self) -> bool:
        """Whether there is a tag for another request; equal on all ranks.

        No tag is used twice: an earlier request that has it may still be held.
        """
        if self.next_tag > self._tags[1] < largest_tag():
            self._tags[1] = largest_tag()
            self.due = True
            for act in self.when_due:
                act()
        return self.next_tag <= self._tags[1]

    @property
    def in_use(self) -> bool:
        """Whether this rank has a request on this communicator that is not freed."""
        unfreed = any(hasattr(one, "Start") and one for one in self._owned)
        return bool(self._left) or unfreed or requests_run()

    def own(self, holder: Any) -> None:
        """Register an object, to be freed with this communicator, or before MPI ends.

        holder: a persistent request or an executor; both hold MPI objects.
        """
        self._owned.add(holder)
        if self._left or _lingering:
            for private in (self, *_lingering):
                private._sweep()

    def leave(self, holder: "Bound", *, running: bool) -> None:
        """Free a plan whose request the program dropped, as soon as the plan is complete."""
        if forked():
            return
        if running and not self.broken:
            self._left.append(holder)
        else:
            holder.Free()

    def _sweep(self) -> None:
        for holder in self._left.copy():
            if _is_over(holder):
                self._left.remove(holder)
                holder.Free()

    def check(self) -> None:
        """Raise BrokenCommunicator if a collective on this communicator was interrupted."""
        if self.broken:
            raise BrokenCommunicator(
                "a collective on this communicator",
                f"an earlier one was interrupted ({self.broken})",
                "make a new communicator, or end the program",
            )

    def mark_broken(self, cause: BaseException) -> None:
        """Make every later collective here raise, since messages may still be pending."""
        self.broken = self.broken or f"{type(cause).__name__}: {cause}".rstrip(": ")
        for act in self.when_broken:
            act()
        for holder in list(self._owned):
            if (refuse := getattr(holder, "refuse", None)) is not None:
                refuse()

    def judge(self, bound: "Bound", problem: BaseException) -> None:
        """Mark the communicator broken if this error interrupted the plan."""
        if bound.interrupted:
            self.mark_broken(problem)

    def free(self) -> None:
        """Free the duplicate and all requests and executors on it.  Collective.

        A running request that the program holds is completed first.  The duplicate is kept while a
        request that the program dropped still runs.  A broken duplicate is never freed: a later
        communicator might get its context id, and match its pending messages.
        """
        self._sweep()
        for holder in list(self._owned):
            holder.Free()
        if self._left and not self.broken:
            _lingering.append(self)
            return
        self._give_up()
        self.transport = None
        if self.comm != MPI.COMM_NULL and not self.broken:
            free_duplicate(self.comm)
        _open.discard(self)

    def end(self, limit_s: float) -> None:
        """Free requests and executors before MPI ends; wait at most `limit_s` seconds for them."""
        under_way = [one for one in self._owned if getattr(one, "active", False)] + self._left
        latest = monotonic() + limit_s
        if MPI.Is_finalized():
            return
        while not self.broken and (under_way := [one for one in under_way if not _is_over(one)]):
            if monotonic() > latest:
                self.mark_broken(TimeoutError("MPI ends, and a collective is not complete"))
        self._give_up()

    def _give_up(self) -> None:
        for holder in [*self._owned, *self._left]:
            holder.Free()
        self._left.clear()


def _is_over(holder: "Bound") -> bool:
    with suppress(MPI.Exception):  # a `Wait` of the program raises it
        return holder.complete()
    return True


_open: "weakref.WeakSet[PrivateCommunicator]" = weakref.WeakSet()
_lingering: list[PrivateCommunicator] = []
"""Freed private communicators on which requests that the program dropped still run."""


def _end() -> None:
    for private in list(_open):
        private.end(END_LIMIT_S)


before_mpi_ends(_end)  # at the import: a step less that may fail on one rank


class PrivateDuplicate:
    """A communicator's private duplicate, made by `make`, or by `exists` before a planned call.

    MPI libraries have few communicators, so no duplicate is made before it is needed.
    of: the user's communicator, as a plain MPI.Intracomm.   refused: whether no duplicate may be
    made.   when_made: functions to call when a duplicate is made, or is due to be replaced.
    when_broken: functions to call when one is marked broken.
    nodes: each rank's node number; empty if MPI carries messages inside nodes.
    """

    def __init__(self, comm: MPI.Intracomm, nodes: Sequence[int] = ()) -> None:
        self.of = MPI.Intracomm(comm)
        self._nodes = nodes
        self.made: PrivateCommunicator | None = None
        self._former: list[PrivateCommunicator] = []
        self.refused = False
        self.when_made: list[Callable[[], object]] = []
        self.when_broken: list[Callable[[], object]] = []

    def exists(self, *, local: bool = False) -> bool:
        """Whether there is a duplicate; the first call makes it if all ranks have room for it.

        Equal on all ranks.   local: whether to make no duplicate, and not to wait for other ranks.
        """
        if self.made is None and not local and not self.refused:
            most = np.array([len(held)])
            self.of.Allreduce(MPI.IN_PLACE, most, MPI.MAX)
            if most[0] < MOST:
                with suppress(MPI.Exception, MemoryError):  # no room; on all ranks
                    self.make()
            self.refused = self.made is None
            if self.refused:
                log.info("the library serves a communicator: %s", NO_ROOM)
        return self.made is not None

    def make(self) -> PrivateCommunicator:
        """Return the duplicate.  The first call makes the duplicate, and is collective."""
        if self.made is None:
            self.made = PrivateCommunicator(self.of, self._nodes)
            self.made.when_broken, self.made.when_due = self.when_broken, self.when_made
            for act in self.when_made:
                act()
        self.made.check()
        return self.made

    def renew(self) -> None:
        """Replace a duplicate that is due, at a call at which ranks may wait.  Collective if so.

        Requests stay on the duplicate that they were made on; it is freed once no rank has any.
        """
        if (old := self.made) is None or not old.due or old.broken:
            return
        old.due, self.made = False, None
        try:
            self.make()
        except (MPI.Exception, MemoryError):  # on all ranks
            self.made = old  # its last tags are used, then the library serves requests
            return
        former = [*self._former, old]
        in_use = np.array([one.in_use for one in former])
        self.of.Allreduce(MPI.IN_PLACE, in_use, MPI.LOR)
        self._former = [one for one, used in zip(former, in_use, strict=True) if used]
        for one in former:
            if one not in self._former:
                one.free()

    def free(self) -> None:
        """Free the duplicate, and all requests made on it.  Collective."""
        for one in (*self._former, *filter(None, [self.made])):
            one.free()
        self.made, self._former = None, []
