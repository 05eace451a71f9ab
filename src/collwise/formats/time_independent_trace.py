"""A time-independent trace, which SimGrid's `smpirun -replay` reads: one action on each line.

A rank posts all its receives, then sends in list order, waiting for what each message needs.
Sizes are in bytes; `compute` counts operations of a host of 1 Gflop/s, so they are nanoseconds.

Set to `smpi/ois:0:t0:0`, `smpi/or:0:0:0` and a latency of (λ − 1)·t0 from end to end, SimGrid is a
postal machine, but for receipts that collide: its ranks receive for free.
"""

from collections.abc import Iterator

from collwise.formats.export_rows import by_rank, rows_for_export
from collwise.formats.goal_writer import calc_ns
from collwise.model.machine import Machine
from collwise.schedule.program import Schedule


def time_independent_trace(schedule: Schedule, machine: Machine) -> Iterator[str]:
    """The actions of all ranks.   machine: says how long combining takes."""
    for rank, operations in enumerate(by_rank(rows_for_export(schedule, machine), schedule.ranks)):
        yield f"{rank} init"
        receives = {op.place: op for op in operations if op.kind == "recv"}
        for op in receives.values():
            yield f"{rank} irecv {op.peer} {op.tag} {op.nbytes}"
        for op in operations:
            if op.kind == "recv":
                continue
            for needed in op.needs:
                if (heard := receives.pop(needed, None)) is not None:
                    yield f"{rank} wait {heard.peer} {rank} {heard.tag}"
            if op.kind == "calc":
                yield f"{rank} compute {calc_ns(machine, op.nbytes)}"
            else:
                yield f"{rank} isend {op.peer} {op.tag} {op.nbytes}"
        yield f"{rank} waitall"
        yield f"{rank} finalize"
