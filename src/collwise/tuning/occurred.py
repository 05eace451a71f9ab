"""Tasks to race for a program: the calls that it made, from a file of `collwise run --json`."""

from pathlib import Path
from typing import Any

import msgspec

from collwise.errors import CollwiseError, InvalidArgument
from collwise.planner.choose import problem_for
from collwise.planner.operator_order import DTYPE, OP
from collwise.planner.race_lookup import REACH
from collwise.system.integers import ratio
from collwise.tuning.outcomes import Task
from collwise.tuning.race_records import read_document

FORMAT = "collwise calls"
"""The format of the document that `collwise run --json` writes."""
MAX_TASKS = 32
"""The largest number of tasks; the calls that took the most time become tasks."""


class _Call(msgspec.Struct):
    ranks: int
    times: int
    collective: str = ""
    nbytes: int = 0
    root: int = 0
    sources: tuple[tuple[int, int], ...] = ()
    op: str | None = None
    dtype: str | None = None
    spent_s: float | None = None


class _Summary(msgspec.Struct):
    ranks: int
    calls: tuple[_Call, ...]


def read_summary(path: Path) -> _Summary:
    """The calls in a file.  Raises InvalidArgument if the file is no summary."""
    remedy = "write it with collwise run --json FILE"
    summary: _Summary = read_document(path, {FORMAT: _Summary}, _asked(path), remedy)[1]
    return summary


def _asked(path: Path) -> str:
    return f"tune for the calls in {path}"


def tasks_of(path: Path, ranks: int) -> dict[Task, float]:
    """The tasks to race for a program, each with the seconds that rank 0 spent on its calls.

    Only calls on `ranks` ranks count.  Calls are one task if their sizes are so near that one race
    decides about all of them.  The calls on which rank 0 spent most time come first, then the most
    frequent.
    Raises InvalidArgument for a file that is no summary, and if there is nothing to race.
    """
    summary = read_summary(path)
    calls = [call for call in summary.calls if call.collective and call.ranks == ranks > 1]
    tasks: dict[Task, float] = {}
    for call in sorted(calls, key=lambda call: (-(call.spent_s or 0), -call.times)):
        if (task := _task(call)) is None:
            continue
        task = next((other for other in tasks if _near(task, other)), task)
        if task in tasks or len(tasks) < MAX_TASKS:
            tasks[task] = tasks.get(task, 0.0) + (call.spent_s or 0.0)
    if not tasks:
        others = sorted({call.ranks for call in summary.calls if call.collective} - {1, ranks})
        seen = f"it has no calls on {ranks} ranks that plans could serve"
        remedy = f"try -n {others[0]}" if others else "nothing is to be tuned for this program"
        raise InvalidArgument(_asked(path), seen, remedy)
    return tasks


def _task(call: _Call) -> Task | None:
    """The task to race for a call; None for a call that cannot be raced."""
    from collwise.tuning.session import check_raceable  # this module needs MPI

    about: dict[str, Any] = {"ranks": call.ranks, "nbytes": call.nbytes, "root": call.root}
    if call.sources:
        about["sources"] = [rank for rank, _ in call.sources]
        about["nbytes"] = max(nbytes for _, nbytes in call.sources)
    try:
        problem, reason = problem_for(call.collective, op=call.op, dtype=call.dtype, **about)
        task = Task(problem, call.op or OP, call.dtype or DTYPE, reason)
        check_raceable(task)
    except CollwiseError:
        return None
    return task


def _near(one: Task, other: Task) -> bool:
    """Whether a race of one task would decide the other task, with a margin in size."""
    a, b = one.problem, other.problem
    alike = (a.collective, len(a.sources)) == (b.collective, len(b.sources))
    return alike and ratio(a.nbytes, b.nbytes) ** 2 <= REACH
