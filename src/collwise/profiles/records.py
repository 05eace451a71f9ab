"""The parts of a profile: measured sizes, their medians, provenance, and results of races."""

import platform
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.metadata import version
from math import isfinite
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

import msgspec
from msgspec.structs import replace

from collwise.model.collective_names import shown_name
from collwise.system.integers import MOST_RANKS
from collwise.system.quantities import LARGEST_SIZE

Mode: TypeAlias = Literal["nonblocking", "blocking"]
"""The mode of sending messages: `Isend`, or `Send`."""
MODES: tuple[Mode, Mode] = ("nonblocking", "blocking")
"""All modes, indexed by whether sends are blocking."""
Positive: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=1e12)]
NotNegative: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1e12)]
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=LARGEST_SIZE)]
Index: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_SIZE)]
Bounds: TypeAlias = tuple[float, float]
"""The lower and the upper end of a 95 % interval."""


class ProfileRecord(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Base class of the parts of a profile; refuses NaN, infinities and reversed intervals."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            numbers = value if isinstance(value, tuple) else (value,)
            if any(isinstance(x, float) and not isfinite(x) for x in numbers):
                raise ValueError(f"{name} = {value}: not a finite number")
            if "interval" in name and value is not None and value[0] > value[1]:
                raise ValueError(f"{name} = {value}: its ends are in the wrong order")


Record = TypeVar("Record", bound=ProfileRecord)


class MeasuredSize(ProfileRecord, frozen=True, kw_only=True):
    """t0 and λ of messages of one size and one mode of sending."""

    nbytes: Count
    mode: Mode
    t0_s: Positive
    lam: Positive
    """λ as measured; a value below 1 counts as 1."""
    t0_interval_s: Bounds | None
    lam_interval: Bounds | None
    t0_experiments_s: tuple[Positive | None, Positive | None]
    lam_experiments: tuple[float | None, float | None]
    disagreement: NotNegative | None
    """|λ₁ − λ₂| of the two experiments, relative to their mean."""
    repetitions: Count
    segment: Index
    """The number of the library's protocol for this size; in each mode protocols count from 0."""
    verdict: str
    fitted: bool = False
    """Whether t0 was read from a line through all sizes of the same protocol, because this size's
    own samples could not tell t0 from 0.
    """


class MedianTime(ProfileRecord, frozen=True, kw_only=True):
    """The median time of one experiment with k targets, from which λ and t0 follow."""

    nbytes: Count
    mode: Mode
    experiment: Literal[1, 2]
    k: Count
    median_s: NotNegative
    interval_s: Bounds | None
    repetitions: Count


class CombineTime(ProfileRecord, frozen=True, kw_only=True):
    """The time in which the slowest rank combines two vectors of nbytes."""

    op: str
    """The operator's name in the planner: sum, max, …"""
    dtype: str
    """The type's name in NumPy: float64, int32, …"""
    nbytes: Count
    median_s: NotNegative
    interval_s: Bounds
    repetitions: Count


class PortTime(ProfileRecord, frozen=True, kw_only=True):
    """The time for which a message of nbytes keeps a group's shared port busy."""

    nbytes: Count
    senders: Count
    """The number of ranks that sent at once."""
    port_s: NotNegative
    """This time in seconds; 0 if all senders together took hardly longer than one sender alone."""
    port_interval_s: Bounds | None
    rank_s: Positive | None = None
    """Seconds for which a message keeps its sender itself busy; None unless one sender fills the
    port.
    """
    rank_interval_s: Bounds | None = None
    repetitions: Count


class ReadTime(ProfileRecord, frozen=True, kw_only=True):
    """The time for which a read of nbytes from shared memory keeps the reader busy."""

    nbytes: Count
    read_s: NotNegative
    repetitions: Count
    readers: Index = 0
    """How many ranks read the same messages at once; 0 if that was not measured."""
    by_one_s: NotNegative = 0.0
    """Seconds that each more published message takes if one rank reads it."""
    by_all_s: NotNegative = 0.0
    """The same if all of `readers` read it; equal to `by_one_s` if reads run side by side."""


class MeasuredLevel(ProfileRecord, frozen=True, kw_only=True):
    """The measurements inside the groups of one level, and of the port that a group shares."""

    name: str
    """The word for a group of the level, such as "node"."""
    ranks: Count
    """The number of ranks that took part."""
    points: tuple[MeasuredSize, ...]
    port: tuple[PortTime, ...] = ()

    def __post_init__(self) -> None:
        check_points(self.points)
        sizes = [time.nbytes for time in self.port]
        if sizes != sorted(set(sizes)):
            raise ValueError(f"port: the sizes {sizes} do not ascend")


def check_points(points: tuple[MeasuredSize, ...]) -> None:
    """Raise ValueError unless there are points, with ascending sizes and segments in each mode."""
    if not points:
        raise ValueError("points is empty: nothing was measured")
    last: dict[str, tuple[int, int]] = {}
    for i, point in enumerate(points):
        before = last.get(point.mode)
        if before is not None and point.nbytes <= before[0]:
            raise ValueError(
                f"points[{i}].nbytes = {point.nbytes} after {before[0]}, both {point.mode}:"
                " sizes must ascend"
            )
        if point.segment not in ((0,) if before is None else (before[1], before[1] + 1)):
            seen = f"points[{i}].segment = {point.segment}"
            raise ValueError(f"{seen}: segments count up from 0 in each mode")
        last[point.mode] = point.nbytes, point.segment


def ranks_per_node_of(ranks_of_nodes: Iterable[int]) -> str:
    """The placement of ranks as text, nodes x ranks of a node: "2x16", or "2x16 1x8".

    ranks_of_nodes: the number of ranks on each node.   The text does not say which ranks are where.
    """
    nodes = sorted(Counter(ranks_of_nodes).items(), reverse=True)
    return " ".join(f"{count}x{ranks}" for ranks, count in nodes)


class Provenance(ProfileRecord, frozen=True, kw_only=True):
    """Where, when and how a profile was made."""

    created: str
    """The time in UTC, as ISO 8601 writes it."""
    collwise: str
    python: str
    mpi4py: str
    system: str
    hosts: dict[str, Count]
    """Number of ranks on each host."""
    usable_cores: Count | None = None
    """Cores of a node that the ranks may use; None: all of them."""
    command: str = ""
    ranks: Index = 0
    seed: int = 0
    budget_s: NotNegative = 0.0
    elapsed_s: NotNegative = 0.0
    engine: str = ""
    """The engine that ran the timed calls, "compiled" or "python"; empty in older profiles."""
    notes: tuple[str, ...] = ()
    lines_s: tuple[tuple[Positive, ...], ...] = ()
    """Seconds for a cache line from a rank to the next one of its node and back, in the order of
    ranks: before the measurements, and after them.  Empty if they are unknown."""

    @property
    def ranks_per_node(self) -> str:
        """The placement of ranks as text, nodes x ranks of a node: "2x16", or "2x16 1x8"."""
        return ranks_per_node_of(self.hosts.values())


class Measurements(ProfileRecord, frozen=True, kw_only=True):
    """The measurements with one placement of ranks, and their quality.

    If ranks share nodes, or nodes lie in racks, `levels` are the inner levels, the innermost first,
    and `points` belong to the outermost level.
    """

    verdict: str
    advice: tuple[str, ...] = ()
    provenance: Provenance
    points: tuple[MeasuredSize, ...]
    medians: tuple[MedianTime, ...] = ()
    combining: tuple[CombineTime, ...] = ()
    levels: tuple[MeasuredLevel, ...] = ()
    groups: dict[str, tuple[Index, ...]] = msgspec.field(default_factory=dict)
    """For each host, the numbers of its groups beyond nodes (such as racks), innermost first."""
    reading: tuple[ReadTime, ...] = ()
    """Times of reads, if memory carries data inside nodes; sizes ascend."""

    def __post_init__(self) -> None:
        check_points(self.points)
        if (sizes := [time.nbytes for time in self.reading]) != sorted(set(sizes)):
            raise ValueError(f"reading: the sizes {sizes} do not ascend")
        if len({(t.op, t.dtype, t.nbytes) for t in self.combining}) < len(self.combining):
            raise ValueError("combining: an operator, type and length is there twice")

    def at_lower_ends(self) -> "Measurements":
        """The measurements with times and λ at the lower ends of their 95 % intervals.

        Values without an interval, times of reads, and raw medians stay the same.
        """
        levels = (
            replace(level, points=_lowest(level.points), port=_lowest(level.port))
            for level in self.levels
        )
        return replace(
            self,
            points=_lowest(self.points),
            levels=tuple(levels),
            combining=_lowest(self.combining),
        )

    def combining_times(self, op: str, dtype: str) -> list[tuple[int, float]]:
        """Times of combining for an operator and a type: (bytes, seconds), ascending.

        If the pair was not measured, the result has times of another operator on the same type, or
        else of any pair; it is empty if no pair was measured.
        """

        def alike(time: CombineTime) -> tuple[bool, bool]:
            return (time.op, time.dtype) == (op, dtype), time.dtype == dtype

        best = max(self.combining, key=alike, default=None)  # of equally good ones the first
        return sorted(
            (t.nbytes, t.median_s)
            for t in self.combining
            if best is not None and (t.op, t.dtype) == (best.op, best.dtype)
        )


_INTERVALS = {
    "t0_s": "t0_interval_s",
    "lam": "lam_interval",
    "port_s": "port_interval_s",
    "rank_s": "rank_interval_s",
    "median_s": "interval_s",
}
"""For each field with a value, the field with the value's 95 % interval."""


def _lowest(records: tuple[Record, ...]) -> tuple[Record, ...]:
    """The records with each value at the lower end of its interval, but at least a picosecond."""
    lowest = []
    for record in records:
        known = {value: getattr(record, ends, None) for value, ends in _INTERVALS.items()}
        ends = {value: max(interval[0], 1e-12) for value, interval in known.items() if interval}
        lowest.append(replace(record, **ends))
    return tuple(lowest)


Form: TypeAlias = Literal["blocking", "nonblocking", "persistent"]
FORMS: tuple[Form, ...] = ("blocking", "nonblocking", "persistent")
"""All forms of a collective's calls, in the order of `enum form` in calls.h."""
USUAL_WITHIN = 0.05
"""By default a race is uncertain unless its medians are known to ± this share."""


class RacedOwn(ProfileRecord, frozen=True, kw_only=True):
    """The fastest of the library's own algorithms in a race, its default excluded.

    speedup_low, speedup_high: 95 % interval of the default's time divided by this algorithm's.
    """

    name: str
    """The library's name of the algorithm."""
    settings: dict[str, int]
    median_s: NotNegative
    speedup_low: NotNegative
    speedup_high: NotNegative


class RaceResult(ProfileRecord, frozen=True, kw_only=True):
    """The result of a race: the fastest competitor against the library's default."""

    collective: str
    form: Form
    """The form of the calls that were raced; non-blocking ones since version 9."""
    ranks: Annotated[int, msgspec.Meta(ge=1, le=MOST_RANKS)]
    nbytes: Index
    root: Index
    sources: Index = 0
    """The number of ranks with data, in a collective with sources; nbytes counts all their data."""
    algorithm: str
    settings: dict[str, Any]
    """The algorithm's settings, as JSON values: fractions as strings, lists instead of tuples."""
    ours_s: NotNegative
    library_s: NotNegative
    speedup_low: NotNegative
    speedup_high: NotNegative
    decision: Literal["collwise", "library"]
    ranks_per_node: str = ""
    """The placement of the ranks, such as "2x16"; empty in version 1, which means any."""
    former: str | msgspec.UnsetType = msgspec.field(default=msgspec.UNSET, name="placement")
    """The name of `ranks_per_node` in files of versions 2 to 5; only read."""
    engine: str = ""
    """The engine that ran the timed calls, "compiled" or "python"; empty in older profiles."""
    learned: bool = False
    """Whether the times were taken from a running program's own calls instead of a race."""
    method: str = ""
    """The MPI method that was called, such as "Allgather"; empty before version 10."""
    own: RacedOwn | None = None
    """None if learned, before version 7, if none ran to the end, or a time was impossible."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.former is not msgspec.UNSET:
            msgspec.structs.force_setattr(self, "ranks_per_node", self.former)
            msgspec.structs.force_setattr(self, "former", msgspec.UNSET)
        msgspec.json.encode(self.settings)  # raises TypeError for what JSON does not know
        for field in ("collective", "algorithm"):  # as earlier versions named them
            msgspec.structs.force_setattr(self, field, shown_name(getattr(self, field)))
        if self.root >= self.ranks:
            raise ValueError(f"root = {self.root}: there are {self.ranks} ranks")
        if not self.algorithm.startswith(f"{self.collective}/"):
            raise ValueError(f"algorithm = {self.algorithm!r} is none of {self.collective}")
        if self.speedup_low > self.speedup_high:
            raise ValueError(f"speedup_low = {self.speedup_low} is above speedup_high")

    @property
    def key(self) -> tuple[str, str, int, int, int, int, str]:
        """The problem, form and placement of the race; no two results in a profile share a key."""
        problem = self.collective, self.form, self.ranks, self.nbytes, self.root, self.sources
        return *problem, self.ranks_per_node


UNITS = {
    "nbytes": "bytes",
    "*_s": "seconds",
    "lam": "units of t0 (a message arrives lam * t0 after its send began)",
    "intervals": "95 % confidence, lower and upper end",
    "disagreement": "relative difference of the two experiments' lam",
}


def local_provenance(**known: Any) -> Provenance:
    """The provenance of a profile that is made now on this host.

    known: the fields that only MPI and the measuring program can tell.
    """
    return Provenance(
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        collwise=version("collwise"),
        python=platform.python_version(),
        system=platform.platform(),
        **known,
    )
