"""Writes time-independent traces, which SimGrid's `smpirun -replay` reads: an action on each line.

A rank posts all its receives, then sends in list order; before a send it waits for the data that
the message needs.  Sizes are in bytes.  `compute` counts operations of a host of 1 Gflop/s, each of
which takes a nanosecond.

With `smpi/ois:0:t0:0`, `smpi/or:0:0:0` and a latency of (λ − 1)·t0 from end to end, SimGrid is a
postal machine, except that receiving takes a rank no time, so that receipts never collide.
"""

from collections.abc import Iterator

from collwise.formats.export_rows import by_rank
from collwise.model.machine import Machine
from collwise.schedule.program import Schedule


def time_independent_trace(schedule: Schedule, machine: Machine) -> Iterator[str]:
    """Yield a line for each action of each rank.   machine: says how long combining takes."""
    for rank, operations in enumerate(by_rank(schedule, machine)):
        yield f"{rank} init"
        receives = {op.place: op for op in operations if op.kind == "recv"}
        for op in receives.values():
            yield f"{rank} irecv {op.peer} {op.tag} {op.size}"
        for op in operations:
            if op.kind == "recv":
                continue
            for needed in op.needs:
                if (heard := receives.pop(needed, None)) is not None:
                    yield f"{rank} wait {heard.peer} {rank} {heard.tag}"
            if op.kind == "calc":
                yield f"{rank} compute {op.size}"
            else:
                yield f"{rank} isend {op.peer} {op.tag} {op.size}"
        yield f"{rank} waitall"
        yield f"{rank} finalize"
