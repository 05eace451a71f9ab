"""Which modules have doctests, and how the tests' processes start.

Doctests are collected from what imports without MPI and without side effects.
"""

import os
import sys

collect_ignore_glob = [
    "src/collwise/__main__.py",
    "src/collwise/comm/*",
    "src/collwise/cli/*",
    "src/collwise/mpi/*",
    "src/collwise/tuning/*",
    "tests/mpi/programs/*",
]

# The tests start hundreds of Python processes.  Where an environment forbids to keep bytecode, each
# would compile all that it imports: that took longer than what most of them do.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
