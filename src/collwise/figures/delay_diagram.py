"""Messages of one sender in time, sends or receipts delayed [Bruck1996 Figs 15, 16]."""

from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from collwise.figures.style import (
    BLUE,
    FAINT,
    GREEN,
    INK,
    MUTED,
    OCHRE,
    PAPER,
    WIDTH,
    draw_arrow,
    look,
)


class Message(NamedTuple):
    """The moments of a message, in units of t0.

    start: its send starts.   sent: the sender's port is free.   next_start: another send may start.
    arrives: the message is at its receiver.   used: the receiver takes it.
    """

    start: float
    sent: float
    next_start: float
    arrives: float
    used: float


@look()
def delay_diagram(messages: Sequence[Message], title: str) -> Figure:
    """Messages from a sender (above) to a receiver (below); marks idle time that a delay adds."""
    figure = Figure((WIDTH, 2.9))
    axes = figure.subplots()
    for m in messages:
        axes.barh(1, m.sent - m.start, 0.26, m.start, color=BLUE, edgecolor=PAPER)
        axes.barh(1, m.next_start - m.sent, 0.26, m.sent, color=OCHRE, edgecolor=PAPER, alpha=0.6)
        axes.barh(0, m.used - m.arrives, 0.26, m.arrives, color=OCHRE, edgecolor=PAPER, alpha=0.6)
        draw_arrow(axes, (m.start, 0.86), (m.arrives, 0.13), color=MUTED, lw=1, shrinkB=4)
        axes.plot(m.arrives, 0, "o", ms=5, mfc=PAPER, mec=GREEN, zorder=3)
        axes.plot(m.used, 0, "o", ms=6.5, color=GREEN, zorder=3)
    axes.axhline(0, color=FAINT, lw=0.8, zorder=0)
    axes.axhline(1, color=FAINT, lw=0.8, zorder=0)
    axes.set_yticks([0, 1], ["received", "sent"])
    axes.set_ylim(-0.4, 1.4)
    axes.set_xlim(-0.1, max(m.used for m in messages) + 0.2)
    axes.set_xticks(sorted({m.start for m in messages} | {m.used for m in messages}))
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
