"""COLLWISE_CHECK=1: before a collective, the ranks compare what they are about to do.

Ranks whose calls differ would deadlock, or receive the wrong bytes.  With checks, the ranks that
call raise an error that says which rank called what, or which rank did not call in time.  Each
check costs an exchange of small objects.
"""

import os
import time
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cached_property, partial, wraps
from inspect import Signature, signature
from typing import Any, TypeAlias

from mpi4py import MPI

from collwise.errors import InvalidArgument
from collwise.mpi.buffers.buffer import Buffer, combined_buffers, is_in_place
from collwise.mpi.buffers.mpi_operators import planning_name, planning_type
from collwise.mpi.buffers.vector_layout import SPECS, contribution, lengths_of
from collwise.mpi.runtime.agreement import everywhere
from collwise.mpi.runtime.private_communicator import free_duplicate, plain_duplicate
from collwise.mpi.runtime.progress import advance
from collwise.schedule.collectives import COLLECTIVES, Collective
from collwise.system.quantities import parse_time

ENVIRONMENT = "COLLWISE_CHECK"
"""The environment variable that switches checks on; rank 0's value counts."""
LIMIT = "COLLWISE_CHECK_LIMIT"
"""The environment variable that says how long checks wait, such as 90s; rank 0's value counts."""
LIMIT_S = 60.0
Facts: TypeAlias = dict[str, object]
"""Arguments of a call that must be equal on all ranks, by name; None equals everything."""


def check_limit_s() -> float:
    """Seconds that checked calls wait for all ranks, from the environment; 0 without checks.

    Raises InvalidArgument if the limit is no time, or COLLWISE_CHECK means neither on nor off.
    """
    said = os.environ.get(ENVIRONMENT, "")
    if said in ("", "0", "off"):
        return 0.0
    if said not in ("1", "on"):
        remedy = "say 1 or on; 0, off or nothing for no checks"
        raise InvalidArgument(f"{ENVIRONMENT}={said}", "it is no such word", remedy)
    return float(parse_time(os.environ.get(LIMIT) or str(LIMIT_S), LIMIT))


def checked_methods(
    comm: MPI.Intracomm, exchange: "ArgumentExchange", table: Mapping[str, Callable[..., Any]]
) -> dict[str, Callable[..., Any]]:
    """Blocking and persistent collectives, by name, as functions that check before they call.

    table: the functions that serve collectives, by name; the class's methods serve all others.
    """
    made: dict[str, Callable[..., Any]] = {}
    for collective in COLLECTIVES.values():
        for method in collective.methods:
            facts_of = partial(_facts_of, collective, method, comm)
            for name in (method, f"{method}_init"):
                class_method = getattr(type(comm), name).__get__(comm)
                call = table.get(name, class_method)
                made[name] = _checked(name, facts_of, call, signature(class_method), exchange)
    return made


class ArgumentExchange:
    """An exchange of what the ranks are about to call, with a time limit.

    Rank 0 gathers what the ranks say, and sends everything to the others.  Thus a late rank learns
    that it was late, and raises the same error as the others; the next calls of all ranks match.

    Making the object is collective, since it duplicates the communicator.
    later: True to duplicate the communicator in the first exchange instead.
    """

    def __init__(self, comm: MPI.Intracomm, limit_s: float, *, later: bool = False) -> None:
        self._user, self.limit_s, self._number = MPI.Intracomm(comm), limit_s, 0
        self._sent: list[MPI.Request] = []
        self._outgoing: Counter[int] = Counter()
        self._incoming: Counter[int] = Counter()
        if not later:
            _ = self.comm

    @cached_property
    def comm(self) -> MPI.Intracomm:
        """A duplicate of the user's communicator, for exchanges.  First access: collective."""
        return everywhere(self._user, partial(plain_duplicate, self._user))

    def exchange(self, own: tuple[Any, ...]) -> list[Any]:
        """Every rank's `own`, which begins with the rank, in rank order; None for a late rank.

        If rank 0 is too late to answer, the items of all others are this rank's `own`.
        """
        comm = self.comm
        self._number = self._number % 30000 + 1
        self._sent = [request for request in self._sent if not request.test()[0]]
        if comm.rank:
            self._send(own, 0)
            # Rank 0 may come late, and then wait for another late rank.
            answer: list[Any] | None = self._receive(0, 2 * self.limit_s)
            if answer is None:
                self._send((comm.rank,), 0)  # this rank has given up
                answer = [None, *[own] * (comm.size - 1)]
            return answer
        every: list[Any] = [own, *[None] * (comm.size - 1)]
        limit = time.monotonic() + self.limit_s
        while None in every and (said := self._receive(MPI.ANY_SOURCE, limit - time.monotonic())):
            every[said[0]] = said if len(said) > 1 else None
        while (said := self._receive(MPI.ANY_SOURCE, 0)) is not None:
            every[said[0]] = None
        for rank in range(1, comm.size):
            self._send(every, rank)
        return every

    def _send(self, what: object, rank: int) -> None:
        self._sent.append(self.comm.isend(what, rank, self._number))
        self._outgoing[rank] += 1

    def _receive(self, source: int, limit_s: float) -> Any:
        limit = time.monotonic() + limit_s
        status = MPI.Status()
        while (message := self.comm.improbe(source, self._number, status)) is None:
            if time.monotonic() >= limit:
                return None
            advance()
            time.sleep(0)  # other ranks may need the core
        self._incoming[status.source] += 1
        return message.recv()

    def free(self) -> None:
        """Receive pending messages, and free the communicator.  Collective.

        Otherwise a later communicator might receive those messages.
        """
        sent = [self._outgoing[rank] for rank in range(self.comm.size)]
        for rank, number in enumerate(self.comm.alltoall(sent)):
            for _ in range(number - self._incoming[rank]):
                self.comm.recv(source=rank)
        MPI.Request.waitall(self._sent)
        free_duplicate(self.comm)


def _checked(
    name: str,
    facts_of: Callable[[Mapping[str, Any]], Facts],
    call: Callable[..., Any],
    form: Signature,
    exchange: ArgumentExchange,
) -> Callable[..., Any]:
    @wraps(call)
    def checked(*arguments: Any, **named: Any) -> Any:
        bound = form.bind(*arguments, **named)
        bound.apply_defaults()
        _agree(exchange, name, partial(facts_of, bound.arguments))
        return call(*arguments, **named)

    return checked


def _agree(exchange: ArgumentExchange, name: str, facts_of: Callable[[], Facts]) -> None:
    """Raise on all ranks if arguments of one are wrong, if calls differ, or if a rank is late."""
    facts: Facts = {}
    problem: Exception | None = None
    try:
        facts = facts_of()
    except Exception as wrong:  # whatever is wrong with the call, all ranks hear of it
        problem = wrong
    own = exchange.comm.rank, name, facts, None if problem is None else str(problem)
    every = exchange.exchange(own)
    if problem is not None:
        raise problem
    asked = f"{name} on {len(every)} ranks"
    if missing := [rank for rank, said in enumerate(every) if said is None]:
        ranks = ", ".join(map(str, missing))
        seen = f"rank {ranks} did not meet the others within {exchange.limit_s:g} s"
        remedy = f"make the same calls on all ranks, or allow more time in {LIMIT}"
        raise InvalidArgument(asked, seen, remedy)
    for rank, _, _, complaint in every:
        if complaint is not None:
            raise InvalidArgument(asked, f"rank {rank} cannot: {complaint}", "correct its call")
    for rank, called, _, _ in every:
        if called != every[0][1]:
            seen = f"rank 0 calls {every[0][1]}, rank {rank} {called}"
            raise InvalidArgument("a collective", seen, "make the same calls in the same order")
    for what in facts:
        said = [(rank, theirs[what]) for rank, _, theirs, _ in every if theirs[what] is not None]
        for rank, value in said:
            if value != said[0][1]:
                seen = f"{what}: {said[0][1]} on rank {said[0][0]}, {value} on rank {rank}"
                raise InvalidArgument(asked, seen, "make this equal on all ranks")


def _elements(datatype: MPI.Datatype) -> str | None:
    """The name of an element type; None for bytes, which match any type, and for derived types."""
    if not datatype.is_predefined or datatype in (MPI.BYTE, MPI.PACKED):
        return None
    return planning_type(datatype)


def _facts_of(
    collective: Collective, method: str, comm: MPI.Intracomm, arguments: Mapping[str, Any]
) -> Facts:
    """What the ranks must agree on in a call; raises an error if an argument is wrong."""
    if collective.has_sources:
        return _gather(method, comm, arguments)
    root, rank = arguments.get("root", 0), comm.Get_rank()
    facts: Facts = {"root": root} if collective.rooted else {}
    if not collective.combines:
        buffer = Buffer(arguments["buf"], writable=rank != root)
        return {**facts, "bytes": buffer.nbytes, "elements": _elements(buffer.unit.datatype)}
    buffers, parts = (arguments["sendbuf"], arguments["recvbuf"]), collective.unit(comm.size, 1)
    has_output = collective.has_output(rank, root)
    sent, received = combined_buffers(*buffers, has_output=has_output, parts=parts)
    if received is not None and received is not sent and received.nbytes * parts != sent.nbytes:
        blocks = f" in each of {parts} blocks" if parts > 1 else ""
        raise InvalidArgument(
            "vectors of one length",
            f"there are {sent.nbytes} bytes to send and {received.nbytes} to receive{blocks}",
            "correct counts and types",
        )
    return {
        **facts,
        "bytes": sent.nbytes,
        "bytes of an element": sent.unit.size,
        "elements": _elements(sent.unit.datatype),
        "op": planning_name(arguments["op"]),
    }


def _gather(method: str, comm: MPI.Intracomm, arguments: Mapping[str, Any]) -> Facts:
    ranks, rank = comm.Get_size(), comm.Get_rank()
    spec = SPECS[method](arguments["recvbuf"], ranks)
    lengths, elements = lengths_of(spec, ranks), _elements(spec.locate().unit.datatype)
    facts: Facts = {f"bytes of rank {rank}": nbytes for rank, nbytes in enumerate(lengths)}
    if not is_in_place(arguments["sendbuf"]):
        sent = _elements(contribution(arguments["sendbuf"], rank, lengths).unit.datatype)
        if lengths[rank] and sent and elements and sent != elements:
            seen = f"rank {rank} sends {sent} and receives {elements}"
            raise InvalidArgument(f"{method} of elements of one type", seen, "correct the types")
    return {**facts, "elements": elements}
