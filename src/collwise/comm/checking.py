"""COLLWISE_CHECK=1: before a collective, the ranks tell each other what they are about to do.

Ranks that disagree wait for each other for ever, or get each other's bytes.  Here they all hear
who asked for what.  It costs an exchange of small objects for every call: for finding mistakes.
"""

import os
from collections.abc import Callable, Mapping
from functools import partial, wraps
from inspect import signature
from types import MappingProxyType
from typing import Any, TypeAlias

from mpi4py import MPI

from collwise.errors import InvalidArgument
from collwise.mpi.buffers import Buffer
from collwise.mpi.combining import planning_name
from collwise.mpi.operands import is_in_place
from collwise.mpi.pieces import equal_parts, lengths_of, vector_parts

ENVIRONMENT = "COLLWISE_CHECK"
"""The environment variable that asks for it; rank 0's counts."""
Facts: TypeAlias = dict[str, object]
"""What has to be equal on all ranks, by what it is called."""
Tell: TypeAlias = Callable[[MPI.Intracomm, Mapping[str, Any]], Facts]
"""What a rank is about to do, from the arguments of its call; raises what is wrong with them."""


def checks_wanted() -> bool:
    """Whether this process's environment asks for it."""
    return os.environ.get(ENVIRONMENT, "") not in ("", "0")


def check_calls(comm: MPI.Intracomm) -> None:
    """From now on check the collectives of this communicator before they run."""
    for name, tell in _TOLD.items():
        setattr(comm, name, _checked(comm, name, tell, getattr(comm, name)))


def _checked(
    comm: MPI.Intracomm, name: str, tell: Tell, call: Callable[..., Any]
) -> Callable[..., Any]:
    form = signature(call)

    @wraps(call)
    def checked(*arguments: Any, **named: Any) -> Any:
        given = form.bind(*arguments, **named)
        given.apply_defaults()
        _agree(MPI.Intracomm(comm), name, partial(tell, comm, given.arguments))
        return call(*arguments, **named)

    return checked


def _agree(comm: MPI.Intracomm, name: str, tell: Callable[[], Facts]) -> None:
    """Raise on all ranks if one cannot make its call, or if they want different things."""
    facts: Facts = {}
    problem: Exception | None = None
    try:
        facts = tell()
    except Exception as wrong:
        problem = wrong
    every = comm.allgather((name, facts, None if problem is None else str(problem)))
    if problem is not None:
        raise problem
    asked = f"{name} on {len(every)} ranks"
    for rank, (_, _, complaint) in enumerate(every):
        if complaint is not None:
            raise InvalidArgument(asked, f"rank {rank} cannot: {complaint}", "mend its call")
    first, others, _ = every[0]
    for rank, (called, told, _) in enumerate(every):
        if called != first:
            seen = f"rank 0 calls {first}, rank {rank} {called}"
            raise InvalidArgument("a collective", seen, "make the same calls in the same order")
        for what, value in others.items():
            if told[what] != value:
                seen = f"{what}: {value} on rank 0, {told[what]} on rank {rank}"
                raise InvalidArgument(asked, seen, "make this equal on all ranks")


def _broadcast(comm: MPI.Intracomm, given: Mapping[str, Any]) -> Facts:
    root = given["root"]
    buffer = Buffer(given["buf"], writable=comm.Get_rank() != root)
    return {"root": root, "bytes": buffer.nbytes}


def _combine(comm: MPI.Intracomm, given: Mapping[str, Any]) -> Facts:
    root, op, sendbuf = given.get("root"), given["op"], given["sendbuf"]
    owed = root is None or comm.Get_rank() == root
    received = Buffer(given["recvbuf"], writable=True) if owed else None
    in_place = received is not None and is_in_place(sendbuf)
    sent = received if in_place else Buffer(sendbuf, writable=False)
    assert sent is not None
    if received is not None and received.nbytes != sent.nbytes:
        raise InvalidArgument(
            "vectors of one length",
            f"there are {sent.nbytes} bytes to send and {received.nbytes} to receive",
            "correct counts and types",
        )
    facts: Facts = {
        "bytes": sent.nbytes,
        "bytes of an element": sent.unit.size,
        "op": planning_name(op),
    }
    return facts if root is None else {"root": root, **facts}


def _gather(
    read: Callable[[Any, int], Any], comm: MPI.Intracomm, given: Mapping[str, Any]
) -> Facts:
    ranks, rank = comm.Get_size(), comm.Get_rank()
    lengths = lengths_of(read(given["recvbuf"], ranks), ranks)
    if not is_in_place(given["sendbuf"]):
        nbytes = Buffer(given["sendbuf"], writable=False).nbytes
        if nbytes != lengths[rank]:
            raise InvalidArgument(
                f"{lengths[rank]} bytes from rank {rank}, as its receive buffer says",
                f"its send buffer has {nbytes}",
                "correct the count of the send buffer, or the counts of the receive buffer",
            )
    return {f"bytes of rank {rank}": nbytes for rank, nbytes in enumerate(lengths)}


_FORMS: Mapping[str, Tell] = {
    "Bcast": _broadcast,
    "Reduce": _combine,
    "Allreduce": _combine,
    "Allgather": partial(_gather, equal_parts),
    "Allgatherv": partial(_gather, vector_parts),
}
_TOLD: Mapping[str, Tell] = MappingProxyType(
    {name + form: tell for name, tell in _FORMS.items() for form in ("", "_init")}
)
