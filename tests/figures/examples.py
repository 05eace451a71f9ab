"""A machine, its profile, races and schedules to draw: made up, small, the same in every run."""

from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from msgspec.structs import replace

from collwise.algorithms.registry import ALGORITHMS
from collwise.figures.style import look
from collwise.measure.race import Race
from collwise.model.machine import Machine
<<<<<<< HEAD
from collwise.schedule.program import Schedule
from collwise.timing import Timing, ideal
from tests.profiles.example import SIZES

T0 = Fraction(17, 10**7)
MACHINE = Machine.postal(t0_s=T0, lam=2)
=======
from collwise.profiles.profile import Profile
from collwise.profiles.records import MeasuredSize, MedianTime, Mode
from collwise.schedule.program import Schedule
from collwise.timing import Timing, ideal
from tests.profiles.example import example

T0 = Fraction(17, 10**7)
MACHINE = Machine.postal(t0_s=T0, lam=2)
SIZES = (8, 512, 4096, 65536)
FINGERPRINT = replace(example().fingerprint, cores_per_node=16, mpi_library="MPICH 5.0.2")
PROVENANCE = replace(
    example().provenance,
    system="Linux-6.1",
    hosts={"node1": 5},
    command="collwise tune -n 5",
    ranks=5,
    budget_s=10,
    elapsed_s=9.5,
)


def point(nbytes: int, mode: Mode, lam: float = 1.5, **changes: Any) -> MeasuredSize:
    t0_s = (1 if mode == "nonblocking" else 1.2) * (1e-6 + nbytes * 1e-10)
    usual: dict[str, Any] = {
        "t0_interval_s": (0.9 * t0_s, 1.1 * t0_s),
        "lam_interval": (0.95 * lam, 1.05 * lam),
        "t0_experiments_s": (0.98 * t0_s, 1.02 * t0_s),
        "lam_experiments": (0.98 * lam, 1.02 * lam),
        "disagreement": 0.04,
        "repetitions": 20,
        "segment": 0 if nbytes <= 4096 else 1,
    }
    all_fields = {"nbytes": nbytes, "mode": mode, "t0_s": t0_s, "lam": lam, **usual, **changes}
    return replace(example().points[0], **all_fields)


def profile(
    points: Iterable[MeasuredSize] | None = None, verdict: str = "stable", **changes: Any
) -> Profile:
    both: tuple[Mode, ...] = ("nonblocking", "blocking")
    usual = [point(nbytes, mode) for mode in both for nbytes in SIZES]
    medians = [
        MedianTime(
            nbytes=nbytes,
            mode="nonblocking",
            experiment=experiment,
            k=k,
            median_s=(experiment * (k - 1) + 3) * 1e-6,
            interval_s=None if k == 4 else (2e-6 * k, 4e-6 * k),
            repetitions=7 + k,
        )
        for nbytes in SIZES
        for experiment in (1, 2)
        for k in (1, 2, 4)
    ]
    fields = {
        "fingerprint": FINGERPRINT,
        "provenance": PROVENANCE,
        "points": tuple(usual if points is None else points),
        "medians": tuple(medians),
        **changes,
    }
    return replace(example(), verdict=verdict, **fields)
>>>>>>> front


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
