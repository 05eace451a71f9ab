"""Prints what the installed library says about its algorithms, as one line of JSON.

    python -m collwise.mpi.library.description

It is a process of its own, since it starts MPI.  `formats.selection_rules.Installed` reads it.
"""

import ctypes
import json
import re
from pathlib import Path

from mpi4py import MPI

from collwise.mpi.library.own_algorithms import described
from collwise.mpi.runtime.world import library_line
from collwise.schedule.collectives import COLLECTIVES


class _Place(ctypes.Structure):
    """Where a function of a loaded library is (dladdr's Dl_info)."""

    _fields_ = [("file", ctypes.c_char_p), *[(f"unused{i}", ctypes.c_void_p) for i in range(3)]]


def description() -> str:
    """The library's name and version, its algorithms, and the tables inside its file."""
    place, function = _Place(), ctypes.CDLL(MPI.__file__).MPI_Bcast
    ctypes.CDLL(None).dladdr(ctypes.cast(function, ctypes.c_void_p), ctypes.byref(place))
    path = place.file
    inside = Path(path.decode()).read_bytes() if path and MPI.get_vendor()[0] == "MPICH" else b""
    tables = re.findall(rb'\{"collective=[^\0]+', inside)
    accepted = set(re.findall(rb"algorithm=(MPIR_\w+)\0", inside))
    methods = (method for collective in COLLECTIVES.values() for method in collective.methods)
    said = {
        "library": library_line(),
        "algorithms": {method: described(method) for method in methods},
        "tables": [text.decode() for text in tables],
        "accepted": [name.decode() for name in sorted(accepted)],
    }
    return json.dumps(said)


if __name__ == "__main__":
    print(f"\ncollwise:{description()}", flush=True)
