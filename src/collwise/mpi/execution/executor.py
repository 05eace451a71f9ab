"""Executors: one rank's part of a schedule, on the buffers of each call.

Collectives differ in how buffers become the memory of slots, and in which list of operations suits
the buffers.  The executor class of a collective defines only these two.
"""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, TypeAlias, TypeVar
from weakref import ref

from mpi4py import MPI

from collwise.errors import InvalidArgument
from collwise.mpi.buffers.buffer import Buffer
from collwise.mpi.buffers.memory import (
    BYTES,
    IN_SCRATCH,
    ElementType,
    Memory,
    ScratchLayout,
    allocate,
)
from collwise.mpi.buffers.mpi_operators import BoundOperator
from collwise.mpi.engine.compiled_plan import CompiledPlan
from collwise.mpi.engine.loading import COMPILED
from collwise.mpi.engine.node_transport import MOST_BYTES, NodeTransport
from collwise.mpi.execution.instructions import RankPlan
from collwise.mpi.execution.interpreter import Binding, BoundPlan
from collwise.mpi.execution.persistent import PersistentCollective, request_of
from collwise.mpi.runtime.private_communicator import BLOCKING_TAG, PrivateCommunicator
from collwise.schedule.operations import Recv, Send
from collwise.schedule.program import Schedule

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
LAYOUTS = 64
"""Most layouts of buffers for which an executor keeps a bound plan."""
IDLE, IDLE_BYTES = 8, 1 << 20
"""Most idle plans kept for later non-blocking calls, and most bytes of scratch of each."""
Bound: TypeAlias = BoundPlan | CompiledPlan
"""A rank's plan bound to memory, on either engine."""
FastCall: TypeAlias = tuple[Any, ...] | None
"""What the compiled engine needs to serve a later call on buffers of the same layout; None if it
cannot."""
Started: TypeAlias = tuple[MPI.Request | PersistentCollective, FastCall]


class NoPlannedRequest(NotImplementedError):
    """The library has to serve this persistent or non-blocking call, on all ranks.

    Raised if nobody may advance the schedule while the program does something else: there are
    neither MPI_THREAD_MULTIPLE nor the library's progress hooks, and shared memory does not carry
    all of the rank's messages or MPI has to pack some.  Also raised if no tag is left.
    """


def bound_plan(binding: Binding) -> Bound:
    """Bind a rank's plan, on the compiled engine if that engine can execute the plan."""
    if COMPILED is not None:
        with contextlib.suppress(OverflowError):  # counts that its functions cannot take
            return CompiledPlan(binding)
    return BoundPlan(binding)


class BoundedCache(dict[K, V]):
    """A dict of at most `most` entries; `remember` lets the oldest one go if it is full.

    Values that have a `Free` are freed when they go.
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def remember(self, key: K, value: V) -> V:
        """Add an entry, and return its value."""
        if len(self) >= self._most:
            self._let_go(next(iter(self)))
        self[key] = value
        return value

    def forget(self) -> None:
        """Let all entries go."""
        while self:
            self._let_go(next(iter(self)))

    def _let_go(self, key: K) -> None:
        if (free := getattr(self.pop(key), "Free", None)) is not None:
            free()


class IdlePlans(list[CompiledPlan]):
    """Plans of one layout for later non-blocking calls; C takes them from this list, too."""

    def Free(self) -> None:  # noqa: N802
        """Free all plans."""
        while self:
            self.pop().Free()


@dataclass(slots=True)
class CallBuffers:
    """The buffers of one call, as a rank's plan uses them.

    slots: the memory of the user's buffers.   variant: which of the rank's plans suits the
    buffers.   layout: what later buffers must also have in common to reuse the bound plan; None if
    no plan is reused, as for users' types: the handle of one may come to mean another type.
    keep: what must stay alive while requests use the buffers.   unit: the element type of scratch.
    starts: where each rank's data begins in scratch; None if all begin at 0.   types: types to be
    freed with the plan.   displacements: by slot, (is it the receive buffer, bytes to position 0).
    """

    slots: dict[int, Memory]
    variant: Hashable = None
    layout: Hashable = None
    keep: Any = None
    unit: ElementType = BYTES
    operator: BoundOperator | None = None
    types: Sequence[MPI.Datatype] = ()
    starts: Mapping[int, int] | None = None
    displacements: Mapping[int, tuple[bool, int]] = field(default_factory=dict)

    @property
    def key(self) -> Hashable:
        """The key of plans that are bound to such buffers; None if no plan is reused."""
        return None if self.layout is None else (self.variant, self.layout)

    def own_types(self) -> None:
        """Duplicate the user's types: the user may free them before persistent requests."""
        owned: dict[int, ElementType] = {}
        holders: list[Any] = [self, *self.slots.values()]
        datatype = self.unit.datatype
        if self.operator is not None and not datatype.is_predefined:
            self.operator = self.operator._replace(user_type=datatype)
        for holder in holders:
            datatype = holder.unit.datatype
            if not datatype.is_predefined:
                if datatype.handle not in owned:
                    owned[datatype.handle] = ElementType.of(datatype.Dup())
                holder.unit = owned[datatype.handle]
        self.types = [unit.datatype for unit in owned.values()]


class Executor(ABC):
    """Executes one rank's part of a schedule.

    Whoever holds an executor owns it: its plans are freed with it, when nobody does any more.
    Raises InvalidArgument for a schedule for another number of ranks.
    """

    def __init__(self, schedule: Schedule, private: PrivateCommunicator) -> None:
        self._bound: BoundedCache[Hashable, Bound] = BoundedCache(LAYOUTS)
        self._idle: BoundedCache[Hashable, IdlePlans] = BoundedCache(LAYOUTS)
        self.problem, self.private = schedule.problem, private
        if private.size != self.problem.ranks:
            raise InvalidArgument(
                f"a schedule for {self.problem.ranks} ranks",
                f"the communicator has {private.size}",
                f"plan for {private.size} ranks",
            )
        self._schedule, self._operations = schedule, schedule.rank(private.rank)
        self._plans: dict[Hashable, RankPlan] = {}
        private.own(self)

    @abstractmethod
    def _read_buffers(self, *buffers: Any) -> CallBuffers:
        """Read the buffers of a call; raises if they do not fit the schedule."""

    @abstractmethod
    def _plan(self, variant: Any) -> RankPlan:
        """The rank's plan for buffers of a variant."""

    def run(self, *buffers: Any) -> FastCall:
        """Run the collective once, on buffers as the MPI method takes them; return its FastCall.

        Raises as mpi4py does for buffers that it cannot read, InvalidArgument for sizes that are
        not the schedule's, BrokenCommunicator after an interrupted collective.
        """
        if self.private.broken:
            self.private.check()
        return self._execute(self._read_buffers(*buffers))

    def persistent(self, *buffers: Any, waited_for: bool = False) -> PersistentCollective:
        """Make a persistent request for these buffers.  All ranks do so in the same order.

        waited_for: the program does nothing between `Start` and `Wait`, so nobody need advance it.
        Raises InvalidArgument, BrokenCommunicator, NoPlannedRequest, and mpi4py's errors.
        """
        self._check_request()
        bound = self._bound_alone(self._read_buffers(*buffers), waited_for=waited_for)
        request = request_of(self.private, bound)
        self.private.use_tag()
        return request

    def _bound_alone(self, call_buffers: CallBuffers, *, waited_for: bool = False) -> Bound:
        """Bind a plan for a single request, with the next tag."""
        call_buffers.own_types()
        bound = self._bind(call_buffers, self.private.next_tag)
        carried = isinstance(bound, CompiledPlan) and bound.program.in_memory()
        if not (waited_for or self.private.progress or (carried and self._in_one_piece)):
            bound.Free()
            self.private.use_tag()  # the next one may have a lane
            raise NoPlannedRequest("below MPI_THREAD_MULTIPLE only what memory carries moves on")
        return bound

    @cached_property
    def _in_one_piece(self) -> bool:
        """Whether every message of every rank is one block, so that it is not packed by MPI."""
        every = (op for rank in range(self.private.size) for op in self._schedule.rank(rank))
        return all(len(op.blocks) == 1 for op in every if isinstance(op, Send | Recv))

    def nonblocking(self, *buffers: Any) -> Started:
        """Start the collective on these buffers.  All ranks do so in the same order.

        Returns the request and its FastCall.  The request is an `MPI.Request` if the library has
        progress hooks, the operator is not a user's, and the compiled engine can execute the plan.
        Raises InvalidArgument, BrokenCommunicator, NoPlannedRequest, and mpi4py's errors.
        """
        self._check_request()
        started = self._start(self._read_buffers(*buffers))
        self.private.use_tag()
        return started

    def _check_request(self) -> None:
        self.private.check()
        if not self.private.has_tag():
            raise NoPlannedRequest("no tag is left: make a blocking call on this communicator")

    def _start(self, call_buffers: CallBuffers) -> Started:
        operator, tag = call_buffers.operator, self.private.next_tag
        hooks = COMPILED is not None and COMPILED.hooks()
        if hooks and (operator is None or operator.op.is_predefined):
            key = call_buffers.key
            if (idle := self._idle.get(key)) is None:
                idle = self._idle.remember(key, IdlePlans())
            bound = self._idle_plan(idle, call_buffers, tag)
            if isinstance(bound, CompiledPlan):
                try:
                    # A plan that held its executor would keep it alive for ever.
                    keep = partial(Executor._completed, ref(self), bound, key, idle)
                    request = bound.start_request(self.private, keep)
                except MPI.Exception as problem:
                    self.private.judge(bound, problem)
                    bound.Free()
                    raise
                if key is None:
                    return request, None
                again = idle, self.private.tags
                return request, (*bound.fast_call(call_buffers.displacements), None, *again)
            bound.Free()
        return request_of(self.private, self._bound_alone(call_buffers), once=True), None

    def _idle_plan(self, idle: IdlePlans, call_buffers: CallBuffers, tag: int) -> Bound:
        """A plan with memory of its own that is not running: an earlier call's, or a new one."""
        if idle:
            bound = idle.pop()
            bound.reuse(call_buffers.slots, call_buffers.keep, tag)
            return bound
        call_buffers.own_types()
        return self._bind(call_buffers, tag, rebindable=True, alone=True)

    @staticmethod
    def _completed(
        of: "ref[Executor]", bound: CompiledPlan, key: Hashable, idle: IdlePlans
    ) -> None:
        """Keep a plan for a later call if it is small and few are kept; otherwise free it."""
        kept = {} if (executor := of()) is None else executor._idle
        forgotten = kept.get(key) is not idle  # it was freed meanwhile
        count = sum(map(len, kept.values()))
        if key is None or forgotten or count >= IDLE or bound.scratch.nbytes > IDLE_BYTES:
            bound.Free()
        else:
            idle.append(bound)

    def _execute(self, call_buffers: CallBuffers) -> FastCall:
        key = call_buffers.key
        bound = self._bound.get(key)
        if bound is None:
            bound = self._bind(call_buffers, BLOCKING_TAG, rebindable=True)
            if key is not None:
                self._bound.remember(key, bound)
        bound.set_addresses(call_buffers.slots, self.private.scratch)
        try:
            bound.run()
        except BaseException as problem:
            self.private.judge(bound, problem)
            raise
        finally:
            if key is None:
                bound.Free()
        if key is not None and isinstance(bound, CompiledPlan):
            return bound.fast_call(call_buffers.displacements)
        return None

    def _bind(
        self,
        call_buffers: CallBuffers,
        tag: int,
        *,
        rebindable: bool = False,
        alone: bool = False,
    ) -> Bound:
        """Bind the rank's plan to buffers.

        rebindable: the plan serves all buffers of this layout; addresses are set before each
        execution.   alone: whether a rebindable plan has its own scratch and keeps buffers alive.
        """
        shared = rebindable and not alone
        if (plan := self._plans.get(call_buffers.variant)) is None:
            plan = self._plans[call_buffers.variant] = self._plan(call_buffers.variant)
        in_scratch = [IN_SCRATCH[slot] for slot in call_buffers.slots if slot in IN_SCRATCH]
        starts = call_buffers.starts
        scratch = ScratchLayout(plan.operations, call_buffers.unit, in_scratch, starts)
        memory = allocate(0 if shared else scratch.nbytes)
        slots = dict(call_buffers.slots)
        for slot, address in scratch.placed_at(memory.address).items():
            slots[slot] = Memory(address, call_buffers.unit, starts)
        keep = None if shared else (call_buffers.keep, memory)
        operator, types = call_buffers.operator, call_buffers.types
        memory_of_it = rebindable, scratch, types, keep, self._transport
        return bound_plan(Binding(plan, slots, self.private.comm, tag, operator, *memory_of_it))

    @property
    def _transport(self) -> NodeTransport | None:
        """The shared memory for messages; None on the whole node if MPI sends all.

        The problem's bytes decide, which all ranks know.  A rank's types are its own.
        """
        return self.private.transport if self.problem.nbytes <= MOST_BYTES else None

    def _fitting(self, spec: Any, nbytes: int, *, writable: bool, parts: int = 1) -> Buffer:
        """Read a user's buffer; raises InvalidArgument unless it has `nbytes` bytes."""
        buffer = Buffer(spec, writable=writable, parts=parts)
        if buffer.nbytes != nbytes:
            raise InvalidArgument(
                f"a schedule for {nbytes} bytes",
                f"the buffer of rank {self.private.rank} has {buffer.nbytes}",
                "plan for the bytes that all ranks pass, or correct count and type",
            )
        return buffer

    def Free(self) -> None:  # noqa: N802
        """Free the MPI objects of all plans kept here; the next call binds a plan anew."""
        self._bound.forget()
        self._idle.forget()

    def __del__(self) -> None:
        """Free what nobody could free any more."""
        if not MPI.Is_finalized():
            self.Free()
