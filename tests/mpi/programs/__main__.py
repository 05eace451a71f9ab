"""`python -m tests.mpi.programs [ROUND ...] [-CHECK ...] [NAME ...]`: the checks of these
programs, or of all, without those that a "-" stands before.

A round, such as 5+3, says how many ranks the parts of the world have that run them together; 4|5|8
says that each check runs on one of these numbers only.
One start serves several programs and numbers of ranks, since starting a rank takes longer than most
programs: it loads Python, NumPy and an MPI library.
"""

import sys
from importlib import import_module
from pathlib import Path

from tests.mpi.programs.checks import main

if __name__ == "__main__":
    numbers = [word for word in sys.argv[1:] if word[0].isdigit()]
    rounds = [[*map(int, word.split("+"))] for word in numbers if "|" not in word]
    turns = [[*map(int, word.split("|"))] for word in numbers if "|" in word]
    without = [word[1:] for word in sys.argv[1:] if word.startswith("-")]
    names = [word for word in sys.argv[1:] if word[0].isalpha()]
    every = sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py"))
    for name in names or every:
        import_module(f"tests.mpi.programs.{name}")
    main(rounds, turns, without)
