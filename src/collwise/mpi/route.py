"""One rank's list as the executor walks it: what starts at once, what each receive sets free."""

from collections.abc import Sequence
from dataclasses import dataclass

from collwise.schedule.data import Operation, Recv, Schedule, Send
from collwise.schedule.dependencies import dependencies


@dataclass(frozen=True)
class Stage:
    """When the receives are complete (and those of earlier stages), the sends can start."""

    receives: tuple[int, ...]
    sends: tuple[int, ...]


@dataclass(frozen=True)
class Route:
    """Operations of one rank by place; receives are all posted at once, sends as their data comes.

    stages: the receives that sends wait for, in list order; none on a rank that forwards nothing.
    """

    operations: tuple[Operation, ...]
    first: tuple[int, ...]
    stages: tuple[Stage, ...]

    @property
    def forwards(self) -> bool:
        """Whether this rank has to act between start and completion."""
        return bool(self.stages)


def route(operations: Sequence[Operation]) -> Route:
    """Work out the order in which one rank's operations are started."""
    first = [place for place, op in enumerate(operations) if isinstance(op, Recv)]
    stages: list[Stage] = []
    awaited: set[int] = set()
    for place, waits in enumerate(dependencies(operations)):
        if not isinstance(operations[place], Send):
            continue
        missing = tuple(receive for receive in waits if receive not in awaited)
        awaited.update(missing)
        if missing:
            stages.append(Stage(missing, (place,)))
        elif stages:  # sends keep their order: one behind a waiting send waits with it
            stages[-1] = Stage(stages[-1].receives, (*stages[-1].sends, place))
        else:
            first.append(place)
    return Route(tuple(operations), tuple(first), tuple(stages))


def route_of(schedule: Schedule, rank: int) -> Route:
    """The route of one rank of a schedule."""
    return route(schedule.rank(rank))
