"""Prints what the installed library says about its algorithms: a line, "collwise:" and JSON.

    python -m collwise.mpi.library.description

It runs in its own process, since it initializes MPI.  `formats.selection_rules.Installed` reads it.
"""

import ctypes
import json
import re
from pathlib import Path

from mpi4py import MPI

from collwise.mpi.library.own_algorithms import catalogue
from collwise.mpi.runtime.world import library_line
from collwise.schedule.collectives import COLLECTIVES


class _Place(ctypes.Structure):
    """Where a function of a loaded library is (dladdr's Dl_info)."""

    _fields_ = [("file", ctypes.c_char_p), *[(f"unused{i}", ctypes.c_void_p) for i in range(3)]]


def _tables() -> tuple[list[str], list[str]]:
    """The JSON tables in MPICH's library file, and algorithms that they may name; else nothing."""
    place, function = _Place(), ctypes.CDLL(MPI.__file__).MPI_Bcast
    ctypes.CDLL(None).dladdr(ctypes.cast(function, ctypes.c_void_p), ctypes.byref(place))
    path = place.file if MPI.get_vendor()[0] == "MPICH" else b""
    inside = Path(path.decode()).read_bytes() if path else b""
    patterns = rb'\{"collective=[^\0]+', rb"(?<=algorithm=)MPIR_\w+(?=\0)"
    tables, accepted = ([text.decode() for text in re.findall(one, inside)] for one in patterns)
    return tables, accepted


def description() -> str:
    """In JSON, the library's name and version, blocking algorithms with settings, and tables."""
    algorithms = {
        method: {
            name: [one.value, {short: value.read() for short, value in one.parameters.items()}]
            for name, one in catalogue(method, "blocking").algorithms.items()
        }
        for collective in COLLECTIVES.values()
        for method in collective.methods
    }
    return json.dumps([library_line(), algorithms, *_tables()])


if __name__ == "__main__":
    print(f"\ncollwise:{description()}", flush=True)
