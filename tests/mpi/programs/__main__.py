"""`python -m tests.mpi.programs [NAME ...]`: the checks of these programs, or of all, in one start.

Starting a rank takes longer than most programs: it loads Python, NumPy and an MPI library.
"""

import sys
from importlib import import_module
from pathlib import Path

from tests.mpi.programs.checks import main

if __name__ == "__main__":
    every = sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py"))
    for name in sys.argv[1:] or every:
        import_module(f"tests.mpi.programs.{name}")
    main()
