"""Methods of `Comm` with odd arguments: they end as mpi4py's own do, alike on all ranks."""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

from mpi4py import MPI

import collwise as cw
from collwise.comm.recording import Way
from collwise.errors import CollwiseError
from tests.attack.odd_values import ODD
from tests.mpi.programs.alike import ALGORITHMS, MACHINE, perform, works
from tests.mpi.programs.checks import check, drawn
from tests.mpi.programs.written import FORMS, TYPES, Case, cases


def arguments(case: Case, comm: MPI.Intracomm, random: Random) -> tuple[list[Any], dict[str, Any]]:
    """Of a call, some of them odd, left out or too many: by place, and by name."""
    given, _ = case.buffers(comm.rank, comm.size, 0)
    buffers = given[: 1 if case.method == "Bcast" else 2]
    if random.random() < 0.3:
        buffers[random.randrange(len(buffers))] = random.choice(ODD)
    elif random.random() < 0.1:
        del buffers[random.randrange(len(buffers))]
    named: dict[str, Any] = {}
    if case.method in ("Bcast", "Reduce") and random.random() < 0.5:
        named["root"] = random.choice([0, comm.size - 1, comm.size, *ODD])
    if "educe" in case.method and random.random() < 0.6:
        named["op"] = random.choice([MPI.MAX, MPI.MAXLOC, MPI.OP_NULL, MPI.BAND, *ODD])
    if random.random() < 0.05:
        named["no_such_argument"] = random.choice(ODD)
    return buffers, named


def fails_on_some_ranks(method: str, buffers: list[Any]) -> bool:
    """A broadcast of what cannot be written is refused on all ranks but the root."""
    try:
        return method == "Bcast" and memoryview(buffers[0]).readonly
    except (IndexError, TypeError, ValueError, BufferError):
        return False


def end(way: Way, comm: MPI.Intracomm, method: str, buffers: list[Any], named: Any) -> str:
    """How a call ends: with nothing, or with which exception."""
    try:
        perform(way, comm, method, *buffers, **named)
    except Exception as error:
        if isinstance(error, CollwiseError) and not (error.asked and error.seen and error.remedy):
            raise AssertionError(f"a sentence with a gap: {error}") from error
        return f"{type(error).__name__}: {error}"
    return ""


@check
def odd_arguments_end_as_mpi4pys(comm: MPI.Intracomm) -> None:
    plain = comm.Dup()
    ours = cw.Comm(comm.Dup(), machine=MACHINE, algorithms=ALGORITHMS[0])
    # What a reduce refuses on its root alone leaves the others with half of it.  Alone, the
    # library gathers what does not fit without asking, and MPICH may abort.
    left_out = {"Reduce"} if comm.size > 1 else {"Allgather", "Allgatherv"}
    possible = [case for case in cases() if case.legal() and case.method not in left_out]
    problems, ended = list[str](), Counter[bool]()
    for number in drawn(40):
        random = Random(1000 * comm.size + number)
        case, way = random.choice(possible), random.choice(FORMS)
        buffers, named = arguments(case, comm, random)
        if fails_on_some_ranks(case.method, buffers):
            continue
        mine = end(way, ours, case.method, buffers, named)
        ended[not mine] += 1
        if "its send buffer has" in mine:
            continue  # erroneous, as above
        theirs = end(way, plain, case.method, buffers, named)
        if bool(theirs) != bool(mine):
            problems.append(f"{number} {way} {case}: mpi4py {theirs or 'returns'}; ours {mine}")
    assert not problems, "\n".join(problems)
    assert min(ended[True], ended[False]) > ended.total() // 20, ended
    works(ours)
    while TYPES:
        TYPES.pop().Free()
    for one in (ours, plain):
        one.Free()


@check
def odd_settings_are_refused(comm: MPI.Intracomm) -> None:
    """Of a communicator, and of `plan`: with a sentence, on all ranks."""
    ours = cw.Comm(comm.Dup(), machine=MACHINE, algorithms=ALGORITHMS[0])
    calls: tuple[Callable[[Random], Any], ...] = (
        lambda random: ours.plan(random.choice(["broadcast", *ODD]), random.choice(ODD)),
        lambda random: ours.plan("broadcast", 64, random.choice(ODD)),
        lambda random: ours.plan("reduce", 64, op=random.choice(ODD), dtype=random.choice(ODD)),
        lambda random: cw.Comm(comm, effort=random.choice(ODD)),
        lambda random: cw.Comm(comm, order=random.choice(ODD)),
        lambda random: cw.Comm(comm, profile=random.choice(ODD)),
        lambda random: cw.Comm(comm, machine=random.choice(ODD)),
        lambda random: cw.Comm(comm, algorithms=random.choice(ODD)),
        lambda random: cw.Comm(comm, algorithms={"broadcast": random.choice(ODD)}),
    )
    for number in drawn(40):
        with suppress(CollwiseError):
            calls[number % len(calls)](Random(1000 * comm.size + number))
    ours.Free()
