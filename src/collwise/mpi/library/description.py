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
    """What `tables_inside` finds in MPICH's library file; nothing for another library."""
    place, function = _Place(), ctypes.CDLL(MPI.__file__).MPI_Bcast
    ctypes.CDLL(None).dladdr(ctypes.cast(function, ctypes.c_void_p), ctypes.byref(place))
    path = place.file if MPI.get_vendor()[0] == "MPICH" else b""
    return tables_inside(Path(path.decode()).read_bytes() if path else b"")


def tables_inside(library: bytes) -> tuple[list[str], list[str]]:
    """The JSON tables in the content of MPICH's library file, and words that they may have."""
    old, new = rb"(?<=algorithm=)MPIR_\w+", rb"(?<=\0)(?:MPIR_\w+_intra_\w+|local_node_size)"
    words = new if b'{"name=' in library else old
    patterns = rb'\{"(?:collective|name)=[^\0]+', words + rb"(?=\0)"
    tables, accepted = ([text.decode() for text in re.findall(one, library)] for one in patterns)
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
