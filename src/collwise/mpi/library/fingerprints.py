"""Shows from outside how a library's collective combines, broadcasts and gathers.

This works under any library.  `combined` uses a user's operator that gives each pair of operands a
number; from these pairs follows the expression of every result.  `summed` shows how MPI.SUM rounds.
In `broadcast_tree` one rank enters the broadcast late, and the others tell it when they are done.
A rank that was done before the late one entered does not depend on it.  This needs no common clock.
`early_blocks` tells which blocks of an allgather arrive before a late rank enters it.

These are collective, and return the same on all ranks.  Meanwhile nobody else may send
messages on the communicator.   comm: the communicator whose methods are called; it may be a
`collwise.Comm`.
"""

import re
import time
from collections.abc import Callable, Sequence
from functools import partial
from hashlib import sha256
from threading import Thread
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from collwise.mpi.runtime.agreement import wait_asleep

T = TypeVar("T")
ELEMENT = 8
"""Bytes of each element that is combined."""
QUIET_S = 0.01
"""The least time in seconds that a late rank waits for one more rank to be done."""
CALLS = 5
"""A late rank waits at least as long as this number of broadcasts takes."""
ROUNDS = 8
"""The number of rounds of delays after which a tree that is not settled counts as undecided."""
LONGEST_S = 15.0
"""Seconds after which no further round begins in which blocks of an allgather are looked for."""
_NAP_S = 2e-4
_DONE = 1
"""The tag of messages that tell a late rank of a completed broadcast."""


class Combination(NamedTuple, Generic[T]):
    """The results that a collective left on the ranks.

    by_rank: for each rank, the distinct values in its result, in the order of elements; empty for a
    rank without a result.  `combined` has expressions such as "((0 1) 2)": 0 is rank 0's
    contribution, and the left operand comes first.  `summed` has numbers.
    ranks_agree: for Allreduce, whether all ranks have equal results, element by element; for other
    methods True.   elements_agree: whether all elements of each rank's result are equal.
    For a commutative operator, (0 1) and (1 0) count as equal.
    """

    by_rank: tuple[tuple[T, ...], ...]
    ranks_agree: bool
    elements_agree: bool

    @property
    def values(self) -> tuple[T, ...]:
        """The distinct values in the results of all ranks together."""
        return tuple(dict.fromkeys(value for here in self.by_rank for value in here))


class BroadcastTree(NamedTuple):
    """The tree of a broadcast, as far as delays show it.

    parents: for each rank, the rank that it receives from, None for the root; empty without a tree.
    late: for each rank, the ranks that are late if this rank is late; empty for the root.
    why_not: the reason why delays show no tree; empty if they show one.
    """

    parents: tuple[int | None, ...]
    late: tuple[frozenset[int], ...]
    why_not: str


def combined(
    comm: MPI.Intracomm, method: str, nbytes: int, *, commute: bool = True
) -> Combination[str]:
    """The expressions by which a method combines with a user's operator on 8-byte integers.

    A library may choose another algorithm for MPI.SUM on float64.
    method: Reduce (to rank 0), Allreduce or Reduce_scatter_block.   nbytes: bytes of each rank's
    vector, rounded up to whole elements, or to equal blocks of whole elements.   commute: whether
    the operator is created as commutative.
    """
    pairs: dict[int, tuple[int, int]] = {}

    def join(left_bytes: Any, right_bytes: Any, _: MPI.Datatype) -> None:
        left, right = (np.frombuffer(one, np.uint64) for one in (left_bytes, right_bytes))
        numbers = _numbers(left, right)
        first = np.flatnonzero(np.diff(numbers, prepend=~numbers[:1]))
        operands = zip(left[first].tolist(), right[first].tolist(), strict=True)
        pairs.update(zip(numbers[first].tolist(), operands, strict=True))
        right[:] = numbers

    op = MPI.Op.Create(join, commute=commute)
    try:
        result = _result(comm, method, nbytes, np.uint64(comm.Get_rank()), op)
    finally:
        op.Free()
    unknown: dict[int, tuple[int, int]] = {}
    for theirs in MPI.Intracomm(comm).allgather(pairs):
        unknown |= theirs
    texts = {rank: str(rank) for rank in range(comm.Get_size())}
    while unknown:  # operands become known before what is made of them
        known = [number for number, two in unknown.items() if texts.keys() >= {*two}]
        texts |= {n: "({} {})".format(*(texts[one] for one in unknown.pop(n))) for n in known}
    return _combination(comm, method, result, texts.__getitem__, sided if commute else str)


def summed(
    comm: MPI.Intracomm, method: str, nbytes: int, values: Sequence[float]
) -> Combination[float]:
    """The sums that a method makes by MPI.SUM on float64, where rank r contributes values[r].

    method: Reduce (to rank 0), Allreduce or Reduce_scatter_block.   nbytes: bytes of each rank's
    vector.   Sums of the same values may differ if the values are added in another order.
    """
    result = _result(comm, method, nbytes, np.float64(values[comm.Get_rank()]), MPI.SUM)
    return _combination(comm, method, result, float, repr)


def folded(expression: str, leaf: Callable[[int], T], combine: Callable[[T, T], T]) -> T:
    """The value of an expression such as "((0 1) 2)".   leaf: gives the value of a rank."""
    open_pairs: list[list[T]] = [[]]
    for word in re.findall(r"[()]|\d+", expression):
        if word == "(":
            open_pairs.append([])
        else:
            value = combine(*open_pairs.pop()) if word == ")" else leaf(int(word))
            open_pairs[-1].append(value)
    return open_pairs[0][0]


def sided(expression: str) -> str:
    """The expression, with the operands of each pair ordered by their lowest ranks."""

    def pair(one: tuple[int, str], other: tuple[int, str]) -> tuple[int, str]:
        (lowest, left), (_, right) = sorted((one, other))
        return lowest, f"({left} {right})"

    return folded(expression, lambda rank: (rank, str(rank)), pair)[1]


def _numbers(left: NDArray[np.uint64], right: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A hash of 63 bits for each pair of operands, larger than every rank."""
    mixed: NDArray[np.uint64] = left * np.uint64(0x9E3779B97F4A7C15) + right * np.uint64(
        0xC2B2AE3D27D4EB4F
    )
    for factor in (0xBF58476D1CE4E5B9, 0x94D049BB133111EB):
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(factor)
    return (mixed ^ (mixed >> np.uint64(31))) | np.uint64(1 << 63)


def _result(comm: MPI.Intracomm, method: str, nbytes: int, value: Any, op: MPI.Op) -> NDArray[Any]:
    """Call `method`; returns the result on this rank.   value: each element of its vector."""
    blocks = comm.Get_size() if method == "Reduce_scatter_block" else 1
    items = -(-nbytes // (ELEMENT * blocks))
    result = np.zeros(items, value.dtype)
    sent = np.full(items * blocks, value)
    getattr(comm, method)(sent, result, op, *[0] * (method == "Reduce"))
    return result[: 0 if method == "Reduce" and comm.Get_rank() else items]


def _combination(
    comm: MPI.Intracomm,
    method: str,
    result: NDArray[Any],
    read: Callable[[Any], T],
    alike: Callable[[T], str],
) -> Combination[T]:
    """All ranks' results.   alike: gives values that count as equal the same text."""
    distinct, places = np.unique(result, return_inverse=True)
    texts = [alike(read(one)).encode() for one in distinct.tolist()]
    keys = np.array([int.from_bytes(sha256(text).digest()[:8]) for text in texts], np.uint64)
    here = tuple(map(read, dict.fromkeys(result.tolist())))
    seen = here, sha256(keys[places].tobytes()).digest(), len({*texts}) < 2
    by_rank, digests, same = zip(*MPI.Intracomm(comm).allgather(seen), strict=True)
    return Combination(by_rank, method != "Allreduce" or len({*digests}) == 1, all(same))


def broadcast_tree(comm: MPI.Intracomm, nbytes: int, root: int = 0) -> BroadcastTree:
    """The tree by which Bcast sends `nbytes` bytes, as delays show it.

    In a round each rank but the root is late once.  Rounds go on until two in a row show nothing
    new, at most ROUNDS.  A rank that was done before a late rank began does not depend on it.
    If senders wait for their receivers (beyond the library's eager size), no tree is seen.
    """
    ranks, data = comm.Get_size(), np.zeros(nbytes, "u1")
    quiet_s = _quiet(comm, partial(comm.Bcast, data, root))
    late = [frozenset(range(ranks))] * ranks
    alike = 0  # rounds that showed nothing new, one after another
    for _ in range(ROUNDS):
        seen = MPI.Intracomm(comm).allgather(_late_after(comm, data, root, quiet_s))
        before, late = late, [old & new for old, new in zip(late, seen, strict=True)]
        alike = alike + 1 if late == before else 0
        if alike == 2:
            parents, why_not = _parents(late, root)
            break
        quiet_s *= 1.5
    else:
        parents, why_not = (), "undecided: other ranks were late in each round"
    return BroadcastTree(parents, tuple(late), why_not)


def early_blocks(
    comm: MPI.Intracomm, method: str, nbytes: int
) -> tuple[tuple[frozenset[int], ...], ...] | None:
    """For each rank and late rank, the blocks of others that arrive before the late rank enters.

    While a thread of a rank is in the call, another one looks at the result, and tells the late
    rank when nothing more arrives.  Noise only hides blocks, so rounds go on until two in a row
    show nothing new.
    method: Allgather or Allgatherv.   nbytes: bytes of each rank's block, at least 1.
    None if ROUNDS rounds or LONGEST_S do not suffice, or below MPI_THREAD_MULTIPLE on any rank.
    """
    ranks, rank, plain = comm.Get_size(), comm.Get_rank(), MPI.Intracomm(comm)
    if plain.allreduce(MPI.Query_thread(), MPI.MIN) < MPI.THREAD_MULTIPLE:
        return None
    until = time.monotonic() + LONGEST_S
    blocks = np.zeros((ranks, nbytes), "u1")
    received: Any = [blocks, [nbytes] * ranks] if method == "Allgatherv" else blocks
    sent = np.full(nbytes, 1 + rank % 255, "u1")
    call = partial(getattr(comm, method), sent, received)
    quiet_s, alike = _quiet(comm, call), 0
    seen = [frozenset[int]() for _ in range(ranks)]
    for _ in range(ROUNDS):
        before, seen = (
            seen,
            [old | _early(plain, call, blocks, late, quiet_s) for late, old in enumerate(seen)],
        )
        alike = alike + 1 if plain.allreduce(seen == before, MPI.LAND) else 0
        if alike == 2:
            return tuple(plain.allgather(tuple(seen)))
        if plain.allreduce(time.monotonic() > until, MPI.LOR):
            return None
        quiet_s *= 1.5
    return None


def _early(
    comm: MPI.Intracomm, call: Callable[[], object], blocks: NDArray[Any], late: int, quiet_s: float
) -> frozenset[int]:
    """The blocks of others that arrive on this rank while `late` is late; none on `late`."""
    rank, arrived = comm.Get_rank(), frozenset[int]()
    blocks[:] = 0
    wait_asleep(comm)
    if rank == late:
        for _ in range(comm.Get_size() - 1):
            while not comm.Iprobe(MPI.ANY_SOURCE, _DONE):
                time.sleep(_NAP_S)
            comm.Recv(bytearray(), MPI.ANY_SOURCE, _DONE)
        call()
        return arrived
    calling = Thread(target=call)
    calling.start()
    latest = time.monotonic() + quiet_s
    while time.monotonic() < latest:
        time.sleep(_NAP_S)
        now = frozenset(np.flatnonzero(blocks.all(axis=1)).tolist())
        if now != arrived:
            arrived, latest = now, time.monotonic() + quiet_s
    comm.Send(b"", late, _DONE)
    calling.join()
    return arrived - {rank}


def _quiet(comm: MPI.Intracomm, call: Callable[[], object]) -> float:
    """The seconds that a late rank waits, in the first round, for one more thing to happen."""
    longest_s = 0.0
    for _ in range(3):
        comm.Barrier()
        begin = time.perf_counter()
        call()
        comm.Barrier()
        longest_s = max(longest_s, time.perf_counter() - begin)
    every: list[float] = MPI.Intracomm(comm).allgather(longest_s)
    return max(QUIET_S, CALLS * max(every))


def _late_after(
    comm: MPI.Intracomm, data: NDArray[Any], root: int, quiet_s: float
) -> frozenset[int]:
    """The ranks that were not done while this rank was late.  All but the root are late once."""
    plain, late = MPI.Intracomm(comm), frozenset[int]()
    for turn in (rank for rank in range(comm.Get_size()) if rank != root):
        if comm.Get_rank() == turn:
            late = _enter_late(plain, lambda: comm.Bcast(data, root), quiet_s)
        else:
            comm.Bcast(data, root)
            plain.Send(b"", turn, _DONE)
        wait_asleep(plain)
    return late


def _enter_late(
    comm: MPI.Intracomm, broadcast: Callable[[], object], quiet_s: float
) -> frozenset[int]:
    """Enter the broadcast when all others, or no further one for `quiet_s` seconds, finished it.

    Returns the ranks that had not finished by then.
    """
    late, status = {*range(comm.Get_size())} - {comm.Get_rank()}, MPI.Status()
    latest = time.monotonic() + quiet_s
    while late and time.monotonic() < latest:
        if comm.Iprobe(MPI.ANY_SOURCE, _DONE, status):
            comm.Recv(bytearray(), status.source, _DONE)
            late.remove(status.source)
            latest = time.monotonic() + quiet_s
        else:
            time.sleep(_NAP_S)
    broadcast()
    for rank in late:
        comm.Recv(bytearray(), rank, _DONE)
    return frozenset(late)


def _parents(late: Sequence[frozenset[int]], root: int) -> tuple[tuple[int | None, ...], str]:
    """The parents in the tree with these late ranks, or no parents and the reason."""
    if any(root in others for others in late):
        return (), "senders wait for receivers, or all for all"
    parents: list[int | None] = []
    for rank in range(len(late)):
        above = [other for other, below in enumerate(late) if rank in below]
        nearest = min(above, key=lambda other: len(late[other]), default=root)
        parents.append(None if rank == root else nearest)
    below_children: list[set[int]] = [set() for _ in late]
    for rank, parent in enumerate(parents):
        if parent not in (None, root):
            below_children[parent] |= {rank} | late[rank]
    if below_children != [set(below) for below in late]:
        return (), "ranks receive from several others"
    return tuple(parents), ""
