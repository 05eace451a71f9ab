"""Methods of `Comm` with odd arguments: they end as mpi4py's own do, alike on all ranks.

ATTACK_CALLS: how many calls; a few if it is not set.
"""

import os
from collections.abc import Callable
from copy import copy
from random import Random
from typing import Any

import numpy as np
from mpi4py import MPI

import collwise as cw
from collwise.errors import CollwiseError
from tests.attack.odd_values import ODD
from tests.mpi.programs.checks import check, main
from tests.mpi.programs.contributions import MACHINE

FEW = 150
ROOTED = ("Bcast", "Reduce")
COMBINING = ("Reduce", "Allreduce", "Reduce_scatter_block")
METHODS = tuple(
    name + form
    for name in ("Bcast", "Reduce", "Allreduce", "Allgather", "Allgatherv", "Reduce_scatter_block")
    for form in ("", "_init")
)


def buffers(size: int) -> tuple[Callable[[], Any], ...]:
    """Makers of buffers, right and odd; nothing that names more bytes than it has."""
    right = (
        lambda: np.arange(4.0 * size),
        lambda: np.zeros(4),
        lambda: np.zeros(4 * size, "i"),
        lambda: [np.zeros(4 * size), MPI.DOUBLE],
        lambda: [np.zeros(4 * size), 4, MPI.DOUBLE],
        lambda: [np.zeros(4 * size), [4] * size, MPI.DOUBLE],
        lambda: [np.zeros(4 * size), [4] * size],
        lambda: bytearray(8 * size),
        lambda: MPI.IN_PLACE,
        lambda: None,
        lambda: np.zeros((2, 2 * size), order="F"),
        lambda: np.zeros(0),
        lambda: [None, 0, MPI.INT],
        lambda: [np.zeros(4 * size), 4.0, MPI.DOUBLE],
        lambda: [np.zeros(4 * size), "4", MPI.DOUBLE],
        lambda: [np.zeros(4 * size), -1, MPI.DOUBLE],
        lambda: [np.zeros(4 * size), [4] * (size + 1), MPI.DOUBLE],
        lambda: [np.zeros(4 * size), [4] * size, [0] * (size + 2), MPI.DOUBLE],
        lambda: [np.zeros(4), "no type"],
        lambda: [np.zeros(4), MPI.DATATYPE_NULL],
        lambda: [np.zeros(4 * size), MPI.DOUBLE, 1, 2, 3, 4, 5],
        lambda: np.zeros(4 * size)[::2],
        lambda: bytes(8 * size),
        lambda: np.zeros(4, object),
        lambda: np.zeros(4, ">d"),
        lambda: np.array(["a"] * 4),
        lambda: np.zeros(4 * size, "datetime64[s]"),
    )
    return right


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
    if rooted and comm.size > 1:  # what only the root refuses leaves the others waiting for it
        if arguments[0] is None or arguments[0] is MPI.IN_PLACE or not writable(arguments[0]):
            arguments[0] = np.zeros(4)
        arguments[1:] = [copy(argument) for argument in arguments[:1] * (len(arguments) - 1)]
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
        if isinstance(error, CollwiseError):
            assert error.asked and error.seen and error.remedy, str(error)  # noqa: PT018
        return f"{type(error).__name__}: {error}"
    return ""


@check
def odd_buffers_end_as_mpi4pys(comm: MPI.Intracomm) -> None:
    calls = int(os.environ.get("ATTACK_CALLS", FEW))
    plain = comm.Dup()
    ours = cw.Comm(comm.Dup(), machine=MACHINE, effort="estimate")
    problems = []
    ended = {True: 0, False: 0}
    for seed in range(calls):
        method = METHODS[seed % len(METHODS)]
        if os.environ.get("ATTACK_LOUD"): print(comm.rank, seed, method, file=__import__("sys").stderr, flush=True)
        theirs, mine = call(plain, method, seed), call(ours, method, seed)
        ended[not theirs] += 1
        if bool(theirs) != bool(mine):
            problems.append(f"{seed} {method}: mpi4py {theirs or 'returns'}; ours {mine}")
    assert not problems, "\n".join(problems)
    assert calls < FEW or min(ended.values()) > calls // 20, ended
    total = np.zeros(1)
    ours.Allreduce(np.ones(1), total)
    assert total[0] == comm.size, "it still works"
    ours.Free()
    plain.Free()


@check
def odd_settings_are_refused(comm: MPI.Intracomm) -> None:
    """Of a communicator, and of `plan`: with a sentence, on all ranks."""
    ours = cw.Comm(comm.Dup(), machine=MACHINE, effort="estimate")
    for seed in range(int(os.environ.get("ATTACK_CALLS", FEW)) // 3):
        random = Random(seed)
        makers: list[Callable[[], Any]] = [
            lambda: ours.plan(random.choice(["broadcast", "reduce", *ODD]), random.choice(ODD)),
            lambda: ours.plan("broadcast", 64, random.choice(ODD)),
        ]
        for name in ("algorithms", "effort", "order", "profile", "machine"):
            settings = {name: random.choice(ODD)}
            makers.append(lambda settings=settings: cw.Comm(comm, **settings))  # type: ignore[misc]
        try:
            random.choice(makers)()
        except CollwiseError as error:
            assert error.asked and error.seen and error.remedy, str(error)  # noqa: PT018
    ours.Free()


if __name__ == "__main__":
    main()
