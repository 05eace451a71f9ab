"""A claim of a paper as data, and the verdict on it, which is computed from our value alone."""

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
"""Numbers of a value: of more, only the first ones and the last are shown."""
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)


class MeasuredValue(NamedTuple):
    """What came of measuring: what draws the picture, on rank 0, and the value of a claim."""

    draw: "Callable[[], Figure] | None"
    value: Any = None


Measure: TypeAlias = Callable[["Session", float], MeasuredValue]
"""Measures on the ranks of a session within so many seconds.  Collective."""


@dataclass(frozen=True)
class Claim:
    """Something that a paper says, what it should be, and how we compute it.

    cited: "ID, WHERE: WHAT".  The id is a number, such as B-c5; a letter more for one of several
    sentences; B-e1 for an erratum: something that is printed, and wrong.  Then come sections and
    figures, then the claim in our words.
    paper: the paper's value, a number or several, which ours has to equal within `tolerance`; or
    words, which nothing is compared with.   tolerance: absolute, of each number.
    ours: computes our value; None if there is nothing to compute.   measure: measures it.
    holds: whether the claim holds for a value, beyond the comparison with `paper`.
    shape: whether at least the shape holds, where the paper's value is not ours.
    fitted: whether our machine was fitted to these very numbers.
    because: why it does not hold as printed, for which it may compute more; of our value.
    unit: of the values.
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
        """Its number."""
        return self.cited.split(", ")[0]

    @property
    def where(self) -> str:
        """Its sections and figures."""
        return self.cited.split(": ")[0].removeprefix(f"{self.id}, ")

    @property
    def says(self) -> str:
        """What it says, in our words."""
        return self.cited.split(": ", 1)[1]

    @property
    def is_erratum(self) -> bool:
        """Whether it is something that is printed, and wrong."""
        return "-e" in self.id

    def verdict(self, value: Any) -> Verdict:
        """The verdict on a value of ours."""
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
        """Compute our value, or take the one that was measured, and judge it."""
        return Finding(self, self.ours() if self.ours else measured and measured.value)


@dataclass(frozen=True)
class Finding:
    """A claim, and our value of it."""

    claim: Claim
    value: Any

    @cached_property
    def verdict(self) -> Verdict:
        """Whether the claim holds."""
        return self.claim.verdict(self.value)

    @cached_property
    def because(self) -> str:
        """Why it does not hold as printed; also what there is to know if it does."""
        because = self.claim.because
        if self.verdict == "not measured":
            return (
                "Only ranks can tell: -n 2 measures it on the machine at hand. What came of it once"
                " is in benchmarks/results/."
            )
        return because(self.value) if callable(because) else because

    @property
    def row(self) -> dict[str, str]:
        """What it says, the paper's value, ours, the verdict, and why; as text."""
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
    """Whether two numbers are equal within a tolerance; of several, each with its counterpart."""
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
    """A value as text: numbers with three digits and the unit, fractions as they are."""
    if isinstance(value, Mapping):
        texts = [f"{name}: {_part(x)}" for name, x in value.items()]
        return ", ".join(texts) + _after(unit)
    if isinstance(value, Sequence) and not isinstance(value, str):
        texts = [_part(x) for x in value]
        if len(texts) > MAX_SHOWN:
            texts = [*texts[: MAX_SHOWN - 2], "…", texts[-1]]
        return (", ".join(texts) or "none") + _after(unit)
    match value:
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case Fraction() if value.denominator > 1:
            ends = value.denominator in (2, 4, 5, 8, 10, 20, 25, 50, 100)
            text = f"{float(value):g}" if ends else f"{value}"
            if value.denominator > MAX_SHOWN**4:  # such fractions tell nobody anything
                text = f"{float(value):.13g}"
        case float():
            text = f"{value:.4g}" if abs(value) < inf else formatting.significant(value)
        case _:
            text = f"{value:,}" if isinstance(value, int) else str(value)
    return text.replace("-", "−") + _after(unit) if not isinstance(value, str) else value


def _part(value: Any) -> str:
    return f"({shown(value)})" if isinstance(value, tuple) else shown(value)


def _after(unit: str) -> str:
    return f" {unit}" if unit else ""


def counted(findings: Sequence[Finding]) -> dict[Verdict, int]:
    """How many claims have each verdict; errata, which are printed to be wrong, not counted."""
    verdicts = [f.verdict for f in findings if not f.claim.is_erratum]
    return {verdict: verdicts.count(verdict) for verdict in VERDICTS}
