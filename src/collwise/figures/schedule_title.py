"""The title above the pictures of a schedule."""

from collwise.figures.style import plain
from collwise.schedule.problem import GATHERING, ROOTLESS, Problem
from collwise.system import formatting


def schedule_title(problem: Problem, algorithm: str = "", completion: str = "") -> str:
    """Two lines: the algorithm; and the problem, with the time when it is complete.

    algorithm: its name; the collective's where there is none.   completion: a time with its unit.
    """
    what = f"{formatting.size(problem.nbytes)}, root {problem.root}, "
    if problem.collective in GATHERING:
        sizes = {source.nbytes for source in problem.sources}
        each = f"{formatting.size(sizes.pop())} from each of " if len(sizes) == 1 else "from "
        what = f"{each}{formatting.count(len(problem.sources), 'source')}, "
    elif problem.collective in ROOTLESS:
        what = f"{formatting.size(problem.nbytes)}, "
    end = f", complete after {completion}" if completion else ""
    name = plain(algorithm or problem.collective)
    return f"{name}\n{what}{formatting.count(problem.ranks, 'rank')}{end}"
