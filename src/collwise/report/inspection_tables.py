"""What the MPI library was seen to do: a table, a JSON document, and its trees beside ours.

Drawing loads Matplotlib, which takes seconds.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from collwise.model.machine import Machine
from collwise.planner.choose import plan_for
from collwise.report.schedule_files import check_drawable, unit_of
from collwise.report.tables import Saved, Table
from collwise.schedule.operations import Block, Operation, Recv, Send
from collwise.schedule.problem import Problem
from collwise.schedule.program import Schedule, Written
from collwise.simulator import simulate
from collwise.system import formatting
from collwise.tuning.inspection import Inspection

INSPECTION, VERSION = "collwise inspection", 1


def inspection_table(inspection: Inspection) -> Table:
    """A table with a row for each range of sizes in which the library does the same."""
    rows = [
        {
            "collective": one.collective,
            "operator": one.operator or "-",
            "from": formatting.size(one.first),
            "to": formatting.size(one.last),
            "shape": one.seen.shape,
            "tree, expression": one.seen.example or "-",
            "ranks": _agreement(one.seen.ranks_agree),
            "elements": _agreement(one.seen.elements_agree),
        }
        for one in inspection.stretches
    ]
    title = (
        f"{inspection.library} on {formatting.count(inspection.ranks, 'rank')}, seen from outside"
    )
    return Table(title, rows)


def _agreement(agree: bool | None) -> str:
    return "-" if agree is None else "agree" if agree else "differ"


def inspection_document(inspection: Inspection) -> dict[str, Any]:
    """The inspection as JSON; sizes in bytes."""
    header = {"format": INSPECTION, "version": VERSION}
    stretches = [{**one._asdict(), **one.seen._asdict()} for one in inspection.stretches]
    for one in stretches:
        del one["seen"]
    return {**header, **inspection._asdict(), "stretches": stretches}


def draw_trees(inspection: Inspection, machine: Machine, path: Path) -> Saved:
    """Draw each distinct broadcast tree of the library, and the tree that we would plan instead.

    path: the file of the first tree.  "-BYTES" is added for later trees, then "-ours" for ours.
    Raises InvalidArgument for too many ranks or messages to draw.
    """
    from collwise.figures.style import save
    from collwise.figures.tree_diagram import tree_diagram

    trees = {one.seen.parents: one.first for one in reversed(inspection.stretches)}
    files, lines = list[str](), list[str]()
    for parents, nbytes in sorted(trees.items(), key=lambda tree: tree[1]):
        if len(parents) < 2:
            continue
        problem = Problem("broadcast", len(parents), nbytes)
        name = f"{inspection.library}, as seen"
        seen = Schedule(problem, Written(_operations(parents, nbytes)), name)
        ours = plan_for(problem, machine).schedule
        stem = f"{path.stem}-{nbytes}" if files else path.stem
        for schedule, ending in ((seen, ""), (ours, "-ours")):
            check_drawable(schedule.ranks, schedule.about_messages())
            trace = simulate(schedule, machine)
            figure = tree_diagram(trace.timing, schedule, unit_of(trace))
            files.append(str(save(figure, path.with_stem(stem + ending))))
            lines.append(f"picture  {files[-1]}: {schedule.algorithm}, {formatting.size(nbytes)}")
    return Saved(lines or ["picture  none: no tree was seen"], {"pictures": files})


def _operations(parents: Sequence[int | None], nbytes: int) -> tuple[tuple[Operation, ...], ...]:
    """Each rank's operations: a receive except at the root, then sends, largest subtrees first."""
    ranks, blocks = range(len(parents)), (Block(0, 0, nbytes),)
    children = [[child for child in ranks if parents[child] == rank] for rank in ranks]

    def below(rank: int) -> int:
        return 1 + sum(map(below, children[rank]))

    return tuple(
        (
            *(Recv(parent, blocks) for parent in parents[rank : rank + 1] if parent is not None),
            *(Send(child, blocks) for child in sorted(children[rank], key=below, reverse=True)),
        )
        for rank in ranks
    )
