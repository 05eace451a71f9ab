"""A rank's plan, bound to memory, that the compiled engine executes as a program in C."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from mpi4py import MPI

from collwise.mpi.buffers.memory import Memory, Region, SharedScratch
from collwise.mpi.engine.loading import COMPILED
from collwise.mpi.execution.instructions import Await, Instruction, Start, publications, read_once
from collwise.mpi.execution.interpreter import Binding
from collwise.mpi.runtime.private_communicator import PrivateCommunicator
from collwise.schedule.operations import Combine, Copy, Message, Send, blocks_in

if TYPE_CHECKING:
    from collwise.mpi.engine._engine import Program

_Place: TypeAlias = tuple[int, int]
"""A buffer's number in the program's table, and an offset in bytes from its address."""
_UNUSED = 0, 0

_READ: list[Any] = []
"""Memory that sends of abandoned plans may still read; it stays alive for ever."""


QUICK_BYTES = 16384
"""In shared memory, programs with fewer bytes may keep the GIL until they wait."""


class ProgramInstruction(NamedTuple):
    """An instruction as the extension reads it; each kind has its own use for some of the fields.

    first, number: the instruction's messages are `number` entries of the program's `order`, from
    `first` on.   elements: the number of elements, or of bytes to copy.   operation, element: the
    operator's name and the type's code of a loop in C.
    """

    kind: int
    first: int = 0
    number: int = 0
    left: _Place = _UNUSED
    right: _Place = _UNUSED
    into: _Place = _UNUSED
    elements: int = 0
    datatype: int = 0
    into_elements: int = 0
    into_type: int = 0
    operation: str = ""
    element: str = " "


def _is_quick(messages: list[tuple[Any, ...]], instructions: list[ProgramInstruction]) -> bool:
    """Whether all is short and nothing calls MPI, which may call what needs the GIL."""
    assert COMPILED is not None
    combine, typed = COMPILED.COMBINE, COMPILED.COPY_TYPED
    nbytes = sum(QUICK_BYTES if peer < 0 or gaps else n for *_, n, peer, _, gaps, _ in messages)
    return nbytes < QUICK_BYTES and not any(
        one.kind == typed or (one.kind == combine and not one.operation) for one in instructions
    )


class CompiledPlan:
    """A rank's plan on the memory of its slots, with the methods of `BoundPlan`.

    Raises OverflowError for counts that the MPI library cannot take.
    """

    def __init__(self, binding: Binding) -> None:
        assert COMPILED is not None
        slots, given = binding.slots, len(binding.types)
        self._slots, self._operator, self._keep = slots, binding.operator, binding.keep
        self.scratch, self.types = binding.scratch, list(binding.types)
        self._numbers = {slot: number for number, slot in enumerate(slots)}
        self._requests: list[MPI.Request] = []
        self.over: Callable[[], None] | None = None
        try:
            self.program = self._made(binding)
        except BaseException as problem:  # where counts are too large, Python takes the types
            self._release(given if isinstance(problem, OverflowError) else 0)
            raise
        for slot, memory in slots.items():
            self.program.set_address(self._numbers[slot], memory.address)
        self.run, self.begin, self.end = self.program.run, self.program.start, self.program.wait
        self.complete: Callable[[], bool] = self.program.test

    def _made(self, binding: Binding) -> "Program":
        assert COMPILED is not None
        slots, plan, comm, tag = binding.slots, binding.plan, binding.comm, binding.tag
        regions = [self._message(op) for op in plan.messages]
        inside = binding.transport
        if not binding.rebindable:
            here = () if inside is None else inside.ranks
            for op, region in zip(plan.messages, regions, strict=True):
                make = comm.Send_init if isinstance(op, Send) else comm.Recv_init
                known = MPI.REQUEST_NULL  # the engine makes what memory may serve
                if op.peer not in here:
                    known = make(slots[op.slot].at(region), op.peer, tag)
                self._requests.append(known)
        lengths = [sum(block.length for block in op.blocks) for op in plan.messages]
        messages: list[tuple[Any, ...]] = [
            (isinstance(op, Send), op.peer, *self._span(op.slot, region), nbytes)
            for op, region, nbytes in zip(plan.messages, regions, lengths, strict=True)
        ]
        # One instruction of the plan may become several: blocks that lie apart are combined apart.
        instructions: list[ProgramInstruction] = []
        order: list[int] = []
        begins = [0]
        for instruction in plan.instructions:
            instructions += self._instructions(instruction, order)
            begins.append(len(instructions))
        if inside is not None:
            firsts, once = publications(plan, inside.ranks), read_once(plan)
            for number, (op, region) in enumerate(zip(plan.messages, regions, strict=True)):
                gaps = region.derived or not slots[op.slot].unit.contiguous
                reader, end = begins[once[number]], begins[once[number] + 1]
                one = end == reader + 1 and once[number] >= 0 and not gaps
                if not one or not self._reads_anywhere(
                    instructions[reader], self._place(op.slot, region)
                ):
                    reader = 0
                peer = inside.ranks.get(op.peer, -1)
                messages[number] += peer, firsts[number], gaps, reader
        made: Program = COMPILED.Program(
            comm.handle,
            (MPI.OP_NULL if self._operator is None else self._operator.op).handle,
            comm.Get_rank(),
            tag,
            len(slots),
            tuple(messages),
            tuple(order),
            tuple(instructions),
            begins[plan.forwarding],
            None if binding.rebindable else tuple(request.handle for request in self._requests),
            None if inside is None else inside.node,
            inside is not None and _is_quick(messages, instructions),
            None if self._operator is None else self._operator.user_type,
        )
        return made

    def set_addresses(self, buffers: Mapping[int, Memory], scratch: SharedScratch) -> None:
        """Set the addresses of a rebindable plan's slots for its next execution."""
        for slot, memory in buffers.items():
            self.program.set_address(self._numbers[slot], memory.address)
        if nbytes := self.scratch.nbytes:
            # Calls that C serves by itself use the scratch that was set here last: C owns it.
            address = scratch.at_least(nbytes)
            if self.program.scratch is not scratch.memory:
                self.program.scratch = scratch.memory
                for slot, start in self.scratch.placed_at(address).items():
                    self.program.set_address(self._numbers[slot], start)

    def fast_call(
        self, displacements: Mapping[int, tuple[bool, int]]
    ) -> tuple["Program", tuple[tuple[int, bool, int], ...]]:
        """What C needs to execute the plan on other buffers of the same layout.

        displacements: for each slot in a user's buffer, whether it is the receive buffer, and the
        bytes from the buffer's beginning to position 0 of the slot.  All calls of a plan have the
        same displacements.
        """
        return self.program, tuple((self._numbers[s], *at) for s, at in displacements.items())

    @property
    def interrupted(self) -> bool:
        """Whether an error ended the last execution while messages were pending."""
        return self.program.interrupted()

    def reuse(self, buffers: Mapping[int, Memory], keep: Any, tag: int) -> None:
        """Prepare a plan with scratch of its own for another call.   keep: the buffers."""
        for slot, memory in buffers.items():
            self.program.set_address(self._numbers[slot], memory.address)
        self.program.retag(tag)
        self._keep = keep, self._keep[1]

    def start_request(
        self, private: PrivateCommunicator, completed: Callable[[], None]
    ) -> MPI.Request:
        """Start the plan as an `MPI.Request`, where the library has progress hooks.

        completed: called when the plan can be executed again; after an error it is freed instead.
        C makes later requests on this plan, and calls `self.over` when one is complete.
        """

        def over() -> None:
            self._keep = None, self._keep[1]
            if self.interrupted:
                private.mark_broken(RuntimeError("a non-blocking collective failed"))
                self.Free()
            else:
                completed()

        self.over = over
        return MPI.Request.fromhandle(self.program.start_request(over))

    def Free(self) -> None:  # noqa: N802
        """Free the MPI requests and datatypes; the plan cannot be executed afterwards."""
        if not self.program.give_back():
            _READ.append(self._keep)
        self._release()
        self._keep = self.over = None

    def _release(self, kept: int = 0) -> None:
        """Free requests, and types except the first `kept`: Python's plan still uses those."""
        for request in self._requests:
            if request != MPI.REQUEST_NULL:
                request.Free()
        self._requests.clear()
        while len(self.types) > kept:
            self.types.pop().Free()

    # -- binding --------------------------------------------------------------------------------

    def _message(self, op: Message) -> Region:
        region = self._slots[op.slot].message(op.blocks)
        if region.derived:
            self.types.append(region.datatype)
        return region

    def _place(self, slot: int, region: Region) -> _Place:
        return self._numbers[slot], region.offset

    def _span(self, slot: int, region: Region) -> tuple[_Place, int, int]:
        return self._place(slot, region), region.elements, region.datatype.handle

    def _reads_anywhere(self, one: ProgramInstruction, place: _Place) -> bool:
        """Whether a combine only reads its operand at `place`, so the operand may lie elsewhere.

        `MPI_Reduce_local` overwrites the right operand; a user's operator may write to both.
        """
        assert self._operator is not None
        left = one.left == place and self._operator.op.is_predefined
        return left or (place in (one.left, one.right) and self._operator.separate_output)

    def _instructions(
        self, instruction: Instruction, order: list[int]
    ) -> Iterator["ProgramInstruction"]:
        """Yield the program's instructions for one instruction; append its messages to `order`."""
        assert COMPILED is not None
        if isinstance(instruction, Start | Await):
            kind = COMPILED.START if isinstance(instruction, Start) else COMPILED.AWAIT
            yield ProgramInstruction(kind, len(order), len(instruction.messages))
            order += instruction.messages
        elif isinstance(instruction, Copy):
            slots = instruction.source, instruction.into
            contiguous = all(self._slots[slot].unit.contiguous for slot in slots)
            for source, into in self._regions(instruction, slots):
                left, target = map(self._place, slots, (source, into))
                kind, ends = COMPILED.COPY, (source.span, 0, 0, 0)
                if not contiguous:
                    end = source.elements, source.datatype.handle
                    kind, ends = COMPILED.COPY_TYPED, (*end, into.elements, into.datatype.handle)
                yield ProgramInstruction(kind, 0, 0, left, _UNUSED, target, *ends)
        else:
            assert self._operator is not None, "only collectives with an operator combine"
            three = instruction.left, instruction.right, instruction.into
            for regions in self._regions(instruction, three):
                left, right, target = map(self._place, three, regions)
                end = regions[1].elements, regions[1].datatype.handle
                yield ProgramInstruction(
                    COMPILED.COMBINE, 0, 0, left, right, target, *end, 0, 0, *self._operator.loop
                )

    def _regions(self, op: Combine | Copy, slots: Iterable[int]) -> Iterator[tuple[Region, ...]]:
        """For each run of adjoining blocks of a combine or copy, its region in each slot."""
        return zip(*(self._slots[s].regions(blocks_in(op, s)) for s in slots), strict=True)
