"""Collectives of Python objects, made of collectives of buffers, which have plans.

mpi4py sends sizes first and then pickles.  collwise sends small pickles with their sizes, in one
collective instead of two.  Large buffers of a broadcast object (pickle's protocol 5) are not copied
into a pickle.  In the first collective all ranks learn which objects are small, so all ranks go on
alike.

This takes a few microseconds more in Python, so it is not done if a race shows that the library's
collectives take little time.
"""

from collections.abc import Callable, Sequence
from struct import Struct
from typing import Any, Literal

from mpi4py import MPI

from collwise.comm.family import Inheritable
from collwise.comm.recording import Way
from collwise.schedule.problem import brackets

FIRST_BYTES, SLOT_BYTES = 512, 256
"""Bytes of the first broadcast, and of each rank's slot in the first allgather."""
MAX_RANKS = 64
"""Largest number of ranks for which slots are gathered.  With more ranks mpi4py's own allgather,
which gathers the sizes first, takes less time."""
MAX_COMBINING = 8
"""Largest number of ranks for which the root or every rank combines objects from slots."""
_NUMBERS = frozenset({bool, int, float, complex})
"""Types for which predefined operators have the same result on every rank."""
_HEAD, _LENGTH = Struct("=qq"), Struct("=q")
"""Heads of messages.  A broadcast's head has the pickle's length in bytes and the number of buffers
that follow.  A slot's head has the length, negative if its rank lets every rank combine objects."""
_INLINE, _SLOT = FIRST_BYTES - _HEAD.size, SLOT_BYTES - _LENGTH.size
"""Bytes that are left for data after the head: in the first broadcast, and in a slot."""
_OBJECT: Way = "object"
_OUT_OF_BAND = 5
"""The first protocol of pickle with out-of-band buffers."""


class ObjectForms(Inheritable):
    """A communicator whose collectives of objects may use planned collectives of buffers."""

    _library_bcast = MPI.Intracomm.bcast
    _library_allgather = MPI.Intracomm.allgather
    _library_allreduce = MPI.Intracomm.allreduce
    _library_reduce = MPI.Intracomm.reduce

    def bcast(self, obj: Any, root: int = 0) -> Any:
        """Broadcast a Python object from `root`; semantics and errors are mpi4py's."""
        if "Bcast" in self._served and hasattr(type(root), "__int__"):
            if self._dispatch.slow("Bcast", FIRST_BYTES):
                return bcast(self._for_objects(), obj, self.Get_rank(), int(root))
            self._leave("bcast")
        return self._library_bcast(obj, root)

    def allgather(self, sendobj: Any) -> list[Any]:
        """Gather everybody's object on every rank; semantics and errors are mpi4py's."""
        if self._gathers("allgather", MAX_RANKS):
            return allgather(self._for_objects(), sendobj)
        return self._library_allgather(sendobj)

    def allreduce(self, sendobj: Any, op: Callable[[Any, Any], Any] = MPI.SUM) -> Any:
        """Combine everybody's objects, with mpi4py's brackets; semantics and errors are mpi4py's.

        With order="fixed" the brackets are those for arrays instead, the same in every call.
        """
        if self._has_plans and self._decision.order == "fixed":
            return self.bcast(self.reduce(sendobj, op))
        if not self._gathers("allreduce", MAX_COMBINING):
            return self._library_allreduce(sendobj, op)
        alike = type(sendobj) in _NUMBERS and isinstance(op, MPI.Op) and op.is_predefined
        comm, rank = self._for_objects(), self.Get_rank()
        every, alike = small_objects(comm, sendobj, alike=alike)
        if not every:
            return self._library_allreduce(sendobj, op)
        total = _combined(every, op) if alike or rank == 0 else None
        return total if alike else bcast(comm, total, rank, 0)

    def reduce(self, sendobj: Any, op: Callable[[Any, Any], Any] = MPI.SUM, root: int = 0) -> Any:
        """Combine everybody's objects on `root` as `allreduce` does; errors are mpi4py's."""
        if self._has_plans and self._decision.order == "fixed":
            objects = self.gather(sendobj, root) or [None]  # elsewhere than on the root
            for left, right in brackets(len(objects)):
                objects[right] = op(objects[left], objects[right])
            return objects[-1]
        if (
            self._gathers("reduce", MAX_COMBINING)
            and hasattr(type(root), "__int__")
            and 0 <= int(root) < self.Get_size()
            and (every := small_objects(self._for_objects(), sendobj)[0])
        ):
            return _combined(every, op) if self.Get_rank() == int(root) else None
        return self._library_reduce(sendobj, op, root)

    def _for_objects(self) -> MPI.Intracomm:
        """The communicator to send on: self, or with a record, a view that counts as "object"."""
        return self if self._record is None else self._view(_OBJECT, self._decision, _OBJECT)

    def _gathers(self, name: str, most: int) -> bool:
        """Whether the object method `name` uses the planned Allgather; equal on all ranks.

        most: the largest number of ranks for which it may.   If not, the method may be replaced.
        """
        if "Allgather" not in self._served:
            return False
        does = self.Get_size() <= most and self._dispatch.slow("Allgather", SLOT_BYTES)
        return does or self._leave(name)

    def _leave(self, name: str) -> Literal[False]:
        """Unless recorded or overridden, let mpi4py's own `name` serve until plans change."""
        if self._record is None and getattr(type(self), name) is getattr(ObjectForms, name):
            setattr(self, name, getattr(MPI.Intracomm, name).__get__(self))
        return False


def bcast(comm: MPI.Intracomm, obj: Any, rank: int, root: int) -> Any:
    """The root's object, on all ranks.  The root gets a copy, too, as in mpi4py."""
    buffers: Sequence[Any] = ()
    if rank == root:
        pickled, buffers = _pickled(obj)
        sizes = Struct(f"={len(buffers)}q").pack(*(one.nbytes for one in buffers))
        rest = sizes + pickled
        first = (_HEAD.pack(len(pickled), len(buffers)) + rest)[:FIRST_BYTES]
        comm.Bcast([first.ljust(FIRST_BYTES, b"\0"), FIRST_BYTES, MPI.BYTE], root)
        if len(rest) > _INLINE:
            comm.Bcast([rest, len(rest), MPI.BYTE], root)
        for one in buffers:
            comm.Bcast([one, one.nbytes, MPI.BYTE], root)
        return _loaded(pickled, [bytearray(one) for one in buffers])
    head = bytearray(FIRST_BYTES)
    comm.Bcast([head, FIRST_BYTES, MPI.BYTE], root)
    length, count = _HEAD.unpack_from(head)
    view = memoryview(head)[_HEAD.size :]
    length += 8 * count
    if length > _INLINE:
        view = memoryview(bytearray(length))
        comm.Bcast([view, length, MPI.BYTE], root)
    buffers = [bytearray(size) for size in Struct(f"={count}q").unpack_from(view)]
    for one in buffers:
        comm.Bcast([one, len(one), MPI.BYTE], root)
    return _loaded(view[8 * count : length], buffers)


def small_objects(comm: MPI.Intracomm, obj: Any, *, alike: bool = False) -> tuple[list[Any], bool]:
    """Returns the objects of all ranks ([] if one is too long), and whether all ranks say `alike`.

    alike: whether this rank lets every rank combine the objects, instead of rank 0 alone.
    """
    pickled = MPI.pickle.dumps(obj)
    slots, heads = _first(comm, pickled, -len(pickled) if alike else len(pickled))
    lengths = list(map(abs, heads))
    objects = [] if max(lengths) > _SLOT else _loaded_slots(slots, lengths)
    return objects, max(heads) < 0


def allgather(comm: MPI.Intracomm, obj: Any) -> list[Any]:
    """The objects of all ranks, in rank order."""
    pickled = MPI.pickle.dumps(obj)
    slots, lengths = _first(comm, pickled, len(pickled))
    counts = [length if length > _SLOT else 0 for length in lengths]
    rest = memoryview(bytearray(sum(counts)))
    if rest.nbytes:
        mine = pickled if len(pickled) > _SLOT else b""
        comm.Allgatherv([mine, len(mine), MPI.BYTE], [rest, counts, MPI.BYTE])
    return _loaded_slots(slots, lengths, rest)


def _loaded_slots(slots: memoryview, lengths: list[int], rest: Any = b"") -> list[Any]:
    """The objects of all ranks, from their slots.   lengths: bytes of each pickle.   rest: the
    pickles that are too long for a slot, one after another.
    """
    objects, place = [], 0
    for start, length in zip(range(0, len(slots), SLOT_BYTES), lengths, strict=True):
        one = slots[start + _LENGTH.size : start + _LENGTH.size + length]
        if length > _SLOT:
            one = rest[place : place + length]
            place += length
        objects.append(MPI.pickle.loads(one))
    return objects


def _combined(objects: list[Any], op: Callable[[Any, Any], Any]) -> Any:
    """The objects combined by `op`, in mpi4py's order; overwrites items of the list."""
    step, ranks = 1, len(objects)
    while step < ranks:
        for rank in range(0, ranks - step, 2 * step):
            objects[rank] = op(objects[rank], objects[rank + step])
        step *= 2
    return objects[0]


def _first(comm: MPI.Intracomm, pickled: bytes, head: int) -> tuple[memoryview, list[int]]:
    """Allgather slots of `head` and `pickled`; returns all ranks' slots, and their heads."""
    slot = (_LENGTH.pack(head) + pickled)[:SLOT_BYTES].ljust(SLOT_BYTES, b"\0")
    slots = bytearray(SLOT_BYTES * comm.Get_size())
    comm.Allgather([slot, SLOT_BYTES, MPI.BYTE], [slots, SLOT_BYTES, MPI.BYTE])
    starts = range(0, len(slots), SLOT_BYTES)
    return memoryview(slots), [_LENGTH.unpack_from(slots, start)[0] for start in starts]


def _pickled(obj: Any) -> tuple[bytes, Sequence[Any]]:
    """The pickle of an object, and the buffers that the pickler left out of it, if any."""
    protocol = MPI.pickle.PROTOCOL
    if protocol is not None and protocol >= _OUT_OF_BAND:
        try:
            return MPI.pickle.dumps_oob(obj)
        except TypeError:
            pass  # the program's own pickler takes no callback, or the object cannot be pickled so
    return MPI.pickle.dumps(obj), ()


def _loaded(pickled: Any, buffers: Sequence[Any]) -> Any:
    return MPI.pickle.loads_oob(pickled, buffers) if buffers else MPI.pickle.loads(pickled)
