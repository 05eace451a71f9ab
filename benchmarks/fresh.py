"""Programs timed in fresh processes, so that nothing is cached."""

import subprocess
import sys


def ask(program: str, *arguments: object, runs: int = 3) -> list[float]:
    """The numbers that a program prints, seconds first: of the run with the median seconds.

    arguments: the program's, as text.   runs: how many, an odd number.
    """
    found = []
    for _ in range(runs):
        command = [sys.executable, "-c", program, *map(str, arguments)]
        ran = subprocess.run(command, capture_output=True, text=True, check=True)
        found.append([float(x) for x in ran.stdout.split()])
    return sorted(found)[runs // 2]
