"""Programs that run one after another on ranks which start once: that takes longer than most do."""

from collections.abc import Iterable
from pathlib import Path

from tests.mpi.launching import mpich

_END = "\f\n"
_IN_TURN = """
import runpy, sys
from mpi4py import MPI
for path in sys.argv[1:]:
    runpy.run_path(path)
    sys.stdout.flush()
    MPI.COMM_WORLD.Barrier()
    if MPI.COMM_WORLD.rank == 0:
        print("\\f", flush=True)
"""


def printed_in_turn(ranks: int, programs: Iterable[Path]) -> list[str]:
    """What each of these programs prints on so many ranks; none may fail."""
    ran = mpich().run(ranks, "-c", _IN_TURN, *map(str, programs))
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.split(_END)[:-1]
