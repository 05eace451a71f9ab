"""Checks that the ranks of a communicator run together; each tells rank 0 what went wrong on it."""

import faulthandler
import json
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TypeAlias

from mpi4py import MPI

LIMIT_S = 120
Check: TypeAlias = Callable[[MPI.Intracomm], None]

_CHECKS: list[Check] = []


def check(function: Check) -> Check:
    """Register a check; its name, with spaces, is its title."""
    _CHECKS.append(function)
    return function


def main(rounds: Sequence[Sequence[int]] = ()) -> None:
    """Run the checks, in several rounds on parts of the world that work at the same time.

    rounds: of each, how many ranks its parts have.   Without, all ranks run the checks once.
    """
    world = MPI.COMM_WORLD
    for sizes in rounds or [[world.size]]:
        if world.size in sizes:
            _run(world)
        else:
            part = sum(world.rank >= end for end in accumulate(sizes))
            colour = part if part < len(sizes) else MPI.UNDEFINED
            comm = MPI.Intracomm(world.Split(colour, world.rank))
            if comm != MPI.COMM_NULL:
                _run(comm)
                comm.Free()
            others = world.Ibarrier()
            while not others.Test():  # asleep: the other part needs the processors
                time.sleep(0.005)
    faulthandler.cancel_dump_traceback_later()


def _run(comm: MPI.Intracomm) -> None:
    """A rank that hangs says which one it is, and where, and ends."""
    for function in _CHECKS:
        sys.stderr.flush()
        faulthandler.dump_traceback_later(LIMIT_S, exit=True)
        complaint = ""
        try:
            function(comm)
        except BaseException:
            complaint = f"rank {comm.rank} of {comm.size}: {traceback.format_exc()}"
            print(complaint, file=sys.stderr, flush=True)  # the others may wait for it for ever
        complaints = comm.gather(complaint, root=0)
        if complaints is not None:
            told = {
                "ranks": comm.size,
                "program": function.__module__.rpartition(".")[2],
                "name": function.__name__,
                "complaints": [c for c in complaints if c],
            }
            sys.stdout.write(f"check:{json.dumps(told)}\n")  # at once: another part may print, too
            sys.stdout.flush()
