"""Messages of one sender in time, sends or receipts delayed [Bruck1996 Figs 15, 16]."""

from typing import Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from collwise.figures import style
from collwise.figures.style import BLUE, FAINT, GREEN, INK, MUTED, OCHRE, PAPER

MESSAGES = 4


@style.look()
def delay_diagram(lam: float, apart: float, used: float, title: str) -> Figure:
    """Messages from a sender (above) to a receiver (below); marks idle time that a delay adds.

    In units of t0, from the start of a send: its message arrives after `lam`, the next send starts
    after `apart`, and the receiver takes the message after `used`.
    """
    figure = Figure((style.WIDTH, 2.9))
    axes = figure.subplots()
    idle: Any = {"color": OCHRE, "alpha": 0.6, "edgecolor": PAPER}
    starts = [number * apart for number in range(MESSAGES)]
    for start in starts:
        arrives, taken = start + lam, start + used
        axes.barh(1, 1, 0.26, start, color=BLUE, edgecolor=PAPER)
        axes.barh(1, apart - 1, 0.26, start + 1, **idle)
        axes.barh(0, used - lam, 0.26, arrives, **idle)
        style.draw_arrow(axes, (start, 0.86), (arrives, 0.13), color=MUTED, lw=1, shrinkB=4)
        axes.plot(arrives, 0, "o", ms=5, mfc=PAPER, mec=GREEN, zorder=3)
        axes.plot(taken, 0, "o", ms=6.5, color=GREEN, zorder=3)
    axes.axhline(0, color=FAINT, lw=0.8, zorder=0)
    axes.axhline(1, color=FAINT, lw=0.8, zorder=0)
    axes.set_yticks([0, 1], ["received", "sent"])
    axes.set_ylim(-0.4, 1.4)
    axes.set_xlim(-0.1, starts[-1] + used + 0.2)
    axes.set_xticks(sorted({x for start in starts for x in (start, start + used)}))
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("time (in t0)")
    axes.set_title(title)
    figure.legend(
        handles=[
            Patch(color=BLUE, label="sending (1 t0)"),
            Line2D([], [], color=MUTED, lw=1, label="under way (λ from its start)"),
            Line2D([], [], ls="", marker="o", mfc=PAPER, mec=GREEN, label="there"),
            Line2D([], [], ls="", marker="o", color=GREEN, label="taken"),
            Patch(color=OCHRE, alpha=0.6, label="idle: the delay"),
        ],
        loc="outside lower center",
        ncols=5,
        labelcolor=INK,
    )
    return figure
