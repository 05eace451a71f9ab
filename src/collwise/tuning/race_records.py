"""Reads races from the JSON documents that `bench --json` and `tune --json` print.

`report.tuning_tables.race_document` writes the races into these documents.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from collwise.errors import InvalidArgument
from collwise.measure.race import ALWAYS_RACED
from collwise.measure.stability import STABLE
from collwise.measure.statistics import Interval
from collwise.profiles.fingerprint import Fingerprint
from collwise.profiles.profile import Profile
from collwise.profiles.records import FORMS, USUAL_WITHIN, Bounds, Form, Provenance
from collwise.schedule.collectives import kind_of
from collwise.system import formatting
from collwise.system.files import decode_json, read_input, save_text
from collwise.tuning.outcomes import Task

SWEEP, TUNING, MEASUREMENT = "collwise sweep", "collwise tuning", "collwise measurement"
"""The formats of the documents of `bench`, `tune --json` and `measure --json`."""
VERSION = 1
"""The version of all formats that `read_document` reads, except profiles."""


class DecidedForm(msgspec.Struct, frozen=True):
    """The result of a race for one form of a call: the fastest candidate and the library's call.

    ours_s, ours_interval_s: of the candidate `algorithm`.   ratio: its time over the library's.
    """

    algorithm: str
    ours_s: float
    ours_interval_s: Bounds
    library_s: float
    library_interval_s: Bounds
    ratio: float
    ratio_interval: tuple[float, float | None]
    predicted_s: float | None = None

    @property
    def ours(self) -> Interval:
        """The median time of `algorithm`, in seconds."""
        return Interval(self.ours_s, *self.ours_interval_s)

    @property
    def library(self) -> Interval:
        """The median time of the library's call, in seconds."""
        return Interval(self.library_s, *self.library_interval_s)

    @property
    def uncertainty(self) -> float:
        """The relative uncertainty of the less certain of the two medians."""
        return max(self.ours.uncertainty, self.library.uncertainty)


class Competed(msgspec.Struct, frozen=True):
    """A competitor of a race, and the seconds that it took in each repetition."""

    label: str
    samples_s: tuple[float, ...]


class RaceRecord(msgspec.Struct, frozen=True):
    """One race.   nbytes: the message size.   sources: {"rank": …, "nbytes": …} of each source.

    forms: the result for each form of calls that was raced.
    """

    collective: str
    ranks: int
    nbytes: int
    root: int
    forms: dict[Form, DecidedForm]
    competitors: tuple[Competed, ...]
    sources: tuple[dict[str, int], ...] = ()
    op: str | None = None
    dtype: str | None = None

    def __str__(self) -> str:
        words = f"{self.collective} of {formatting.size(self.nbytes)} on {self.ranks} ranks"
        words += f" from {len(self.sources)}" * bool(self.sources)
        words += f", root {self.root}" * bool(self.root)
        return words + f", {self.op} of {self.dtype}" * (self.op is not None)

    @property
    def repetitions(self) -> int:
        """The number of repetitions of the competitors that stayed to the end of the race."""
        return max(len(one.samples_s) for one in self.competitors)

    def is_about(self, task: Task) -> bool:
        """Whether the race is about this task."""
        problem = task.problem
        elements = (task.op, task.dtype) if problem.kind.combines else (None, None)
        sources = tuple((source["rank"], source["nbytes"]) for source in self.sources)
        return (
            (self.collective, self.ranks, self.nbytes, self.root)
            == (problem.collective, problem.ranks, problem.nbytes, problem.root)
        ) and ((self.op, self.dtype), sources) == (elements, problem.sources)

    def bandwidths(self, time_s: float) -> tuple[float, float]:
        """Bytes per second: of the result, and through the busiest port (NCCL's "bus bandwidth").

        For a result of n bytes, the busiest port carries 2n(p − 1)/p in an allreduce, n(p − 1)/p in
        a reduce-scatter, n minus the smallest contribution if all ranks contribute, otherwise n.
        """
        kind, share = kind_of(self.collective), 1.0
        if kind.combines and kind.output != "root":
            share = (1 if kind.output == "own block" else 2) * (self.ranks - 1) / self.ranks
        elif len(self.sources) == self.ranks and self.nbytes:
            share -= min(source["nbytes"] for source in self.sources) / self.nbytes
        rate = self.nbytes / time_s if time_s else 0.0
        return rate, rate * share


class Sweep(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The races of one run of `collwise bench`.

    within: a race may end once its medians are known to ± this share; 0 if no share was requested:
    USUAL_WITHIN then says which races are noisy.   order: of the ranks.   algorithm: the labels of
    the only ones raced, with commas; None for the best few.   cells: the races as JSON documents,
    of which `RaceRecord` reads a part.
    """

    format: str = SWEEP
    version: int = VERSION
    within: float
    order: tuple[int, ...]
    algorithm: str | None = None
    fingerprint: Fingerprint
    provenance: Provenance
    cells: tuple[dict[str, Any], ...] = ()

    @cached_property
    def races(self) -> list[RaceRecord]:
        """The races that `cells` describe.  Raises msgspec.ValidationError for a wrong cell."""
        return msgspec.convert(self.cells, list[RaceRecord])

    def of_form(self, form: Form) -> list[RaceRecord]:
        """The races that had this form; other forms than ALWAYS_RACED may have been left out."""
        return [race for race in self.races if form in race.forms]

    def uncertain(self, form: Form) -> list[RaceRecord]:
        """The races whose medians are less certain than `within` (or USUAL_WITHIN) requires."""
        races = self.of_form(form)
        return [race for race in races if race.forms[form].uncertainty > self._yardstick]

    @property
    def _yardstick(self) -> float:
        return self.within or USUAL_WITHIN

    def verdict(self, form: Form) -> str:
        """STABLE if all medians are certain enough; else a text that says how many are not."""
        if not (wide := self.uncertain(form)):
            return STABLE
        most = max(race.forms[form].uncertainty for race in wide)
        races = formatting.count(len(self.of_form(form)), "race")
        return (
            f"noisy: {len(wide)} of {races} did not get to ± {self._yardstick:.0%} in the median"
            f" (the worst: ± {most:.0%})"
        )

    def document(self) -> dict[str, Any]:
        """The sweep as JSON, with the verdict on each form that was raced."""
        made: dict[str, Any] = msgspec.to_builtins(self)
        raced = [form for form in FORMS if form in ALWAYS_RACED or self.of_form(form)]
        return made | {"verdict": {form: self.verdict(form) for form in raced}}

    def save(self, path: Path) -> None:
        """Replace the file.  If this fails, raises InvalidArgument and leaves the old file."""
        save_text(path, msgspec.json.encode(self.document()).decode(), "record")

    def goes_on(self, path: Path, other: "Sweep") -> "Sweep":
        """The sweep with the cells of `other`, an earlier record of the same sweep in `path`.

        Raises InvalidArgument if `other` is of another machine, number or order of ranks, or of
        another algorithm.
        """
        differences = [*self.fingerprint.differences(other.fingerprint)]
        there, here = len(other.order), len(self.order)
        if there != here:
            differences.append(f"it is of {formatting.count(there, 'rank')}, here are {here}")
        elif self.order != other.order:
            differences.append("the ranks were in another order")
        if self.algorithm != other.algorithm:
            raced = [sweep.algorithm or "the best few algorithms" for sweep in (other, self)]
            differences.append(f"it has races of {raced[0]}, not of {raced[1]}")
        if differences:
            remedy = "name another file with --record"
            raise InvalidArgument(f"resume {path}", "; ".join(differences), remedy)
        return msgspec.structs.replace(self, cells=other.cells)


class _Tuning(msgspec.Struct, frozen=True):
    profile: msgspec.Raw
    races: tuple[RaceRecord, ...] = ()


class _Header(msgspec.Struct):
    format: Any = None
    version: Any = None


class Record(msgspec.Struct, frozen=True):
    """The content of a file: races, a profile, or both."""

    path: Path
    kind: str
    fingerprint: Fingerprint
    races: Sequence[RaceRecord] = ()
    profile: Profile | None = None


def read_sweep(path: Path) -> Sweep:
    """The record of a sweep.  Raises InvalidArgument if the file is no such record."""
    remedy = "name a file that bench --record wrote, or a new one"
    sweep: Sweep = read_document(path, {SWEEP: Sweep}, f"read the record {path}", remedy)[1]
    return sweep


def read_record(path: Path) -> Record:
    """Read what bench, tune or measure printed with --json, or a saved profile.

    Raises InvalidArgument for other files, and DamagedProfile for a profile with wrong content.
    """
    forms = {SWEEP: Sweep, TUNING: _Tuning, MEASUREMENT: _Tuning, Profile.format: msgspec.Raw}
    remedy = "give what bench, tune or measure printed with --json, or a saved profile"
    kind, read = read_document(path, forms, f"read the record {path}", remedy)
    name = f"a {kind.removeprefix('collwise ')}"
    if isinstance(read, Sweep):
        return Record(path, name, read.fingerprint, read.races)
    raw, races = (read.profile, read.races) if isinstance(read, _Tuning) else (read, ())
    profile = Profile.from_json(bytes(raw), str(path))
    return Record(path, name, profile.fingerprint, races, profile)


def read_document(
    path: Path, forms: Mapping[str, type[Any]], asked: str, remedy: str
) -> tuple[str, Any]:
    """The format of a JSON document, and its content.   forms: the content's type, by format.

    Raises InvalidArgument, with `asked` and `remedy`, if the file cannot be read as one of these.
    """
    try:
        if not (content := read_input(path)).strip():
            raise ValueError("it is empty")
        header = decode_json(content, _Header)
        if header.format not in forms:
            known = ", ".join(map(repr, forms))
            one_of = "one of " * (len(forms) > 1)
            raise ValueError(f"its format is {header.format!r}, not {one_of}{known}")
        if header.format != Profile.format and header.version != VERSION:
            raise ValueError(f"its version is {header.version!r}; this collwise reads {VERSION}")
        read = decode_json(content, forms[header.format])
        if isinstance(read, Sweep):
            _ = read.races  # raises if a cell is no race
    except (OSError, ValueError) as problem:  # msgspec's errors are ValueErrors
        seen = getattr(problem, "strerror", None) or str(problem)
        raise InvalidArgument(asked, seen, remedy) from None
    return str(header.format), read
