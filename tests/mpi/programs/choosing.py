"""Checks of algorithms chosen by hand, and of what is told of the calls, on real MPI."""

import gc
import sys
from collections import Counter
from functools import partial
from itertools import product
from typing import Any, cast

import numpy as np
from mpi4py import MPI

import collwise as cw
from collwise.comm.agreed_decision import FORMER, _say_renamed
from collwise.comm.decision import ALGORITHMS, FALLBACK, HINT
from collwise.comm.served import METHODS, NAMES
from collwise.errors import CollwiseError, InvalidArgument, UnknownName
from collwise.mpi.runtime.world import describe
from collwise.profiles.records import FORMS
from tests.mpi.programs.alike import MACHINE, Call, assumed, check_call, hint, run, works
from tests.mpi.programs.checks import check, environment, logged, raises
from tests.profiles.example import won_race

BY_SIZE = "binomial <= 400, chain_segmented(segment=100) <= 4k, library"
LABELS = {400: "broadcast/binomial", 401: "broadcast/chain_segmented(segment=100)", 4097: None}


def label(comm: cw.Comm, nbytes: int) -> str | None:
    plan = comm.plan("broadcast", nbytes)
    return None if plan is None else plan.choice.label


@check
def by_size_and_with_settings(comm: MPI.Intracomm) -> None:
    ours = cw.Comm(comm.Dup(), profile=False, algorithms={"broadcast": BY_SIZE})
    works(ours)
    for nbytes, expected in LABELS.items():
        assert label(ours, nbytes) == (expected if comm.size > 1 else None)
        data = np.full(nbytes, comm.rank, "u1")
        for _ in range(2):
            ours.Bcast(data, comm.size - 1)
        run(ours.Bcast_init(data, comm.size - 1))
        assert (data == comm.size - 1).all()
    assert comm.size == 1 or "chosen by hand" in ours.explain("broadcast", 401)
    if comm.size > 1:  # without a machine nothing says how to set it; the same on all ranks
        with raises(InvalidArgument, match="no profile"):
            cw.Comm(comm, algorithms={"broadcast": "postal_tree"}).Bcast(data)
    only = cw.Comm(comm.Dup(), machine=MACHINE, algorithms={"broadcast": "library<=4k"})
    assert label(only, 4096) is None
    assert "Bcast" not in only._served  # beyond 4k nothing says that a plan is better
    model = {"machine": MACHINE, "effort": "estimate", "algorithms": {"broadcast": "library<=4k"}}
    rest = cw.Comm(comm.Dup(), **model)  # type: ignore[arg-type]
    assert (label(rest, 4096), label(rest, 4097) is None) == (None, comm.size == 1)
    for one in (ours, only, rest):
        one.Free()


@check
def by_levels(comm: MPI.Intracomm) -> None:
    """What is made for levels serves where it is known which ranks share a node."""
    algorithms = dict.fromkeys(("broadcast", "reduce"), "multilevel(algorithms=binomial)")
    ours = cw.Comm(comm.Dup(), profile=False, algorithms=algorithms)
    works(ours)
    for collective in algorithms:
        assert ours.plan(collective, 64) is None
    assert comm.size == 1 or "give a placement" in ours.explain("broadcast", 64)
    if comm.size > 1:
        placement = cw.Placement.of([rank % 2 for rank in range(comm.size)])
        other = cw.Comm(comm.Dup(), profile=False, algorithms=algorithms, placement=placement)
        works(other)
        for collective in algorithms:
            plan = other.plan(collective, 64)
            assert plan is not None
            assert plan.schedule.problem.placement == placement
        other.Free()
    ours.Free()


@check
def pieces_that_cross_while_others_go_on(comm: MPI.Intracomm) -> None:
    """Ranks send early what they receive late: all receives are posted at once."""
    placement = cw.Placement.of([rank % 2 for rank in range(comm.size)])
    pieces = "multilane_pieces(across=recursive_doubling, gather=bruck, pieces=4, latencies=2 9)"
    settings: Any = {"placement": placement} if comm.size > 1 else {}
    ours = cw.Comm(comm.Dup(), profile=False, algorithms={"allreduce": pieces}, **settings)
    for count in (1, 3, 1000, 200_000):  # the last in messages that wait for their receivers
        check_call(ours, "Allreduce", count)
    plan = ours.plan("allreduce", 8000)
    assert (plan is None) == (comm.size == 1)
    ours.Free()


@check
def by_the_environment(comm: MPI.Intracomm) -> None:
    with environment(comm, {ALGORITHMS: f"broadcast={BY_SIZE}; allreduce=ring"}):
        ours = cw.Comm(comm.Dup(), profile=False, algorithms={"allreduce": "recursive_doubling"})
        with raises(UnknownName, match="did you mean broadcast/chain"):
            cw.Comm(comm, profile=False, algorithms={"broadcast": "chan"})
    works(ours)
    if comm.size > 1:
        assert [label(ours, nbytes) for nbytes in LABELS] == list(LABELS.values())
        plan = ours.plan("allreduce", 80)
        assert plan is not None
        assert plan.algorithm == "allreduce/recursive_doubling"  # what the program says wins
    ours.Free()


@check
def there_is_no_fallback(comm: MPI.Intracomm) -> None:
    def wrapped(value: str, former: str = "") -> cw.Comm:
        with environment(comm, {FALLBACK: value, FORMER: former}), logged():
            return cw.Comm(comm.Dup(), profile=False, algorithms={"broadcast": "chain"})

    ours, data, total = wrapped("never"), np.full(10, float(comm.rank)), np.zeros(10)
    ours.Bcast(data)
    run(ours.Bcast_init(data))
    ours.Allreduce(np.zeros(0), np.zeros(0))  # nothing is to be done
    alone: Any = ours.Split(comm.rank)
    alone.Allreduce(data, total)
    assert np.array_equal(data, total)
    alone.Free()
    for which in (ours, wrapped("", "never"), wrapped("never", "never")):
        for call in (which.Allreduce, which.Iallreduce, which.Allreduce_init):
            if comm.size > 1:
                with raises(InvalidArgument, match=f"{FALLBACK}=never demands: .*no profile"):
                    call(data, total)
        which.Free()
    with raises(InvalidArgument, match="say never, or nothing"):
        wrapped("always")
    with raises(InvalidArgument, match=f"{FALLBACK}=always: {FORMER}=never, .*otherwise"):
        wrapped("always", "never")


@check
def the_former_name_of_fallback_is_told_once(comm: MPI.Intracomm) -> None:
    """By whoever reads it: rank 0."""
    _say_renamed.cache_clear()
    with environment(MPI.COMM_SELF, {FORMER: "never"}), logged() as told:
        for _ in range(2):
            cw.Comm(comm.Dup(), profile=False).Free()
    assert told == [f"{FORMER} is called {FALLBACK} now: write that"] * (comm.rank == 0)


@check
def by_an_info_key(comm: MPI.Intracomm) -> None:
    info, other = (MPI.Info.Create({HINT: f"broadcast={b}"}) for b in (BY_SIZE, "chain"))
    wrong = MPI.Info.Create({HINT: "broadcast"})
    plain = cw.Comm(comm.Dup(), profile=False)
    assert label(plain, 400) is None
    begun, request = plain.Idup_with_info(info)
    request.Wait()
    group = comm.Get_group()
    made: list[Any] = [
        plain.Dup_with_info(info),
        begun,
        cw.Comm.Create_from_group(group, f"hint {comm.size}", info, profile=False),
    ]
    group.Free()
    works(plain)
    for one in made:
        works(one)
        if comm.size > 1:
            assert [label(one, nbytes) for nbytes in LABELS] == list(LABELS.values())
        kept = one.Bcast_init(np.zeros(10))
        one.Set_info(other)
        assert label(one, 401) == ("broadcast/chain" if comm.size > 1 else None)
        works(one)
        run(kept)  # requests stay as they were made
        heir = one.Dup()
        assert label(heir, 401) == label(one, 401)
        with raises(InvalidArgument, match=f"key {HINT}: 'broadcast' is no choice"):
            one.Set_info(wrong)
        works(one)
        for which in (heir, one):
            which.Free()
    for each in (info, other, wrong):
        each.Free()
    plain.Free()


@check
def for_one_call(comm: MPI.Intracomm) -> None:
    ours = cw.Comm(comm.Dup(), machine=MACHINE, algorithms={"allreduce": "ring"}, record=True)
    data = np.full(60, float(comm.rank))
    for algorithm in ("chain", "binomial", "chain"):
        for _ in range(3):
            data[:] = comm.rank
            ours.using(broadcast=algorithm).Bcast(data, comm.size - 1)
            assert (data == comm.size - 1).all()
            told = ours.last_call()
            assert told is not None
            expected = "library" if comm.size == 1 else f"broadcast/{algorithm}"
            assert (told.method, told.algorithm, told.times) == ("Bcast", expected, 1)
    view: Any = ours.using(broadcast="chain")
    assert view is ours.using(broadcast="chain")
    assert view == ours
    assert view._dispatch.duplicate is ours._dispatch.duplicate  # no other duplicate
    works(view)
    works(ours)
    assert label(ours, 480) is None
    with raises(UnknownName):
        ours.using(broadcast="chan")
    ours.Free()


@check
def one_rank_records(comm: MPI.Intracomm) -> None:
    """Nothing collective depends on a record."""
    ours = cw.Comm(comm.Dup(), profile=False, record=comm.rank == 0)
    works(ours)
    assert bool(ours.calls()) == (comm.rank == 0)
    ours.Free()
    won = won_race(form="nonblocking", ranks=comm.size, nbytes=80, algorithm="broadcast/chain")
    parent = cw.Comm(
        comm.Dup(), profile=assumed(describe(comm), won), record=comm.rank == comm.size - 1
    )
    ours = parent.Dup()
    works(ours)
    assert comm.size == 1 or ours.plan("broadcast", 80, form="nonblocking") is not None
    for one in (ours, parent):
        one.Free()


@check
def what_was_called(comm: MPI.Intracomm) -> None:
    ours = cw.Comm(comm.Dup(), machine=MACHINE, algorithms={"broadcast": "chain"}, record=True)
    assert ours.calls() == []
    assert ours.last_call() is None
    part: Any = ours.Split(comm.rank % 2, comm.rank)
    data, user = np.zeros(10), MPI.Op.Create(lambda a, b, t: None, commute=True)
    for _ in range(3):
        ours.Bcast(data)
        ours.Bcast([data, MPI.DOUBLE])
        ours.Allreduce(MPI.IN_PLACE, data)
    ours.Bcast(data.reshape(5, 2).view(np.int64))  # as many bytes
    part.Bcast(data)
    ours.Ibcast(data).Wait()
    ours.Iallreduce(MPI.IN_PLACE, data).Wait()
    for request in (ours.Bcast_init(data, root=0), ours.Allreduce_init(MPI.IN_PLACE, data)):
        run(request, starts=3)
    ours.Bcast(np.zeros(0))
    for _ in range(2):
        ours.Barrier()
        with raises(UnknownName):
            hint(ours, "broadcast=nonsense")  # changes nothing
    ours.Allreduce(MPI.IN_PLACE, data, op=user)
    ours.gather("text")
    with raises(TypeError):
        ours.Bcast(data, data, data, data)  # type: ignore[call-arg, arg-type]
    with raises((TypeError, KeyError)):
        ours.Bcast("text")
    seen, expected = Counter[Any](), Counter[Any]()
    for one in ours.calls():
        nbytes = one.asked and one.asked.problem.nbytes
        seen[one.method, one.way, one.ranks, nbytes] += one.times
    whole, some = comm.size, part.size
    for *key, times in (
        ("Bcast", "blocking", whole, 80, 7),
        ("Allreduce", "blocking", whole, 80, 4),
        ("Bcast", "blocking", some, 80, 1),
        ("Bcast", "nonblocking", whole, 80, 1),
        ("Allreduce", "nonblocking", whole, 80, 1),
        ("Bcast", "persistent", whole, 80, 3),
        ("Allreduce", "persistent", whole, 80, 3),
        ("Bcast", "blocking", whole, None, 1),
        ("gather", "blocking", whole, None, 1),
        ("Barrier", "blocking", whole, None, 2),
    ):
        expected[tuple(key)] += times
    assert seen == expected, (seen, expected)
    for one in ours.calls():
        assert (one.spent_s is None) == (one.way in ("nonblocking", "persistent"))
        assert one.spent_s is None or one.spent_s > 0
        planned = whole > 1 and one.asked is not None and one.method == "Bcast" and one.ranks > 1
        assert one.algorithm == ("broadcast/chain" if planned else "library")
    last = ours.last_call()
    assert last is not None
    assert (last.method, last.times, last.why) == ("gather", 1, "no plan is made for such calls")
    assert cw.Comm(comm, profile=False).calls() == []
    part.Free()
    ours.Free()
    user.Free()


TWO_SIZES = dict.fromkeys(("allreduce", "allgatherv"), "ring <= 400, library") | {
    "broadcast": "binomial <= 400, library",
    "reduce": "binomial <= 400, library",
    "reduce_scatter_block": "pairwise <= 400, library",
}


@check
def what_the_library_serves_is_remembered(comm: MPI.Intracomm) -> None:
    """All forms, for sizes with a plan and without one: again and again the same as mpi4py's."""
    ours = cw.Comm(comm.Dup(), profile=False, algorithms=TWO_SIZES)
    size, rank, last = comm.size, comm.rank, comm.size - 1
    for way, method, items in product(FORMS, METHODS, (2, 1000)):
        call = Call(ours, method, items, last)
        for turn in range(6):
            call.fill(turn)
            into: Any = call.result
            if method == "Allgatherv":
                starts = [items * r for r in range(size)]
                counts = [call.counts, np.array(call.counts), (call.counts, starts)][turn % 3]
                into = [into, counts, MPI.INT]
            given: dict[str, Any] = {"sendbuf": call.given, "recvbuf": into}
            if method == "Bcast":
                given = {"buf": into}
            elif turn % 2 and (method.startswith("All") or (method, rank) == ("Reduce", last)):
                given["sendbuf"] = MPI.IN_PLACE
                start = rank * items if method.startswith("Allgather") else 0
                call.result[start:][: len(call.given)] = call.given
            if "educe" in method:
                given["op"] = MPI.SUM
            if method in ("Bcast", "Reduce"):
                given["root"] = last
            make = getattr(ours, NAMES[way, method])
            request = make(**given) if turn % 3 == 0 else make(*given.values())
            if way == "persistent":
                request.Start()
            if way != "blocking":
                request.Wait()
            call.check()
    assert size == 1 or ours._dispatch.calls
    data = np.full(1000, rank)  # what was remembered does not outlive the choice
    hint(ours, "broadcast=chain")
    ours.Bcast(data, last)
    ours.Ibcast(data, last).Wait()
    assert label(ours, data.nbytes) == ("broadcast/chain" if size > 1 else None)
    with raises(TypeError):
        cast("Any", ours).Ibcast(data, 0, 0)
    request, references = ours.Ibcast(data, 0), sys.getrefcount(data)
    request.Wait()
    assert sys.getrefcount(data) <= references
    request = ours.Iallreduce(MPI.IN_PLACE, np.ones(100))  # which keeps the memory
    gc.collect()
    request.Wait()
    ours.Free()


@check
def counts_in_a_tuple_are_no_counts_by_rank(comm: MPI.Intracomm) -> None:
    """(1, 2) are one element of each rank, two apart; ranks may say the same in other ways."""
    if comm.size != 2:
        return
    ours = cw.Comm(comm.Dup(), profile=False, algorithms={"allgatherv": "ring <= 16, library"})
    for _ in range(3):
        every, mine = np.zeros(3), np.full(1 + comm.rank, float(comm.rank))
        ours.Allgatherv(mine, [every, [1, 2], MPI.DOUBLE])
        assert every.tolist() == [0, 1, 1]
    for _ in range(3):
        for counts in ((1, 2), ([1, 1], [0, 2])):
            every = np.zeros(3)
            if comm.rank:
                ours.Allgatherv(mine[:1], [every[:2], [1, 1], MPI.DOUBLE])
            else:
                ours.Allgatherv(mine[:1], [every, counts, MPI.DOUBLE])
            assert every.tolist() == [0, 1 * comm.rank, 1 - comm.rank]
    ours.Free()


@check
def schedules_are_run_by_hand(comm: MPI.Intracomm) -> None:
    ours, size, rank = cw.Comm(comm.Dup(), profile=False), comm.size, comm.rank
    chain = cw.ALGORITHMS["broadcast/chain"].schedule(size, 80, size - 1)
    ring = cw.ALGORITHMS["allreduce/ring"].schedule(size, 80, itemsize=8)
    bruck = cw.ALGORITHMS["allgatherv/bruck"].schedule(size, 8, sources=range(size))
    for _ in range(2):
        data, total = np.full(10, float(rank)), np.zeros(10)
        cw.run(chain, ours, data)
        assert (data == size - 1).all()
        cw.run(ring, ours, np.full(10, float(rank)), total, op=MPI.MAX)
        assert (total == size - 1).all()
        every = np.zeros(size)
        cw.run(bruck, ours, np.full(1, float(rank)), [every, [1] * size])
        assert np.array_equal(every, np.arange(size))
    other = cw.ALGORITHMS["broadcast/chain"].schedule(size + 1, 80)
    text: Any = "chain"
    plain: Any = comm
    none: Any = None
    odd: list[tuple[Any, str]] = [
        (partial(cw.run, other, ours, data), f"the communicator has {size}"),
        (partial(cw.run, chain, ours, np.zeros(3)), "a schedule for 80 bytes"),
        (partial(cw.run, chain, ours), "0 buffers for Bcast; give 1"),
        (partial(cw.run, ring, ours, data), "1 buffers for Allreduce; give 2"),
        (partial(cw.run, ring, ours, data, total, op=none), "op = None; give an MPI.Op"),
        (partial(cw.run, text, ours, data), "it is 'chain'; give a collwise.Schedule"),
        (partial(cw.run, chain, plain, data), "wrap the communicator in collwise.Comm"),
    ]
    for act, told in odd:
        with raises(CollwiseError) as refused:
            act()
        assert told in str(refused.value)
    works(ours)
    cw.run(chain, ours, data)
    ours.Free()
