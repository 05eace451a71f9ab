"""What can be played: a schedule, a machine, perhaps a network; else it is refused at once."""

from collwise.errors import InvalidArgument, shown
from collwise.model.machine import checked_machine
from collwise.model.topology.base import checked_topology
from collwise.schedule.program import Schedule


def check_simulable(asked: str, schedule: object, machine: object, topology: object = None) -> None:
    """Refuse what is no schedule, no machine, or no topology (None: no links).

    asked: what they are for.   Raises InvalidArgument.
    """
    if not isinstance(schedule, Schedule):
        seen, remedy = f"the schedule is {shown(schedule)}", "give a collwise.Schedule"
        raise InvalidArgument(asked, seen, f"{remedy}, such as plan.schedule")
    checked_machine(machine, asked)
    if topology is not None:
        checked_topology(topology, schedule.ranks, asked)
