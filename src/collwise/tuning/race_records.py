"""Races as JSON documents have them: what `bench --json` and `tune --json` print, read again.

`report.tuning_tables.race_document` writes them.
"""

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from collwise.errors import InvalidArgument
from collwise.measure.stability import STABLE
from collwise.profiles.fingerprint import Fingerprint
from collwise.profiles.profile import Profile
from collwise.profiles.records import Bounds, Form, Provenance
from collwise.schedule.collectives import kind_of
from collwise.system import formatting
from collwise.system.files import decode_json, read_input, replace_file
from collwise.tuning.outcomes import Task

SWEEP = "collwise sweep"
"""The format of the document that `collwise bench` writes."""
TUNING = "collwise tuning"
"""The format of the document that `collwise tune --json` prints."""
MEASUREMENT = "collwise measurement"
"""The format of the document that `collwise measure --json` prints."""
VERSION = 1
"""Of all three."""


class DecidedForm(msgspec.Struct, frozen=True):
    """What a race says about one form of a call: our fastest schedule and the library's own."""

    algorithm: str
    ours_s: float
    ours_interval_s: Bounds
    library_s: float
    library_interval_s: Bounds
    ratio: float
    """Our time over the library's."""
    ratio_interval: tuple[float, float | None]
    predicted_s: float | None = None

    @property
    def uncertainty(self) -> float:
        """The wider of the two medians' relative ±."""
        pairs = ((self.ours_s, self.ours_interval_s), (self.library_s, self.library_interval_s))
        return max((high - low) / 2 / middle if middle else 0 for middle, (low, high) in pairs)


class Competed(msgspec.Struct, frozen=True):
    """A competitor and its times in seconds, repetition by repetition."""

    label: str
    median_s: float
    interval_s: Bounds
    samples_s: tuple[float, ...]


class Contribution(msgspec.Struct, frozen=True):
    """A source and its bytes."""

    rank: int
    nbytes: int


class RaceRecord(msgspec.Struct, frozen=True):
    """One race: times in seconds, sizes in bytes."""

    collective: str
    ranks: int
    nbytes: int
    root: int
    lower_bound_s: float
    forms: dict[Form, DecidedForm]
    competitors: tuple[Competed, ...]
    sources: tuple[Contribution, ...] = ()
    op: str | None = None
    dtype: str | None = None

    @property
    def repetitions(self) -> int:
        """Of those that ran to the end."""
        return max(len(one.samples_s) for one in self.competitors)

    @property
    def about(self) -> tuple[Any, ...]:
        """What was raced; equal for races of the same problem."""
        sources = tuple((source.rank, source.nbytes) for source in self.sources)
        problem = self.collective, self.ranks, self.nbytes, self.root
        return *problem, self.op, self.dtype, sources

    def bandwidths(self, time_s: float) -> tuple[float, float]:
        """Bytes per second: of the result, and through the busiest port (NCCL's "bus bandwidth").

        Of n bytes, a port must let through 2n(p − 1)/p where all get what is combined, n(p − 1)/p
        where each gets its block of it, and what others contribute where ranks gather.
        """
        kind, share = kind_of(self.collective), 1.0
        if kind.combines and kind.output != "root":
            share = (1 if kind.output == "own block" else 2) * (self.ranks - 1) / self.ranks
        elif len(self.sources) == self.ranks and self.nbytes:
            share -= min(source.nbytes for source in self.sources) / self.nbytes
        rate = self.nbytes / time_s if time_s else 0.0
        return rate, rate * share


class Sweep(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Races of one `collwise bench`.

    within: medians were to be known to ± this share.   order: of the ranks.   cells: as
    `RaceRecord` reads them, with all that was written.
    """

    format: str = SWEEP
    version: int = VERSION
    within: float
    order: tuple[int, ...]
    fingerprint: Fingerprint
    provenance: Provenance
    cells: tuple[dict[str, Any], ...] = ()

    @cached_property
    def races(self) -> list[RaceRecord]:
        """The cells.  Raises msgspec.ValidationError."""
        return [msgspec.convert(cell, RaceRecord) for cell in self.cells]

    def has(self, task: Task) -> bool:
        """Whether one of the races is about this task."""
        problem, elements = task.problem, (task.op, task.dtype)
        about = problem.collective, problem.ranks, problem.nbytes, problem.root
        asked = *about, *(elements if problem.kind.combines else (None, None)), problem.sources
        return any(race.about == asked for race in self.races)

    def uncertain(self, form: Form) -> list[RaceRecord]:
        """The races that did not get as precise as asked."""
        return [race for race in self.races if race.forms[form].uncertainty > self.within]

    def verdict(self, form: Form) -> str:
        """Whether all intervals are as narrow as asked; else which is the widest."""
        wide = self.uncertain(form)
        if not wide or not self.within:
            return STABLE
        most = max(race.forms[form].uncertainty for race in wide)
        races = formatting.count(len(self.cells), "race")
        return (
            f"noisy: {len(wide)} of {races} did not get to ± {self.within:.0%} in the median"
            f" (the worst: ± {most:.0%})"
        )

    def document(self) -> dict[str, Any]:
        """As JSON, with the verdict on blocking calls and on persistent ones."""
        verdicts = {form: self.verdict(form) for form in ("blocking", "persistent")}
        made: dict[str, Any] = msgspec.to_builtins(self)
        return {"format": made.pop("format"), "version": VERSION, "verdict": verdicts, **made}

    def save(self, path: Path) -> None:
        """Replace the file.  Raises InvalidArgument; then it is as it was."""
        save_text(path, msgspec.json.encode(self.document(), enc_hook=float).decode(), "record")

    def goes_on(self, path: Path, other: "Sweep") -> "Sweep":
        """The sweep with the cells of an earlier record of it.

        Raises InvalidArgument where that is of another machine or order.
        """
        differences = self.fingerprint.differences(other.fingerprint)
        if self.order != other.order:
            differences = [*differences, "the ranks were in another order"]
        if differences:
            remedy = "name another file with --record"
            raise InvalidArgument(f"resume {path}", "; ".join(differences), remedy)
        return msgspec.structs.replace(self, cells=other.cells)


class _Tuning(msgspec.Struct, frozen=True):
    profile: dict[str, Any]
    races: tuple[RaceRecord, ...] = ()


class _Header(msgspec.Struct):
    format: Any = None
    version: Any = None


class Record(msgspec.Struct, frozen=True):
    """What was read from a file: races, a profile, or both."""

    path: Path
    kind: str
    fingerprint: Fingerprint
    races: Sequence[RaceRecord] = ()
    profile: Profile | None = None


def save_text(path: Path, text: str, what: str) -> None:
    """Replace a file.  Raises InvalidArgument if it cannot be written."""
    try:
        replace_file(path, text.encode())
    except OSError as problem:
        seen = problem.strerror or str(problem)
        asked = f"write the {what} {path}"
        raise InvalidArgument(asked, seen, "make room, or name another file") from None


def read_sweep(path: Path) -> Sweep:
    """The record of a sweep.  Raises InvalidArgument for what is none."""
    sweep: Sweep = _read(path, {SWEEP: Sweep})[1]
    return sweep


def read_record(path: Path) -> Record:
    """What bench, tune or measure printed with --json, or a saved profile, says.

    Raises InvalidArgument, and DamagedProfile for a profile that is one by its format only.
    """
    forms = {SWEEP: Sweep, TUNING: _Tuning, MEASUREMENT: _Tuning, Profile.format: None}
    kind, read = _read(path, forms)
    name = f"a {kind.removeprefix('collwise ')}"
    if kind == SWEEP:
        return Record(path, name, read.fingerprint, read.races)
    if kind == Profile.format:
        profile, races = Profile.load(path), ()
    else:
        profile, races = Profile.from_json(msgspec.json.encode(read.profile)), read.races
    return Record(path, name, profile.fingerprint, races, profile)


def _read(path: Path, forms: Mapping[str, type[Any] | None]) -> tuple[str, Any]:
    """The format of a document, and what it says.

    forms: how to read each format that is known; None: whoever reads it looks at its version.
    """
    read = None
    try:
        content = read_input(path)
        header = decode_json(content, _Header)
        if header.format not in forms:
            known = ", ".join(map(repr, forms))
            raise ValueError(f"its format is {header.format!r}, not one of {known}")
        if (form := forms[header.format]) is not None:
            if header.version != VERSION:
                wanted = f"this collwise reads {VERSION}"
                raise ValueError(f"its version is {header.version!r}; {wanted}")
            read = decode_json(content, form)
            if isinstance(read, Sweep):
                _ = read.races  # raises for what is none
    except (OSError, ValueError) as problem:  # msgspec's errors are ValueErrors
        seen = getattr(problem, "strerror", None) or str(problem)
        remedy = "give what bench, tune or measure printed with --json, or a saved profile"
        raise InvalidArgument(f"read the record {os.fspath(path)}", seen, remedy) from None
    return str(header.format), read
