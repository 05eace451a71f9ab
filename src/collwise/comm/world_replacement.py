"""Puts a `Comm` in the place of `MPI.COMM_WORLD`, for scripts that do not know collwise.

A `Comm` replaces `MPI.COMM_SELF`, too.  `Waitall`, `Testall` and `Startall` take collwise's
requests, and `MPI.Comm.fromhandle` returns a `Comm` if it can.  mpi4py's classes stay the same,
since programs compare and pickle them.
"""

import copy
import ctypes
import gc
from collections.abc import Callable
from functools import wraps
from typing import Any

from mpi4py import MPI

from collwise.comm.communicator import Comm
from collwise.comm.family import comms_by_handle
from collwise.comm.recording import CountingStarts
from collwise.errors import InvalidArgument
from collwise.mpi.execution.persistent import PersistentCollective, startall, waitall

COMM_WORLD, COMM_SELF = MPI.COMM_WORLD, MPI.COMM_SELF
"""mpi4py's own communicators, which pickle has to find by these names in some module."""
_LISTS = [
    name
    for name in dir(MPI.Request)
    if name.lower().endswith(("all", "any", "some")) and name[0] != "_"
]


def replace_world(ours: Comm) -> None:
    """Replace COMM_WORLD by `ours`, COMM_SELF by a `Comm`, and methods on lists and handles."""
    vars(MPI).update(COMM_WORLD=ours, COMM_SELF=ours._derived(MPI.COMM_SELF))
    for kind in (MPI.Request, MPI.Prequest):
        names = [name for name in (*_LISTS, "Startall") if name in vars(kind)]
        _replace(kind, {name: _of_lists(getattr(kind, name)) for name in names})
    makers = ("fromhandle", "fromint", "f2py")
    _replace(
        MPI.Comm,
        {name: _as_ours(getattr(MPI.Comm, name)) for name in makers if name in vars(MPI.Comm)},
    )


def _replace(kind: type[Any], methods: dict[str, Callable[..., Any]]) -> None:
    """Replace methods of a compiled class, whose attributes Python refuses to set."""
    (namespace,) = (one for one in gc.get_referents(vars(kind)) if isinstance(one, dict))
    namespace.update({name: staticmethod(method) for name, method in methods.items()})
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))


def _as_ours(theirs: Callable[..., MPI.Comm]) -> Callable[..., MPI.Comm]:
    """Wrap a function from a handle to a communicator: return a `Comm` if the handle has one."""

    @wraps(theirs)
    def by_handle(handle: int) -> MPI.Comm:
        made = theirs(handle)
        ours = comms_by_handle.get(made.handle)
        return made if ours is None or ours != made else copy.copy(ours)

    return by_handle


def _of_lists(theirs: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a method of MPI.Request that takes a list.

    If the list holds requests of collwise, starting, waiting for or testing all of them works; any
    other method raises InvalidArgument.
    """
    name: str = theirs.__name__

    @wraps(theirs)
    def complete(requests: Any, *statuses: Any, **named: Any) -> Any:
        every = list(requests)
        ours = (PersistentCollective, *[CountingStarts] * (name == "Startall"))
        if not any(isinstance(one, ours) for one in every):
            return theirs(requests, *statuses, **named)
        if name == "Startall":
            return startall(every)
        if name.lower() == "testall" and not all(one.Get_status() for one in every):
            return (False, None) if name.islower() else False
        if name.lower() not in ("testall", "waitall"):
            raise InvalidArgument(
                f"MPI.Request.{name}",
                "the list holds a request of collwise's, which is not an MPI.Request",
                "complete that by its own Wait or Test, or all of them by collwise.waitall",
            )
        if not name.islower():
            waitall(every)
            return True
        waitall(one for one in every if isinstance(one, PersistentCollective))
        objects = [one.wait() for one in every]
        return objects if name == "waitall" else (True, objects)

    return complete
