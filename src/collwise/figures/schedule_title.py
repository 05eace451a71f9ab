"""The title above the pictures of a schedule."""

from collwise.figures.style import plain
from collwise.schedule.problem import Problem
from collwise.system import formatting


def schedule_title(problem: Problem, algorithm: str = "", completion: str = "") -> str:
    """Two lines: the algorithm; and the problem, with the time when it is complete.

    algorithm: its name; the collective's where there is none.   completion: a time with its unit.
    """
    parts = [formatting.size(problem.nbytes)]
    if problem.kind.has_sources:
        sizes = {source.nbytes for source in problem.sources}
        each = f"{formatting.size(sizes.pop())} from each of " if len(sizes) == 1 else "from "
        parts = [f"{each}{formatting.count(len(problem.sources), 'source')}"]
    elif problem.kind.rooted:
        parts.append(f"root {problem.root}")
    parts.append(formatting.count(problem.ranks, "rank"))
    if completion:
        parts.append(f"complete after {completion}")
    return f"{plain(algorithm or problem.collective)}\n{', '.join(parts)}"
