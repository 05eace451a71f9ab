"""Who holds which partial result after every step of combining [vandeGeijn1991 Figs 1, 2, 3, 5]."""

from collections.abc import Iterator, Sequence
from math import inf

from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from collwise.errors import InvalidArgument
from collwise.figures.style import FAINT, GREEN, INK, MUTED, PAPER, WASH, WIDTH, draw_arrow, look
from collwise.schedule.operations import Combine, Recv, Send, Slot
from collwise.schedule.program import Schedule
from collwise.timing import Timing

MAX_RANKS = 16
SHADES = LinearSegmentedColormap.from_list("contributions", [WASH, "#9fd8c8", GREEN])
"""The colours of parts, from one contribution to all."""
GAP = 1.6
"""The distance between the pictures of two steps, in widths of a cell."""
RECEIVE, COMBINE, SEND = range(3)
"""The order in which events at the same moment take effect."""


class _Part:
    """One item of a partial result: whose contributions it is made of, and when it is last read."""

    def __init__(self, ranks: frozenset[int]) -> None:
        self.ranks, self.last_read = ranks, -1.0


Held = list[list[_Part | None]]
"""For each rank and item, the part that the rank holds; None where it needs no part any more."""


@look()
def combining_steps(timing: Timing, schedule: Schedule, title: str) -> Figure:
    """The parts of the vector on every rank, before the first and after every step.

    timing: times on a machine on which a message takes 1 s and combining hardly any time, so that
    each second is a step.  A cell is a part of a rank's vector and names the ranks whose
    contributions it combines; parts that are not needed any more are left out.
    Raises InvalidArgument for more than MAX_RANKS ranks.
    """
    if schedule.ranks > MAX_RANKS:
        remedy = f"draw a schedule of at most {MAX_RANKS}"
        raise InvalidArgument("a picture of combining", f"{schedule.ranks} ranks", remedy)
    states = list(_states(timing, schedule))
    ranks, parts = schedule.ranks, len(states[0][0])
    pitch = parts + GAP
    figure = Figure((max(WIDTH, 0.3 * pitch * len(states)), 0.9 + 0.52 * ranks))
    axes = figure.subplots()
    for step, state in enumerate(states):
        for rank, held in enumerate(state):
            _draw_vector(axes, step * pitch, rank, held, ranks)
        name = f"after step {step}" if step else "at first"
        axes.text(step * pitch + parts / 2, -0.75, name, ha="center", color=MUTED, fontsize=8.5)
    for t in timing.transfers:
        x = int(t.start) * pitch + parts
        ends = (x + 0.1, t.source), (x + GAP - 0.1, t.target)
        draw_arrow(axes, *ends, color=INK, lw=0.9)
    for rank in range(ranks):
        axes.text(-0.3, rank, f"P{rank}", ha="right", va="center", fontsize=9)
    axes.set_xlim(-1.2, len(states) * pitch - GAP + 0.2)
    axes.set_ylim(ranks - 0.4, -1.1)
    axes.set_axis_off()
    axes.set_title(title)
    return figure


def _draw_vector(
    axes: Axes, left: float, rank: int, held: Sequence[_Part | None], ranks: int
) -> None:
    for i, part in enumerate(held):
        count = len(part.ranks) if part else 0
        colour = SHADES((count - 1) / (ranks - 1)) if part else PAPER
        cell = Rectangle((left + i, rank - 0.36), 1, 0.72, facecolor=colour, edgecolor=FAINT)
        axes.add_patch(cell)
        if part:
            text = "all" if count == ranks else "".join(map(str, sorted(part.ranks)))
            ink = PAPER if count == ranks else INK
            at = left + i + 0.5, rank
            axes.text(*at, text, ha="center", va="center", fontsize=7.5, color=ink)


def _states(timing: Timing, schedule: Schedule) -> Iterator[Held]:
    """Yield the parts that every rank holds and still needs, at the start and after each step.

    A step lasts one second of the timing.
    """
    problem = schedule.problem
    size = problem.itemsize
    count = problem.nbytes // size
    slots: list[dict[int, list[_Part | None]]] = [
        {int(Slot.INPUT): [_Part(frozenset({rank})) for _ in range(count)]}
        for rank in range(problem.ranks)
    ]
    travelling: dict[tuple[int, int], list[_Part]] = {}
    """The parts that each message brings, by rank and place of its receive."""
    history: list[tuple[float, list[dict[int, list[_Part | None]]]]] = []
    steps = 0

    def items(op: Send | Recv | Combine) -> list[int]:
        return [i for b in op.blocks for i in range(b.offset // size, b.end // size)]

    def read(rank: int, slot: int, op: Send | Combine, when: float) -> list[_Part]:
        parts = [part for i in items(op) if (part := slots[rank][slot][i])]
        for part in parts:
            part.last_read = when
        return parts

    def write(rank: int, slot: int, op: Recv | Combine, parts: list[_Part]) -> None:
        into = slots[rank].setdefault(slot, [None] * count)
        for i, part in zip(items(op), parts, strict=True):
            into[i] = part

    places = [(t, (t.source, t.place_at_source), (t.target, t.place_at_target))
              for t in timing.transfers]  # fmt: skip
    events = [
        *((t.received, RECEIVE, to, to) for t, _, to in places),
        *((c.end, COMBINE, (c.rank, c.place), (c.rank, c.place)) for c in timing.combines),
        *((t.start, SEND, at, to) for t, at, to in places),
    ]
    for when, _, (rank, place), receive in sorted(events, key=lambda event: event[:2]):
        time, op = float(when), schedule.lists[rank][place]
        if int(time) > steps:
            history.append((steps, [{s: [*v] for s, v in own.items()} for own in slots]))
            steps = int(time)
        match op:
            case Combine():
                both = (read(rank, slot, op, time) for slot in (op.left, op.right))
                combined = [_Part(a.ranks | b.ranks) for a, b in zip(*both, strict=True)]
                write(rank, op.into, op, combined)
            case Send():
                travelling[receive] = read(rank, op.slot, op, time)
            case Recv():
                write(rank, op.slot, op, [_Part(part.ranks) for part in travelling.pop(receive)])
    history.append((inf, slots))
    for rank, own in enumerate(slots):
        if problem.output_of(rank):
            for part in own.get(int(Slot.OUTPUT), ()):
                if part:
                    part.last_read = inf
    for needed_from, state in history:
        yield [
            [
                max(
                    (p for parts in own.values() if (p := parts[i]) and p.last_read >= needed_from),
                    key=lambda part: len(part.ranks),
                    default=None,
                )
                for i in range(count)
            ]
            for own in state
        ]
