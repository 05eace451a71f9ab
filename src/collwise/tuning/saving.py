"""Merges new measurements into a saved profile; data that was not measured again stays in it."""

from collections import Counter
from collections.abc import Iterable, Sequence
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from collwise.errors import DamagedProfile, InvalidArgument
from collwise.measure.breakpoints import find_protocols
from collwise.measure.stability import cores_moved, judge, uncertainty
from collwise.planner.race_lookup import is_known
from collwise.profiles.profile import Profile
from collwise.profiles.records import (
    MODES,
    MeasuredLevel,
    MeasuredSize,
    Measurements,
    RaceResult,
)
from collwise.system import formatting
from collwise.system.files import locked

T = TypeVar("T")
_COMBINED = "op", "dtype", "nbytes"
"""The fields that identify a time of combining."""


class Merged(NamedTuple):
    """A profile to save, and what became of the data of the previously saved one, `before`."""

    profile: Profile
    kept: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    before: Profile | None = None

    @property
    def lines(self) -> list[str]:
        """What became of the saved data, as lines of text; empty if there is nothing to say."""
        return [f"{name:<9}{'; '.join(what)}" for name, what in self.document.items() if what]

    @property
    def document(self) -> dict[str, list[str]]:
        """What became of the saved data: "kept", "replaced" and "dropped", as JSON."""
        return {name: list(getattr(self, name)) for name in ("kept", "replaced", "dropped")}


def merge(saved: Profile | None, new: Profile) -> Merged:
    """Add new measurements to the saved profile; another machine's profile is dropped.

    A new measurement replaces an old one of the same size and placement of ranks.  A new race
    replaces the same race with the same or an unknown placement.  Other data stays, except races
    of algorithms that collwise no longer has, and t0 and λ of the same placement with other levels.
    """
    if saved is None:
        return Merged(new)
    if saved.fingerprint.differences(new.fingerprint):
        made = saved.provenance
        where = f"the profile of another machine ({', '.join(made.hosts)}, {made.created})"
        return Merged(new, dropped=(where,))
    ranks_per_node = new.provenance.ranks_per_node
    before = {measured.provenance.ranks_per_node: measured for measured in saved.every}
    same, latest = before.pop(ranks_per_node, None), new.measurements
    again = {race.key[:-1] for race in new.race_results}  # on any placement
    known, dropped = _known(saved)
    if same is not None and _levels(same) != _levels(latest):
        old = f"t0 and λ on {_ranks(same.provenance.ranks)} {_levels(same)}"
        dropped += (f"{old}, for newer ones {_levels(latest)}",)
        combining = _joined(same.combining, latest.combining, *_COMBINED)
        latest, same = msgspec.structs.replace(latest, combining=combining), None
    here = ("", ranks_per_node)
    kept = [r for r in known if r.key[:-1] not in again or r.ranks_per_node not in here]
    measured, sizes_kept, sizes_replaced = _together(same, latest, new.fingerprint.cores_per_node)
    profile = msgspec.structs.replace(
        new, measurements=measured, other_placements=tuple(before.values())
    )
    elsewhere = [f"t0 and λ on {_ranks(m.provenance.ranks)}" for m in before.values()]
    return Merged(
        profile.with_race_results([*kept, *new.race_results]),
        (*_races(kept), *sizes_kept, *elsewhere),
        (*_races([race for race in known if race not in kept]), *sizes_replaced),
        dropped,
    )


def _known(profile: Profile) -> tuple[list[RaceResult], tuple[str, ...]]:
    """The profile's races whose algorithms still exist, and phrases on its other races."""
    races = profile.race_results
    unknown = _races([race for race in races if not is_known(race.algorithm)])
    known = [race for race in races if is_known(race.algorithm)]
    return known, tuple(f"{line}, whose algorithms there are no more" for line in unknown)


def save_merged(profile: Profile, path: Path, first: Merged | None = None) -> Merged:
    """Save a profile merged with the file at `path`, where other processes may save meanwhile.

    first: the result of saving a part of this profile; the new result is about what was there then.
    Raises InvalidArgument if the file cannot be written.
    """
    known, unknown = _known(profile)
    profile = msgspec.structs.replace(profile, race_results=tuple(known))
    if path.exists() and not path.is_file():  # such as /dev/stdout
        profile.save(path)
        return Merged(profile, dropped=unknown)
    try:
        with locked(path):
            merged = Merged(profile)
            if path.is_file():
                try:
                    before = Profile.load(path)
                    merged = merge(before, profile)._replace(before=before)
                except DamagedProfile as problem:
                    merged = Merged(profile, dropped=(f"what was there, for {problem.seen}",))
            merged.profile.save(path)
    except OSError as error:
        raise InvalidArgument(
            f"save the profile as {path}", error.strerror or str(error), "name another file"
        ) from error
    if first is not None:
        about = merge(first.before, profile)
        return merged._replace(kept=about.kept, replaced=about.replaced, dropped=first.dropped)
    return merged._replace(dropped=(*merged.dropped, *unknown))


def together(profiles: Iterable[Profile]) -> Merged:
    """Merge profiles of one machine; later measurements replace earlier ones of the same kind.

    The result has phrases only on what was dropped.
    Raises InvalidArgument if the profiles are of different machines.
    """
    first, *others = sorted(profiles, key=lambda profile: profile.provenance.created)
    merged = Merged(first)
    for other in others:
        if differences := first.fingerprint.differences(other.fingerprint):
            raise InvalidArgument(
                "merge profiles",
                "they are of different machines: " + "; ".join(differences),
                "merge those of one machine",
            )
        step = merge(merged.profile, other)
        merged = Merged(step.profile, dropped=(*merged.dropped, *step.dropped))
    return merged


def without(profile: Profile, collective: str | None, ranks: int | None) -> Profile:
    """The profile without races of a collective on `ranks` ranks; None means any."""
    kept = [
        race
        for race in profile.race_results
        if collective not in (None, race.collective) or ranks not in (None, race.ranks)
    ]
    return msgspec.structs.replace(profile, race_results=tuple(kept))


def _races(races: Iterable[RaceResult]) -> list[str]:
    """Phrases that count the races, one phrase for each number of ranks."""
    by_ranks = Counter(race.ranks for race in races)
    return [f"{formatting.count(n, 'race')} on {_ranks(p)}" for p, n in sorted(by_ranks.items())]


def _ranks(count: int) -> str:
    return formatting.count(count, "rank")


def _together(
    old: Measurements | None, new: Measurements, cores: int
) -> tuple[Measurements, list[str], list[str]]:
    """Merge two measurements with the same placement and the same levels.

    Returns (measurements, phrases on old sizes kept, phrases on old sizes replaced).
    """
    if old is None or old == new:  # nothing was measured again
        return new, [], []
    size = attrgetter("mode", "nbytes")
    levels = tuple(_of_level(*pair) for pair in zip(old.levels, new.levels, strict=True))
    fresh, stale = set(map(size, new.points)), set(map(size, old.points))
    medians = [m for m in new.medians if size(m) in fresh]
    medians += [m for m in old.medians if size(m) in stale - fresh]
    measured = msgspec.structs.replace(
        new,
        levels=levels,
        medians=tuple(medians),
        combining=_joined(old.combining, new.combining, *_COMBINED),
        reading=_joined(old.reading, new.reading, "nbytes"),
    )
    if stale - fresh:
        points = _in_segments(_joined(old.points, new.points, "mode", "nbytes"))
        made = new.provenance
        judgement = judge(points, made, made.usable_cores or cores)
        measured = msgspec.structs.replace(
            measured, points=points, verdict=judgement.verdict, advice=judgement.advice
        )
    if moved := cores_moved(*old.provenance.lines_s[-1:], *new.provenance.lines_s[:1]):
        line = f"since the session of {old.provenance.created} {moved}"
        measured = msgspec.structs.replace(measured, advice=(*measured.advice, line))
    return measured, _sizes(stale - fresh), _sizes(stale & fresh)


def _joined(old: Iterable[T], new: Iterable[T], *about: str) -> tuple[T, ...]:
    """Old and new records; a new record replaces an old one with equal fields `about`."""
    key = attrgetter(*about)
    joined = {key(record): record for record in (*old, *new)}
    return tuple(joined[at] for at in sorted(joined))


def _levels(measured: Measurements) -> str:
    """A phrase with the number of levels of the measurements."""
    return f"with {len(measured.levels) + 1} levels" if measured.levels else "as one level"


def _of_level(old: MeasuredLevel, new: MeasuredLevel) -> MeasuredLevel:
    """The new measurements of a level, and the old sizes that were not measured again."""
    points = _in_segments(_joined(old.points, new.points, "mode", "nbytes"))
    return msgspec.structs.replace(new, points=points, port=_joined(old.port, new.port, "nbytes"))


def _in_segments(points: Sequence[MeasuredSize]) -> tuple[MeasuredSize, ...]:
    """Points in the order of sizes, sorted by mode; their segments (protocols) are found again."""
    numbered: list[MeasuredSize] = []
    for mode in MODES:
        of_mode = [point for point in points if point.mode == mode]
        numbers = find_protocols((p.nbytes, p.t0_s, p.lam, _uncertainty(p)) for p in of_mode)
        numbered += [msgspec.structs.replace(p, segment=numbers[p.nbytes]) for p in of_mode]
    return tuple(numbered)


def _uncertainty(point: MeasuredSize) -> tuple[float, float] | None:
    t0, lam = point.t0_interval_s, point.lam_interval
    return t0 and lam and (uncertainty(point.t0_s, t0), uncertainty(point.lam, lam))


def _sizes(of_modes: Iterable[tuple[str, int]]) -> list[str]:
    sizes = sorted({nbytes for _, nbytes in of_modes})
    return [f"t0 and λ of {', '.join(map(str, sizes))} bytes"] if sizes else []
