"""A machine, its profile, races and schedules to draw: made up, small, the same in every run."""

from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from collwise.algorithms.registry import ALGORITHMS
from collwise.figures.style import look
from collwise.measure.race import Race
from collwise.model.machine import Machine
from collwise.schedule.program import Schedule
from collwise.timing import Timing, ideal
from tests.profiles.example import SIZES

T0 = Fraction(17, 10**7)
MACHINE = Machine.postal(t0_s=T0, lam=2)


def race(
    nbytes: int = 512,
    gain: float = 1.5,
    repetitions: int = 30,
    others_s: Mapping[str, float] = MappingProxyType({}),
) -> Race:
    """A race of the library's own against two trees, the better of them faster by `gain`."""
    random = np.random.default_rng(nbytes)
    middles = {
        "library": 1e-5 * gain,
        "library_init": 1.1e-5 * gain,
        "broadcast/postal_tree(lam=9/5)": 1e-5,
        "broadcast/binomial": 1.3e-5,
        **others_s,
    }
    samples = {
        label: tuple(map(float, middle * random.lognormal(0, 0.02, repetitions)))
        for label, middle in middles.items()
    }
    predicted = {label: 0.9 * m for label, m in middles.items() if "library" not in label}
    return Race("broadcast", 8, nbytes, 0, samples, predicted, dropped=3)


RACES = tuple(race(nbytes, gain) for nbytes, gain in zip(SIZES, (1.6, 1.3, 1.0, 0.7), strict=True))


def drawn(
    name: str, ranks: int, nbytes: int = 512, machine: Machine = MACHINE, **settings: Any
) -> tuple[Timing, Schedule]:
    """A schedule of a registered broadcast and its ideal times."""
    root = settings.pop("root", 0)
    schedule = ALGORITHMS[f"broadcast/{name}"].schedule(ranks, nbytes, root, **settings)
    return ideal(schedule, machine), schedule


def texts(figure: Figure) -> list[str]:
    """Every text in the axes, as it is shown."""
    return [text.get_text() for axes in figure.axes for text in axes.texts if text.get_text()]


def marked(figure: Figure, kind: str) -> set[str]:
    """The names of artists that begin so."""
    names = (artist.get_gid() for axes in figure.axes for artist in axes.get_children())
    return {name for name in names if name and name.startswith(kind)}


def legend(figure: Figure) -> list[str]:
    """The entries of the legend."""
    return [text.get_text() for found in figure.legends for text in found.get_texts()]


def xs(line: Line2D) -> list[float]:
    """Where the points of a line are, from left to right of the axes."""
    return [float(x) for x in np.asarray(line.get_xdata())]


def ys(line: Line2D) -> list[float]:
    """Where they are in height."""
    return [float(y) for y in np.asarray(line.get_ydata())]


def laid_out(figure: Figure) -> Figure:
    """The figure once it is drawn: everything in it has its place."""
    with look():
        figure.draw(FigureCanvasAgg(figure).get_renderer())  # type: ignore[no-untyped-call]
    return figure
