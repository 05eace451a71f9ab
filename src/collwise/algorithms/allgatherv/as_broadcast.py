"""Allgathervs that broadcast each contribution by a broadcast algorithm, segmented or not.

With one source an allgatherv is a broadcast, so plans try all broadcast algorithms.  Several
sources broadcast one after another, without merging messages; plans do not try that.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from collwise.algorithms.levels.composition import register_multilevel
from collwise.algorithms.parts import one_part, part, tried_labels
from collwise.algorithms.registry import Algorithm, Settings, algorithms_for, register
from collwise.model.machine import Machine
from collwise.schedule.combinators import Then
from collwise.schedule.operations import Operation
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program, Schedule
from collwise.schedule.rows import Rows


@dataclass(frozen=True)
class FromSource(Program):
    """The broadcast of one source as a program over actual ranks, not renumbered from its root.

    schedule: the schedule of the broadcast.
    """

    schedule: Schedule

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        return list(self.schedule.rank(rank))

    def rows(self, *, combines: bool) -> Rows:  # noqa: D102
        return self.schedule.rows(combines=combines)


def _broadcasts(problem: Problem) -> list[Problem]:
    return [
        Problem("broadcast", problem.ranks, nbytes, rank, placement=problem.placement)
        for rank, nbytes in problem.sources
    ]


def _build(problem: Problem, settings: Settings) -> Program:
    algorithm = part(settings["algorithm"], "broadcast", levels=True)
    programs = [
        FromSource(Schedule(broadcast, algorithm.build(broadcast)))
        for broadcast in _broadcasts(problem)
    ]
    return programs[0] if len(programs) == 1 else Then(tuple(programs))


def _choices(
    among: Callable[[Algorithm], bool],
) -> Callable[[Problem, Machine], Iterable[Settings]]:
    def choices(problem: Problem, machine: Machine) -> Iterable[Settings]:
        if len(problem.sources) != 1:
            return []
        labels = tried_labels(
            filter(among, algorithms_for("broadcast")), _broadcasts(problem)[0], machine
        )
        return [{"algorithm": label} for label in labels]

    return choices


register(
    Algorithm(
        name="allgatherv/as_broadcast",
        summary="each source broadcasts its data, by any algorithm for broadcasts",
        source=("BarNoyKipnis1994", "Traeff2024b"),
        time="that of the broadcast for one source; up to the sum of the broadcasts for several",
        build=_build,
        choices=_choices(lambda algorithm: not algorithm.levels),
        parameters={"algorithm": one_part("algorithm", "broadcast", "chain_segmented(segment=8k)")},
        segmented=True,
    )
)
register_multilevel(
    "allgatherv/multilevel_as_broadcast",
    "each source broadcasts its data, by any algorithm for broadcasts over levels",
    "that of the broadcast for one source; up to the sum of the broadcasts for several",
    _build,
    _choices(lambda algorithm: algorithm.levels),
    source=("Karonis2002",),
    parameters={"algorithm": one_part("algorithm", "broadcast", "multilevel(algorithms=binomial)")},
    segmented=True,
)
