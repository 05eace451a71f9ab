"""Gives all ranks rank 0's settings and view of the machine when a communicator is wrapped."""

from functools import cache
from hashlib import sha256
from importlib.metadata import version
from itertools import zip_longest
from textwrap import shorten

from mpi4py import MPI

from collwise.algorithms.registry import ALGORITHMS
from collwise.comm.decision import Decision, Settings
from collwise.errors import InvalidArgument, shown
from collwise.model.levels import Levels
from collwise.model.machine import Machine
from collwise.model.placement import Placement
from collwise.mpi.bench.placing import find_placement
from collwise.mpi.runtime.agreement import everywhere, on_root
from collwise.mpi.runtime.world import World, describe

_version = cache(version)  # version reads files


def agreed(comm: MPI.Intracomm, settings: Settings) -> tuple[Decision, World]:
    """Returns (decision by rank 0's settings, description of the world), equal on all ranks.

    Collective.   comm: a plain communicator of mpi4py's, since a `cw.Comm` might run plans.
    """
    _check_algorithms(comm)
    world = describe(comm, settings.transport)
    machine, placement = settings.machine, settings.placement

    def decide() -> tuple[Decision, tuple[Placement | None, Machine | None]]:
        decision = Decision.of(world, settings)
        if isinstance(machine, Levels) and placement not in (None, machine.placement):
            raise InvalidArgument(
                "a communicator with a placement and a machine with levels",
                f"the machine has its ranks elsewhere ({_shown(machine.placement)})",
                "leave the placement out, or pass machine.placed(placement)",
            )
        return decision, (placement, machine)

    decision, of_root = on_root(comm, decide)

    def check() -> None:
        for here, on_rank_0 in zip((placement, machine), of_root, strict=True):
            about_levels = isinstance(here, Placement | Levels)
            odd = here is placement is not None and not about_levels  # of a wrong type
            if odd or (about_levels and here != on_rank_0):
                raise InvalidArgument(
                    "a communicator with levels",
                    f"rank {comm.Get_rank()} gives {_shown(here)}; rank 0, {_shown(on_rank_0)}",
                    "give the same on all ranks, or on rank 0 only",
                )

    everywhere(comm, check)
    level_placement = decision.level_placement
    if decision.needs_placement:  # equal on all ranks
        level_placement = find_placement(comm, world).placement
    world = world._replace(level_placement=level_placement)
    return decision.on(world), world


def _check_algorithms(comm: MPI.Intracomm) -> None:
    """Raise on all ranks if their algorithms differ: they would run different schedules."""
    every = ALGORITHMS.values()
    known = [(one.name, one.summary, one.source, one.time, *one.parameters) for one in every]
    facts = [(f"version {_version('collwise')}",), *known]
    if len(set(comm.allgather(sha256(repr(facts).encode()).digest()))) == 1:
        return
    first, *others = comm.allgather(facts)
    for rank, theirs in enumerate(others, 1):
        for ours, other in zip_longest(first, theirs):
            if ours != other:
                raise InvalidArgument(
                    "ranks with the same algorithms",
                    f"rank 0 and rank {rank} differ in {(ours or other)[0]}",
                    "install the same version on all nodes, and register alike on all ranks",
                )


def _shown(setting: object) -> str:
    if isinstance(setting, Levels):
        return f"{setting.describe()}; {_shown(setting.placement)}"
    if isinstance(setting, Placement):
        return f"{setting.describe()}, in the groups {shorten(str(setting.groups), 99)}"
    if isinstance(setting, Machine):
        return setting.describe()
    return "none" if setting is None else shown(setting)
