"""What stands above the pictures of a schedule."""

from collwise.figures.style import plain
from collwise.schedule.problem import Problem
from collwise.system import formatting


def title(problem: Problem, name: str = "", complete: str = "") -> str:
    """The algorithm; and below it the problem, and when it is complete.

    name: the algorithm's; the collective if it has none.   complete: a time with its unit.
    """
    what = f"{formatting.size(problem.nbytes)}, root {problem.root}, "
    if problem.kind.has_sources:
        sizes = {source.nbytes for source in problem.sources}
        each = f"{formatting.size(sizes.pop())} from each of " if len(sizes) == 1 else "from "
        what = f"{each}{formatting.count(len(problem.sources), 'source')}, "
    elif not problem.kind.rooted:
        what = f"{formatting.size(problem.nbytes)}, "
    text = f"{plain(name or problem.collective)}\n{what}{formatting.count(problem.ranks, 'rank')}"
    return f"{text}, complete after {complete}" if complete else text
