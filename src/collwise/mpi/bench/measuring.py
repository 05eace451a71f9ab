"""Runs a measuring campaign on MPI: rank 0 decides what to time next, all ranks time it."""

import time
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np
from mpi4py import MPI

from collwise.measure.campaign import Campaign, Result
from collwise.measure.combine_cost import BATCH_S, CombineCampaign, CombineSetting, slowest
from collwise.measure.level_campaign import measure_levels
from collwise.measure.level_probes import MAX_SENDERS, level_team
from collwise.measure.port_campaign import ReadCampaign, port_sizes
from collwise.measure.probes import AnyProbe
from collwise.measure.profile_building import build_profile, with_levels
from collwise.measure.size_campaign import SizeCampaign
from collwise.model.placement import Placement
from collwise.mpi.bench.placing import NamedPlacement
from collwise.mpi.buffers.memory import ElementType, Memory, SharedScratch, allocate
from collwise.mpi.buffers.mpi_operators import OPERATORS, BoundOperator
from collwise.mpi.engine.node_transport import line_times_s, node_transport
from collwise.mpi.engine.own_loops import has_loop
from collwise.mpi.execution.executor import Bound, bound_plan
from collwise.mpi.execution.instructions import Await, RankPlan, Start
from collwise.mpi.execution.interpreter import Binding
from collwise.mpi.runtime.agreement import in_team, on_root
from collwise.mpi.runtime.world import World
from collwise.profiles.profile import Profile
from collwise.profiles.records import ReadTime
from collwise.schedule.operations import Block, Combine, Message, Recv, Send, Slot

COMBINING_SHARE = 0.1
"""The share of the time budget for timing operators."""
READING_SHARE = 0.15
"""The share of the time budget for timing reads of shared memory, if ranks share memory."""
_TAG = 0
_SETTLING_S = 20e-6

Report = Callable[[float], None]
"""Called on the first of the ranks that measure, with the share of the work done, from 0 to 1."""


def run_campaign(
    comm: MPI.Intracomm,
    world: World,
    *,
    budget_s: float,
    sizes: Iterable[int] | None = None,
    largest: int | None = None,
    seed: int = 0,
    report: Report = lambda done: None,
    levels: NamedPlacement | None = None,
) -> Profile:
    """Measure t0, λ, reading and combining; the profile is the same on all ranks.  Collective.

    budget_s: seconds, of which combining takes a small share at the end.   sizes: bytes of
    messages; by default the usual ones, up to `largest`.   levels: where the ranks are; only some
    of the ranks measure each level.
    Raises InvalidArgument, on all ranks, for fewer than 2 ranks or values out of range.
    """
    chosen = None if sizes is None else tuple(sizes)
    levels = levels or NamedPlacement(Placement.of(ranks=comm.Get_size()))

    def new(share: float, ranks: int) -> SizeCampaign:
        return SizeCampaign(
            ranks, sizes=chosen, largest=largest, budget_s=share * budget_s, seed=seed
        )

    buffer = on_root(comm, lambda: max(new(1, comm.Get_size()).sizes))

    def conduct_on(
        members: Sequence[int], make: Callable[[], Campaign[Any]], done: float, share: float
    ) -> Any:
        nodes = [world.sharing[rank] for rank in members] if world.sharing else []

        def act(team: MPI.Intracomm) -> Any:
            prober = Prober(team, buffer, nodes if len(set(nodes)) == 1 else ())
            return conduct(team, make, prober.run, lambda own: report(done + share * own))

        return act(comm) if len(members) == comm.Get_size() else in_team(comm, members, act)

    cores_apart = () if world.oversubscribed else world.sharing
    before_s = line_times_s(comm, cores_apart)
    inside = level_team(levels.placement, 1)
    shares = len({world.sharing[rank] for rank in inside}) == 1 if world.sharing else False
    share = 1 - COMBINING_SHARE - READING_SHARE * shares
    measured = measure_levels(levels.placement, conduct_on, new, chosen, share)
    reading: tuple[ReadTime, ...] = ()
    if shares:

        def campaign() -> ReadCampaign:
            usual, senders = new(1, len(inside)), min(len(inside) - 1, MAX_SENDERS)
            sizes = port_sizes(usual.sizes, chosen)
            return ReadCampaign(senders, sizes, READING_SHARE * budget_s, seed)

        reading = conduct_on(inside, campaign, share, READING_SHARE)
        reading = on_root(comm, lambda: reading)  # the others, which did not take part, have none
    combining_s = budget_s * COMBINING_SHARE
    timer = cache(CombineTimer)
    mine = conduct(
        MPI.COMM_SELF,
        lambda: CombineCampaign(combining_s),
        lambda cells: [timer(cell).sample() for cell in cells],
    )
    gathered = comm.gather(mine, root=0)
    lines_s = before_s, line_times_s(comm, cores_apart)

    def result() -> Profile:
        assert gathered is not None
        provenance = world.provenance(lines_s=lines_s if before_s else ())
        fingerprint, combining = world.fingerprint(), slowest(gathered)
        profile = build_profile(measured.outermost, fingerprint, provenance, combining, reading)
        if not levels.names:
            return profile
        return with_levels(profile, measured, levels.names, levels.groups, budget_s)

    return on_root(comm, result, takes_long=True)


def conduct(
    comm: MPI.Intracomm,
    make: Callable[[], Campaign[Result]],
    run: Callable[[Sequence[Any]], Sequence[float]],
    report: Report = lambda done: None,
) -> Result:
    """Run the campaign that `make` returns on rank 0; all ranks return its result.  Collective.

    run: times a batch of probes, called on all ranks; what it returns on rank 0 is recorded.
    """
    campaign: Any = make() if comm.Get_rank() == 0 else None
    begin = time.perf_counter()
    while batch := on_root(comm, campaign.next_batch if campaign else list):
        samples = run(batch)
        if campaign is not None:
            campaign.record(batch, samples, time.perf_counter() - begin)
            report(campaign.progress)
    result: Result = on_root(comm, campaign.result if campaign else list, takes_long=True)
    return result


class CombineTimer:
    """Times combining two vectors with the engine in use.   calls: combines per sample."""

    def __init__(self, cell: CombineSetting) -> None:
        dtype, block = np.dtype(cell.dtype), Block(0, 0, cell.nbytes)
        count = cell.nbytes // dtype.itemsize
        operands = np.ones(count, dtype), np.zeros(count, dtype)
        unit = ElementType.of(MPI.Datatype.fromcode(dtype.char))
        slots = {slot: Memory(array.ctypes.data, unit) for slot, array in enumerate(operands)}
        operator = BoundOperator.of(OPERATORS[cell.op], unit, has_loop)
        plan = RankPlan((), (Combine(0, 1, 1, (block,)),), 0)
        binding = Binding(plan, slots, MPI.COMM_SELF, _TAG, operator, keep=operands)
        self._bound = bound_plan(binding)
        self.calls = 1
        self.calls = max(1, min(1000, int(BATCH_S / max(min(self.sample(), self.sample()), 1e-8))))

    def sample(self) -> float:
        """Time `calls` combines; returns the mean seconds of one."""
        combine = self._bound.run
        begin = time.perf_counter()
        for _ in range(self.calls):
            combine()
        return (time.perf_counter() - begin) / self.calls


class Prober:
    """Times probes, which are exchanges of messages with rank 0, on the engine that runs plans.

    Receives are posted before the clock is read, unless messages travel through shared memory.
    comm: a private communicator.   largest: bytes of the longest message.   nodes: each rank's
    node, if messages travel through shared memory; otherwise empty.
    """

    def __init__(self, comm: MPI.Intracomm, largest: int, nodes: Sequence[int] = ()) -> None:
        self._comm = comm
        self._transport = node_transport(comm, nodes)
        self._rank = comm.Get_rank()
        self._memory = [allocate(largest)]  # for all sends, and for messages to receive

    def run(self, probes: Sequence[AnyProbe]) -> list[float]:
        """Seconds that each probe took, on rank 0; all zeros on the others.  Collective."""
        return [self._one(probe) for probe in probes]

    def _one(self, probe: AnyProbe) -> float:
        operations = probe.operations(self._rank)
        received = [op for op in operations if isinstance(op, Recv)]
        sent = [op for op in operations if isinstance(op, Send)]
        if self._transport is not None:
            return self._through_memory(received, sent, probe.blocking)
        receives = self._bind(received)
        sends = self._bind(sent, rebindable=probe.blocking)
        receives.begin()
        self._start_together()
        begin = time.perf_counter()
        if self._rank:  # P_k answers when everything has come; the others only listen
            receives.end()
            sends.run()
        elif probe.blocking:
            sends.run()
            receives.end()
        else:
            sends.begin()
            receives.end()
        answered = time.perf_counter() - begin
        if self._rank == 0 and not probe.blocking:
            sends.end()
        elapsed = time.perf_counter() - begin if probe.until_sent else answered
        for bound in (receives, sends):
            bound.Free()
        return elapsed if self._rank == 0 else 0.0

    def _start_together(self) -> None:
        self._comm.Barrier()
        if self._rank == 0:  # the others leave the barrier a little later: let them settle
            settled = time.perf_counter() + _SETTLING_S
            while time.perf_counter() < settled:
                pass

    def _through_memory(
        self, received: Sequence[Message], sent: Sequence[Message], blocking: bool
    ) -> float:
        """Time a probe through shared memory; returns seconds on rank 0, and 0 on the others."""
        receives = tuple(range(len(received)))
        sends = tuple(range(len(received), len(received) + len(sent)))
        first = [act for one in sends for act in (Start((one,)), Await((one,)))]
        acts = [Start(receives), *(first if blocking else [Start(sends)]), Await(receives)]
        if self._rank:
            acts = [Start(receives), Await(receives), *first]
        bound = self._bound([*received, *sent], [*acts, Await(sends)], rebindable=True)
        self._start_together()
        begin = time.perf_counter()
        bound.run()
        elapsed = time.perf_counter() - begin
        bound.Free()
        return 0.0 if self._rank else elapsed

    def _bind(self, messages: Sequence[Message], *, rebindable: bool = False) -> Bound:
        """Bind messages, all sent or all received.   rebindable: whether they run one by one."""
        numbers = tuple(range(len(messages)))
        groups = [(number,) for number in numbers] if rebindable else [numbers] if numbers else []
        instructions = [act for group in groups for act in (Start(group), Await(group))]
        return self._bound(messages, instructions, rebindable=rebindable)

    def _bound(
        self,
        messages: Sequence[Message],
        instructions: Sequence[Start | Await],
        *,
        rebindable: bool,
    ) -> Bound:
        """Bind messages, each to a slot of its own; those from one scratch slot to one.

        If ranks share memory, all are sent from one buffer and received in another, as programs and
        races use the same buffers again and again; each slot is a publication of its own.
        Otherwise sent messages share a slot, and each received message has memory of its own.
        """
        published: dict[int, int] = {}

        def slot(op: Message, number: int) -> int:
            if isinstance(op, Send) and op.slot >= Slot.SCRATCH:
                return published.setdefault(op.slot, number)
            return number if isinstance(op, Recv) or self._transport is not None else 0

        on_slots = tuple(op._replace(slot=slot(op, n)) for n, op in enumerate(messages, 1))
        shared = self._transport is not None
        buffers = {op.slot: isinstance(op, Recv) if shared else op.slot for op in on_slots}
        while len(self._memory) <= max(buffers.values(), default=0):
            self._memory.append(allocate(len(self._memory[0])))
        slots = {slot: Memory(self._memory[number].address) for slot, number in buffers.items()}
        plan, about = RankPlan(on_slots, tuple(instructions), 0), (slots, self._comm, _TAG)
        carried = self._transport
        bound = bound_plan(Binding(plan, *about, rebindable=rebindable, transport=carried))
        if rebindable:
            bound.set_addresses(slots, SharedScratch())
        return bound
