"""A claim of a paper as data, and the verdict on it, which is computed, never written by hand."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_args

from collwise.system import formatting

if TYPE_CHECKING:  # computing needs no MPI
    from matplotlib.figure import Figure

    from collwise.tuning.session import Session

Verdict: TypeAlias = Literal[
    "holds", "holds as fitted", "holds in shape", "does not hold", "not recoverable", "not measured"
]
MAX_SHOWN = 16
"""If a sequence has more items than this, only the first ones and the last one are shown."""
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)


class MeasuredValue(NamedTuple):
    """The result of a measurement: the value for a claim, and what draws the picture on rank 0.

    draw: None if there is no picture.   value: None if no claim needs one.
    """

    draw: "Callable[[], Figure] | None"
    value: Any = None


Measure: TypeAlias = Callable[["Session", float], MeasuredValue]
"""A measurement: a collective function of a session and of the seconds that it may take."""


@dataclass(frozen=True)
class Claim:
    """Something that a paper says, the value in the paper, and how we compute our value.

    cited: "ID, WHERE: WHAT", such as "B-c5b, §2.4: …": an id, sections and figures, and the claim
    in our words.  A letter at the end of the id tells sentences of one claim apart.  "-e" instead
    of "-c" marks an erratum, which is something wrong in the paper.
    paper: the paper's numbers, which ours must equal within `tolerance`, or words, which are not
    compared.   tolerance: absolute, for each number.
    ours: computes our value; None if there is nothing to compute.   measure: measures our value.
    holds: a further condition on our value.   shape: a weaker condition, tried if the claim does
    not hold.   fitted: whether our machine was fitted to these numbers.
    because: why the claim does not hold as printed: a text, or a function that makes it from our
    value.   unit: of our value and the paper's.
    """

    cited: str
    _: KW_ONLY
    paper: Any = ""
    tolerance: float | Fraction = 0
    ours: Callable[[], Any] | None = None
    measure: Measure | None = None
    holds: Callable[[Any], bool] | None = None
    shape: Callable[[Any], bool] | None = None
    fitted: bool = False
    because: str | Callable[[Any], str] = ""
    unit: str = ""

    @property
    def id(self) -> str:
        """The claim's number, such as "B-c5a"."""
        return self.cited.split(", ")[0]

    @property
    def where(self) -> str:
        """The paper's sections and figures that make the claim."""
        return self.cited.split(": ")[0].removeprefix(f"{self.id}, ")

    @property
    def says(self) -> str:
        """What the claim says, in our words."""
        return self.cited.split(": ", 1)[1]

    @property
    def is_erratum(self) -> bool:
        """Whether the claim is an erratum: something that is printed, and wrong."""
        return "-e" in self.id

    def verdict(self, value: Any) -> Verdict:
        """The verdict on the claim if our value is this one."""
        if self.ours is None and self.measure is None:
            return "not recoverable"
        if self.ours is None and value is None:
            return "not measured"
        if self._agrees(value):
            return "holds as fitted" if self.fitted else "holds"
        return "holds in shape" if self.shape and self.shape(value) else "does not hold"

    def _agrees(self, value: Any) -> bool:
        compared = not isinstance(self.paper, str)
        if not compared and self.holds is None:
            return False
        return (not compared or close(value, self.paper, self.tolerance)) and (
            self.holds is None or self.holds(value)
        )

    def judge(self, measured: MeasuredValue | None = None) -> "Finding":
        """Compute our value, or take the `measured` one if there is no `ours`, and judge it."""
        return Finding(self, self.ours() if self.ours else measured and measured.value)


@dataclass(frozen=True)
class Finding:
    """A claim with our value (None if there is none), and the verdict that follows."""

    claim: Claim
    value: Any

    @cached_property
    def verdict(self) -> Verdict:
        """The verdict on the claim, given our value."""
        return self.claim.verdict(self.value)

    @cached_property
    def because(self) -> str:
        """Why the claim does not hold as printed, or remarks; how to measure it if nobody has."""
        because = self.claim.because
        if self.verdict == "not measured":
            return (
                "Only ranks can tell: -n 2 measures it on the machine at hand. What came of it once"
                " is in benchmarks/results/."
            )
        return because(self.value) if callable(because) else because

    @property
    def row(self) -> dict[str, str]:
        """The claim as a row of a table: number, place, words, both values, verdict and reason."""
        claim = self.claim
        return {
            "claim": claim.id,
            "where": claim.where,
            "says": claim.says,
            "paper": shown(claim.paper, claim.unit),
            "ours": shown(self.value, claim.unit) if claim.ours or self.value else "",
            "verdict": self.verdict,
            "because": self.because,
        }


def close(ours: Any, paper: Any, tolerance: float | Fraction) -> bool:
    """Whether our value equals the paper's, each number within an absolute tolerance.

    Words, truth values and None must be equal; mappings must have the same keys in the same order.
    """
    if isinstance(paper, Mapping):
        return (
            isinstance(ours, Mapping)
            and list(ours) == list(paper)
            and close(list(ours.values()), list(paper.values()), tolerance)
        )
    if isinstance(paper, Sequence) and not isinstance(paper, str):
        return len(ours) == len(paper) and all(
            close(a, b, tolerance) for a, b in zip(ours, paper, strict=True)
        )
    if isinstance(paper, bool | str | None) or ours is None:
        return bool(ours == paper)
    return bool(abs(ours - paper) <= tolerance)


def shown(value: Any, unit: str = "") -> str:
    """A value as text, numbers with their unit: floats to four digits, most others exactly."""
    after = f" {unit}" if unit else ""
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_part(x)}" for name, x in value.items()) + after
    if isinstance(value, Sequence) and not isinstance(value, str):
        texts = [_part(x) for x in value]
        if len(texts) > MAX_SHOWN:
            texts = [*texts[: MAX_SHOWN - 2], "…", texts[-1]]
        return (", ".join(texts) or "none") + after
    match value:
        case None:
            return "none"
        case str():
            return value
        case bool():
            return "yes" if value else "no"
        case int():
            text = f"{value:,}"
        case Fraction() if value.denominator in (2, 4, 5, 8, 10, 20, 25, 50, 100):
            text = f"{float(value):g}"
        case Fraction() if value.denominator > MAX_SHOWN**4:  # such fractions cannot be read
            text = f"{float(value):.13g}"
        case float():
            text = f"{value:.4g}" if abs(value) < inf else formatting.significant(value)
        case _:
            text = str(value)
    return text.replace("-", "−") + after


def _part(value: Any) -> str:
    return f"({shown(value)})" if isinstance(value, tuple) else shown(value)


def counted(findings: Sequence[Finding]) -> dict[Verdict, int]:
    """How many claims have each verdict; errata are not counted."""
    verdicts = [f.verdict for f in findings if not f.claim.is_erratum]
    return {verdict: verdicts.count(verdict) for verdict in VERDICTS}
