"""Cheap cache keys of calls.

They hold only what MPI requires to be equal on all ranks, so that all ranks decide alike.
"""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from mpi4py import MPI

from collwise.mpi.buffers.vector_layout import SPECS, vector_key


def broadcast_key(buf: Any, root: int) -> Hashable:
    """A cache key for the number of bytes of a Bcast; None if that is slow to find out."""
    nbytes = getattr(buf, "nbytes", None)
    if nbytes is not None:
        return "Bcast", nbytes, root
    listed = vector_key("Bcast", buf)
    return listed and (listed, root)


def combine_key(method: str, sendbuf: Any, recvbuf: Any, op: MPI.Op, root: int = 0) -> Hashable:
    """A cache key for what a call combines; None if that is slow to find out."""
    vector = recvbuf if sendbuf is MPI.IN_PLACE or sendbuf is None else sendbuf
    other = vector if recvbuf is None else recvbuf
    combined = root, _operator_key(op)
    if type(vector) is np.ndarray and type(other) is np.ndarray:
        same = other is vector or other.dtype == vector.dtype
        return (method, vector.dtype, vector.nbytes, other.nbytes, *combined) if same else None
    keys = vector_key(method, vector), vector_key(method, other)
    return None if None in keys else (*keys, *combined)


def _operator_key(op: MPI.Op) -> Hashable:
    """The object alone may stand for an operator that was freed, the handle for another one."""
    return id(op), getattr(op, "handle", 0)


def call_key(method: str, arguments: Sequence[Any]) -> Hashable:
    """The key of a blocking call.   arguments: all that the MPI method takes."""
    if method == "Bcast":
        return broadcast_key(*arguments)
    if method in SPECS:
        return vector_key(method, arguments[1])
    return combine_key(method, *arguments)
