"""The look of all pictures: colours, matplotlib's settings, and saving as a file or as inline SVG.

Pictures are drawn inside `look()`, which sets matplotlib's settings to known values and restores
the program's own afterwards.  The colours can be told apart by people who are colour-blind
[Okabe and Ito 2008]; mostly, a marker, a dash or a word says the same as the colour.
"""

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from html import escape
from io import BytesIO, StringIO
from os import PathLike
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch
from matplotlib.text import Annotation

from collwise.system.files import refusing, replace_file

THEME = {
    "ink": ("#1f2933", "#e6eaee"),
    "muted": ("#5f6b76", "#a3afba"),
    "faint": ("#d3d9df", "#3d4751"),
    "wash": ("#eef1f4", "#252d35"),
    "paper": ("#ffffff", "#161b20"),
    "blue": ("#0072b2", "#56b4e9"),
    "vermilion": ("#d55e00", "#ff8a45"),
    "green": ("#00896a", "#2ec9a0"),
    "purple": ("#a8508c", "#df92c3"),
    "ochre": ("#b97f00", "#efb63e"),
    "sky": ("#3a9bd6", "#8fd0f5"),
}
"""For each name, its colour on light and on dark pages; pages define the CSS variable `--name`."""

INK, MUTED, FAINT, WASH, PAPER, BLUE, VERMILION, GREEN, PURPLE, OCHRE, SKY = (
    light for light, _ in THEME.values()
)
PALETTE = (BLUE, VERMILION, GREEN, PURPLE, OCHRE, SKY, MUTED)
MARKERS = ("o", "s", "^", "D", "v", "P", "X")

WIDTH = 9.4
"""Inches: the usual width of a picture."""

SETTINGS: Any = {
    "text.color": INK,
    "text.parse_math": False,  # names may contain dollar signs
    "font.size": 9.0,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10.0,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 8.0,
    "axes.titlecolor": INK,
    "axes.labelsize": 9.0,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": FAINT,
    "grid.linewidth": 0.6,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.6,
    "lines.markersize": 5.0,
    "figure.facecolor": PAPER,
    "figure.constrained_layout.use": True,
    "savefig.dpi": 160,
    "svg.fonttype": "path",  # text is as wide everywhere
    "svg.hashsalt": "collwise",  # equal figures give equal files
}


@contextmanager
def look() -> Iterator[None]:
    """A context, or a decorator: collwise's settings, and no warnings of missing glyphs."""
    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(SETTINGS)
        yield


def plain(text: str, most: int = 60) -> str:
    """Any text as a label: one line of printable characters, at most `most` of them."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    if line.startswith("_"):
        line = " " + line  # matplotlib leaves labels that start with _ out of legends
    return line if len(line) <= most else line[: most - 1] + "…"


def beside(
    axes: Axes, text: str, at: tuple[float, float], offset: tuple[float, float], **look: Any
) -> Annotation:
    """Write a small text beside a point.   offset: in points."""
    look = {"fontsize": 8.5, "annotation_clip": False, **look}
    return axes.annotate(text, at, offset, textcoords="offset points", **look)


def draw_arrow(axes: Axes, begin: Any, end: Any, **look: Any) -> None:
    """Draw an arrow whose head is small however long it is."""
    head = "-|>,head_length=3.2,head_width=1.5"
    axes.add_patch(FancyArrowPatch(begin, end, arrowstyle=head, mutation_scale=1, **look))


def note(text: str, *, title: str = "") -> Figure:
    """A picture that only says why there is nothing to draw."""
    with look():
        figure = Figure((WIDTH, 1.2))
        figure.set_layout_engine("none")
        figure.text(0.01, 0.35, text, va="center", ha="left", color=MUTED)
        if title:
            figure.suptitle(title, x=0.01, ha="left", fontweight="bold", fontsize=10)
    return figure


def _lay_out(figure: Figure) -> None:
    """Lay the figure out and remove its layout engine; else saving would draw the picture twice."""
    if figure.get_layout_engine() is not None:
        figure.draw_without_rendering()
        matplotlib.rcParams["figure.constrained_layout.use"] = False
        figure.set_layout_engine(None)


def svg(figure: Figure, title: str = "") -> str:
    """The picture as one <svg> element for an HTML page; equal figures and titles give equal text.

    title: what the picture is, for those who cannot see it.

    Identifiers differ from those of other pictures, so that a page can have several.  The
    background is transparent, and each colour of THEME is `var(--name, the light one)`, so that a
    dark page can redefine it.  The variable `--natural` has the picture's natural width.
    """
    file = StringIO()
    with look():
        _lay_out(figure)
        unsigned = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(file, format="svg", metadata=unsigned, transparent=True)
    text = file.getvalue()
    body = text[text.index(">", text.index("<svg")) + 1 :].strip()
    body = re.sub(r"<!--.*?-->\s*|<defs>\s*<style.*?</defs>\s*", "", body, flags=re.DOTALL)
    # matplotlib's are different every time; ours only in every picture
    used = dict.fromkeys(re.findall(r'(?:url\(|href=")#([^)"]+)', body))
    drawn = re.sub(r'(?: id="|url\(#|href="#)[^)"]*', "", body)
    own = sha256(f"{title}{drawn}".encode()).hexdigest()[:8]
    names = {identifier: f"i{own}-{number}" for number, identifier in enumerate(used)}
    body = re.sub(r' id="([^"]*)"', lambda m: f' id="{names[m[1]]}"' if m[1] in names else "", body)
    body = re.sub(r'(url\(|href=")#([^)"]+)', lambda m: f"{m[1]}#{names[m[2]]}", body)
    body = re.sub(r"<g>\s*</g>\s*", "", body).replace("xlink:href=", "href=")
    for name, (light, _) in THEME.items():
        body = body.replace(light, f"var(--{name}, {light})")
    width, height = (f"{72 * inches:g}" for inches in figure.get_size_inches())
    named = f' role="img" aria-label="{escape(title)}"' if title else ""
    return (
        f'<svg{named} xmlns="http://www.w3.org/2000/svg" width="{width}pt" height="{height}pt"'
        f' viewBox="0 0 {width} {height}" style="--natural: {width}pt; stroke-linejoin: round;'
        f' stroke-linecap: butt">\n{body}'
    )


def save(figure: Figure, path: str | PathLike[str]) -> Path:
    """Write the picture on white as .png or .svg, by the suffix; returns the path.

    Missing folders are made.  Raises InvalidArgument if the file cannot be written.
    """
    target = Path(path)
    suffix = target.suffix.lower()
    with look(), refusing(f"save a picture as {target}", "name another file"):
        undated = {"Date": None} if suffix == ".svg" else {}
        image = BytesIO()
        _lay_out(figure)
        figure.savefig(image, format=suffix[1:], metadata=undated)
        replace_file(target, image.getvalue())
    return target
