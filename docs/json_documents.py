"""The JSON documents that commands print, as types: their schemas are made of these.

Tests read what commands print by these schemas, which allow no other fields.  Times are in seconds
(`…_s`), sizes in bytes (`nbytes`).
"""

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from collwise.profiles.fingerprint import Fingerprint
from collwise.profiles.profile import ProfileFile
from collwise.profiles.records import Form, Provenance, RaceResult
from collwise.tuning.comparison import Comparison
from collwise.tuning.grid_results import GridCell
from collwise.tuning.scanning import Scan

Interval = tuple[float, float | None]
"""The ends of a 95 % interval; null where the upper one is infinite."""
Settings = dict[str, str]


class Document(msgspec.Struct, forbid_unknown_fields=True):
    """A JSON object without other fields."""


class Source(Document, kw_only=True):
    """A rank that has data, and how much."""

    rank: int
    nbytes: int


class Problem(Document, kw_only=True):
    """What was asked, and of which machine."""

    version: Literal[1]
    collective: str
    ranks: int
    nbytes: int
    root: int
    item: int
    order: Literal["any", "same", "rank", "fixed"]
    order_because: str
    sources: list[Source] | UnsetType = UNSET
    shape: list[int] | UnsetType = UNSET
    machine: str
    machine_notes: list[str]
    machine_from: str
    topology: str | None


class Candidate(Document, kw_only=True):
    """A schedule that a plan considered; without a time if it does not apply."""

    label: str
    predicted_s: float | None
    estimate: bool
    verdict: str


class Served(Document, kw_only=True):
    """Who serves a call, and why: an algorithm, or the library's own (null)."""

    algorithm: str | None
    because: str


class Plan(Problem, kw_only=True):
    """`plan --json`: the choice, the runners-up, the bounds."""

    format: Literal["collwise plan"]
    algorithm: str
    settings: Settings
    predicted_s: float | None
    estimate: bool
    simulated: str
    spent_s: dict[str, float]
    lower_bound_s: float
    lower_bound: str
    unsegmented_bound_s: float
    candidates: list[Candidate]
    excluded: dict[str, str]
    remarks: list[str]
    profile_verdict: str | UnsetType = UNSET
    served: dict[str, Served] | UnsetType = UNSET
    pictures: list[str] | UnsetType = UNSET


class Waits(Document, kw_only=True):
    """How many messages waited for links, and for how long."""

    messages: int
    total_s: float
    longest_s: float


class Link(Document, kw_only=True, rename={"source": "from", "target": "to"}):
    """A link of the network, for how long it was busy, and in which share of the time."""

    link: int
    source: int
    target: int
    busy_s: float
    share: float


class WaitedFor(Document, kw_only=True):
    """The link for which a message waited longest, and the message that held it."""

    link: int
    held_by: int


class Transfer(Document, kw_only=True):
    """A message; the last five are there on networks with links."""

    source: int
    target: int
    nbytes: int
    start_s: float
    sent_s: float
    received_s: float
    ready_s: float | UnsetType = UNSET
    entry_s: float | UnsetType = UNSET
    header_s: float | UnsetType = UNSET
    links: list[int] | UnsetType = UNSET
    waited_for: WaitedFor | UnsetType | None = UNSET


class Simulated(Document, kw_only=True):
    """A schedule that was simulated; long lists are null."""

    algorithm: str
    settings: Settings
    completion_s: float
    first_s: float
    messages: int
    bytes_sent: int
    waits: Waits
    links: list[Link]
    finish_s: list[float] | None
    transfers: list[Transfer] | UnsetType | None = UNSET


class Simulation(Problem, kw_only=True):
    """`simulate --json`: one schedule with its messages, or several."""

    format: Literal["collwise simulate"]
    lower_bound_s: float
    lower_bound: str
    simulations: list[Simulated]
    excluded: dict[str, str]
    pictures: list[str] | UnsetType = UNSET


class Goal(Document, kw_only=True):
    """`simulate --goal FILE --json`: a GOAL program's times."""

    format: Literal["collwise simulate"]
    version: Literal[1]
    goal: str
    ranks: int
    machine: str
    machine_from: str
    machine_notes: list[str]
    topology: str | None
    completion_s: float
    messages: int
    bytes_sent: int
    calc_s: float
    finish_s: list[float] | None
    pictures: list[str] | UnsetType = UNSET


class Export(Problem, kw_only=True):
    """`export goal --json` and its like: the text, or the file it was written to."""

    format: Literal["collwise export"]
    exported: str
    algorithm: str
    text: str | UnsetType = UNSET
    path: str | UnsetType = UNSET


class Decision(Document, kw_only=True):
    """What a race says about one form of a call: ours, the library's, who serves from now on."""

    call: str
    algorithm: str
    predicted_s: float | None
    ours_s: float
    ours_interval_s: Interval
    library: str
    library_s: float
    library_interval_s: Interval
    ratio: float
    ratio_interval: Interval
    speedup: float
    speedup_interval: Interval
    winner: str
    decision: Literal["collwise", "library"]
    verdict: str


class Competitor(Document, kw_only=True):
    """Who raced, with the time of the slowest rank in every repetition."""

    label: str
    median_s: float
    interval_s: Interval
    predicted_s: float | None
    samples_s: list[float]


class RaceLoad(Document, kw_only=True):
    """What timing a race took, and before and after it the `lines_s` of a profile's provenance."""

    began_s: float
    ended_s: float
    calls_s: float
    worked_s: float
    lines_s: list[list[float]]


class Race(Decision, kw_only=True):
    """A race; what is decided at the top is about persistent calls."""

    collective: str
    ranks: int
    nbytes: int
    root: int
    op: str | UnsetType = UNSET
    dtype: str | UnsetType = UNSET
    sources: list[Source] | UnsetType = UNSET
    shape: list[int] | UnsetType = UNSET
    t0_s: float | None
    lam: float | None
    lower_bound_s: float | None
    spent_s: dict[str, float]
    forms: dict[Form, Decision]
    dropped: int
    starts_apart_s: float
    load: RaceLoad
    competitors: list[Competitor]


class Unraced(Document, kw_only=True):
    """A race that the budget left out, with the speed-up that the model predicts."""

    collective: str
    nbytes: int
    predicted_speedup: float | None


class Saving(Document, kw_only=True):
    """What became of the results; the lists are empty or left out where nothing is to be told."""

    not_saved: list[str]
    profile_path: str | UnsetType = UNSET
    saved: Any = UNSET


class Tuning(Saving, kw_only=True):
    """`tune --json`."""

    format: Literal["collwise tuning"]
    version: Literal[1]
    profile: ProfileFile
    races: list[Race]
    unraced: list[Unraced]
    report_path: str | UnsetType = UNSET


class Line(Document, kw_only=True):
    """α + nβ over the sizes of one protocol, from `first` to `last` bytes."""

    first: int
    last: int
    alpha_s: float
    beta_s: float


class Measurement(Saving, kw_only=True):
    """`measure --json`."""

    format: Literal["collwise measurement"]
    version: Literal[1]
    profile: ProfileFile
    hockney: list[Line]


class Sweep(Document, kw_only=True):
    """`bench --json`, and what `bench --record` keeps."""

    format: Literal["collwise sweep"]
    version: Literal[1]
    within: float
    order: list[int]
    algorithm: str | None
    fingerprint: Fingerprint
    provenance: Provenance
    cells: list[Race]
    verdict: dict[str, str]
    not_saved: list[str] | UnsetType = UNSET
    record_path: str | UnsetType = UNSET
    csv_path: str | UnsetType = UNSET
    picture_path: str | UnsetType = UNSET
    report_path: str | UnsetType = UNSET


class Grid(Document, kw_only=True):
    """`bench --grid --json`, and what `--record` keeps then.

    wanted: how many cells all rounds have.
    """

    format: Literal["collwise grid"]
    version: Literal[1]
    libraries: list[str]
    wanted: int
    cells: list[GridCell]


class Call(Document, kw_only=True):
    """Calls of one kind: how often, who served them, and what a tuning would be worth."""

    method: str
    form: str
    ranks: int
    collective: str | UnsetType = UNSET
    nbytes: int | UnsetType = UNSET
    root: int | UnsetType = UNSET
    sources: list[tuple[int, int]] | UnsetType = UNSET
    op: str | UnsetType | None = UNSET
    dtype: str | UnsetType | None = UNSET
    times: int
    algorithm: str | None
    why: str
    saved_s: float | None
    spent_s: float | None
    worth_s: float | None
    evidence: str


class Calls(Document, kw_only=True):
    """`run --json FILE`: what a program called."""

    format: Literal["collwise calls"]
    version: Literal[1]
    mpi_library: str
    ranks: int
    calls: list[Call]
    saved_s: float
    worth_s: float
    tune: str


class Finding(Document, kw_only=True):
    """Something that `doctor` looked at, and how to mend it."""

    status: Literal["ok", "note", "wrong"]
    what: str
    seen: str
    remedy: str


class Doctor(Document, kw_only=True):
    """`doctor --json`."""

    format: Literal["collwise doctor"]
    version: Literal[1]
    findings: list[Finding]


class SavedProfile(Document, kw_only=True):
    """A saved profile, and on which ranks it has races; or what is damaged in it."""

    name: str
    path: str
    damaged: str | UnsetType = UNSET
    mpi_library: str | UnsetType = UNSET
    layout: str | UnsetType = UNSET
    cpu_model: str | UnsetType = UNSET
    measured: list[str] | UnsetType = UNSET
    races: dict[str, int] | UnsetType = UNSET
    created: str | UnsetType = UNSET
    verdict: str | UnsetType = UNSET


class WisdomList(Document, kw_only=True):
    """`wisdom list --json`."""

    format: Literal["collwise wisdom list"]
    version: Literal[1]
    profiles: list[SavedProfile]


class WisdomShow(Document, kw_only=True):
    """`wisdom show --json`."""

    format: Literal["collwise wisdom show"]
    version: Literal[1]
    path: str
    profile: ProfileFile


class Why(Served, kw_only=True):
    """Who serves a form of a call, and the race that decided."""

    race: RaceResult | None


class WisdomWhy(Document, kw_only=True):
    """`wisdom why --json`."""

    format: Literal["collwise wisdom why"]
    version: Literal[1]
    blocking: Why
    nonblocking: Why
    persistent: Why
    races: list[RaceResult]
    profile_path: str


class Paper(Document, kw_only=True):
    """A paper that was run again: its claims with verdicts, its figures and tables."""

    paper: str
    title: str
    verdicts: dict[str, int]
    claims: list[dict[str, str]]
    exhibits: list[dict[str, Any]]


class Reproduction(Document, kw_only=True):
    """`reproduce --json`."""

    format: Literal["collwise reproduce"]
    version: Literal[1]
    papers: list[Paper]
    files: list[str] | UnsetType = UNSET


class Lab(Document, kw_only=True):
    """`lab --json`: the command's exit code and output, and how well the network kept time."""

    format: Literal["collwise lab"]
    version: Literal[1]
    exit_code: int
    report: dict[str, Any]
    stdout: str


class Rule(Document, kw_only=True):
    """One of the library's own algorithms, for some sizes on one number of ranks."""

    collective: str
    method: str
    ranks: int
    first: int
    last: int
    raced: list[int]
    name: str
    number: int
    settings: dict[str, int]
    changed: dict[str, int]
    evidence: list[str]
    ranks_per_node: str


class CheckedRule(Document, kw_only=True):
    """What was found out about a rule; null where nothing tells."""

    rule: str
    in_force: bool | None
    elsewhere: bool
    speedup: tuple[float, float | None, float | None] | None
    here: str


class Rules(Document, kw_only=True):
    """`export openmpi --json` and its like: rules, what files cannot say, what no race tried."""

    format: Literal["collwise export"]
    version: Literal[1]
    exported: str
    library: str
    rules: list[Rule]
    cannot_say: list[str]
    not_raced: list[str]
    checked: list[CheckedRule]
    text: str | UnsetType = UNSET
    path: str | UnsetType = UNSET
    environment: dict[str, str] | UnsetType = UNSET


class Stretch(Document, kw_only=True):
    """Sizes at which the library was seen to do the same.   parents: of a broadcast's tree."""

    collective: str
    operator: str
    first: int
    last: int
    shape: str
    example: str
    parents: list[int | None]
    ranks_agree: bool | None
    elements_agree: bool | None


class Inspection(Document, kw_only=True):
    """`inspect --json`."""

    format: Literal["collwise inspection"]
    version: Literal[1]
    ranks: int
    library: str
    stretches: list[Stretch]
    left_out: list[str]
    not_saved: list[str]
    pictures: list[str] | UnsetType = UNSET


class Scanned(Scan, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`scan --json`."""

    not_saved: list[str]


DOCUMENTS: dict[str, type] = {
    "plan": Plan,
    "simulate": Simulation,
    "simulate-goal": Goal,
    "export": Export,
    "export-rules": Rules,
    "inspect": Inspection,
    "scan": Scanned,
    "tune": Tuning,
    "measure": Measurement,
    "bench": Sweep,
    "bench-grid": Grid,
    "compare": Comparison,
    "run": Calls,
    "wisdom-list": WisdomList,
    "wisdom-show": WisdomShow,
    "wisdom-why": WisdomWhy,
    "doctor": Doctor,
    "reproduce": Reproduction,
    "lab": Lab,
    "profile": ProfileFile,
}
"""The documents by the names of their schemas."""


def schema(name: str) -> dict[str, Any]:
    """The JSON schema of a document (draft 2020-12)."""
    made = msgspec.json.schema(DOCUMENTS[name])
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made}
