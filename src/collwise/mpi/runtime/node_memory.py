"""Memory that the ranks of a node share.  It has no name, so nothing is left when ranks are killed.

One rank of the node makes it (`memfd_create`), and the others open that rank's descriptor in /proc.
"""

import mmap
import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mpi4py import MPI

from collwise.mpi.runtime.agreement import allgather

_TOKEN_BYTES = 16


class Mapped(NamedTuple):
    """Memory that the ranks of a node share.

    readers, writers: this rank's read-only and writable mappings; None without shared memory, and
    `writers` if the rank may not write.   problems: by node without shared memory, the reason.
    """

    readers: mmap.mmap | None
    writers: mmap.mmap | None
    problems: Mapping[int, str]


def map_together(
    comm: MPI.Intracomm,
    nodes: Sequence[int],
    makers: Mapping[int, int],
    nbytes: int,
    *,
    writable: bool = False,
    able: str = "",
) -> Mapped:
    """Map memory that is the same for all ranks of a node.  Collective.

    nodes: each rank's node.   makers: by node, the rank that makes the memory.   nbytes: bytes of
    the memory, all 0 at first.   writable: whether all ranks may write; pages are then allocated
    when they are touched.  Otherwise only the maker may write, and all pages are allocated at once.
    able: why this rank cannot take part; empty if it can.
    """
    rank = comm.Get_rank()
    maker, descriptor, wrong = makers[nodes[rank]], -1, able
    offer: tuple[int, int, bytes] | None = None
    if rank == maker and not wrong:
        token = os.urandom(_TOKEN_BYTES)
        try:
            descriptor = _made(nbytes, token, at_once=not writable)
            offer = os.getpid(), descriptor, token
        except OSError as problem:
            wrong = f"rank {rank} cannot make the memory ({problem})"
    offers = allgather(comm, offer)
    readers = writers = None
    theirs = offers[maker]
    if theirs is not None and not wrong:
        try:
            readers, writers = _mapped(descriptor, theirs, nbytes, writable or rank == maker)
        except (OSError, ValueError) as problem:
            wrong = f"rank {rank} cannot map the memory of rank {maker} ({problem})"
    problems: dict[int, str] = {}
    for node, told in zip(nodes, allgather(comm, wrong), strict=True):
        if told:
            problems.setdefault(node, told)
    if descriptor >= 0:
        os.close(descriptor)  # all who could have opened it
    if nodes[rank] in problems:
        readers = writers = None
    return Mapped(readers, writers, problems)


def _made(nbytes: int, token: bytes, *, at_once: bool) -> int:
    if not hasattr(os, "memfd_create"):
        raise OSError("this system has no memfd_create")
    descriptor = os.memfd_create("collwise", os.MFD_CLOEXEC)
    try:
        os.ftruncate(descriptor, nbytes + len(token))
        if at_once:  # a lack of memory is an error here; later it would be a signal
            os.posix_fallocate(descriptor, 0, nbytes + len(token))
        os.pwrite(descriptor, token, nbytes)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _mapped(
    own: int, offer: tuple[int, int, bytes], nbytes: int, writable: bool
) -> tuple[mmap.mmap, mmap.mmap | None]:
    """Map the maker's memory.   own: this rank's descriptor; negative to open the maker's."""
    process, theirs, token = offer
    opened = own
    if own < 0:
        mode = os.O_RDWR if writable else os.O_RDONLY
        # Where that number is another process's it may be anything: a pipe, a terminal.
        mode |= os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
        opened = os.open(f"/proc/{process}/fd/{theirs}", mode)
    try:
        if os.pread(opened, len(token), nbytes) != token:
            raise OSError("another process has that number here")
        readers = mmap.mmap(opened, nbytes, access=mmap.ACCESS_READ)
        return readers, mmap.mmap(opened, nbytes) if writable else None
    finally:
        if own < 0:
            os.close(opened)
