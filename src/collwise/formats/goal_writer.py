"""Writes GOAL, the text that LogGOPSim's `txt2bin` reads [Hoefler2010].

A rank starts its sends and calcs in the order of its list (`irequires`), each after the operations
whose data it needs (`requires`).  It posts all receives at the start.  Sizes are in bytes, calcs in
nanoseconds.
"""

from collections.abc import Iterator

from collwise.formats.export_rows import by_rank
from collwise.model.machine import Machine
from collwise.schedule.program import Schedule


def goal(schedule: Schedule, machine: Machine) -> Iterator[str]:
    """Yield the lines of a schedule's GOAL program.   machine: says how long combining takes."""
    yield f"num_ranks {schedule.ranks}"
    for rank, operations in enumerate(by_rank(schedule, machine)):
        yield ""
        yield f"rank {rank} {{"
        before = None
        for op in operations:
            name = f"l{op.place}"
            if op.kind == "calc":
                yield f"{name}: calc {op.size}"
            else:
                way = "to" if op.kind == "send" else "from"
                yield f"{name}: {op.kind} {op.size}b {way} {op.peer} tag {op.tag}"
            yield from (f"{name} requires l{needed}" for needed in op.needs)
            if op.kind != "recv":
                if before is not None:
                    yield f"{name} irequires {before}"
                before = name
        yield "}"
