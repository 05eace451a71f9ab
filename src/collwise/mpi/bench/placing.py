"""Finds where ranks are: MPI tells their nodes, and message times tell groups of nodes."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from mpi4py import MPI

from collwise.measure.clustering import NBYTES, REPETITIONS, cluster, rounds
from collwise.measure.level_probes import level_team
from collwise.model.levels import GROUP_NAMES
from collwise.model.placement import Placement
from collwise.mpi.runtime.agreement import on_root, wait_asleep
from collwise.mpi.runtime.world import World
from collwise.profiles.level_machine import NODE

MAX_NODES = 1024
"""The most nodes between which message times are measured, to find groups of nodes."""
_TAG = 0


@dataclass(frozen=True)
class NamedPlacement:
    """Where the ranks are, and what the groups of each level are called.

    names: what a group of each level is called, such as "node", innermost level first; the last
    level, where all ranks are one group, has no name.   groups: for each host, the numbers of its
    groups at the levels beyond nodes; empty without such levels, or if a host is in several groups.
    """

    placement: Placement
    names: tuple[str, ...] = ()
    groups: dict[str, tuple[int, ...]] = field(default_factory=dict)


def find_placement(comm: MPI.Intracomm, world: World) -> NamedPlacement:
    """Find the levels of the machine, the same on all ranks.  Collective.

    Leaves out levels as `worth_measuring` does.
    """
    first: dict[int, int] = {}
    for rank, node in enumerate(world.nodes):
        first.setdefault(node, rank)
    leaders = tuple(first.values())
    rows: list[tuple[int, ...]] = []
    if 2 < len(leaders) <= MAX_NODES:
        times_s = pair_times(comm, leaders)
        rows = on_root(comm, lambda: cluster(times_s))
    labels = [world.nodes, *([row[node] for node in world.nodes] for row in rows)]
    return worth_measuring(world, Placement.of(*labels))


def worth_measuring(world: World, placement: Placement) -> NamedPlacement:
    """The placement without levels that have one group, or groups of one inner group each."""
    names = GROUP_NAMES if placement.groups[:1] == (world.nodes,) else GROUP_NAMES[1:]
    rows: dict[str, tuple[int, ...]] = {}
    for level, row in enumerate(placement.groups, 1):
        if len(level_team(placement, level)) > 1 and len(set(row)) > 1:
            rows[names[level - 1] if level <= len(names) else f"group of level {level}"] = row
    by_host: dict[str, set[tuple[int, ...]]] = {}
    for rank, host in enumerate(world.hosts):
        deeper = tuple(row[rank] for name, row in rows.items() if name != NODE)
        by_host.setdefault(host, set()).add(deeper)
    groups = {host: next(iter(own)) for host, own in by_host.items()}
    groups_agree = any(groups.values()) and all(len(own) == 1 for own in by_host.values())
    return NamedPlacement(
        Placement.of(*rows.values(), ranks=placement.ranks),
        tuple(rows),
        groups if groups_agree else {},
    )


def pair_times(comm: MPI.Intracomm, members: Sequence[int]) -> np.typing.NDArray[np.float64]:
    """A matrix of members' fastest round trips in seconds on rank 0, else zeros.  Collective."""
    rank = comm.Get_rank()
    mine = np.zeros(len(members))
    data = np.zeros(NBYTES, dtype=np.uint8)
    for pair in (pair for turn in rounds(len(members)) for pair in turn):
        first, second = (members[index] for index in pair)
        if rank == second:
            for _ in range(REPETITIONS):
                comm.Recv(data, first, _TAG)
                comm.Send(data, first, _TAG)
        elif rank == first:
            samples = []
            for _ in range(REPETITIONS):
                begin = time.perf_counter()
                comm.Send(data, second, _TAG)
                comm.Recv(data, second, _TAG)
                samples.append(time.perf_counter() - begin)
            mine[pair[1]] = min(samples)
    wait_asleep(comm)
    rows = comm.gather(mine, root=0)
    times_s = np.zeros((len(members), len(members)))
    if rows is not None:
        for index, member in enumerate(members):
            times_s[index] += rows[member]
            times_s[:, index] += rows[member]
    return times_s
