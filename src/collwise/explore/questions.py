"""Computes what the page shows for its sliders: plans, times over λ, pictures."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache

from matplotlib.figure import Figure

from collwise.figures.candidate_bars import candidate_bars
from collwise.figures.line_chart import Curve, line_chart
from collwise.figures.report_pictures import schedule_figures
from collwise.figures.style import PALETTE, THEME, svg
from collwise.model.machine import Machine
from collwise.model.presets import PRESETS
from collwise.model.sources import DISTRIBUTIONS, distribute
from collwise.model.topology import Mesh, Topology
from collwise.model.topology.numbering import near_square
from collwise.planner.choose import plan
from collwise.planner.plans import Candidate, Plan
from collwise.schedule.collectives import COLLECTIVES
from collwise.simulator import Trace, simulate
from collwise.system import formatting

POSTAL = "postal model"
"""The menu's name for a machine with one t0 and one λ; its other entries are papers' machines."""
LAMS = tuple(map(Fraction, range(1, 11)))
"""The λ for which the chart over λ shows times."""
SIZES = tuple(4**k for k in range(3, 11))
"""The sizes in bytes for which the chart over the size shows times."""
MAX_LINES = len(PALETTE) - 1
"""The most curves that can be told apart, besides the bound's."""


@dataclass(frozen=True)
class Question:
    """The values of the page's sliders and menus.

    machine: POSTAL, or the name of a preset, which has a λ of its own.   nbytes: of the message, of
    each rank's vector, or of each source.   distribution, sources: the pattern and number of the
    ranks that have data in an allgatherv.   algorithm: the drawn one; if empty or unfit, the
    planner's.
    """

    collective: str = "broadcast"
    ranks: int = 16
    nbytes: int = 512
    lam: Fraction = Fraction(2)
    machine: str = POSTAL
    distribution: str = "equal"
    sources: int = 4
    algorithm: str = ""

    @property
    def is_postal(self) -> bool:
        """Whether the machine is POSTAL, whose λ a slider sets."""
        return self.machine == POSTAL

    @property
    def has_sources(self) -> bool:
        """Whether the collective has sources, which a menu and a slider set."""
        return COLLECTIVES[self.collective].has_sources

    @cached_property
    def network(self) -> tuple[Machine, Topology | None]:
        """The machine, and the mesh on whose links messages wait; None if they wait on no links."""
        if self.is_postal:
            return Machine.postal(t0_s=1, lam=self.lam), None
        preset = PRESETS[self.machine]
        if preset.contention_free is not None:
            return preset.contention_free, None
        return preset.machine, Mesh(*self.shape) if preset.make is Mesh else None

    @property
    def shape(self) -> tuple[int, int]:
        """The rows and columns of the mesh in which sources are placed."""
        return near_square(self.ranks)

    @property
    def source_ranks(self) -> tuple[int, ...] | None:
        """The ranks that have data in an allgatherv; None for other collectives."""
        if not self.has_sources:
            return None
        return distribute(self.distribution, self.shape, min(self.sources, self.ranks))

    @cached_property
    def plan(self) -> Plan:
        """The plan with all algorithms that plans try, whichever one is drawn."""
        return _planned(replace(self, algorithm=""))

    @cached_property
    def best(self) -> dict[str, Candidate]:
        """The plan's algorithms by name, each with its best settings, the fastest first."""
        best: dict[str, Candidate] = {}
        for candidate in self.plan.candidates:
            best.setdefault(candidate.name, candidate)
        return best

    @cached_property
    def shown(self) -> Candidate:
        """The algorithm that is drawn, with its settings."""
        return self.best.get(self.algorithm, self.plan.choice)

    @cached_property
    def trace(self) -> Trace:
        """The simulation of the schedule that is drawn."""
        machine, topology = self.network
        return simulate(self.shown.schedule(self.plan.problem), machine, topology)

    @property
    def unit(self) -> Fraction | None:
        """The unit of times: t0 in the postal model; None for seconds."""
        return Fraction(1) if self.is_postal else None

    def time(self, exact: Fraction) -> str:
        """A time as text, in the page's unit."""
        return formatting.scale_for(exact, self.unit).text_with_unit(exact)

    @property
    def sentence(self) -> str:
        """The result as a sentence: when the drawn schedule completes, next to the lower bound."""
        bound, taken = self.plan.bound, self.trace.completion
        over = f"{float(taken / bound.time):.2f} times the lower bound" if bound.time else ""
        if taken == bound.time:
            over = "and no schedule can be faster"
        return f"{self.shown.label} completes after {self.time(taken)}, {over}."

    @property
    def command(self) -> str:
        """The collwise command that draws the same schedule."""
        words = [f"collwise plan {self.collective} -n {self.ranks} --bytes {self.nbytes}"]
        words.append(f"--t0 1s --lam {self.lam}" if self.is_postal else f"--preset {self.machine}")
        if self.source_ranks:
            words.append(f"--pattern {self.distribution} --sources {len(self.source_ranks)}")
        return " ".join([*words, f"--algorithm {self.shown.name} --picture schedule.svg"])

    def figures(self) -> dict[str, Figure]:
        """Charts by title: the schedule, the algorithms' times, and times over λ or size."""
        trace = self.trace
        drawn = schedule_figures(trace.timing, trace.schedule, self.unit, trace.topology)
        drawn["All algorithms"] = candidate_bars(
            {_short(name): candidate.predicted for name, candidate in self.best.items()},
            self.plan.bound.time,
            _short(self.shown.name),
            self.unit,
        )
        if self.is_postal:
            return drawn | {
                "Over λ": self._over("λ", {lam: replace(self, lam=lam) for lam in LAMS})
            }
        sizes = {nbytes: replace(self, nbytes=nbytes) for nbytes in SIZES}
        return drawn | {"Over the size": self._over("message size (bytes)", sizes)}

    def _over(
        self, x: str, questions: dict[Fraction, "Question"] | dict[int, "Question"]
    ) -> Figure:
        """Times of the drawn algorithm and the fastest others, and the bound.   questions: by x."""
        names = [self.shown.name, *(name for name in self.best if name != self.shown.name)]
        scale = 1.0 if self.is_postal else 1e3
        curves = {
            name: {
                float(at): scale * question.best[name].predicted_s
                for at, question in questions.items()
                if name in question.best
            }
            for name in names[:MAX_LINES]
        }
        bound = {float(at): scale * q.plan.lower_bound_s for at, q in questions.items()}
        here = self.lam if self.is_postal else self.nbytes
        return line_chart(
            [
                *(Curve(_short(name), values) for name, values in curves.items()),
                Curve("bound", bound, "dashes"),
            ],
            x,
            "time (in t0)" if self.is_postal else "time (ms)",
            title=f"{self.collective}, {self.ranks} ranks",
            marks={"here": float(here)},
            logarithmic="" if self.is_postal else "xy",
            zero=self.is_postal,
        )


def _short(name: str) -> str:
    return name.partition("/")[2]


@lru_cache(maxsize=512)
def _planned(question: Question) -> Plan:
    machine, topology = question.network
    return plan(
        question.collective,
        ranks=question.ranks,
        nbytes=question.nbytes,
        machine=machine,
        topology=topology,
        sources=question.source_ranks,
        shape=question.shape if question.has_sources else None,
    )


def embedded(figure: Figure) -> str:
    """A picture as HTML with our colours, even if the page's CSS variables have the same names."""
    ours = "; ".join(f"--{name}: {light}" for name, (light, _) in THEME.items())
    return f'<div style="{ours}; overflow-x: auto">{svg(figure)}</div>'


def choices() -> dict[str, Iterable[str]]:
    """The entries of the page's menus, by the menu's name; the plan gives those for algorithms."""
    return {
        "collective": COLLECTIVES,
        "machine": (POSTAL, *PRESETS),
        "distribution": DISTRIBUTIONS,
    }
