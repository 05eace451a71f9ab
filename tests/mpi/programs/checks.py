"""Checks that the ranks of a communicator run together; each tells rank 0 what went wrong on it."""

import faulthandler
import gc
import json
import logging
import os
import re
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import Any, Generic, TypeAlias, TypeVar

from mpi4py import MPI

from tests.mpi.turns import Turns, has_turn

Error = TypeVar("Error", bound=BaseException)

LIMIT_S = 120
Check: TypeAlias = Callable[[MPI.Intracomm], None]

_CHECKS: list[Check] = []


def check(function: Check) -> Check:
    """Register a check; its name, with spaces, is its title."""
    _CHECKS.append(function)
    return function


class Raised(Generic[Error]):
    value: Error


@contextmanager
def raises(
    kinds: type[Error] | tuple[type[Error], ...], match: str = ""
) -> Iterator[Raised[Error]]:
    """As Pytest has it; every rank would spend a third of its start on loading Pytest."""
    raised = Raised[Error]()
    try:
        yield raised
    except kinds as error:
        if not re.search(match, str(error)):
            raise AssertionError(f"{error!r} does not match {match!r}") from error
        raised.value = error
    else:
        raise AssertionError(f"nothing of {kinds} was raised")


@contextmanager
def replaced(owner: Any, **values: Any) -> Iterator[None]:
    """Attributes have other values meanwhile.  (`unittest.mock` takes long to load.)"""
    before = {name: getattr(owner, name) for name in values}
    for name, value in values.items():
        setattr(owner, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(owner, name, value)


@contextmanager
def environment(comm: MPI.Intracomm, variables: Mapping[str, str]) -> Iterator[None]:
    """Rank 0's environment has these variables meanwhile."""
    before = {name: os.environ[name] for name in variables if name in os.environ}
    if comm.rank == 0:
        os.environ |= variables
    try:
        yield
    finally:
        for name in variables:
            os.environ.pop(name, None)
        os.environ |= before


def drawn_number(cases: int) -> int:
    """How many cases are drawn: as many as DRAWN says where it is set."""
    return int(os.environ.get("DRAWN", cases))


def drawn(cases: int) -> Iterator[int]:
    """The numbers of drawn cases, each of which may take LIMIT_S.

    The watch is a new thread, of each of which MPICH 5.0 keeps 148 bytes: one a second is enough.
    """
    watched_since = -1.0
    for number in range(drawn_number(cases)):
        if time.monotonic() > watched_since + 1:
            faulthandler.dump_traceback_later(LIMIT_S, exit=True)
            watched_since = time.monotonic()
        yield number


@contextmanager
def logged() -> Iterator[list[str]]:
    """The warnings of the package meanwhile, which appear nowhere else."""
    lines: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    log = logging.getLogger("collwise")
    log.addHandler(handler)
    try:
        yield lines
    finally:
        log.removeHandler(handler)


def main(
    rounds: Sequence[Sequence[int]] = (), turns: Turns = (), without: Sequence[str] = ()
) -> None:
    """Run the checks, in several rounds on parts of the world that work at the same time.

    rounds: of each, how many ranks its parts have.   Without, all ranks run the checks once.
    turns: groups of numbers of ranks; of each, a check runs on one only.   without: the names of
    checks that are left out.
    """
    assert "pytest" not in sys.modules, "a program loads it: half of what a rank's start takes"
    _CHECKS[:] = [function for function in _CHECKS if function.__name__ not in without]
    world = MPI.COMM_WORLD
    for sizes in rounds or [[world.size]]:
        if world.size in sizes:
            _run(world, turns)
        else:
            part = sum(world.rank >= end for end in accumulate(sizes))
            colour = part if part < len(sizes) else MPI.UNDEFINED
            comm = MPI.Intracomm(world.Split(colour, world.rank))
            if comm != MPI.COMM_NULL:
                _run(comm, turns)
                comm.Free()
            others = world.Ibarrier()
            while not others.Test():  # asleep: the other part needs the processors
                time.sleep(0.005)


def _run(comm: MPI.Intracomm, turns: Turns) -> None:
    """A rank that hangs says which one it is, and where, and ends."""
    for function in (one for one in _CHECKS if has_turn(one.__name__, comm.size, turns)):
        gc.collect()
        gc.freeze()  # a check that collects what is lost, often many times, walks its own only
        sys.stderr.flush()
        faulthandler.dump_traceback_later(LIMIT_S, exit=True)
        complaint, before_s = "", time.process_time()
        try:
            function(comm)
        except BaseException:
            complaint = f"rank {comm.rank} of {comm.size}: {traceback.format_exc()}"
            print(complaint, file=sys.stderr, flush=True)  # the others may wait for it for ever
        told_by_rank = comm.gather((complaint, time.process_time() - before_s), root=0)
        faulthandler.cancel_dump_traceback_later()  # other parts may take longer than a check
        if told_by_rank is not None:
            told = {
                "ranks": comm.size,
                "program": function.__module__.rpartition(".")[2],
                "name": function.__name__,
                "complaints": [complaint for complaint, _ in told_by_rank if complaint],
                "cpu_s": sum(cpu_s for _, cpu_s in told_by_rank),
            }
            sys.stdout.write(f"check:{json.dumps(told)}\n")  # at once: another part may print, too
            sys.stdout.flush()
