"""Both engines walk the same plans, on real MPI: random ones, with all instructions."""

import gc
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from mpi4py import MPI

import collwise as cw
from collwise.comm.recording import Way
from collwise.errors import UnknownName
from collwise.mpi.buffers.memory import ElementType, Memory
from collwise.mpi.buffers.mpi_operators import OPERATORS, BoundOperator, exact_types
from collwise.mpi.engine import loading
from collwise.mpi.engine.compiled_plan import CompiledPlan, ProgramInstruction
from collwise.mpi.engine.loading import COMPILED, SERVING
from collwise.mpi.engine.own_loops import has_loop
from collwise.mpi.execution.instructions import RankPlan, rank_plan, reduce_local_form
from collwise.mpi.execution.interpreter import Binding, BoundPlan
from collwise.schedule.operations import Block, Combine, Copy, Operation, Recv, Send, Slot, scratch
from collwise.schedule.operators import OPERATORS as KNOWN
from tests.mpi.programs.alike import PLANNED, perform, resident_kib
from tests.mpi.programs.checks import check, environment, raises, replaced

NBYTES = 384
BLOCKS = tuple(Block(0, offset, 64) for offset in range(0, NBYTES, 64))


@check
def the_environment_chooses_the_engine(comm: MPI.Intracomm) -> None:
    """A word that names none is refused on all ranks, whichever has it."""
    variable, python = loading.ENVIRONMENT, "COLLWISE_ENGINE=python"
    if os.environ.get(variable) == "python":
        assert (SERVING.name, SERVING.why) == ("python", python)
    elif [*Path(loading.__file__).parent.glob("_engine.*so")]:
        assert (SERVING.name, SERVING.why) == ("compiled", "")
    with environment(MPI.COMM_SELF, {variable: "rust"}):
        wrong = loading._load()
    said = "engine 'rust': there is none; known: compiled, python"
    with (
        replaced(loading, SERVING=wrong if comm.rank == comm.size - 1 else SERVING),
        raises(UnknownName, match=said),
    ):
        cw.Comm(comm)


def random_lists(
    ranks: int, chance: random.Random
) -> tuple[list[list[Operation]], list[list[int]]]:
    """Operations of every rank, in one order in which they could happen one after another.

    With the slots of every rank that are read later, or could be; a combine may use up its right
    operand.
    """
    lists: list[list[Operation]] = [[] for _ in range(ranks)]
    held: list[list[int]] = [[Slot.INPUT] for _ in range(ranks)]  # slots that can be read
    slots = [0] * ranks
    for _ in range(chance.randrange(3, 30)):
        rank = chance.randrange(ranks)
        blocks = tuple(chance.sample(BLOCKS, chance.randint(1, len(BLOCKS))))
        new = scratch(slots[rank])
        kind = chance.choice(("message", "message", "combine", "copy"))
        if kind == "message" and ranks > 1:
            peer = chance.choice([other for other in range(ranks) if other != rank])
            lists[rank].append(Send(peer, blocks, chance.choice(held[rank])))
            new = scratch(slots[peer])
            lists[peer].append(Recv(rank, blocks, new))
            # What was not received holds what was there before, on both engines alike.
            held[peer].append(new)
            slots[peer] += 1
        elif kind == "combine" and len(held[rank]) > 1:
            left, right = chance.sample(held[rank], 2)
            into = chance.choice((right, new)) if right >= Slot.SCRATCH else new
            lists[rank].append(Combine(left, right, into, blocks))
            if right >= Slot.SCRATCH and into != right:
                held[rank].remove(right)  # used up
            if into == new:
                held[rank].append(new)
                slots[rank] += 1
        elif kind == "copy":
            lists[rank].append(Copy(chance.choice(held[rank]), new, blocks))
            held[rank].append(new)
            slots[rank] += 1
    return lists, held


class Case(NamedTuple):
    """A rank's plan on one engine, and the memory that it works on."""

    bound: Any
    memory: list[np.ndarray[Any, Any]]

    def fill(self, seed: int) -> None:
        chance = np.random.default_rng(seed)
        for array in self.memory:
            array[...] = chance.integers(-100, 100, array.shape)


def bind(
    comm: MPI.Intracomm,
    operations: list[Operation],
    op: MPI.Op,
    dtype: str,
    step: int,
    *,
    compiled: bool,
    rebindable: bool,
) -> Case:
    """Bind one rank's list to memory of its own.   step: elements lie so far apart."""
    array = np.dtype(dtype)
    datatype = MPI.Datatype.fromcode(array.char)
    types = []
    if step > 1:
        types.append(datatype.Create_resized(0, step * array.itemsize).Commit())
        datatype = types[0]
    unit = ElementType.of(datatype)
    used = [getattr(one, name) for one in operations for name in ("slot", "into", "left", "right",
            "source") if hasattr(one, name)]  # fmt: skip
    slots, memory = {}, []
    for slot in range(max(used, default=0) + 1):
        memory.append(np.zeros(NBYTES // array.itemsize * step, array))
        slots[slot] = Memory(memory[-1].ctypes.data, unit)
    operator = BoundOperator.of(op, unit, has_loop if compiled else None)
    wanted = operations if operator.separate_output else list(reduce_local_form(operations))
    plan: RankPlan = rank_plan(wanted)
    make: Any = CompiledPlan if compiled else BoundPlan
    bound = make(Binding(plan, slots, comm, 7, operator, rebindable, types=types, keep=memory))
    if rebindable:
        bound.set_addresses(slots, None)
    return Case(bound, memory)


def execute(case: Case, *, rebindable: bool, testing: bool) -> None:
    if rebindable:
        case.bound.run()
        return
    case.bound.begin()
    while testing and not case.bound.complete():
        pass
    case.bound.end()


@check
def random_programs_leave_the_same_bytes_on_both_engines(comm: MPI.Intracomm) -> None:
    if COMPILED is None:
        return
    private = comm.Dup()
    user = MPI.Op.Create(_left_minus_twice_right, commute=False)
    for seed in range(24):
        chance = random.Random(seed)
        lists, held = random_lists(comm.size, chance)
        dtype, step = chance.choice(("int64", "float64", "uint32")), chance.choice((1, 1, 3))
        op = user if step > 1 else chance.choice((MPI.SUM, MPI.MAX, MPI.PROD, user))
        rebindable = bool(seed % 2)
        cases = {
            compiled: bind(
                private, lists[comm.rank], op, dtype, step, compiled=compiled, rebindable=rebindable
            )
            for compiled in (False, True)
        }
        left = []
        for engine in (False, True, comm.rank % 2 == 0):  # the last: ranks differ
            case = cases[engine]
            for again in range(2):
                case.fill(seed + 100 * comm.rank + again)
                execute(case, rebindable=rebindable, testing=bool(seed // 2 % 2))
            left.append([case.memory[slot].tobytes() for slot in held[comm.rank]])
        for case in cases.values():
            case.bound.Free()
        assert left[0] == left[1] == left[2], (seed, dtype, step, lists[comm.rank])
    user.Free()
    private.Free()


def _left_minus_twice_right(left: Any, right: Any, datatype: MPI.Datatype) -> None:
    """Shows which operand was which, and in which order they came."""
    size = datatype.Get_extent()[1]
    base = "q" if size % 8 == 0 else "i"
    a, b = np.frombuffer(left, base), np.frombuffer(right, base)
    b[:] = a - 2 * b


def grown_kib(comm: MPI.Intracomm, calls: int) -> int:
    """How much more memory this rank takes after ten turns of so many calls of each form."""
    data, result = np.zeros(8), np.zeros(8)
    ours = cw.Comm(comm.Dup(), **PLANNED)
    request = ours.Allreduce_init(data, result)
    sizes = []
    for turn in range(11):
        for _ in range(calls):
            ours.Bcast(data, 0)
            ours.Allreduce(data, result)
            request.Start()
            request.Wait()
            ours.Allgather(data[:1], result[: comm.size])
        for _ in range(calls // 50):
            ours.Iallreduce(data, result).Wait()
        if turn in (0, 10):
            gc.collect()
            sizes.append(resident_kib())
    request.Free()
    ours.Free()
    return sizes[1] - sizes[0]


def grown_by_sizes_kib(comm: MPI.Intracomm, sizes: int) -> int:
    """How much more memory this rank takes after calls with a new size each; a fifth is before."""
    algorithms = {"broadcast": "binomial", "allreduce": "recursive_doubling", "allgatherv": "ring"}
    ours, grown = cw.Comm(comm.Dup(), profile=False, algorithms=algorithms), 0
    kinds: list[tuple[Way, str]] = [
        ("blocking", "Bcast"), ("blocking", "Allreduce"), ("nonblocking", "Bcast"),
        ("blocking", "Allgather"), ("persistent", "Bcast"),
    ]  # fmt: skip
    for size in range(1, sizes + 1):
        way, method = kinds[size % len(kinds)]
        mine = np.zeros(size, np.uint8)
        result = np.zeros(size * comm.size if method == "Allgather" else size, np.uint8)
        perform(way, ours, method, *([mine] if method == "Bcast" else [mine, result]))
        if size in (sizes // 5, sizes):
            grown = resident_kib() - grown
    ours.Free()
    return grown


@check
def calls_leak_nothing(comm: MPI.Intracomm) -> None:
    """50 bytes a call would show, 130 with Python's engine, which takes far longer for one.

    A million calls are made under `exhaustive`.
    """
    if comm.size == 2 and Path("/proc/self/status").exists():
        assert grown_kib(comm, 100 if SERVING.name == "python" else 250) < 512


@check
def own_loops_have_the_bits_of_reduce_local(comm: MPI.Intracomm) -> None:
    if COMPILED is None or comm.rank:
        return
    for name, known in KNOWN.items():
        if known.ufunc is None:
            continue
        for code in exact_types(name):
            dtype = np.dtype(code)
            op, datatype = OPERATORS[name], MPI.Datatype.fromcode(code)
            for left, right in _edges(dtype):
                loop = BoundOperator.of(op, ElementType.of(datatype), has_loop).loop
                if code in "fd" and not loop[0]:
                    continue  # this library keeps now one NaN of two, now the other
                assert has_loop(*loop), (name, code)
                count = len(left)
                memory = [np.zeros(left.nbytes + 1, np.uint8) for _ in range(3)]
                memory[0][1:], memory[1][1:] = left.view(np.uint8), right.view(np.uint8)
                combine = ProgramInstruction(
                    COMPILED.COMBINE, 0, 0, (0, 1), (1, 1), (2, 1),  # no element is aligned
                    count, datatype.handle, 0, 0, *loop,
                )  # fmt: skip
                program = COMPILED.Program(
                    comm.handle, op.handle, 0, 0, 3, (), (), (combine,), 0, None
                )
                for slot, array in enumerate(memory):
                    program.set_address(slot, array.ctypes.data)
                program.run()
                op.Reduce_local([left, count, datatype], [right, count, datatype])
                assert memory[2][1:].tobytes() == right.tobytes(), (name, code, count)


def _edges(dtype: np.dtype[Any]) -> Iterator[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
    """Pairs of vectors with all pairs of values near the ends of what a type can hold."""
    edge = np.array([False, True])
    if dtype.kind == "f":
        numbers = [0, -0.0, 1, -1.5, np.inf, -np.inf, np.finfo(dtype).tiny / 4, np.finfo(dtype).max]
        payloads = np.arange(
            1, 7, dtype=f"u{dtype.itemsize}"
        )  # quiet and signalling, of both signs
        payloads[:2] |= 1 << np.finfo(dtype).nmant - 1
        nans = np.array([np.inf, -np.inf] * 3, dtype).view(payloads.dtype) | payloads
        edge = np.concatenate([np.array(numbers, dtype), nans.view(dtype)])
    elif dtype.kind != "b":
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        near = [low, low + 1, low // 2, 0, 1, 2, 3, high // 3, high // 2, high - 1, high]
        edge = np.array(near, dtype)
    every = np.tile(np.array(np.meshgrid(edge, edge)).reshape(2, -1), 3)
    for count in (1, 7, every.shape[1] - 1, every.shape[1]):
        left, right = every[:, :count].copy()
        yield left, right
