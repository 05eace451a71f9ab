"""Memory that the ranks of a node share.  It has no name, so nothing is left when ranks are killed.

One rank of the node makes it (`memfd_create`), and the others open that rank's descriptor in /proc.
"""

import mmap
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from mpi4py import MPI

from collwise.mpi.engine.loading import COMPILED
from collwise.mpi.runtime.agreement import allgather

_TOKEN_BYTES = 16


class Mapped(NamedTuple):
    """Memory that the ranks of a node share.

    readers, writers: this rank's read-only and writable mappings; None without shared memory, and
    `writers` if the rank may not write.   problems: by node without shared memory, the reason.
    used: what `use` made of the memory; None without shared memory.   processes: the process ids of
    the node's ranks, if each of them may access the others' memory.
    """

    readers: mmap.mmap | None
    writers: mmap.mmap | None
    problems: Mapping[int, str]
    used: Any = None
    processes: Sequence[int] = ()


def map_together(
    comm: MPI.Intracomm,
    nodes: Sequence[int],
    makers: Mapping[int, int],
    nbytes: int,
    *,
    writable: bool = False,
    able: str = "",
    use: Callable[[mmap.mmap], Any] | None = None,
) -> Mapped:
    """Map memory that is the same for all ranks of a node.  Collective.

    nodes: each rank's node.   makers: by node, the rank that makes the memory.   nbytes: bytes of
    the memory, all 0 at first.   writable: whether all ranks may write; pages are then allocated
    when they are touched.  Otherwise only the maker may write, and all pages are allocated at once.
    able: why this rank cannot take part; empty if it can.   use: makes something of `writers`.
    Whatever fails on one rank, none of its node has the memory.
    """
    rank = comm.Get_rank()
    maker, descriptor, wrong = makers[nodes[rank]], -1, able
    offer: tuple[int, int, bytes] | None = None
    if rank == maker and not wrong:
        try:
            token = os.urandom(_TOKEN_BYTES)
            descriptor = _made(nbytes, token, at_once=not writable)
            offer = os.getpid(), descriptor, token
        except Exception as problem:
            wrong = f"rank {rank} cannot make the memory ({str(problem) or repr(problem)})"
    mark = None if COMPILED is None else COMPILED.mark()
    offers, marks = zip(*allgather(comm, (offer, mark)), strict=True)
    here = [mark for node, mark in zip(nodes, marks, strict=True) if node == nodes[rank]]
    access = COMPILED is not None and all(mark and COMPILED.reads(mark) for mark in here)
    readers = writers = used = None
    theirs = offers[maker]
    if theirs is not None and not wrong:
        try:
            readers, writers = _mapped(descriptor, theirs, nbytes, writable or rank == maker)
            used = use(writers) if use and writers else None
        except Exception as problem:
            why = str(problem) or repr(problem)
            wrong = f"rank {rank} cannot map the memory of rank {maker} ({why})"
    problems: dict[int, str] = {}
    for node, (told, theirs_too) in zip(nodes, allgather(comm, (wrong, access)), strict=True):
        access &= theirs_too or node != nodes[rank]
        if told:
            problems.setdefault(node, told)
    if descriptor >= 0:
        os.close(descriptor)  # all who could have opened it
    if nodes[rank] in problems:
        readers = writers = used = None
    processes = [mark[0] for mark in here if mark] if access else ()
    return Mapped(readers, writers, problems, used, processes)


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
