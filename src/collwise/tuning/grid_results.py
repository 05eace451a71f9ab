"""What the launches of a grid have measured, cell by cell."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite
from statistics import median
from typing import Any, NamedTuple

import msgspec

from collwise.measure.race import (
    ALWAYS_RACED,
    BLOCKING,
    CALLS,
    LIBRARIES,
    OWN,
    Load,
    form_of,
    own_algorithm,
)
from collwise.measure.statistics import Interval, best_ratio_interval
from collwise.system.quantities import parse_time
from collwise.tuning.grid import Grid, Launch
from collwise.tuning.outcomes import Task
from collwise.tuning.race_records import VERSION, Sweep

GRID = "collwise grid"
"""The format of the document of a grid."""
WORST_DEFAULT, WORST_OWN = 0.97, 0.95
"""A cell is lost if the interval of its speed-up over the better default is wholly below
WORST_DEFAULT, or that over the best of the libraries' own algorithms wholly below WORST_OWN."""

LONG_S = 0.1
"""The longest call, in seconds, beside which a second launch tries all of the library's algorithms:
a dozen of them run ten times each."""
CORES_BUSY, LATE, LATE_S = 0.5, 0.5, 0.5e-3
"""The machine may limit a race in the lab if more than CORES_BUSY of its cores are busy in the time
beyond one latency, or if in more than LATE of the windows some packet is more than LATE_S seconds
late."""

_Window = tuple[float, float, float, float]
_Timed = tuple[str, list[float]]
"""A competitor's label, and its seconds in all repetitions of all launches."""


class LibraryResult(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One library's part of a cell: the best of each kind, by the median of all launches.

    default: the library's default, as a blocking call or a persistent request.   own: the best of
    the library's algorithms, the default among them.   ours: the best planned schedule, or the
    default if none ran.   predicted_s: of `ours`, None if unknown; like lower_bound_s, t0_s and
    lam of the last launch.   warnings: why the times may be the emulated network's, not the
    library's.
    cores_busy: the share of this machine's cores that ranks and the switch used while calls ran.
    late: the share of the race during which packets came late.   Both are of the worst launch.
    latency_s: the network's latency one way; 0 if there is not one for all pairs of hosts.
    """

    default: str
    default_s: float
    own: str
    own_s: float
    ours: str
    ours_s: float
    predicted_s: float | None
    lower_bound_s: float
    t0_s: float
    lam: float
    repetitions: int
    launches: int
    warnings: tuple[str, ...] = ()
    cores_busy: float = 0.0
    late: float = 0.0
    latency_s: float = 0.0

    @property
    def limited(self) -> bool:
        """Whether this machine's cores, which all emulated hosts share, may have set the times.

        For most of one latency no core can work, since all messages are under way.
        """
        waiting_s = self.latency_s if self.latency_s < self.ours_s else 0.0
        busy_s, working_s = self.cores_busy * self.ours_s, self.ours_s - waiting_s
        return busy_s > CORES_BUSY * working_s or self.late > LATE

    @property
    def misprediction(self) -> float | None:
        """The larger of measured and predicted time over the smaller; None if one is missing."""
        times = self.ours_s, self.predicted_s or 0.0
        return max(times) / min(times) if min(times) else None


class GridCell(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The results of one cell on all libraries.

    Speed-ups: the least time of the libraries' calls over our least time, each on any library.
    Intervals are of 95 %, by a bootstrap over the repetitions of all launches; None: unknown.
    """

    network: str
    placement: str
    emulated: bool
    collective: str
    ranks: int
    nbytes: int
    libraries: dict[str, LibraryResult]
    speedup_over_better_default: float
    speedup_over_better_default_interval: tuple[float, float] | None
    speedup_over_best_own: float
    speedup_over_best_own_interval: tuple[float, float] | None

    @property
    def fastest(self) -> LibraryResult:
        """The result on the library on which our schedule is fastest."""
        return min(self.libraries.values(), key=lambda result: result.ours_s)

    @property
    def decided(self) -> bool:
        """Whether the cell is a clear gain or loss, which a second launch should confirm."""
        interval = self.speedup_over_better_default_interval
        return interval is not None and not interval[0] <= 1 <= interval[1]

    @property
    def lost(self) -> bool:
        """Whether our schedule clearly lost to a default or to the libraries' best algorithm."""
        pairs = (
            (self.speedup_over_better_default_interval, WORST_DEFAULT),
            (self.speedup_over_best_own_interval, WORST_OWN),
        )
        return any(interval is not None and interval[1] < worst for interval, worst in pairs)


class LabNotes(msgspec.Struct, frozen=True):
    """What the lab reported of a launch: two fields of `lab.Report`, and the number of cores.

    windows: for each of many short times, in seconds: its begin, its end, the processor time of the
    switch, and by how much the latest packet was late.
    """

    warnings: tuple[str, ...] = ()
    windows: tuple[_Window, ...] = ()
    cores: int = 1

    def cores_busy(self, load: Load) -> float:
        """The share of the cores that ranks and the switch used during a race's calls."""
        worked_s = load.worked_s + sum(worked_s for _, _, worked_s, _ in self._within(load))
        return worked_s / (load.calls_s * self.cores or 1)

    def late(self, load: Load) -> float:
        """The share of a race's windows in which packets came late; 0 without windows."""
        within = self._within(load)
        return sum(late_s > LATE_S for *_, late_s in within) / (len(within) or 1)

    def _within(self, load: Load) -> list[_Window]:
        """The windows whose middle is within the race."""
        return [
            one for one in self.windows if load.began_s <= (one[0] + one[1]) / 2 <= load.ended_s
        ]


class Measured(NamedTuple):
    """A launch, the sweep that it wrote, and the lab's notes."""

    launch: Launch
    sweep: Sweep
    notes: LabNotes = LabNotes()


def cells(grid: Grid, launches: Iterable[Measured]) -> list[GridCell]:
    """The cells that were raced, in the order of the grid."""
    places: dict[tuple[str, str, int], dict[str, list[tuple[Measured, int]]]] = {}
    for measured in sorted(launches, key=lambda one: one.launch.number):
        launch = measured.launch
        for place in grid.cells_of(launch):
            collective, nbytes = grid.cells[place]
            task = collective.task(sum(launch.ranks_per_host), nbytes)
            for number, race in enumerate(measured.sweep.races):
                if race.is_about(task):
                    key = launch.network, launch.placement, place
                    found = places.setdefault(key, defaultdict(list))
                    found[launch.library].append((measured, number))
    ordered = (
        (network, placement, place)
        for network in grid.networks
        for placement in grid.placements_on(network)
        for place in range(len(grid.cells))
    )
    return [_cell(grid, *key, places[key]) for key in ordered if key in places]


def _cell(
    grid: Grid,
    network: str,
    placement: str,
    place: int,
    found: Mapping[str, Sequence[tuple[Measured, int]]],
) -> GridCell:
    collective, nbytes = grid.cells[place]
    results: dict[str, LibraryResult] = {}
    kept: dict[str, list[list[float]]] = defaultdict(list)
    for library, pairs in found.items():
        races = [measured.sweep.cells[number] for measured, number in pairs]
        best = _best(races)
        (default, default_s), (own, own_s), (ours, ours_s) = best
        for kind, (_, samples) in zip(("default", "own", "ours"), best, strict=True):
            kept[kind].append(samples)
        last = races[-1]
        predicted = {one["label"]: one["predicted_s"] for one in last["competitors"]}
        loads = list(zip(pairs, (Load(**race.get("load", {})) for race in races), strict=True))
        results[library] = LibraryResult(
            default=default,
            default_s=median(default_s),
            own=own,
            own_s=median(own_s),
            ours=ours,
            ours_s=median(ours_s),
            predicted_s=predicted.get(ours.removesuffix(BLOCKING)),
            lower_bound_s=last["lower_bound_s"],
            t0_s=last["t0_s"],
            lam=last["lam"],
            repetitions=len(ours_s),
            launches=len(races),
            warnings=tuple(
                dict.fromkeys(line for measured, _ in pairs for line in measured.notes.warnings)
            ),
            cores_busy=max(measured.notes.cores_busy(load) for (measured, _), load in loads),
            latency_s=float(parse_time(grid.networks[network].latency or "0s")),
            late=max(measured.notes.late(load) for (measured, _), load in loads),
        )
    over_default = best_ratio_interval(kept["default"], kept["ours"])
    over_own = best_ratio_interval(kept["own"], kept["ours"])
    return GridCell(
        network=network,
        placement=placement,
        emulated=grid.networks[network].emulated,
        collective=str(collective),
        ranks=races[0]["ranks"],
        nbytes=nbytes,
        libraries=results,
        speedup_over_better_default=over_default.middle,
        speedup_over_better_default_interval=_ends(over_default),
        speedup_over_best_own=over_own.middle,
        speedup_over_best_own_interval=_ends(over_own),
    )


def once_more(sweep: Sweep, task: Task) -> list[str]:
    """The labels, as `Session.race` takes them, of what a second launch races beside the default.

    sweep: the first launch.   These are the best of our schedules and the library's best algorithm,
    if that is not its default; all of the library's that may win if the first launch had no time
    for any and the default takes at most LONG_S; everything if the first launch has no such race.
    """
    races = [
        cell for race, cell in zip(sweep.races, sweep.cells, strict=True) if race.is_about(task)
    ]
    if not races:
        return []
    best = _best(races)
    labels = (label for label, _ in best if label not in LIBRARIES)
    plain = (label.removesuffix(CALLS[form_of(label)].ending) for label in labels)
    named = list(dict.fromkeys(label.partition("/")[2] for label in plain))
    any_own = any(_is_own(one["label"]) for race in races for one in race["competitors"])
    return named if any_own or median(best[0][1]) > LONG_S else [*named, OWN]


def _best(races: Sequence[Mapping[str, Any]]) -> tuple[_Timed, _Timed, _Timed]:
    """The library's default, the library's best algorithm, and the best schedule of ours.

    The default takes the place of ours if none ran.
    """
    default = _fastest(races, lambda label: label in LIBRARIES)
    own = _fastest(races, lambda label: label in LIBRARIES or _is_own(label))
    ours = _fastest(races, lambda label: label not in LIBRARIES and not _is_own(label))
    assert default is not None
    assert own is not None
    return default, own, ours or default


def _is_own(label: str) -> bool:
    return own_algorithm(label) is not None


def _ends(interval: Interval) -> tuple[float, float] | None:
    return (interval.low, interval.high) if isfinite(interval.high) else None


def _fastest(races: Sequence[Mapping[str, Any]], among: Callable[[str], bool]) -> _Timed | None:
    """The competitor with the least median, and its samples of all races; None if there is none.

    among: which labels count, of the forms that every race has.  In each race only competitors with
    the most samples count: the others left early.  Those in the last race that has any compete;
    earlier races add samples of theirs.
    """
    samples: dict[str, list[float]] = {}
    for race in reversed(races):
        timed = {one["label"]: one["samples_s"] for one in race["competitors"]}
        some = [label for label in timed if form_of(label) in ALWAYS_RACED and among(label)]
        most = max((len(timed[label]) for label in some), default=0)
        stayed = {label: timed[label] for label in some if len(timed[label]) == most}
        samples = {
            label: [*stayed.get(label, ()), *samples.get(label, ())] for label in samples or stayed
        }
    return min(samples.items(), key=lambda one: median(one[1]), default=None)


def document(grid: Grid, found: Sequence[GridCell]) -> dict[str, Any]:
    """The cells as JSON; "wanted" is the number of cells of all rounds."""
    return {
        "format": GRID,
        "version": VERSION,
        "libraries": list(grid.libraries),
        "wanted": grid.wanted,
        "cells": msgspec.to_builtins(found),
    }
