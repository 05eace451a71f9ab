"""The interpreter: a rank's plan bound to buffers, and executed.

Blocking and persistent calls are executed alike.  They differ in their messages: a persistent call
has persistent requests, made once.  One binding of a blocking call serves all buffers of the same
layout; their addresses are set anew where they have changed.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from mpi4py import MPI

from collwise.mpi.buffers.memory import (
    Action,
    Memory,
    Region,
    ScratchLayout,
    SharedScratch,
    copy_action,
)
from collwise.mpi.buffers.mpi_operators import BoundOperator
from collwise.mpi.execution.instructions import Await, RankPlan, Start
from collwise.mpi.runtime.progress import ENGINE, FEW_REQUESTS, wait_with_progress
from collwise.schedule.operations import Combine, Copy, Message, Send, blocks_in


class _RebindableMessage:
    """A message of a blocking call.   spec: its buffer, as mpi4py takes it."""

    __slots__ = ("_begin", "_block", "_memory", "_peer", "_region", "_tag", "request", "spec")

    def __init__(self, op: Message, memory: Memory, region: Region, comm: Any, tag: int) -> None:
        sends = isinstance(op, Send)
        self._begin = comm.Isend if sends else comm.Irecv
        self._block = comm.Send if sends else comm.Recv
        self._memory, self._region, self._peer, self._tag = memory, region, op.peer, tag
        self.request: MPI.Request = MPI.REQUEST_NULL
        self.spec: Any = None

    def set_addresses(self) -> None:
        """Take the memory where it is now."""
        self.spec = self._memory.at(self._region)

    def Start(self) -> None:  # noqa: N802
        self.request = self._begin(self.spec, self._peer, self._tag)

    def Wait(self) -> None:  # noqa: N802
        self.request.Wait()

    def Test(self) -> bool:  # noqa: N802
        return self.request.Test()

    def start_and_wait(self) -> None:
        self._block(self.spec, self._peer, self._tag)


class _RebindableAction:
    """A combine or a copy of a blocking call.   act: executes it, at the addresses set last."""

    __slots__ = ("_make", "_places", "act")

    def __init__(
        self, make: Callable[..., Action], places: Sequence[tuple[Memory, Region]]
    ) -> None:
        self._make, self._places, self.act = make, places, _nothing

    def set_addresses(self) -> None:
        """Take the memory where it is now."""
        self.act = self._make(*[memory.at(region) for memory, region in self._places])

    def __call__(self) -> None:
        self.act()


class Phase(NamedTuple):
    """Messages to wait for, and what to do then.  `wait` waits for them."""

    awaited: Sequence[Any]
    wait: Action
    act: Action


def _too_long(problem: BaseException) -> bool:
    """Whether a message was longer than its buffer; it is not pending any more then."""
    longer = MPI.ERR_TRUNCATE, MPI.ERR_IN_STATUS
    return isinstance(problem, MPI.Exception) and problem.Get_error_class() in longer


class BoundPlan:
    """A rank's plan on the memory of its slots, ready to be executed any number of times.

    rebindable: for blocking calls; `set_addresses` is called before every execution.
    keep: what must stay alive as long, such as the owners of the memory.   types: derived types to
    free in the end.

    An error before the first message is started changes nothing.  After a message that was too long
    the rest is executed, since other ranks wait for it, and the error is raised in the end, as MPI
    libraries do.   interrupted: whether another error ended it while messages were pending.
    """

    def __init__(
        self,
        plan: RankPlan,
        slots: Mapping[int, Memory],
        scratch: ScratchLayout,
        comm: MPI.Intracomm,
        tag: int,
        operator: BoundOperator | None,
        types: Iterable[MPI.Datatype],
        *,
        rebindable: bool,
        keep: Any,
    ) -> None:
        self.slots, self.scratch, self.rebindable = slots, scratch, rebindable
        self._comm, self._tag, self._operator, self._keep = comm, tag, operator, keep
        self._problem: BaseException | None = None
        self.interrupted = False
        self.types = list(types)
        self._rebindable_actions: list[_RebindableAction] = []
        self._scratch_at: int | None = None
        self._addresses_set = False
        # Persistent requests, or rebindable messages: they have the same methods.
        self._messages: list[Any] = [self._message(op) for op in plan.messages]
        phases: list[tuple[Sequence[Any], list[Action]]] = [((), [])]
        forwarding = 1
        for number, instruction in enumerate(plan.instructions, 1):
            if isinstance(instruction, Await):
                phases.append(([self._messages[n] for n in instruction.messages], []))
            elif isinstance(instruction, Start):
                phases[-1][1].extend(self._starting(instruction.messages))
            else:
                phases[-1][1].extend(self._local(instruction))
            if number == plan.forwarding:
                forwarding = len(phases)
        self._open = phases[0][1]
        self.phases = [
            Phase(awaited, _in_turn(self._waiting(awaited)), _in_turn(acts))
            for awaited, acts in phases[1:forwarding]
        ]
        self._last = self._straight(phases[forwarding:])
        self._everything = self._straight(phases)
        self.begin, self.end = self.start, self.wait
        self._at = len(self.phases)

    def set_addresses(self, buffers: Mapping[int, Memory], scratch: SharedScratch) -> None:
        """Set the addresses of slots for the next execution, of a rebindable plan."""
        addresses_set = self._addresses_set
        for slot, memory in buffers.items():
            known = self.slots[slot]
            if known.address != memory.address:
                known.address, addresses_set = memory.address, False
        if (nbytes := self.scratch.nbytes) and self._scratch_at != (at := scratch.at_least(nbytes)):
            for slot, address in self.scratch.placed_at(at).items():
                self.slots[slot].address = address
            self._scratch_at, addresses_set = at, False
        if not addresses_set:
            for late in (*self._messages, *self._rebindable_actions):
                late.set_addresses()
            self._addresses_set = True

    def set_buffer(self, spec: Any) -> None:
        """Use one buffer, as mpi4py takes it, for all messages of a rebindable plan."""
        for message in self._messages:
            message.spec = spec

    def run(self) -> None:
        """Execute everything."""
        if not ENGINE.running:
            self._do(self._everything)
            return
        try:
            self.start()
            self.wait()
        finally:
            ENGINE.remove(self)  # where it was interrupted

    def start(self) -> None:
        """Execute everything up to the first wait; `advance` or `wait` continues from there."""
        self._do(self._open)
        if self.phases:
            self._at = 0
            ENGINE.add(self)

    def advance(self) -> bool:
        """Continue as far as messages are complete; called by the progress engine."""
        while self._at < len(self.phases):
            phase = self.phases[self._at]
            try:
                if not all(message.Test() for message in phase.awaited):
                    return False
                phase.act()
            except BaseException as problem:  # `wait` raises it
                if self._note(problem):
                    return True
            else:
                self._at += 1
        return True

    def complete(self) -> bool:
        """Whether, after `start`, all messages are complete or it failed.  Never blocks."""
        try:
            return self._at == len(self.phases) and all(m.Test() for m in self._messages)
        except MPI.Exception as problem:
            return self._note(problem)

    def wait(self) -> None:
        """Execute the rest, after `start`; other running schedules advance meanwhile."""
        alone = ENGINE.take_back(self)  # nothing else is running, so MPI may block
        while self._at < len(self.phases) and not self.interrupted:
            if not alone:
                ENGINE.advance()
                continue
            phase = self.phases[self._at]
            try:
                phase.wait()
                phase.act()
            except BaseException as problem:
                self._note(problem)
            else:
                self._at += 1
        if not alone and ENGINE.running:
            wait_with_progress(self._messages)
            ENGINE.remove(self)
        kept, self._problem = self._problem, None
        if not self.interrupted:
            self._do(self._last, begun=True)
        if kept is not None:
            raise kept

    def _do(self, acts: Sequence[Action], *, begun: bool = False) -> None:
        """Execute these one after the other.   begun: whether messages were started before."""
        number = 0
        try:
            for number, act in enumerate(acts):  # noqa: B007  (how far it came)
                act()
        except BaseException as problem:
            if _too_long(problem):
                self._do(acts[number + 1 :], begun=True)
            elif begun or number or not isinstance(problem, Exception):
                self.interrupted = True
            raise

    def _note(self, problem: BaseException) -> bool:
        """Keep an error for the end; return whether the plan is interrupted."""
        self._problem = self._problem or problem
        self.interrupted = self.interrupted or not _too_long(problem)
        return self.interrupted

    def Free(self) -> None:  # noqa: N802
        """Give requests and types back to MPI; nothing can be executed afterwards."""
        ENGINE.remove(self)
        for message in self._messages:
            if isinstance(message, MPI.Prequest) and message != MPI.REQUEST_NULL:
                message.Free()
        while self.types:
            self.types.pop().Free()
        self._messages, self.phases = [], []
        self._open, self._last, self._everything = [], (), ()
        self._keep = None

    # -- binding --------------------------------------------------------------------------------

    def _message(self, op: Message) -> Any:
        memory = self.slots[op.slot]
        region = memory.message(op.blocks)
        if region.derived:
            self.types.append(region.datatype)
        if self.rebindable:
            return _RebindableMessage(op, memory, region, self._comm, self._tag)
        make = self._comm.Send_init if isinstance(op, Send) else self._comm.Recv_init
        return make(memory.at(region), op.peer, self._tag)

    def _local(self, op: Combine | Copy) -> Iterable[Action]:
        if isinstance(op, Copy):
            slots: tuple[int, ...] = (op.source, op.into)
            memories = [self.slots[slot] for slot in slots]
            contiguous = all(memory.unit.contiguous for memory in memories)
            make: Callable[..., Action] = partial(copy_action, contiguous, self._comm, self._tag)
        else:
            slots = (op.left, op.right, op.into)
            memories = [self.slots[slot] for slot in slots]
            assert self._operator is not None, "only collectives with an operator combine"
            make = self._operator.act
        # Neighbouring blocks are neighbours in all of them.
        blocks = [blocks_in(op, slot) for slot in slots]
        for regions in zip(*map(Memory.regions, memories, blocks), strict=True):
            places = list(zip(memories, regions, strict=True))
            if self.rebindable:
                self._rebindable_actions.append(_RebindableAction(make, places))
                yield self._rebindable_actions[-1]
            else:
                yield make(*[memory.at(region) for memory, region in places])

    def _starting(self, numbers: Sequence[int]) -> list[Action]:
        messages = [self._messages[n] for n in numbers]
        if self.rebindable or len(messages) <= FEW_REQUESTS:
            return [message.Start for message in messages]
        return [partial(MPI.Prequest.Startall, messages)]

    def _waiting(self, messages: Sequence[Any]) -> list[Action]:
        if self.rebindable or len(messages) <= FEW_REQUESTS:
            return [message.Wait for message in messages]
        return [partial(_wait_for_all, list(messages))]

    def _straight(self, phases: Iterable[tuple[Sequence[Any], list[Action]]]) -> tuple[Action, ...]:
        """All phases as one list, to be executed while nothing else is running.

        A message that is awaited right after its start becomes one blocking call.
        """
        everything: list[Action] = []
        for awaited, acts in phases:
            alone = awaited[0] if len(awaited) == 1 else None
            last = everything[-1] if everything else None
            if isinstance(alone, _RebindableMessage) and last == alone.Start:
                everything[-1] = alone.start_and_wait
            else:
                everything += self._waiting(awaited)
            everything += acts
        return tuple(everything)


def _in_turn(acts: Sequence[Action]) -> Action:
    """One function that calls them all; of two, faster than a loop."""
    if len(acts) <= 1:
        return acts[0] if acts else _nothing
    first, second, *more = acts

    def both() -> None:
        first()
        second()

    def every() -> None:
        for act in acts:
            act()

    return every if more else both


def _wait_for_all(requests: list[MPI.Request]) -> None:
    try:
        MPI.Request.Waitall(requests)
    except MPI.Exception:
        for request in requests:
            request.Wait()
        raise


def _nothing() -> None:
    """The action where there is none."""
