"""Checks that all ranks run together; each rank tells rank 0 what went wrong on it."""

import faulthandler
import json
import sys
import traceback
from collections.abc import Callable
from typing import TypeAlias

from mpi4py import MPI

LIMIT_S = 120
Check: TypeAlias = Callable[[MPI.Intracomm], None]

_CHECKS: list[Check] = []


def check(function: Check) -> Check:
    """Register a check; its name, with spaces, is its title."""
    _CHECKS.append(function)
    return function


def main() -> None:
    """Run the checks; a rank that hangs says which one it is, and where, and ends."""
    comm = MPI.COMM_WORLD
    for function in _CHECKS:
        sys.stderr.flush()
        faulthandler.dump_traceback_later(LIMIT_S, exit=True)
        complaint = ""
        try:
            function(comm)
        except BaseException:
            complaint = f"rank {comm.rank}: {traceback.format_exc()}"
            print(complaint, file=sys.stderr, flush=True)  # the others may wait for it for ever
        complaints = comm.gather(complaint, root=0)
        if complaints is not None:
            told = {
                "program": function.__module__.rpartition(".")[2],
                "name": function.__name__,
                "complaints": [c for c in complaints if c],
            }
            print("check:" + json.dumps(told), flush=True)
    faulthandler.cancel_dump_traceback_later()
