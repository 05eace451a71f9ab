"""More than 2 GiB in one call, where there is memory for it."""

from itertools import product
from pathlib import Path

import pytest

from tests.mpi.launching import Library

pytestmark = [pytest.mark.mpi, pytest.mark.exhaustive]

NEEDED = 16 << 30
"""Bytes of memory: two ranks hold some objects three times."""
LARGE_S = 600
CUT = "chain_segmented(segment=4M)"
PROGRAM = """
import sys
import numpy as np
from mpi4py import MPI
import collwise as cw

what, algorithm = sys.argv[1:]
cut = {"broadcast": algorithm, "allgatherv": f"as_broadcast(algorithm={algorithm})"}
named = cut if algorithm else None
machine = cw.Machine.hockney(alpha_s=1e-6, beta_s=1e-10) if algorithm else None
comm = cw.Comm(MPI.COMM_WORLD, profile=False, machine=machine, algorithms=named)
nbytes, first = 2**31 + 8, comm.rank == 0
if what == "Bcast":
    x = np.full(nbytes, 7 if first else 0, np.uint8)
    x[[0, 2**31 - 1, -1]] += np.array([1, 2, 3], np.uint8) * first
    comm.Bcast(x, 0)
    assert (x[0], x[1], x[2**31 - 1], x[2**31], x[-1]) == (8, 7, 9, 7, 10)
elif what == "bcast":
    x = comm.bcast(bytes(nbytes - 1) + b"e" if first else None, 0)
    assert (len(x), x[:1], x[-1:]) == (nbytes, bytes(1), b"e")
else:
    x = comm.allgather(np.full(nbytes if first else 1, 5, np.uint8))
    assert [len(one) for one in x] == [nbytes] + [1] * (comm.size - 1)
    assert x[0][-1] == 5
"""


@pytest.mark.parametrize(
    ("mpi", "what", "algorithm"),
    [
        ("mpich", "Bcast", ""),
        ("mpich", "Bcast", "binomial"),
        ("mpich", "bcast", ""),
        ("mpich", "allgather", ""),
        *product(["openmpi"], ["Bcast", "bcast", "allgather"], ["", CUT]),
    ],
    indirect=["mpi"],
)
def test_beyond_two_gibibytes(mpi: Library, what: str, algorithm: str) -> None:
    """Open MPI 5 counts in C integers: it takes plans in pieces, and refuses the rest at once."""
    needs_memory()
    ran = mpi.run(2, "-c", PROGRAM, what, algorithm, limit_s=LARGE_S)
    if mpi.name == "openmpi" and not algorithm:
        assert ran.returncode
        assert "mpi4py.MPI.Exception: MPI_ERR_ARG" in ran.stderr
    else:
        assert ran.returncode == 0, ran.stdout + ran.stderr


def needs_memory() -> None:
    memory = Path("/proc/meminfo").read_text(encoding="ascii").split()
    if int(memory[memory.index("MemAvailable:") + 1]) << 10 < NEEDED:
        pytest.skip("there is not enough memory")
