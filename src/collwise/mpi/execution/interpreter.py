"""The Python engine: a rank's plan bound to buffers, and executed one instruction after the other.

It does in Python what the engine in C (`mpi/engine/core/`) does, but MPI carries all messages.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from mpi4py import MPI

from collwise.mpi.buffers.memory import (
    BYTES,
    Memory,
    Region,
    ScratchLayout,
    SharedScratch,
    repack,
)
from collwise.mpi.buffers.mpi_operators import BoundOperator
from collwise.mpi.execution.instructions import Await, Instruction, RankPlan, Start
from collwise.mpi.runtime.progress import ENGINE, advance, running
from collwise.schedule.operations import Copy, Recv, Send, blocks_in

if TYPE_CHECKING:
    from collwise.mpi.engine.node_transport import NodeTransport


def _too_long(problem: BaseException) -> bool:
    """Whether an error means a message longer than its buffer; such a message is complete."""
    return isinstance(problem, MPI.Exception) and problem.Get_error_class() == MPI.ERR_TRUNCATE


class Binding(NamedTuple):
    """A rank's plan, and what either engine binds it to.

    slots: the memory of each slot.   rebindable: whether the plan serves other memory of the same
    layout, too; addresses are set before each execution.   scratch: which slots lie in scratch.
    types: derived types, to be freed in the end.   keep: what must live as long as the bound plan,
    such as the owners of the memory.   transport: the shared memory for messages inside the node,
    None on all its ranks if there is none; for the compiled engine only.
    """

    plan: RankPlan
    slots: Mapping[int, Memory]
    comm: MPI.Intracomm
    tag: int
    operator: BoundOperator | None = None
    rebindable: bool = False
    scratch: ScratchLayout = ScratchLayout((), BYTES)
    types: Sequence[MPI.Datatype] = ()
    keep: Any = None
    transport: "NodeTransport | None" = None


class BoundPlan:
    """A rank's plan on the memory of its slots, ready to be executed any number of times.

    After a message that was too long or too short the remaining instructions are executed, since
    other ranks wait for them; then the error is raised.   interrupted: whether another error ended
    the plan after its first message was started, or an interrupt such as Ctrl-C did at any time.
    """

    def __init__(self, binding: Binding) -> None:
        plan, self.slots, self._comm, self._tag, self._operator, _, scratch, types, keep, _ = (
            binding
        )
        self.scratch, self._plan, self._keep = scratch, plan, keep
        self._regions = [self.slots[op.slot].message(op.blocks) for op in plan.messages]
        self.types = [*types, *(region.datatype for region in self._regions if region.derived)]
        self._requests = [MPI.REQUEST_NULL] * len(plan.messages)
        self._local = [self._blocks(one) for one in plan.instructions]
        waits = (n for n, one in enumerate(plan.instructions) if isinstance(one, Await))
        self._first_wait = next(waits, len(plan.instructions))
        self._at = len(plan.instructions)
        self._begun = self._stepped = self.interrupted = False
        self._problem: BaseException | None = None

    def set_addresses(self, buffers: Mapping[int, Memory], scratch: SharedScratch) -> None:
        """Set the addresses of a rebindable plan's slots for its next execution."""
        for slot, memory in buffers.items():
            self.slots[slot].address = memory.address
        if nbytes := self.scratch.nbytes:
            for slot, address in self.scratch.placed_at(scratch.at_least(nbytes)).items():
                self.slots[slot].address = address

    def run(self) -> None:
        """Execute the whole plan."""
        self._open()
        self.end()

    def begin(self) -> None:
        """Execute everything up to the first wait; ENGINE, `complete` and `end` continue then."""
        self._open()
        if self._at < self._plan.forwarding:
            ENGINE.add(self)

    def advance(self) -> bool:
        """Continue up to the last send if messages allow; return whether this is done or failed."""
        return self._step(self._plan.forwarding)

    def complete(self) -> bool:
        """Continue as far as possible, and return whether all is done or failed.  Never blocks."""
        with ENGINE.lock:
            return self._step(len(self._plan.instructions))

    def end(self) -> None:
        """Execute the rest, after `begin`; other running schedules advance meanwhile."""
        ENGINE.remove(self)
        while not self._step(len(self._plan.instructions), block=not running()):
            advance()
        self._raise()

    def Free(self) -> None:  # noqa: N802
        """Give types back to MPI; nothing can be executed afterwards."""
        ENGINE.remove(self)
        self._abandon()
        while self.types:
            self.types.pop().Free()
        self._requests.clear()
        self._keep = None

    # -- one step after the other -----------------------------------------------------------------

    def _open(self) -> None:
        self._at, self._begun, self.interrupted, self._problem = 0, False, False, None
        self._step(self._first_wait)
        if self._problem is not None:
            self._raise()

    def _raise(self) -> None:
        problem, self._problem = self._problem, None
        if problem is not None:
            raise problem

    def _step(self, end: int, *, block: bool = False) -> bool:
        """Execute the instructions before number `end`; False if it has to wait.

        block: wait for messages.   An error ends the plan and is kept, for `_raise`.
        """
        if self._stepped:  # a step is calling a user's operator, which called us
            return False
        self._stepped = True
        try:
            while self._at < end:
                if not self._execute(block=block):
                    return False
                self._at += 1
        except BaseException as problem:
            self._problem = self._problem or problem
            self.interrupted = self._begun or not isinstance(problem, Exception)
            self._abandon()
        finally:
            self._stepped = False
        return True

    def _abandon(self) -> None:
        """Skip the remaining instructions, and cancel pending receives."""
        self._at = len(self._plan.instructions)
        for op, request in zip(self._plan.messages, self._requests, strict=False):
            with suppress(MPI.Exception):
                if isinstance(op, Recv) and not request.Test():
                    request.Cancel()
                    request.Wait()

    def _execute(self, *, block: bool) -> bool:
        instruction = self._plan.instructions[self._at]
        if isinstance(instruction, Await):
            return all(self._is_over(number, block=block) for number in instruction.messages)
        if isinstance(instruction, Start):
            for number in instruction.messages:
                self._start(number)
        elif isinstance(instruction, Copy):
            for source, into in self._specs(instruction.source, instruction.into):
                self._copy(instruction, source, into)
        else:
            assert self._operator is not None, "only collectives with an operator combine"
            for left, right in self._specs(instruction.left, instruction.right):
                self._operator.combine(left, right)
        return True

    def _start(self, number: int) -> None:
        op = self._plan.messages[number]
        begin = self._comm.Isend if isinstance(op, Send) else self._comm.Irecv
        spec = self.slots[op.slot].at(self._regions[number])
        self._requests[number] = begin(spec, op.peer, self._tag)
        self._begun = True

    def _is_over(self, number: int, *, block: bool) -> bool:
        request, status = self._requests[number], MPI.Status()
        if request == MPI.REQUEST_NULL:  # it was complete before
            return True
        try:
            over = request.Wait(status) if block else request.Test(status)
        except MPI.Exception as problem:
            if not _too_long(problem):
                raise
            self._problem = self._problem or problem
            return True
        op = self._plan.messages[number]
        if over and isinstance(op, Recv):
            nbytes = sum(block.length for block in op.blocks)
            if 0 <= status.Get_count(MPI.BYTE) < nbytes:  # negative: more than can be told
                self._problem = self._problem or MPI.Exception(MPI.ERR_OTHER)
        return over

    def _copy(self, op: Copy, source: Any, into: Any) -> None:
        if all(self.slots[slot].unit.contiguous for slot in (op.source, op.into)):
            memoryview(into[0])[:] = source[0]
        elif all(one[0] is not MPI.BOTTOM and one[2].extent > 0 for one in (source, into)):
            repack(self._comm, source, into)
        else:  # only MPI knows the gaps: this rank sends the elements to itself
            me = self._comm.Get_rank()
            self._comm.Sendrecv(source, me, self._tag, into, me, self._tag)

    def _specs(self, *slots: int) -> Iterable[list[Any]]:
        """The current combine's or copy's blocks in each slot, as buffers that mpi4py takes."""
        for regions in self._local[self._at]:
            yield [self.slots[slot].at(one) for slot, one in zip(slots, regions, strict=True)]

    def _blocks(self, op: Instruction) -> list[tuple[Region, ...]]:
        """For each run of adjoining blocks of a combine or copy, its region in each slot."""
        if isinstance(op, Start | Await):
            return []
        slots = (op.source, op.into) if isinstance(op, Copy) else (op.left, op.right)
        return list(zip(*(self.slots[s].regions(blocks_in(op, s)) for s in slots), strict=True))
