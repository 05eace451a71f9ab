"""Builds the machine that measurements describe: with one level, or with all levels."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import groupby

import numpy as np

from collwise.errors import InvalidArgument
from collwise.model.exact import exact
from collwise.model.levels import GROUP_NAMES, Levels
from collwise.model.machine import Machine
from collwise.model.measured_machine import (
    Measured,
    Point,
    interpolated,
    measured,
    times_by_size,
)
from collwise.model.placement import Placement
from collwise.profiles.records import MeasuredSize, Measurements, Mode, PortTime, ReadTime
from collwise.system.formatting import count
from collwise.system.integers import ratio

NODE = GROUP_NAMES[0]
"""The name of the level whose groups are nodes; MPI itself can tell which ranks share a node."""


def machine_of(
    points: Iterable[MeasuredSize], mode: Mode, below: Sequence[PortTime] = ()
) -> Measured:
    """The machine that the points measured with one mode of sending describe.

    below: measured times of the shared port that the messages pass.   If one sender alone filled
    the port, t0 is the time for which that sender, not the port, was busy.
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
    """Seconds for which a message keeps its sender itself busy: at most the point's t0.

    The result is t0 unless one sender alone filled the port at the nearest size (by ratio).  Then
    it is interpolated from `below`.
    """
    if min(below, key=lambda time: ratio(time.nbytes, point.nbytes)).rank_s is None:
        return point.t0_s
    filled = [(t.nbytes, t.rank_s) for t in below if t.rank_s is not None]
    sizes, times = zip(*filled, strict=True)
    return min(float(np.interp(point.nbytes, sizes, rising(times))), point.t0_s)


def level_machine(
    measurements: Measurements, placement: Placement, combining: Sequence[tuple[int, float]] = ()
) -> Levels:
    """The machine with all measured levels and the ranks of `placement`.

    combining: the times of combining, as ascending pairs (bytes, seconds).
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
    known = max(reversed(laws), key=lambda law: len(law.sizes()))
    laws = [_as_far_as(law, known) for law in laws]
    first = laws[0]
    assert isinstance(first, Measured)
    laws[0] = sharing(first.with_combining(combining), measurements.reading)
    ports = [_rising(level.port) for level in inner]
    return Machine.levels(laws, placement, ports=ports, names=[level.name for level in inner])


def _as_far_as(law: Machine, other: Machine) -> Machine:
    """`law`; if it has one size only, its costs are made to grow with the size as those of `other`.

    On a slow network there may be time for one size of a level: it tells nothing of longer ones.
    """
    assert isinstance(law, Measured)
    assert isinstance(other, Measured)
    last, end = law.segments[-1][-1], other.segments[-1][-1]
    if len(law.sizes()) > 1 or end.nbytes <= last.nbytes:
        return law
    at = other.message(last.nbytes)
    more = Point(end.nbytes, last.gap + end.gap - at.gap, last.latency + end.latency - at.latency)
    return replace(law, segments=((last, more),))


def sharing(machine: Measured, reading: Sequence[ReadTime]) -> Machine:
    """`machine` with ranks that share memory and the measured reads; unchanged without reads.

    A read takes no longer than λ·t0, which is the time of publishing and reading together.
    """
    if not reading:
        return machine
    times = rising([time.read_s for time in reading])
    pairs = [(own.nbytes, time) for own, time in zip(reading, times, strict=True)]
    known = times_by_size(pairs, "reads of shared memory", "read") or ((0, Fraction(0)),)
    read = ((n, round(interpolated(known, n)[0], 12)) for n in machine.sizes())
    return Machine.memory(machine, read=[(n, min(t, machine.message(n).latency)) for n, t in read])


def placement_on(
    measured_with: Iterable[Measurements], hosts: Sequence[str], nodes: Sequence[int]
) -> Placement | None:
    """The placement of ranks by the levels of the first measurements that fit; None if none fit.

    hosts: each rank's host.   nodes: the number of each rank's node.   Measurements fit if they
    have inner levels, and say for every host its group at each level above nodes.
    """
    for known in measured_with:
        rows: list[Sequence[int]] = [nodes for level in known.levels[:1] if level.name == NODE]
        deeper = range(len(known.levels) - len(rows))
        if known.levels and (not deeper or known.groups.keys() >= set(hosts)):
            rows += [[known.groups[host][number] for host in hosts] for number in deeper]
            return Placement.of(*rows, ranks=len(hosts))
    return None


def check_depth(placement: Placement, measured_with: Sequence[Measurements]) -> None:
    """Raise InvalidArgument if no measurements have the number of levels of `placement`."""
    depths = sorted({len(known.levels) + 1 for known in measured_with})
    if placement.depth not in depths:
        seen = count(placement.depth, "level")
        seen += f"; the profile has {' or '.join(map(str, depths))}"
        asked = f"a placement of {placement.describe()}"
        raise InvalidArgument(asked, seen, "give as many, or tune again with --placement")


def filled(measurements: Measurements, ranks: int) -> Placement | None:
    """A placement that fills nodes one by one, each as the fullest in `measurements` was filled.

    Returns None unless nodes are the only inner level.
    """
    if [level.name for level in measurements.levels] != [NODE]:
        return None
    full = max(measurements.provenance.hosts.values())
    return Placement.of([rank // full for rank in range(ranks)])


def _rising(port: Sequence[PortTime]) -> list[tuple[int, float]] | None:
    """A port's times as (bytes, seconds), smoothed so that they never fall; None without times."""
    times = rising([time.port_s for time in port])
    return [(own.nbytes, round(busy, 12)) for own, busy in zip(port, times, strict=True)] or None


def rising(times: Iterable[float]) -> list[float]:
    """The nearest times (by least squares) that never fall: falling neighbours are averaged.

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
