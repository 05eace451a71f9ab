"""Checks of messages inside a node that go through memory which its ranks share."""

import gc
import os
import random
import sys
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from mpi4py import MPI

import collwise as cw
from collwise.errors import InvalidArgument, UnknownName
from collwise.measure.probes import Probe
from collwise.mpi.bench.measuring import Prober
from collwise.mpi.engine import node_transport
from collwise.mpi.engine.loading import COMPILED
from collwise.mpi.runtime.world import describe
from collwise.profiles.records import FORMS
from collwise.schedule.problem import Problem
from collwise.system.host import TRANSPORTS
from collwise.tuning.outcomes import Task
from collwise.tuning.session import Session
from tests.mpi.programs.alike import assumed, mapped, perform, resident_kib
from tests.mpi.programs.checks import check, drawn, drawn_number, environment, raises, replaced
from tests.mpi.programs.random_calls import (
    calls_on_another,
    compare,
    forks,
    many_sizes,
    one_call,
)

FLAT = {
    "broadcast": "flat",
    "reduce": "flat",
    "allreduce": "reduce_broadcast",
    # Open MPI's own persistent one keeps memory of every request that was freed.
    "reduce_scatter_block": "pairwise",
}
TREES = {
    "broadcast": "chain_segmented(segment=10k)",
    "reduce": "binomial",
    "allreduce": "ring",
    "allgatherv": "ring",
    "reduce_scatter_block": "pairwise",
}


def shared(comm: MPI.Intracomm, algorithms: dict[str, str] = FLAT, **settings: Any) -> cw.Comm:
    return cw.Comm(comm.Dup(), profile=False, algorithms=algorithms, transport="memory", **settings)


def uses_memory(ours: cw.Comm) -> bool:
    private = ours._dispatch.duplicate.made
    return private is not None and private.transport is not None


def expected_to_share(comm: MPI.Intracomm) -> bool:
    return COMPILED is not None and comm.size > 1


@check
def long_vectors_both_ways_at_once(comm: MPI.Intracomm) -> None:
    """Each rank publishes far more than its ring holds, before it could have read anything."""
    ours = shared(comm, {"allreduce": "ring", "allgatherv": "ring"})
    mine, every = np.full(131_072, comm.rank + 0.5), np.zeros(131_072 * comm.size)
    for _ in range(3):
        ours.Allgather(mine, every)
        assert (every.reshape(comm.size, -1) == np.arange(comm.size)[:, None] + 0.5).all()
    ours.Free()


@check
def programs_that_need_posted_receives_end(comm: MPI.Intracomm) -> None:
    """Pieces of more than a ring are sent before what came earlier was received."""
    if comm.size == 1:
        return
    settings = "across=recursive_doubling, gather=bruck, pieces=3, latencies=1 5"
    placement = cw.Placement.of([rank // 2 for rank in range(comm.size)])
    pieces = {"allreduce": f"multilane_pieces({settings})"}
    ours = shared(comm, pieces, placement=placement)
    plan = ours.plan("Allreduce", 1 << 22, op="sum", dtype="f8")
    assert plan is not None
    assert plan.schedule.program.needs_posted_receives
    given, total = np.full(1 << 19, comm.rank + 1.0), np.zeros(1 << 19)
    for form in FORMS:
        total[:] = 0
        perform(form, ours, "Allreduce", given, total)
        assert (total == comm.size * (comm.size + 1) // 2).all()
    assert uses_memory(ours) == expected_to_share(comm)
    ours.Free()


@check
def mpi_gets_on_while_a_rank_waits_in_a_collective(comm: MPI.Intracomm) -> None:
    """A large message that its receiver takes first, while its sender is in the broadcast."""
    ours, data = shared(comm), np.zeros(100_000)
    ours.Bcast(data)
    for size, form in product((8, 64, 100_000), (*FORMS, None)):
        small = np.full(size, comm.rank)
        if comm.rank == 1:
            sending = comm.Isend(np.ones(100_000), 0)
        if comm.rank == 0 and comm.size > 1:
            comm.Recv(data, 1)
            assert data.all()
        if form is None:
            request = ours.Bcast_init(small, 0)
            request.Start()
            while not request.Test():
                pass
            request.Free()
        else:
            perform(form, ours, "Bcast", small, 0)
        assert not small.any()
        if comm.rank == 1:
            sending.Wait()
    ours.Free()


@check
def started_requests_move_while_a_rank_is_in_mpi(comm: MPI.Intracomm) -> None:
    """The root publishes more than its ring holds, to readers that are in MPI."""
    ours, data, token = shared(comm), np.zeros(200_000), np.zeros(1)
    ours.Bcast(token)
    for starts in (True, False):
        for turn in range(3):
            data[:] = turn + 1 if comm.rank == 0 else 0
            request: Any = ours.Bcast_init(data, 0) if starts else ours.Ibcast(data, 0)
            if starts:
                request.Start()
            if comm.rank == 0:
                request.Wait()
                for reader in range(1, comm.size):
                    comm.Send(token, reader)
            else:
                comm.Recv(token, 0)
                request.Wait()
            assert (data == turn + 1).all()
            if starts:
                request.Free()
    ours.Free()


@check
def nobody_advances_a_request_that_only_reads_a_short_message(comm: MPI.Intracomm) -> None:
    """The library's hook or the helper would take longer than the message."""
    if comm.size == 1 or COMPILED is None:
        return
    ours = shared(comm)
    for nbytes in (100, 3584, 3585):
        data = np.full(nbytes, comm.rank, np.uint8)
        ours.Bcast(data)
        request, waits = ours.Bcast_init(data, 0), comm.rank > 0 and nbytes > 3584
        if comm.rank == 0:
            comm.Barrier()
        request.Start()
        assert COMPILED.running() == waits
        if comm.rank > 0:
            comm.Barrier()
        request.Wait()
        assert not data.any()
        request.Free()
    ours.Free()


def by_messages(ours: cw.Comm, request: Any) -> bool:
    """Whether a started broadcast of rank 0 comes to the others as a message of MPI's."""
    private = ours._dispatch.duplicate.made
    assert private is not None
    if ours.rank == 0:
        request.Start()
    ours.Barrier()
    seen = ours.rank > 0 and any(private.comm.Iprobe() for _ in range(10))  # Intel MPI's comes late
    if ours.rank:
        request.Start()
    request.Wait()
    return bool(ours.allreduce(seen, MPI.LOR))


@check
def requests_beyond_the_pool_send_messages(comm: MPI.Intracomm) -> None:
    """All ranks know which.  Each frees its requests in its own order; then there is room again."""
    if comm.size == 1 or COMPILED is None:
        return
    ours, data = shared(comm), np.full(100, comm.rank)
    ours.Bcast(data)
    for _ in range(3):
        made = [ours.Bcast_init(data, 0) for _ in range(20)]
        assert [by_messages(ours, one) for one in made].count(True) == 4
        random.Random(comm.rank).shuffle(made)
        for request in made:
            request.Free()
        comm.Barrier()
    kept = ours.Bcast_init(data, 0) if comm.rank else None
    comm.Barrier()
    ours.Bcast(data)
    kept = kept or ours.Bcast_init(data, 0)  # made later than by all others
    assert not by_messages(ours, kept)
    ours.Free()


@check
def a_forked_child_gives_nothing_back(comm: MPI.Intracomm) -> None:
    """Its copies of requests end with it, while the ranks go on with theirs."""
    if comm.size == 1 or COMPILED is None:
        return
    ours, data = shared(comm), np.full(100, comm.rank)
    ours.Bcast(data)
    made = [ours.Bcast_init(data, 0) for _ in range(16)]
    started = shared(comm)
    started.Bcast(data)
    data[:] = comm.rank
    running = started.Ibcast(data, 0) if comm.rank else None
    if (child := os.fork()) == 0:
        for request in made:
            request.Free()
        del running
        gc.collect()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    comm.Barrier()
    (running or started.Ibcast(data, 0)).Wait()
    assert (data == 0).all()
    started.Free()
    comm.Barrier()
    assert not any(by_messages(ours, one) for one in made)
    assert by_messages(ours, ours.Bcast_init(data, 0)), "all of the pool is in use"
    data[:] = comm.rank
    made[0].Start()
    made[0].Wait()
    assert (data == 0).all()
    ours.Free()


@check
def a_communicator_is_freed_while_others_wait_elsewhere(comm: MPI.Intracomm) -> None:
    """Rank 0 frees it before it takes part in what the others wait for, and they free it later."""
    before = mapped()
    for form in FORMS:
        freed, ours, data = shared(comm), shared(comm), np.full(200_000, comm.rank)
        for one in (freed, ours):
            one.Bcast(np.zeros(3))
        request: Any = freed.Bcast_init(data, 0)  # the program never frees it
        if comm.rank == 0:
            freed.Free()
        perform(form, ours, "Bcast", data, 0)
        if comm.rank:
            freed.Free()
        assert not data.any()
        ours.Free()
    del request, freed, ours
    assert mapped() == before


def requests_of(ours: cw.Comm, number: int) -> list[tuple[Any, Any, Any]]:
    made = []
    for n in range(number):
        data, result = np.zeros(10 + 3000 * (n % 3)), np.zeros(10 + 3000 * (n % 3))
        make: Callable[..., Any] = ours.Allreduce_init if n % 2 else ours.Bcast_init
        request = make(data, result) if n % 2 else make(data, n % ours.size)
        made.append((request, data, result))
    return made


def keep_what_comes_early(comm: MPI.Intracomm) -> None:
    """Let the library reserve memory for messages that nobody has yet received.

    MPICH 5.0 takes 2 MiB when a rank has 16 of them for the first time, as it has without a core
    for a while, and another MiB for long ones.
    """
    left, right = ((comm.rank + step) % comm.size for step in (-1, 1))
    for nbytes in (100, 40_000):
        sent = [comm.Isend(bytearray(nbytes), right) for _ in range(64)]
        comm.Barrier()
        for _ in sent:
            comm.Recv(bytearray(nbytes), left)
        MPI.Request.Waitall(sent)


TURNS = 4
"""How often the same random calls are made; in the first turn all plans are made, and what is freed
of them has left as many holes as it does when the third turn ends."""
MANY, MOST_KIB = 3_000, 1024
"""Calls of a turn from which on growth counts: allocators still reserve memory in the later turns.
And that most ranks may grow by, from the least of the third turn to that of the last: a rank
without a core for a while keeps what others send it, but where memory leaks, most ranks grow."""
AGAIN = 3_000
"""Every other call is one that was made so many calls ago at most."""
MOST_SIZES = 5_000
"""There are four calls of a turn for each.  The first communicator, which most calls are on, fills
its caches to their ends again and again."""


@check
def random_calls_of_every_form(comm: MPI.Intracomm) -> None:
    """On several communicators, with other requests in their midst.

    Others are derived from these meanwhile, and freed, or dropped in the first turn: what a library
    keeps of a communicator that nobody frees is no leak of ours.  Processes fork.  No persistent
    request is the library's: Open MPI 5.0 keeps a vector of each that was freed.
    """
    before = mapped()
    keep_what_comes_early(comm)
    flat = FLAT | {"allgatherv": "ring"}
    others = {"broadcast": "binomial", "allreduce": "circulant", "reduce": "halving_gather"}
    every: list[tuple[Any, MPI.Comm]] = [
        (shared(comm, one), comm) for one in (flat, TREES, flat | others)
    ]
    half = comm.rank % 2, -comm.rank
    every.append((every[0][0].Split(*half), comm.Split(*half)))
    sizes = many_sizes(min(MOST_SIZES, drawn_number(40) // 4))

    least_kib = [sys.maxsize] * TURNS
    for turn in range(TURNS):
        for number in drawn(40):
            draw = random.Random(number)
            if number % 100 == 0:
                gc.collect()
                least_kib[turn] = min(least_kib[turn], resident_kib())
            former = max(0, number - draw.choice((0, draw.randrange(AGAIN))))
            call = random.Random(f"call {former}")
            [(ours, plain)] = call.choices(every, (5, 1, 1, 1))
            one_call(call, ours, plain, sizes)
            if number % 50 == 0:
                whole = every[number // 50 % 3][0]
                made = requests_of(whole, draw.randrange(1, 9))
                for request, data, _ in made:
                    data[:] = 1
                    request.Start()
                one_call(draw, ours, plain, sizes)
                if number % 1000 == 0:
                    forks()
                for n, (request, data, result) in enumerate(made):
                    request.Wait()
                    assert ((result if n % 2 else data) == (comm.size if n % 2 else 1)).all()
                    if (n + comm.rank) % 3:  # the others are freed when the program drops them
                        request.Free()
            if number % 25 == 5:
                another = calls_on_another(draw, draw.choice(every)[0], sizes)
                if another != MPI.COMM_NULL and (turn > 0 or number % 250 != 5):
                    another.Free()
    every[-1][1].Free()
    for ours, _ in every:
        assert uses_memory(ours) == expected_to_share(ours)
        ours.Free()
    del ours, another, whole, made, request, every
    gc.collect()  # what is freed may be part of a circle
    assert mapped() == before
    grown = sorted(comm.allgather(least_kib[-1] - least_kib[-2]))
    assert number < MANY or grown[(comm.size - 1) // 2] < MOST_KIB, grown


@check
def ranks_that_cannot_share_send_messages(comm: MPI.Intracomm) -> None:
    broken = comm.size - 1
    for name in ("memfd_create", "open"):
        real = getattr(os, name)

        def fails(*words: Any, real: Any = real, **named: Any) -> Any:
            if comm.rank == broken:
                raise OSError("no more of that")
            return real(*words, **named)

        with replaced(os, **{name: fails}):
            ours, draw = shared(comm), random.Random(3)
            ours.Bcast(np.zeros(3))
        makes = broken == 0 if name == "memfd_create" else comm.size > 1
        assert uses_memory(ours) == (expected_to_share(comm) and not makes)
        for _ in range(10):
            compare(ours, comm, draw)
        ours.Free()
    with replaced(node_transport, COMPILED=None if comm.rank == broken else COMPILED):
        ours = shared(comm)
        ours.Bcast(np.zeros(3))
        assert not uses_memory(ours)
        ours.Free()


@check
def an_error_before_the_first_message_and_one_that_is_too_long(comm: MPI.Intracomm) -> None:
    ours = shared(comm)
    data = np.zeros(100)
    ours.Bcast(data)
    if comm.rank == comm.size - 1:
        with raises(TypeError):
            ours.Bcast("no buffer")
    ours.Bcast(np.full(100, 5.0) if comm.rank == 0 else data)
    assert comm.rank == 0 or (data == 5).all()
    counted = [MPI.INT.Create_contiguous(25).Commit(), MPI.INT]
    ours.Bcast([data.view("i4"), 2, counted[0]] if comm.rank else [data.view("i4"), 50, MPI.INT])
    counted[0].Free()
    ours.Free()


@check
def short_calls_keep_the_gil_unless_they_call_mpi(comm: MPI.Intracomm) -> None:
    """A library may call operators, which need the GIL, under the lock that it takes."""
    if COMPILED is None or comm.size == 1:
        return
    ours = shared(comm, {**FLAT, "allreduce": "recursive_doubling"})
    short, long = np.zeros(8), np.zeros(8192)
    cases: list[tuple[bool, Callable[[], object]]] = [
        (True, partial(ours.Bcast, short)),
        (True, partial(ours.Reduce, short, short.copy())),
        (False, partial(ours.Bcast, long)),
        (False, partial(ours.Allreduce, short, short.copy(), MPI.MAX)),  # it has no loop
    ]
    for quick, call in cases:
        call()
        comm.Barrier()
        before = COMPILED.quick_runs()
        for _ in range(8):
            call()
        # Who only sends waits for nobody.
        sends_only = comm.rank == (0 if call is cases[0][1] else comm.size - 1)
        assert COMPILED.quick_runs() - before == 8 or not (quick and sends_only)
        assert quick or COMPILED.quick_runs() == before
    ours.Free()


@check
def what_memory_costs_is_measured_and_raced(comm: MPI.Intracomm) -> None:
    """By probes on the same engine; where memory is impossible, all ranks are told."""
    world, task = describe(comm, "memory"), Task(Problem("broadcast", comm.size, 512))
    if comm.size == 1:
        return
    asked = {"COLLWISE_NODE": "memory"}
    with replaced(node_transport, COMPILED=None), environment(comm, asked):
        with raises(InvalidArgument, "through memory"):
            Session(comm, describe(comm))
        with raises(InvalidArgument, "through memory"):  # it was possible when it was described
            Session(comm, world._replace(transport="memory"))
    if COMPILED is None:
        return
    with Session(comm, world) as session:
        profile = session.measure(0.3, sizes=(8, 4096))
        assert session.private.transport is not None
        outcome = session.race(task, profile, 0.2)
    assert (profile.fingerprint.transport, profile.machine.kind) == ("memory", "memory")
    reached = [time.nbytes for time in profile.measurements.reading]
    assert reached in ([8], [8, 4096])  # on a busy machine there is no time for both
    assert profile.measurements.reading[0].readers == (comm.size - 1 if comm.size > 2 else 0)
    assert outcome.decisions
    messages = describe(comm, "messages").fingerprint()
    assert profile.fingerprint.differences(messages) == [
        "transport inside a node: 'memory' there, 'messages' here"
    ]


@check
def a_cache_line_goes_to_the_next_rank_and_back(comm: MPI.Intracomm) -> None:
    for nodes in (tuple(rank % 2 for rank in range(comm.size)), (0,) * comm.size):
        pairs = (comm.size - len(set(nodes))) * (COMPILED is not None)
        for _ in range(40):  # where cores are busy a rank may wait too long for another
            times_s = node_transport.line_times_s(comm, nodes)
            assert len(times_s) <= pairs
            assert all(1e-9 < time_s < 1 for time_s in times_s)
            if times_s:
                break
        assert bool(times_s) == bool(pairs) or describe(comm).oversubscribed
    if COMPILED is not None:  # nobody answers; too little memory
        assert not COMPILED.bounce(bytearray(128), True, 1, 2)
        assert not COMPILED.bounce(bytearray(64), True, 1, 2)


@check
def probes_use_one_buffer_as_programs_do(comm: MPI.Intracomm) -> None:
    """Each message from memory of its own measured the way from memory, not from caches."""
    if COMPILED is None or comm.size == 1:
        return
    prober = Prober(comm, 4096, (0,) * comm.size)
    prober.run([Probe(experiment, 4096, (1,) * 8) for experiment in (1, 2)])
    assert len(prober._memory) <= 2


@check
def it_is_said_why_there_is_no_memory(comm: MPI.Intracomm) -> None:
    alone = MPI.COMM_SELF, (0,)
    python = "rank 0 has the engine in Python"
    assert node_transport.why_no_memory(*alone).startswith("" if COMPILED is not None else python)
    assert COMPILED is None or not node_transport.why_no_memory(*alone)

    def fails(*_: Any) -> None:
        raise OSError("none is left")

    with replaced(os, ftruncate=fails):
        seen = "rank 0 cannot make the memory (none is left)"
        assert COMPILED is None or node_transport.why_no_memory(*alone) == seen


@check
def the_transport_is_chosen_by_a_word(comm: MPI.Intracomm) -> None:
    with raises(UnknownName, "memory"):
        cw.Comm(comm, transport="pigeons")
    for word, variable in (("messages", "memory"), *((None, one) for one in (*TRANSPORTS, ""))):
        with environment(comm, {"COLLWISE_NODE": variable}):
            ours = cw.Comm(comm.Dup(), profile=False, algorithms=FLAT, transport=word)
        ours.Bcast(np.zeros(3))
        asked = (word or variable) != "messages"
        assert uses_memory(ours) == (asked and expected_to_share(comm))
        ours.Free()
    with environment(comm, {"COLLWISE_NODE": ""}):  # then a profile that is named says it
        measured = assumed(describe(comm, "messages"))
        ours = cw.Comm(comm.Dup(), profile=measured, algorithms=FLAT)
        for named in (measured, assumed(describe(comm))):  # a rank alone may use either
            cw.Comm(MPI.COMM_SELF.Dup(), profile=named).Free()
    ours.Bcast(np.zeros(3))
    assert not uses_memory(ours)
    ours.Free()
