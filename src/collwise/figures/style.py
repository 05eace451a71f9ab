"""One look for all pictures, and the two ways out: a file, or SVG for a page.

Pictures are drawn inside `look()`, which sets every setting of matplotlib to a known value and puts
the program's own back afterwards.  The colours are told apart by people who are colour-blind [Okabe
and Ito 2008]; none carries a meaning that a marker, a dash or a word does not carry as well.
"""

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from os import PathLike
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from collwise.errors import InvalidArgument

INK = "#1f2933"
MUTED = "#5f6b76"
FAINT = "#d3d9df"
WASH = "#eef1f4"
PAPER = "#ffffff"
BLUE = "#0072b2"
VERMILION = "#d55e00"
GREEN = "#00896a"
PURPLE = "#a8508c"
OCHRE = "#b97f00"
SKY = "#3a9bd6"

PALETTE = (BLUE, VERMILION, GREEN, PURPLE, OCHRE, SKY, MUTED)
MARKERS = ("o", "s", "^", "D", "v", "P", "X")

THEME = {
    "ink": (INK, "#e6eaee"),
    "muted": (MUTED, "#a3afba"),
    "faint": (FAINT, "#3d4751"),
    "wash": (WASH, "#252d35"),
    "paper": (PAPER, "#161b20"),
    "blue": (BLUE, "#56b4e9"),
    "vermilion": (VERMILION, "#ff8a45"),
    "green": (GREEN, "#2ec9a0"),
    "purple": (PURPLE, "#df92c3"),
    "ochre": (OCHRE, "#efb63e"),
    "sky": (SKY, "#8fd0f5"),
}
"""Each colour by its name: in light and in dark surroundings; a page defines `--name` from it."""

NOTHING = "Nothing is sent: no rank lacks anything."
NO_TIME = "Messages cost nothing on this machine: everything happens at once."

WIDTH = 9.4
"""Inches: the usual width of a picture."""

LOOK: Any = {
    "text.color": INK,
    "text.parse_math": False,  # a name may hold dollars
    "text.usetex": False,
    "font.size": 9.0,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "axes.facecolor": "none",
    "axes.linewidth": 0.8,
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
    "savefig.facecolor": "auto",
    "savefig.dpi": 160,
    "svg.fonttype": "path",  # the same widths everywhere
    "svg.hashsalt": "collwise",
}


@contextmanager
def look() -> Iterator[None]:
    """Draw inside this, or under it as a decorator: the program's own settings are put back."""
    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(LOOK)
        yield


def plain(text: str, most: int = 60) -> str:
    """Text for a picture, whatever somebody called a thing: one line, printable, not too long."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    if line.startswith("_"):
        line = " " + line  # matplotlib hides such labels
    return line if len(line) <= most else line[: most - 1] + "…"


def svg(figure: Figure) -> str:
    """The picture as one <svg> element to put into an HTML page; equal figures give equal text.

    Its background is transparent, and each colour `name` of THEME is `var(--name, the light one)`:
    a page with dark surroundings redefines them.  It is `--natural` wide.
    """
    sheet = StringIO()
    silent = {"Date": None, "Creator": None, "Format": None, "Type": None}
    with look():
        figure.savefig(sheet, format="svg", metadata=silent, transparent=True)
    text = sheet.getvalue()
    text = text[text.index("<svg") :].strip()
    for junk in (r"<!--.*?-->\s*", r"<metadata>.*?</metadata>\s*", r"<defs>\s*<style.*?</defs>\s*"):
        text = re.sub(junk, "", text, flags=re.DOTALL)
    used = set(re.findall(r'(?:url\(|href=")#([^)"]+)', text))
    text = re.sub(r' id="([^"]*)"', lambda found: found[0] if found[1] in used else "", text)
    text = re.sub(r"<g>\s*</g>\s*", "", text)
    text = text.replace("xlink:href=", "href=")
    for name, (light, _) in THEME.items():
        text = text.replace(light, f"var(--{name}, {light})")
    opening = re.match(r"<svg[^>]*>", text)
    width, height = (f"{72 * inches:g}" for inches in figure.get_size_inches())
    assert opening is not None
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}pt" height="{height}pt"'
        f' viewBox="0 0 {width} {height}" style="--natural: {width}pt; stroke-linejoin: round;'
        f' stroke-linecap: butt">{text[opening.end() :]}'
    )


def save(figure: Figure, path: str | PathLike[str]) -> Path:
    """Write the picture on white as .png or .svg, by the suffix; returns the path.

    Missing folders are made.   Raises InvalidArgument for another suffix, or if the file cannot be
    written.
    """
    target = Path(path)
    kind = target.suffix.lower().removeprefix(".")
    if kind not in ("png", "svg"):
        raise InvalidArgument(
            f"save a picture as {target}",
            f"its suffix is {target.suffix!r}",
            "give a name that ends in .png or .svg",
        )
    metadata = {"Date": None} if kind == "svg" else {}
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with look():
            figure.savefig(target, format=kind, metadata=metadata)
    except OSError as error:
        raise InvalidArgument(
            f"save a picture as {target}",
            error.strerror or str(error),
            "name another file",
        ) from error
    return target


def note(text: str, *, title: str = "", height: float = 1.2) -> Figure:
    """A picture that only says something, where there is nothing to draw."""
    with look():
        figure = Figure((WIDTH, height))
        figure.set_layout_engine("none")
        figure.text(0.01, 0.35, text, va="center", ha="left", color=MUTED)
        if title:
            figure.suptitle(title, x=0.01, ha="left", fontweight="bold", fontsize=10)
    return figure
