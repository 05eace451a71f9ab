"""COLLWISE_CHECK=1: before a collective, the ranks compare what they are about to do.

Ranks that disagree would wait for each other for ever, or get each other's bytes; with checks, all
of them raise an error that says who asked for what.  Each call costs an exchange of small objects.
"""

import os
from collections.abc import Callable, Mapping
from functools import partial, wraps
from inspect import signature
from typing import Any, TypeAlias

from mpi4py import MPI

from collwise.errors import InvalidArgument
from collwise.mpi.buffers.buffer import Buffer, combined_buffers, is_in_place
from collwise.mpi.buffers.mpi_operators import planning_name
from collwise.mpi.buffers.vector_layout import SPECS, contribution, lengths_of
from collwise.schedule.collectives import COLLECTIVES, Collective

ENVIRONMENT = "COLLWISE_CHECK"
"""The environment variable that switches checks on; rank 0's counts."""
Facts: TypeAlias = dict[str, object]
"""What has to be equal on all ranks, by name."""
FactsOf: TypeAlias = Callable[[MPI.Intracomm, Mapping[str, Any]], Facts]
"""The facts of a call, from its arguments; raises what is wrong with them."""


def checks_wanted() -> bool:
    """Whether this process's environment asks for it."""
    return os.environ.get(ENVIRONMENT, "") not in ("", "0")


def check_calls(comm: MPI.Intracomm) -> None:
    """From now on check the collectives of this communicator before they run."""
    for collective in COLLECTIVES.values():
        for method in collective.methods:
            facts_of = _facts_of(collective, method)
            for name in (method, f"{method}_init"):
                setattr(comm, name, _checked(comm, name, facts_of, getattr(comm, name)))


def _facts_of(collective: Collective, method: str) -> FactsOf:
    if collective.combines:
        return partial(_combine, collective)
    return partial(_gather, method) if collective.has_sources else _broadcast


def _checked(
    comm: MPI.Intracomm, name: str, facts_of: FactsOf, call: Callable[..., Any]
) -> Callable[..., Any]:
    form = signature(call)

    @wraps(call)
    def checked(*arguments: Any, **named: Any) -> Any:
        bound = form.bind(*arguments, **named)
        bound.apply_defaults()
        _agree(MPI.Intracomm(comm), name, partial(facts_of, comm, bound.arguments))
        return call(*arguments, **named)

    return checked


def _agree(comm: MPI.Intracomm, name: str, facts_of: Callable[[], Facts]) -> None:
    """Raise on all ranks if one of them cannot make its call, or if their calls differ."""
    facts: Facts = {}
    problem: Exception | None = None
    try:
        facts = facts_of()
    except Exception as wrong:  # whatever is wrong with the call, all ranks hear of it
        problem = wrong
    every = comm.allgather((name, facts, None if problem is None else str(problem)))
    if problem is not None:
        raise problem
    asked = f"{name} on {len(every)} ranks"
    for rank, (_, _, complaint) in enumerate(every):
        if complaint is not None:
            raise InvalidArgument(asked, f"rank {rank} cannot: {complaint}", "mend its call")
    first, others, _ = every[0]
    for rank, (called, theirs, _) in enumerate(every):
        if called != first:
            seen = f"rank 0 calls {first}, rank {rank} {called}"
            raise InvalidArgument("a collective", seen, "make the same calls in the same order")
        for what, value in others.items():
            if theirs[what] != value:
                seen = f"{what}: {value} on rank 0, {theirs[what]} on rank {rank}"
                raise InvalidArgument(asked, seen, "make this equal on all ranks")


def _broadcast(comm: MPI.Intracomm, arguments: Mapping[str, Any]) -> Facts:
    root = arguments["root"]
    buffer = Buffer(arguments["buf"], writable=comm.Get_rank() != root)
    return {"root": root, "bytes": buffer.nbytes}


def _combine(collective: Collective, comm: MPI.Intracomm, arguments: Mapping[str, Any]) -> Facts:
    root, parts = arguments.get("root", 0), collective.unit(comm.Get_size(), 1)
    has_output = collective.has_output(comm.Get_rank(), root)
    buffers = arguments["sendbuf"], arguments["recvbuf"]
    sent, received = combined_buffers(*buffers, has_output=has_output)
    if received is not None and received is not sent and received.nbytes * parts != sent.nbytes:
        blocks = f" in each of {parts} blocks" if parts > 1 else ""
        raise InvalidArgument(
            "vectors of one length",
            f"there are {sent.nbytes} bytes to send and {received.nbytes} to receive{blocks}",
            "correct counts and types",
        )
    facts: Facts = {
        "bytes": sent.nbytes,
        "bytes of an element": sent.unit.size,
        "op": planning_name(arguments["op"]),
    }
    return {"root": root, **facts} if collective.rooted else facts


def _gather(method: str, comm: MPI.Intracomm, arguments: Mapping[str, Any]) -> Facts:
    ranks, rank = comm.Get_size(), comm.Get_rank()
    lengths = lengths_of(SPECS[method](arguments["recvbuf"], ranks), ranks)
    if not is_in_place(arguments["sendbuf"]):
        contribution(arguments["sendbuf"], rank, lengths)
    return {f"bytes of rank {rank}": nbytes for rank, nbytes in enumerate(lengths)}
