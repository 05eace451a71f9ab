"""Serving allgathers: what runs for so many bytes of every rank, found quickly at later calls.

An Allgatherv is an s-to-p broadcast: the sources are the ranks that have anything.
"""

from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import Any, TypeAlias

from collwise.comm.planning import Plans
from collwise.errors import InvalidArgument
from collwise.mpi.channel import Private
from collwise.mpi.executor import gatherer
from collwise.mpi.gatherer import Gatherer, Read, Run
from collwise.mpi.pieces import equal_key, equal_parts, lengths_of, vector_key, vector_parts
from collwise.planner.plans import Plan
from collwise.profiles.records import Form
from collwise.schedule.problem import Problem, Source

MOST = 512
"""What a communicator remembers before it starts anew; gatherers have memory of their own."""
Known: TypeAlias = dict[Hashable, Run | None]
"""What serves such a buffer; None: the library's own."""
_Lengths: TypeAlias = tuple[int, ...]


class Gatherers:
    """What one communicator runs for its allgathers.

    Every question is answered None where the library's own serves, or has to say what is wrong.
    All raise InvalidArgument for negative counts, which Open MPI would take; where a plan of ours
    runs, also for pieces that overlap or reach beyond the buffer.
    """

    def __init__(self, plans: Plans, private: Private) -> None:
        self._plans, self._private, self._ranks = plans, private, plans.ranks
        self._made: dict[_Lengths, Gatherer | None] = {}
        self.vectors: Known = {}
        """By `vector_key`, what was found before."""
        self.equals: Known = {}
        """By `equal_key`."""

    def vector(self, recvbuf: Any) -> Run | None:
        """What runs an Allgatherv into such a buffer, which is not among `vectors`."""
        return self._find(vector_parts, recvbuf, self.vectors, vector_key)

    def equal(self, recvbuf: Any) -> Run | None:
        """What runs an Allgather into such a buffer, which is not among `equals`."""
        return self._find(equal_parts, recvbuf, self.equals, equal_key)

    def plan(self, read: Read, recvbuf: Any, form: Form) -> Plan | None:
        """The plan for such a buffer.   read: how its parts are found."""
        lengths = self._lengths(read, recvbuf)
        return None if lengths is None else self._plan(lengths, form)

    def _find(
        self,
        read: Read,
        recvbuf: Any,
        known: Known,
        key: Callable[[Any], Hashable],
    ) -> Run | None:
        lengths = self._lengths(read, recvbuf)
        if lengths is None:
            return None
        if lengths not in self._made:
            if len(self._made) >= MOST:
                self._forget()
            made = self._plan(lengths, "blocking")
            ours = None if made is None else gatherer(made.schedule, self._private.channel())
            self._made[lengths] = ours
        found = self._made[lengths]
        run = None if found is None else found.alike(read)
        if len(known) >= MOST:
            known.clear()
        with suppress(Exception):
            known[key(recvbuf)] = run
        return run

    def _lengths(self, read: Read, recvbuf: Any) -> _Lengths | None:
        """Bytes by rank."""
        try:
            return lengths_of(read(recvbuf, self._ranks), self._ranks)
        except InvalidArgument:
            raise
        except Exception:  # whatever it is: mpi4py meets the same
            return None

    def _plan(self, lengths: _Lengths, form: Form) -> Plan | None:
        if not any(lengths):
            return None
        sources = tuple(Source(rank, nbytes) for rank, nbytes in enumerate(lengths) if nbytes)
        problem = Problem("s_to_p", self._ranks, sum(lengths), sources=sources)
        return self._plans.of(problem, form, told=False)

    def _forget(self) -> None:
        for run in self._made.values():
            if run is not None:
                run.Free()
        for known in (self._made, self.vectors, self.equals):
            known.clear()
