"""Methods of `Comm` with odd arguments: they end as mpi4py's own do, alike on all ranks.

`mpiexec -n 2 python -m tests.attack.comm_calls`.  ATTACK_CALLS: how many; a few if it is not set.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

import numpy as np
from mpi4py import MPI

import collwise as cw
from collwise.errors import CollwiseError
from tests.attack.odd_values import ODD
from tests.mpi.programs.alike import MACHINE
from tests.mpi.programs.checks import check, main

DEFAULT_CALLS = 150
ROOTED = ("Bcast", "Reduce")
COMBINING = ("Reduce", "Allreduce", "Reduce_scatter_block")
METHODS = tuple(
    name + form
    for name in ("Bcast", "Reduce", "Allreduce", "Allgather", "Allgatherv", "Reduce_scatter_block")
    for form in ("", "_init")
)


def buffers(size: int) -> tuple[Callable[[], Any], ...]:
    """Makers of buffers, right and odd; nothing that names more bytes than it has."""
    return (
        lambda: np.arange(4.0 * size),
        lambda: np.zeros(4),
        lambda: np.zeros(4 * size, "i"),
        lambda: [np.zeros(4 * size), MPI.DOUBLE],
        lambda: [np.zeros(99), 4, MPI.DOUBLE],
        lambda: [np.zeros(99), [4] * size, MPI.DOUBLE],
        lambda: [np.zeros(99), [4] * size],
        lambda: bytearray(8 * size),
        lambda: MPI.IN_PLACE,
        lambda: None,
        lambda: np.zeros((2, 2 * size), order="F"),
        lambda: np.zeros(0),
        lambda: [None, 0, MPI.INT],
        lambda: [None, [0] * size, MPI.INT],
        lambda: [np.zeros(99), 4.0, MPI.DOUBLE],
        lambda: [np.zeros(99), "4", MPI.DOUBLE],
        lambda: [np.zeros(99), -1, MPI.DOUBLE],
        lambda: [np.zeros(99), [4] * (size + 1), MPI.DOUBLE],
        lambda: [np.zeros(99), [4] * size, [0] * (size + 2), MPI.DOUBLE],
        lambda: [np.zeros(4), "no type"],
        lambda: [np.zeros(4), MPI.DATATYPE_NULL],
        lambda: [np.zeros(99), MPI.DOUBLE, 1, 2, 3, 4, 5],
        lambda: np.zeros(4 * size)[::2],
        lambda: bytes(8 * size),
        lambda: np.zeros(4, object),
        lambda: np.zeros(4, ">d"),
        lambda: np.array(["a"] * 4),
        lambda: np.zeros(4 * size, "datetime64[s]"),
    )


def writable(value: Any) -> bool:
    try:
        return not memoryview(value).readonly
    except (TypeError, ValueError, BufferError):
        return True


def call(comm: MPI.Intracomm, method: str, seed: int) -> str:
    """How a call ends: with nothing, or with which exception."""
    random = Random(seed)
    rooted = method.removesuffix("_init") in ROOTED
    makers = buffers(comm.size)
    arguments = [random.choice(makers)() for _ in range(1 if "Bcast" in method else 2)]
    if random.random() < 0.15:
        arguments[random.randrange(len(arguments))] = random.choice(ODD)
    if comm.size > 1 and not writable(arguments[0]):
        arguments[0] = np.zeros(4)  # to be refused on all ranks alike
    elif random.random() < 0.1:
        del arguments[random.randrange(len(arguments))]
    named: dict[str, Any] = {}
    if rooted and random.random() < 0.5:
        named["root"] = random.choice([0, comm.size - 1, comm.size, *ODD])
    if method.removesuffix("_init") in COMBINING and random.random() < 0.6:
        named["op"] = random.choice([MPI.MAX, MPI.MAXLOC, MPI.OP_NULL, MPI.BAND, *ODD])
    if random.random() < 0.05:
        named["no_such_argument"] = random.choice(ODD)
    try:
        request = getattr(comm, method)(*arguments, **named)
        if request is not None:
            request.Start()
            request.Wait()
            request.Free()
    except Exception as error:
        if isinstance(error, CollwiseError) and not (error.asked and error.seen and error.remedy):
            raise AssertionError(f"a sentence with a gap: {error}") from error
        return f"{type(error).__name__}: {error}"
    return ""


@check
def odd_buffers_end_as_mpi4pys(comm: MPI.Intracomm) -> None:
    calls = int(os.environ.get("ATTACK_CALLS", DEFAULT_CALLS))
    plain = comm.Dup()
    ours = cw.Comm(comm.Dup(), machine=MACHINE, effort="estimate")
    # What a reduce refuses on its root alone leaves the others with half of it.
    methods = [name for name in METHODS if comm.size == 1 or name not in ("Reduce", "Reduce_init")]
    problems = []
    ended = {True: 0, False: 0}
    for seed in range(calls):
        method = methods[seed % len(methods)]
        mine = call(ours, method, seed)
        ended[not mine] += 1
        if "its send buffer has" in mine:
            continue  # erroneous: MPICH may abort
        theirs = call(plain, method, seed)
        if bool(theirs) != bool(mine):
            problems.append(f"{seed} {method}: mpi4py {theirs or 'returns'}; ours {mine}")
    assert not problems, "\n".join(problems)
    assert calls < DEFAULT_CALLS or min(ended.values()) > calls // 20, ended
    total = np.zeros(1)
    ours.Allreduce(np.ones(1), total)
    assert total[0] == comm.size, "it still works"
    ours.Free()
    plain.Free()


@check
def odd_settings_are_refused(comm: MPI.Intracomm) -> None:
    """Of a communicator, and of `plan`: with a sentence, on all ranks."""
    ours = cw.Comm(comm.Dup(), machine=MACHINE, effort="estimate")
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
    for seed in range(int(os.environ.get("ATTACK_CALLS", DEFAULT_CALLS)) // 2):
        with suppress(CollwiseError):
            calls[seed % len(calls)](Random(seed))
    ours.Free()


if __name__ == "__main__":
    main()
