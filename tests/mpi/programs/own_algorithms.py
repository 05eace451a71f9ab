"""Checks of the library's own algorithms: which run, what is restored, who keeps the default."""

import threading
from collections.abc import Mapping
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from mpi4py import MPI

import collwise as cw
from collwise.algorithms.registry import describe
from collwise.errors import InvalidArgument
from collwise.formats import openmpi_rules
from collwise.measure.race import CALLS, LIBRARY, form_of
from collwise.mpi.bench.race_harness import RaceHarness, race
from collwise.mpi.library import own_algorithms, switching
from collwise.mpi.library.fingerprints import combined
from collwise.mpi.library.own_algorithms import catalogue, worth_racing
from collwise.mpi.library.switching import OwnCalls, Switched
from collwise.mpi.library.tool_interface import variables
from collwise.mpi.runtime.private_communicator import PrivateCommunicator
from collwise.mpi.runtime.world import describe as describe_world
from collwise.profiles.records import FORMS, Form
from collwise.schedule.collectives import COLLECTIVES
from collwise.schedule.problem import Problem
from tests.mpi.programs.alike import Call, assumed, hint, perform, wrapped
from tests.mpi.programs.checks import check, environment, logged, raises, replaced
from tests.profiles.example import won_race

NBYTES = 512
OPEN_MPI = MPI.get_vendor()[0] == "Open MPI"
FIRST: Mapping[str, str] = {"linear": "(0 (1", "basic_linear": "(0 (1", "pairwise": "({0} ("}
"""How the expressions of algorithms whose names leave no choice begin, from 3 ranks on; {0} is the
next rank."""


def expressions(comm: MPI.Intracomm, method: str) -> tuple[str, ...]:
    """How a method combined, on this rank."""
    blocks = comm.size if method == "Reduce_scatter_block" else 1
    return combined(comm, method, NBYTES * blocks).by_rank[comm.rank]


def own(method: str, form: Form = "blocking") -> list[str]:
    return [f"library:{name}" for name in catalogue(method, form).algorithms]


def by_race(comm: MPI.Intracomm, collective: str, label: str, **about: Any) -> cw.Comm:
    """A communicator whose profile says that one of the library's algorithms won a race."""
    won = won_race(
        collective=collective, ranks=comm.size, algorithm=f"{collective}/{label}", **about
    )
    return cw.Comm(comm.Dup(), profile=assumed(describe_world(comm), won), record=True)


@check
def fingerprints_differ_and_others_keep_the_default(comm: MPI.Intracomm) -> None:
    """The compiled engine serves the second call of each."""
    for collective, method in (
        ("reduce", "Reduce"),
        ("allreduce", "Allreduce"),
        ("reduce_scatter_block", "Reduce_scatter_block"),
    ):
        usual, seen = expressions(comm, method), set[tuple[str, ...]]()
        for label in own(method):
            with wrapped(comm) as plain, wrapped(comm, algorithms={collective: label}) as ours:
                first = expressions(ours, method)
                for other in (comm, plain, ours.using(**{collective: "library"})):
                    assert expressions(other, method) == usual
                assert expressions(ours, method) == first, label
                begins = FIRST.get(label.removeprefix("library:"), "") if comm.size > 2 else ""
                begins = begins.format((comm.rank + 1) % comm.size)
                ends = method != "Reduce" or comm.rank == 0
                assert not ends or first[0].startswith(begins), (label, first)
                seen.add(first)
        least = 1 if method == "Reduce" and not OPEN_MPI else 3  # MPICH's are binomial here
        assert comm.size < 4 or comm.rank or len(seen) >= least, seen


@check
def every_algorithm_of_every_form_is_right(comm: MPI.Intracomm) -> None:
    with wrapped(comm) as ours:
        for collective in COLLECTIVES.values():
            for method, form in product(collective.methods, FORMS):
                call = Call(ours, method, 6, comm.size - 1)
                for label in own(method, form):
                    view = ours.using(**{collective.name: label})
                    for turn in range(2):
                        call.fill(turn)
                        call.run(view, form, starts=2)
        assert len(ours._dispatch.own._duplicates) <= switching.MOST_DUPLICATES


@check
def the_library_refuses_what_cannot_run(comm: MPI.Intracomm) -> None:
    """So the call looks at the variable that was written."""
    data, everything, calls = np.zeros(4), np.zeros((comm.size, 4)), OwnCalls(comm)
    if OPEN_MPI:
        chosen = variables()["coll_tuned_allgather_algorithm"]
        with logged() as lines:  # the library knows no such number
            assert calls._duplicate((*own_algorithms.where_made(), (chosen, 99))) is None
        assert len(lines) == (comm.rank == 0)
        made = calls._duplicate(
            (*own_algorithms.where_made(), (chosen, chosen.choices["two_proc"]))
        )
        assert made is not None
        if comm.size > 2:
            with raises(MPI.Exception):
                made.Allgather(data, everything)
        made.Free()
    elif comm.size & (comm.size - 1) and (writes := own_algorithms.refusing("recursive_doubling")):
        found = calls.find("Allgather", "blocking", "recursive_doubling", {}, local=False)
        assert isinstance(found, Switched)
        with raises(MPI.Exception):
            Switched(None, (*writes, *found.writes)).call(
                partial(MPI.Intracomm.Allgather, comm, data, everything)
            )
    comm.Allgather(data, everything)


def _variables_read() -> dict[str, int]:
    every = (
        algorithm.variable
        for form in FORMS
        for collective in COLLECTIVES.values()
        for method in collective.methods
        for algorithm in catalogue(method, form).algorithms.values()
    )
    return {one.name: one.read() for one in every}


@check
def what_the_library_lacks_its_default_serves(comm: MPI.Intracomm) -> None:
    data = np.zeros(4)
    for label in ("library:no_such", f"{own('Bcast')[0]}(colour=3)"):
        with logged() as lines, wrapped(comm, algorithms={"broadcast": label}) as ours:
            ours.Bcast(data)
            ours.Ibcast(data).Wait()
            assert comm.size == 1 or "the library's own: not" in ours.explain("broadcast", 32)
            assert len(lines) == (comm.rank == 0), lines
    for label in ("library:", "library:tree(k)", "library:tree(k=-1)"):
        with raises(InvalidArgument):
            cw.Comm(comm, profile=False, algorithms={"broadcast": label})
    nothing = OwnCalls(comm)
    empty = catalogue("Bcast", "blocking").find("no_such", 2)
    assert isinstance(empty, str)
    assert nothing.lacks([("Bcast", "blocking")], "no_such", {}) == empty
    with logged() as lines:  # in the form in which it won, that is
        by_race(comm, "broadcast", own("Bcast")[-1], form="nonblocking").Free()
        by_race(comm, "broadcast", own("Bcast")[-1], settings={"k": [2]}).Free()
    assert len(lines) == 2 * (comm.rank == 0), lines


@check
def hints_choose_them(comm: MPI.Intracomm) -> None:
    with wrapped(comm) as ours:
        usual, label = expressions(comm, "Allreduce"), own("Allreduce")[-1]
        with wrapped(comm, algorithms={"allreduce": label}) as by_hand:
            expected = expressions(by_hand, "Allreduce")
        hint(ours, f"allreduce={label}")
        assert expressions(ours, "Allreduce") == expected
        derived = ours.Dup()
        assert expressions(derived, "Allreduce") == expected
        assert expressions(comm, "Allreduce") == usual
        derived.Free()


@check
def variables_are_restored(comm: MPI.Intracomm) -> None:
    """After calls, errors and Free; and a value that the job wrote itself stays its own."""
    before, data = _variables_read(), np.zeros(4)
    label = own("Bcast")[-1]
    with wrapped(comm, algorithms={"broadcast": label}) as ours:
        for _ in range(3):
            ours.Bcast(data)
        assert _variables_read() == before
        found = ours._dispatch._own(
            "blocking", "Bcast", ours._decision.own_algorithms(comm.size)[0]
        )
        assert comm.size == 1 or isinstance(found, Switched)
        if isinstance(found, Switched):
            with raises(ZeroDivisionError):
                found.call(partial(lambda _: 1 // 0, comm))
        assert _variables_read() == before
        chosen = catalogue("Bcast", "blocking").algorithms
        first = next(iter(chosen.values()))
        first.variable.write(first.value)
        ours.Bcast(data)
        assert first.variable.read() == first.value
        first.variable.write(before[first.variable.name])
    assert _variables_read() == before


@check
def what_the_job_chose_itself_stays_its_default(comm: MPI.Intracomm) -> None:
    """Ours serve by another algorithm meanwhile; the job's choice is what counts as the default."""
    known = catalogue("Allreduce", "blocking").algorithms
    by_label: dict[str, tuple[str, ...]] = {}
    for label in own("Allreduce"):
        with wrapped(comm, algorithms={"allreduce": label}) as ours:
            seen = expressions(ours, "Allreduce")
            if comm.allreduce(seen not in by_label.values(), MPI.LAND):
                by_label[label] = seen
    if len(by_label) < 2:
        return
    jobs, ours_ = [*by_label][-2:]
    chosen = known[jobs.removeprefix("library:")]
    writes = (*own_algorithms.where_made(), (chosen.variable, chosen.value))
    before = [(variable, variable.read()) for variable, _ in writes]
    assert not switching._written(writes)
    job = comm.Dup()
    try:
        with wrapped(job, algorithms={"allreduce": ours_}) as ours:
            for one, label in ((job, jobs), (ours, ours_), (ours.using(allreduce="library"), jobs)):
                for _ in range(2):
                    assert expressions(one, "Allreduce") == by_label[label], (jobs, ours_)
                    assert [variable.read() for variable, _ in writes] == [v for _, v in writes]
    finally:
        assert not switching._written(before)
        job.Free()


@check
def a_race_is_run(comm: MPI.Intracomm) -> None:
    """Of all that the library has; and of what cannot be proved or run, there is no competitor."""
    if comm.size == 1:
        return
    private = PrivateCommunicator(comm)
    try:
        harness = RaceHarness(private, oversubscribed=True)
        for method, problem in (
            ("Bcast", Problem("broadcast", comm.size, 64)),
            ("Allreduce", Problem("allreduce", comm.size, 64, itemsize=8, order="same")),
        ):
            own = {
                describe(f"library:{name}", settings) + named.ending: (name, settings)
                for form, named in CALLS.items()
                for name, settings in worth_racing(method, comm.size, composed=False, form=form)
            }
            own["library:no_such"] = own["library:no_such (blocking)"] = ("no_such", {})
            more: Any = {"own": own, "forms": FORMS, "repetitions": 2}
            ran = race(harness, problem, {}, {}, budget_s=60.0, **more)
            raced = {label for label in ran.samples if label.startswith("library:")}
            assert raced <= own.keys()
            assert not any("no_such" in label for label in raced)
            for form, least in (("blocking", 3), ("nonblocking", 2), ("persistent", 2)):
                some = [label for label in raced if form_of(label) == form]
                assert len(some) >= least, ran.samples.keys()
        harness.own.free()
    finally:
        private.free()


@check
def a_composition_is_a_candidate_of_its_own(comm: MPI.Intracomm) -> None:
    """Several ranks on each of several nodes; MPICH says in words what each number means."""
    plain = worth_racing("Allreduce", comm.size, composed=False)
    both = worth_racing("Allreduce", comm.size, composed=True)
    assert all(settings.keys() <= {"k", "composition"} for _, settings in both)
    one = catalogue("Allreduce", "blocking").algorithms["recursive_doubling"]
    numbers = [s["composition"] for name, s in both if (name, {*s}) == (one.name, {"composition"})]
    words = [one.compositions[number] for number in numbers]
    assert len(both) == len(plain) * (len(words) or 1)
    assert words == [] if OPEN_MPI else ["Auto selection", "NM only composition"]
    assert ("k" in {key for _, settings in plain for key in settings}) == (
        comm.size > 4 and not OPEN_MPI
    )


@check
def what_won_a_race_of_requests_serves_these(comm: MPI.Intracomm) -> None:
    """Neither blocking calls nor requests of the other kind."""
    for chosen in FORMS[1:]:
        known = catalogue("Allreduce", chosen).algorithms
        if comm.size == 1 or not known:
            return
        label = f"library:{next(iter(known))}"
        ours = by_race(comm, "allreduce", label, form=chosen, nbytes=NBYTES)
        before = _variables_read()
        for form in FORMS:
            total = np.zeros(NBYTES // 8)
            for _ in range(2):
                perform(form, ours, "Allreduce", np.ones(NBYTES // 8), total, MPI.SUM, starts=2)
            assert (total == comm.size).all()
            told = ours.calls()[-1]
            served = f"allreduce/{label}" if form == chosen else LIBRARY
            assert (told.way, told.algorithm) == (form, served)
        assert _variables_read() == before
        ours.Free()


@check
def what_won_a_race_of_requests_serves_derived_communicators(comm: MPI.Intracomm) -> None:
    """After a blocking call, at which ranks may wait; until then they are told so."""
    known = catalogue("Bcast", "nonblocking").algorithms
    if comm.size == 1:
        return
    for algorithm in ("chain", *[f"library:{name}" for name in known][:1]):
        parent = by_race(comm, "broadcast", algorithm, form="nonblocking", nbytes=NBYTES)
        ours, data = parent.Dup(), np.full(NBYTES, comm.rank, "B")
        waiting = ours.explain("broadcast", NBYTES, form="nonblocking")
        assert ours.plan("broadcast", NBYTES, form="nonblocking") is None
        for served in (LIBRARY, f"broadcast/{algorithm}"):
            ours.Ibcast(data, comm.size - 1).Wait()
            assert (data == comm.size - 1).all()
            told = ours.calls()[-1]
            assert (told.way, told.algorithm) == ("nonblocking", served), (told, algorithm)
            assert served != LIBRARY or told.why.startswith("the library's own: not"), told.why
            ours.Bcast(data[:1])
        assert ours.explain("broadcast", NBYTES, form="nonblocking").startswith(served)
        if algorithm == "chain":
            assert waiting.startswith("the library's own: not broadcast/chain, for there is no")
            with environment(comm, {"COLLWISE_FALLBACK": "never"}):
                strict = cw.Comm(comm.Dup(), profile=parent._decision.profile)
            fresh = strict.Dup()
            with raises(InvalidArgument):
                fresh.Ibcast(data)
            for one in (fresh, strict):
                one.Free()
        for one in (ours, parent):
            one.Free()


@check
def what_won_a_race_serves(comm: MPI.Intracomm) -> None:
    if comm.size == 1:
        return
    label = own("Allreduce")[-1]
    usual = expressions(comm, "Allreduce")
    with wrapped(comm, algorithms={"allreduce": label}) as by_hand:
        expected = expressions(by_hand, "Allreduce")
    ours = by_race(comm, "allreduce", label, nbytes=NBYTES)
    for _ in range(3):
        assert expressions(ours, "Allreduce") == expected
    assert expressions(comm, "Allreduce") == usual
    (told,) = ours.calls()
    assert (told.algorithm, told.times) == (f"allreduce/{label}", 3)
    assert told.saved_s is not None
    why = ours.explain("allreduce", 512)
    assert why.startswith(f"allreduce/{label}: it won the race of 512 bytes"), why
    assert ours.explain("allreduce", 512, form="persistent").startswith("the library's own: ")
    total = np.zeros(64)
    ours.Iallreduce(np.ones(64), total).Wait()  # a race of blocking calls says nothing of it
    told = ours.calls()[-1]
    assert (told.way, told.algorithm) == ("nonblocking", LIBRARY)
    assert told.why.endswith(f"decides, and allreduce/{label} won one of blocking calls"), told.why
    assert (total == comm.size).all()
    ours.Free()


@check
def races_of_equal_contributions_are_of_allgather(comm: MPI.Intracomm) -> None:
    """Its algorithms are others than those of Allgatherv, which keeps the default."""
    if comm.size == 1:
        return
    label = own("Allgather")[0]
    about = {"nbytes": 16 * comm.size, "sources": comm.size, "method": "Allgather"}
    ours = by_race(comm, "allgatherv", label, **about)
    mine, every = np.full(2, comm.rank + 0.5), np.zeros(2 * comm.size)
    ours.Allgather(mine, every)
    assert (every == np.repeat(np.arange(comm.size) + 0.5, 2)).all()
    ours.Allgatherv(mine, every)
    counts = [4, 0, *[2] * (comm.size - 2)] if comm.size > 1 else [2]
    ours.Allgatherv(np.zeros(counts[comm.rank]), [every, counts])
    told = {call.method: call for call in ours.calls()}
    assert told["Allgather"].algorithm == f"allgatherv/{label}"
    for call in ours.calls():
        assert (call.algorithm == LIBRARY) == (call.method == "Allgatherv"), call
    ours.Free()
    private = PrivateCommunicator(comm)
    harness = RaceHarness(private, oversubscribed=True)
    problem = Problem.of("allgatherv", comm.size, [16] * comm.size, sources=range(comm.size))
    named: dict[str, tuple[str, dict[str, int]]] = {
        f"{label} (blocking)": (label.removeprefix("library:"), {})
    }
    ran = race(harness, problem, {}, {}, budget_s=60.0, own=named, repetitions=2)
    assert named.keys() <= ran.samples.keys()
    harness.own.free()
    private.free()


class Differing(Switched):
    """As an algorithm that leaves other bits on each rank."""

    def call(self, library: "partial[Any]") -> Any:
        comm, _, total, _ = library.args
        library()
        total[0] = comm.Get_rank()


WIDTH, COUNT = 64, 16
"""Bytes of a text that is an element, and elements of a vector."""


def padded(words: bytes) -> bytes:
    """A vector of one text."""
    return words.ljust(WIDTH, bytes(1)) * COUNT


def in_rank_order(ranks: int) -> bytes:
    return padded(b" ".join(b"%d" % rank for rank in range(ranks)))


def join(left: Any, right: Any, _: MPI.Datatype) -> None:
    """Texts, one after the other."""
    for start in range(0, len(left), WIDTH):
        part = slice(start, start + WIDTH)
        words = b" ".join(bytes(one[part]).strip(bytes(1)) for one in (left, right))
        right[part] = words.ljust(WIDTH, bytes(1))


@check
def operators_that_do_not_commute_keep_the_default(comm: MPI.Intracomm) -> None:
    """Whether an algorithm was chosen by hand or by a race; calls that commute come between."""
    text, served = MPI.BYTE.Create_contiguous(WIDTH).Commit(), 0
    for collective in COLLECTIVES.values():
        method = collective.methods[0]
        for label in own(method) if collective.combines else ():
            sent = padded(b"%d" % comm.rank) * collective.unit(comm.size, 1)
            raced = by_race(comm, collective.name, label, nbytes=len(sent))
            with wrapped(comm, algorithms={collective.name: label}) as by_hand:
                for ours, commute in product((by_hand, raced), (False, True, False)):
                    op, got = MPI.Op.Create(join, commute=commute), bytearray(WIDTH * COUNT)
                    arguments = [[sent, text], [got, COUNT, text], op, 0]
                    for form in FORMS:
                        got[:] = bytes(len(got))
                        given = arguments[: 3 + collective.rooted]
                        perform(form, ours, method, *given)
                        if not commute and collective.has_output(comm.rank, 0):
                            assert got == in_rank_order(comm.size), (label, form, got[:WIDTH])
                            served += 1
                    op.Free()
            raced.Free()
    assert served
    text.Free()


@check
def exported_algorithms_keep_the_order(comm: MPI.Intracomm) -> None:
    """Those of Open MPI's that are exported though operators may not commute, on 4 and 5 ranks."""
    if comm.size != 5 or not OPEN_MPI:
        return
    text, op = MPI.BYTE.Create_contiguous(WIDTH).Commit(), MPI.Op.Create(join, commute=False)
    for ranks in (4, 5):
        part = MPI.Intracomm(comm.Split(0 if comm.rank < ranks else MPI.UNDEFINED))
        if part == MPI.COMM_NULL:
            continue
        calls, right = OwnCalls(part), in_rank_order(ranks)
        for method, names in openmpi_rules.FORMAT.in_order.items():
            parts = ranks if method == "Reduce_scatter_block" else 1
            sent, got = padded(b"%d" % part.rank) * parts, bytearray(WIDTH * COUNT)
            given = [[sent, text], [got, COUNT, text], op, *[0] * (method == "Reduce")]
            for name in names:
                found = calls.find(method, "blocking", name, {}, local=False)
                assert isinstance(found, Switched), (method, name)
                found.call(partial(getattr(MPI.Intracomm, method), part, *given))
                has_none = method == "Reduce" and part.rank > 0
                assert has_none or got == right, (method, name)
                got[:] = bytes(len(got))
        calls.free()
        part.Free()
    op.Free()
    text.Free()


@check
def other_bits_on_other_ranks_are_seen(comm: MPI.Intracomm) -> None:
    calls = OwnCalls(comm)
    for label in own("Allreduce"):
        name = label.removeprefix("library:")
        found = calls.find("Allreduce", "blocking", name, {}, local=False)
        assert isinstance(found, Switched)
        assert found.alike("Allreduce", 64, comm)
        assert Differing(*found).alike("Allreduce", 64, comm) == (comm.size == 1)
        assert Differing(*found).alike("Bcast", 64, comm)
    calls.free()


@check
def a_call_waits_while_variables_are_switched(comm: MPI.Intracomm) -> None:
    """Not for ever; and where another thread has them, C leaves the call to Python."""
    data = np.zeros(4)
    with wrapped(comm, algorithms={"broadcast": own("Bcast")[0]}) as ours:
        for _ in range(2):
            ours.Bcast(data)
        if comm.size > 1 and not OPEN_MPI:
            for _ in range(2):
                with (
                    replaced(switching, LIMIT_S=0.01),
                    switching.alone(),
                    raises(InvalidArgument, match="another thread has had"),
                ):
                    ours.Bcast(data)
        ours.Bcast(data)


@check
def ranks_that_disagree_keep_the_default(comm: MPI.Intracomm) -> None:
    algorithms = {"broadcast": own("Bcast")[0]}
    known, last = own_algorithms.digest, comm.size - 1
    digest = known if comm.rank < last else lambda: "other variables"
    with (
        replaced(own_algorithms, digest=digest),
        logged(),
        wrapped(comm, algorithms=algorithms) as ours,
    ):
        ours.Bcast(np.zeros(4))
        refused = "ranks have different variables of the library" if comm.size > 1 else ""
        assert ours._dispatch.own.refused == refused
    with (
        environment(comm, {switching.SWITCH: "never"}),
        logged(),
        wrapped(comm, algorithms=algorithms) as ours,
    ):
        assert ours._dispatch.own.refused == f"rank 0: {switching.SWITCH}=never"
    wrong = f"{switching.SWITCH}=maybe: .* say always or never"
    with environment(comm, {switching.SWITCH: "maybe"}), raises(InvalidArgument, match=wrong):
        cw.Comm(comm, profile=False)
    of_last = {switching.SWITCH: "maybe"} if comm.rank == last else {}  # read before they switch
    with environment(MPI.COMM_SELF, of_last), raises(InvalidArgument, match=wrong):
        OwnCalls(comm).agree()


@check
def settings_that_the_library_has_not_are_refused(comm: MPI.Intracomm) -> None:
    """MPICH lists its compositions in words; a radix below 2 divides by zero in some libraries."""
    calls = OwnCalls(comm)
    for form, method in product(FORMS, ("Bcast", "Allreduce", "Allgather")):
        for name, algorithm in catalogue(method, form).algorithms.items():
            if isinstance(catalogue(method, form).find(name, comm.size), str):
                continue
            if "composition" in algorithm.parameters:
                refused = calls.why_not(method, form, name, {"composition": "99"})
                assert "there is no composition 99; it has 0, 1, 2" in refused
                for known in ("0", "1", "2"):
                    assert not calls.why_not(method, form, name, {"composition": known})
            if "k" in algorithm.parameters:
                refused = calls.why_not(method, form, name, {"k": "1"})
                assert "k is too small; give 2 or more" in refused
                assert not calls.why_not(method, form, name, {"k": "2"})


@check
def with_two_threads_nothing_of_the_process_is_switched(comm: MPI.Intracomm) -> None:
    """One thread calls on a communicator of ours, the other on a raw one, the same collective.

    With Open MPI a duplicate is switched, not the process, so both threads go on."""
    raw, told, go = comm.Dup(), np.zeros(4), threading.Event()

    def other() -> None:
        go.wait(60)
        for _ in range(200):
            raw.Allreduce(np.ones(4), told)

    thread = threading.Thread(target=other)
    thread.start()
    label = own("Allreduce")[-1]
    with logged(), wrapped(comm, algorithms={"allreduce": label}) as ours:
        assert OPEN_MPI or "threads" in str(ours._dispatch.own.refused)
        go.set()
        for _ in range(200):
            total = np.zeros(4)
            ours.Allreduce(np.ones(4), total)
            assert (total == comm.size).all()
        thread.join(60)
        assert (told == comm.size).all(), f"rank {comm.rank} waits for its other thread"
    raw.Free()
