"""Profiles: the measurements of one machine and its races, in a versioned JSON file.

A profile is data for planning (`profile.machine`) with its units, its provenance and a verdict on
its own quality.  Reading a file checks everything; writing replaces the file atomically.
"""

import os
import re
import warnings
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cached_property, wraps
from pathlib import Path
from statistics import median
from typing import Any, ClassVar, Final, Generic, Literal, NoReturn, ParamSpec, TypeVar

import msgspec

from collwise.errors import DamagedProfile, ForeignProfile, InvalidArgument, shown
from collwise.model.machine import Machine
from collwise.model.measured_machine import Measured
from collwise.model.placement import Placement, checked_placement
from collwise.profiles.fingerprint import LABELS, Fingerprint
from collwise.profiles.level_machine import level_machine, machine_of, sharing
from collwise.profiles.records import (
    UNITS,
    CombineTime,
    MeasuredLevel,
    MeasuredSize,
    Measurements,
    MedianTime,
    Mode,
    Provenance,
    RaceResult,
)
from collwise.system.files import decode_json, read_input, replace_file
from collwise.system.host import NODE
from collwise.system.integers import checked_integer, ratio

ENVIRONMENT = "COLLWISE_PROFILE"
"""The environment variable that names the profile to use."""


FORMAT = "collwise profile"
VERSION: Final = 10
"""Version 2 added placements, 3 levels, 4 results that programs learned while running, 5 networks.
Version 6 calls a race's placement ranks_per_node.  Version 7 added the fastest of the library's own
algorithms, 8 what carries data inside a node, and 9 races of non-blocking calls."""


class _Header(msgspec.Struct):
    format: Any = None
    version: Any = None


class ProfileFile(Measurements, frozen=True, kw_only=True):
    """The layout of a profile's file: the fields of `measurements` lie beside the profile's own."""

    format: Literal["collwise profile"]
    version: Literal[1, 2, 3, 4, 5, 6, 7, 8, 9, 10] = VERSION
    units: dict[str, str] = msgspec.field(default_factory=dict)
    fingerprint: Fingerprint
    other_placements: tuple[Measurements, ...] = ()
    wins: tuple[RaceResult, ...] = ()


Value = TypeVar("Value")
Asked = ParamSpec("Asked")


class _Latest(Generic[Value]):
    """A descriptor for an attribute of a profile that is read from the profile's measurements."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, profile: "Profile", owner: type) -> Value:
        value: Value = getattr(profile.measurements, self.name)
        return value


def _understands_placement(method: Callable[Asked, Value]) -> Callable[Asked, Value]:
    """A decorator: the method also accepts `placement=` for `ranks_per_node=`, with a warning."""

    @wraps(method)
    def called(*args: Asked.args, **named: Asked.kwargs) -> Value:
        if "placement" in named:
            warnings.warn("write ranks_per_node= for placement=", DeprecationWarning, stacklevel=2)
            named["ranks_per_node"] = named.pop("placement")
        return method(*args, **named)

    return called


class Profile(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The measurements and races of a machine.  `Profile.load` reads it, `save` writes it.

    A profile is immutable.  Points, verdict and machine are those of `measurements`.
    `at` returns a profile that uses the measurements with another number or placement of ranks.
    """

    fingerprint: Fingerprint
    measurements: Measurements
    """The measurements in use: the newest, unless `at` chose others."""
    other_placements: tuple[Measurements, ...] = ()
    """The measurements with other placements of ranks, one for each; as saved, the newest first."""
    race_results: tuple[RaceResult, ...] = ()

    format: ClassVar = FORMAT
    version: ClassVar = VERSION
    units: ClassVar = UNITS
    verdict = _Latest[str]()
    advice = _Latest[tuple[str, ...]]()
    provenance = _Latest[Provenance]()
    points = _Latest[tuple[MeasuredSize, ...]]()
    medians = _Latest[tuple[MedianTime, ...]]()
    combining = _Latest[tuple[CombineTime, ...]]()
    levels = _Latest[tuple[MeasuredLevel, ...]]()
    groups = _Latest[dict[str, tuple[int, ...]]]()

    def __post_init__(self) -> None:
        if len({result.key for result in self.race_results}) < len(self.race_results):
            raise ValueError("wins: two of them are about the same collective, ranks, size, root")
        if len({m.provenance.ranks_per_node for m in self.every}) < len(self.every):
            raise ValueError("other_placements: two measurements have the same ranks_per_node")

    @_understands_placement
    def at(self, ranks: int, ranks_per_node: str = "") -> "Profile":
        """The profile that uses the measurements with `ranks` ranks, or with the nearest number.

        ranks_per_node: the placement of the ranks on nodes, such as "2x8"; "" if unknown.
        Measurements with the same placement are preferred.
        """
        asked = "a profile at so many ranks"
        ranks = checked_integer(ranks, asked, "ranks", 0)
        if not isinstance(ranks_per_node, str):
            seen = f"ranks_per_node = {shown(ranks_per_node)}"
            raise InvalidArgument(asked, seen, "give it as text, such as 2x8")

        def distance(measured: Measurements) -> tuple[bool, Fraction]:
            made = measured.provenance
            elsewhere = made.ranks_per_node != ranks_per_node
            return bool(ranks_per_node) and elsewhere, ratio(ranks, made.ranks)

        nearest = min(self.every, key=distance)  # of equally near ones the newest
        if nearest is self.measurements:
            return self
        others = tuple(measured for measured in self.every if measured is not nearest)
        return msgspec.structs.replace(self, measurements=nearest, other_placements=others)

    @property
    def every(self) -> tuple[Measurements, ...]:
        """All measurements: those in use, then those with other placements."""
        return (self.measurements, *self.other_placements)

    @_understands_placement
    def races_at(self, ranks: int, ranks_per_node: str = "") -> tuple[RaceResult, ...]:
        """All race results, except those on `ranks` ranks with another placement on nodes.

        ranks_per_node: the placement, such as "2x8"; "" for the placement of the measurements with
        the nearest number of ranks.
        """
        nearest = self.at(ranks, ranks_per_node)
        wanted = ("", ranks_per_node or nearest.provenance.ranks_per_node)
        return tuple(r for r in self.race_results if r.ranks != ranks or r.ranks_per_node in wanted)

    @cached_property
    def machine(self) -> Machine:
        """The machine for planning, as measured with non-blocking sends, which plans use.

        It has one level, the outermost; `machine_on` gives the machine with all levels.
        """
        return self._planned(self.machine_for("nonblocking"))

    def _planned(self, machine: Measured) -> Machine:
        return machine if self.levels else sharing(machine, self.measurements.reading)

    def machine_for(self, mode: Mode) -> Measured:
        """The machine as measured with one mode of sending, or of publishing in shared memory.

        Raises InvalidArgument if that mode was not measured.
        """
        if not isinstance(mode, str) or all(point.mode != mode for point in self.points):
            raise InvalidArgument(
                f"the machine with {mode if isinstance(mode, str) else shown(mode)} sends",
                "the profile has no such measurements",
                "measure again: collwise measure",
            )
        return machine_of(self.points, mode)

    def machine_combining(self, op: str, dtype: str) -> Machine:
        """The machine with the measured times of combining `dtype` vectors by the operator `op`.

        If that pair was not measured, times of another operator on the same type are used, or else
        times of any pair.  If no pair was measured, combining is free.
        """
        times = self.measurements.combining_times(op, dtype)
        if not times:
            return self.machine
        return self._planned(self.machine_for("nonblocking").with_combining(times))

    def machine_on(
        self, placement: Placement | None, op: str | None = None, dtype: str | None = None
    ) -> Machine:
        """The machine with all its measured levels and the ranks of `placement`.

        The machine has one level if `placement` is None, or if no measurements have its number of
        levels.   op, dtype: add the times of combining `dtype` vectors by `op`; None: add none.
        """
        if placement is not None:
            checked_placement(placement, "a measured machine with ranks placed")
        for measurements in self.every:
            if placement is not None and len(measurements.levels) == placement.depth - 1 > 0:
                times = () if op is None else self.measurements.combining_times(op, str(dtype))
                return level_machine(measurements, placement, times)
        return self.machine if op is None else self.machine_combining(op, str(dtype))

    def at_lower_ends(self) -> "Profile":
        """The profile with measured times and λ at the lower ends of their 95 % intervals.

        Values without an interval, times of reads, raw medians and race results stay the same.
        """
        first, *others = (measured.at_lower_ends() for measured in self.every)
        return msgspec.structs.replace(self, measurements=first, other_placements=tuple(others))

    @property
    def disagreement(self) -> float | None:
        """The median, over all sizes, of the disagreement of the two experiments; None if unknown.

        This value measures the quality of all measurements in use.
        """
        known = [p.disagreement for p in self.points if p.disagreement is not None]
        return median(known) if known else None

    def with_race_results(self, results: Iterable[RaceResult]) -> "Profile":
        """The profile with these results added; each replaces an older one of the same `key`."""
        by_key = {result.key: result for result in (*self.race_results, *results)}
        ordered = tuple(by_key[key] for key in sorted(by_key))
        return msgspec.structs.replace(self, race_results=ordered)

    def check(self, fingerprint: Fingerprint) -> None:
        """Raise ForeignProfile, which names the differences, if `fingerprint` does not fit."""
        if differences := self.fingerprint.differences(fingerprint):
            made = self.provenance
            hosts = ", ".join(list(made.hosts)[:3]) + (", …" if len(made.hosts) > 3 else "")
            remedy = f"measure here: collwise measure -n {max(made.ranks, 2)}"
            if differences[0].startswith(LABELS["transport"]):  # nothing else differs
                possible = " (`collwise doctor` says whether that is possible)"
                theirs = self.fingerprint.transport
                remedy = f"set {NODE}={theirs}{possible * (theirs == 'memory')}, or {remedy}"
            raise ForeignProfile(
                f"use the profile measured on {hosts} at {made.created}",
                "this is another machine: " + "; ".join(differences),
                remedy,
            )

    def to_json(self) -> str:
        """The profile as a JSON document; `from_json` gives an equal profile back."""
        return (
            msgspec.json.format(msgspec.json.encode(self.to_document()), indent=2).decode() + "\n"
        )

    def to_document(self) -> dict[str, Any]:
        """The profile as plain dictionaries and lists, for a larger JSON document."""
        document: dict[str, Any] = msgspec.to_builtins(
            {
                "format": FORMAT,
                "version": VERSION,
                "fingerprint": self.fingerprint,
                **msgspec.structs.asdict(self.measurements),
                "units": UNITS,
                "other_placements": self.other_placements,
                "wins": self.race_results,
            }
        )
        return document

    @staticmethod
    def from_json(text: str | bytes, name: str = "the profile") -> "Profile":
        """Read a profile from JSON text.  Raises DamagedProfile, which calls the profile `name`."""
        if not isinstance(text, str | bytes):
            raise InvalidArgument(f"read {name}", f"it is {shown(text)}", "give its text, or bytes")

        def damaged(
            seen: str, remedy: str = "restore it, or measure again: collwise measure"
        ) -> NoReturn:
            raise DamagedProfile(f"read {name}", seen, remedy)

        raw = text.encode() if isinstance(text, str) else text
        raw = raw.removeprefix(b"\xef\xbb\xbf")  # some editors put a byte-order mark there
        if not raw.strip():
            damaged("it is empty")
        try:
            raw.decode("utf-8")
            header = decode_json(raw, _Header)
            if header.format != FORMAT:
                damaged(
                    f"its format is {header.format!r}, not {FORMAT!r}", "name a collwise profile"
                )
            if isinstance(header.version, int) and header.version > VERSION:
                damaged(
                    f"its version is {header.version}, this collwise reads up to {VERSION}",
                    "update collwise, or measure again: collwise measure",
                )
            read = decode_json(raw, ProfileFile)
            return Profile(
                fingerprint=read.fingerprint,
                measurements=Measurements(
                    **{name: getattr(read, name) for name in Measurements.__struct_fields__}
                ),
                other_placements=read.other_placements,
                race_results=read.wins,
            )
        except UnicodeDecodeError as error:
            damaged(f"it is not UTF-8 text (at byte {error.start})")
        except msgspec.ValidationError as error:
            unknown = r"Invalid enum value (.*) - at `\$\.(.*)`$"
            damaged(re.sub(unknown, r"its \2 is \1, which is unknown", str(error)))
        except msgspec.DecodeError as error:
            seen = str(error)
            if place := re.search(r"\(byte (\d+)\)", seen):
                line = 1 + raw.count(b"\n", 0, int(place[1]))
                seen += f", in line {line}"
            damaged(seen)
        except ValueError as error:
            damaged(str(error))

    @staticmethod
    def load(path: str | os.PathLike[str]) -> "Profile":
        """Read a profile file.  Raises DamagedProfile, which says what is wrong and where."""
        if not isinstance(path, str | os.PathLike):
            raise InvalidArgument("a profile", f"its path is {shown(path)}", "give text or a Path")
        name = f"the profile {os.fspath(path)}"
        try:
            text = read_input(Path(path))
        except FileNotFoundError:
            remedy = "measure this machine: collwise measure"
            raise DamagedProfile(f"read {name}", "there is no such file", remedy) from None
        except (OSError, ValueError) as error:  # ValueError: a name with a null character
            seen = getattr(error, "strerror", None) or str(error)
            remedy = "name a file that can be read, or measure again: collwise measure"
            raise DamagedProfile(f"read {name}", seen, remedy) from error
        return Profile.from_json(text, name)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the profile, atomically: the file always holds the whole old or new profile.

        Makes missing directories, and returns the path.  If the file cannot be written, raises
        InvalidArgument and leaves nothing behind.
        """
        target = Path(path)
        document = self.to_json()
        Profile.from_json(document, "the profile to be saved")
        try:
            replace_file(target, document.encode())
        except (OSError, ValueError) as error:
            raise InvalidArgument(
                f"save the profile as {target}",
                getattr(error, "strerror", None) or str(error),
                f"name another file, by --profile or {ENVIRONMENT}",
            ) from error
        return target


def is_profile(content: bytes) -> bool:
    """Whether the content of a file has the format of a profile, of any version, even if damaged.

    The content may be truncated after its beginning.
    """
    content = content.removeprefix(b"\xef\xbb\xbf")
    if re.match(rb'\s*\{\s*"format":\s*"%b"' % FORMAT.encode(), content):
        return True
    try:
        return bool(decode_json(content, _Header).format == FORMAT)
    except ValueError:  # msgspec's errors are ValueErrors
        return False


def with_measurements(profile: Profile, **changes: Any) -> Profile:
    """The profile with `changes` to fields of its `measurements`."""
    measurements = msgspec.structs.replace(profile.measurements, **changes)
    return msgspec.structs.replace(profile, measurements=measurements)
