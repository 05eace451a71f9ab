"""The machine that measurements describe: of one level, or with all of them."""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import groupby

import numpy as np

from collwise.errors import InvalidArgument
from collwise.model.exact import exact
from collwise.model.levels import GROUP_NAMES, Levels
from collwise.model.machine import Machine
from collwise.model.measured_machine import Measured, measured
from collwise.model.placement import Placement
from collwise.profiles.records import MeasuredSize, Measurements, Mode, PortTime
from collwise.system.formatting import count
from collwise.system.integers import ratio

NODE = GROUP_NAMES[0]
"""The level whose groups MPI knows."""


def machine_of(
    points: Iterable[MeasuredSize], mode: Mode, below: Sequence[PortTime] = ()
) -> Measured:
    """The machine of points measured with one way of sending.

    below: the port that these messages pass.   Where a single sender filled it, its own t0 counts.
    """

    def row(point: MeasuredSize) -> tuple[int, Fraction, Fraction]:
        gap = exact(point.t0_s)
        alone = exact(_alone(point, below)) if below else gap
        return point.nbytes, alone, exact(max(point.lam, 1.0)) * gap / alone

    chosen = (point for point in points if point.mode == mode)
    return measured(
        [row(point) for point in segment]
        for _, segment in groupby(chosen, key=lambda point: point.segment)
    )


def _alone(point: MeasuredSize, below: Sequence[PortTime]) -> float:
    """How long a message keeps its sender busy: never longer than it takes to send the next.

    As measured at the nearest size, by ratio, or on the straight line.
    """
    if min(below, key=lambda time: ratio(time.nbytes, point.nbytes)).rank_s is None:
        return point.t0_s
    filled = [(t.nbytes, t.rank_s) for t in below if t.rank_s is not None]
    sizes, times = zip(*filled, strict=True)
    return min(float(np.interp(point.nbytes, sizes, rising(times))), point.t0_s)


def level_machine(
    measurements: Measurements, placement: Placement, combining: Sequence[tuple[int, float]] = ()
) -> Levels:
    """The machine with all levels that were measured, its ranks placed so.

    combining: what combining takes, (bytes, seconds), ascending.
    """
    inner = measurements.levels
    laws: list[Machine] = [
        machine_of(points, "nonblocking", below)
        for points, below in zip(
            [*(level.points for level in inner), measurements.points],
            [(), *(level.port for level in inner)],
            strict=True,
        )
    ]
    if combining:
        first = laws[0]
        assert isinstance(first, Measured)
        laws[0] = first.with_combining(combining)
    ports = [_rising(level.port) for level in inner]
    return Machine.levels(laws, placement, ports=ports, names=[level.name for level in inner])


def placement_on(
    measured_with: Iterable[Measurements], hosts: Sequence[str], nodes: Sequence[int]
) -> Placement | None:
    """Where ranks are, in the levels of the first measurements that have inner ones.

    hosts, nodes: of every rank.   None where none have levels, or do not know one of the hosts.
    """
    for known in measured_with:
        rows: list[Sequence[int]] = [nodes for level in known.levels[:1] if level.name == NODE]
        deeper = range(len(known.levels) - len(rows))
        if known.levels and (not deeper or known.groups.keys() >= set(hosts)):
            rows += [[known.groups[host][number] for host in hosts] for number in deeper]
            return Placement.of(*rows, ranks=len(hosts))
    return None


def check_depth(placement: Placement, measured_with: Sequence[Measurements]) -> None:
    """Raise InvalidArgument where no measurements have as many levels as a placement."""
    depths = sorted({len(known.levels) + 1 for known in measured_with})
    if placement.depth not in depths:
        seen = count(placement.depth, "level")
        seen += f"; the profile has {' or '.join(map(str, depths))}"
        asked = f"a placement of {placement.describe()}"
        raise InvalidArgument(asked, seen, "give as many, or tune again with --placement")


def filled(measurements: Measurements, ranks: int) -> Placement | None:
    """So many ranks on nodes that are filled as when it was measured, one node after the other.

    None where nodes are not the only inner level.
    """
    if [level.name for level in measurements.levels] != [NODE]:
        return None
    full = max(measurements.provenance.hosts.values())
    return Placement.of([rank // full for rank in range(ranks)])


def _rising(port: Sequence[PortTime]) -> list[tuple[int, float]] | None:
    """A port's times, which never fall."""
    times = rising([time.port_s for time in port])
    return [(own.nbytes, round(busy, 12)) for own, busy in zip(port, times, strict=True)] or None


def rising(times: Iterable[float]) -> list[float]:
    """The times that never fall and are nearest to these, by squares: neighbours that do, averaged.

    >>> rising([1, 4, 2, 9])
    [1, 3.0, 3.0, 9]
    """
    pools: list[tuple[float, int]] = []
    for time in times:
        pools.append((time, 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (low, some), (high, more) = pools[-2:]
            pools[-2:] = [((low * some + high * more) / (some + more), some + more)]
    return [time for time, number in pools for _ in range(number)]
