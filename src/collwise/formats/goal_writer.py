"""GOAL, the text that LogGOPSim's `txt2bin` reads [Hoefler2010].

Sends and calcs of a rank start in the order of its list (`irequires`), and after what they need
(`requires`); receives are posted at once.  Sizes are in bytes, calcs in nanoseconds.
"""

from collections.abc import Iterator

from collwise.formats.export_rows import by_rank, rows_for_export
from collwise.model.machine import Machine
from collwise.schedule.program import Schedule

NANOSECONDS = 10**9


def goal(schedule: Schedule, machine: Machine) -> Iterator[str]:
    """The lines of a GOAL program.

    machine: says how long combining takes, in whole nanoseconds, the nearest ones.
    """
    yield f"num_ranks {schedule.ranks}"
    for rank, operations in enumerate(by_rank(rows_for_export(schedule, machine), schedule.ranks)):
        yield ""
        yield f"rank {rank} {{"
        before = None
        for op in operations:
            name = f"l{op.place}"
            if op.kind == "calc":
                yield f"{name}: calc {calc_ns(machine, op.nbytes)}"
            else:
                way = "to" if op.kind == "send" else "from"
                yield f"{name}: {op.kind} {op.nbytes}b {way} {op.peer} tag {op.tag}"
            for needed in op.needs:
                yield f"{name} requires l{needed}"
            if op.kind != "recv":
                if before is not None:
                    yield f"{name} irequires {before}"
                before = name
        yield "}"


def calc_ns(machine: Machine, nbytes: int) -> int:
    """Nanoseconds of combining so many bytes, rounded."""
    return round((machine.combine(nbytes) or 0) * NANOSECONDS)


def is_rounded(schedule: Schedule, machine: Machine) -> bool:
    """Whether some combine takes no whole number of nanoseconds."""
    rows = rows_for_export(schedule, machine)
    times = {machine.combine(n) or 0 for n in set(rows.nbytes[rows.combines].tolist())}
    return any(time * NANOSECONDS % 1 for time in times)
