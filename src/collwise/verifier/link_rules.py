"""Checks that messages take their routes on a network, and that no link carries two at once."""

from fractions import Fraction
from itertools import pairwise

from collwise.errors import InvalidSchedule
from collwise.model.exact import seconds
from collwise.model.machine import Hockney, Machine, Wormhole
from collwise.model.topology import Topology
from collwise.timing import Timing, Transfer
from collwise.timing.times import Passage
from collwise.verifier.violations import Lists, reject_timing


def check_links(lists: Lists, timing: Timing, machine: Machine, topology: Topology | None) -> None:
    """Prove that a timing obeys the law of a network; do nothing if the machine has none.

    Every message takes the topology's route.  Its header and tail pass each link at the times that
    the machine's law demands.  If a message waited for a link, another message held that
    link until the waiting message entered.  No two messages hold a link at the same time.
    Raises InvalidSchedule, with the rank and step of a send unless passages are missing.
    """
    if not (isinstance(machine, Wormhole) or (isinstance(machine, Hockney) and topology)):
        return
    if len(timing.passages) != len(timing.transfers):
        seen = f"{len(timing.passages)} passages of {len(timing.transfers)} messages"
        raise InvalidSchedule("a timing of a network", seen, "give one for every message")
    held: dict[int, list[tuple[Fraction, Fraction, int]]] = {}
    for index, (t, p) in enumerate(zip(timing.transfers, timing.passages, strict=True)):
        if p.route != (topology.route(t.source, t.target) if topology else ()):
            _reject(lists, t, f"it takes the links {p.route}, not its route")
        _check_passage(lists, t, p, machine, len(p.route) if topology else 1)
        _check_wait(lists, timing, t, p)
        for link in p.route:
            held.setdefault(link, []).append((p.entry, p.end, index))
    for link, spans in held.items():
        for before, after in pairwise(sorted(spans)):
            if after[0] < before[1]:
                holder = timing.transfers[before[2]]
                message = f"the message from rank {holder.source} to {holder.target}"
                _reject(lists, timing.transfers[after[2]], f"link {link} still carries {message}")


def _check_passage(
    lists: Lists, t: Transfer, p: Passage, machine: Hockney | Wormhole, hops: int
) -> None:
    """Check that a message's header and tail pass at the times that the machine's law demands."""
    if isinstance(machine, Wormhole):
        entry = p.start + machine.send + t.nbytes * machine.copy
        header = entry + hops * machine.hop
    else:
        entry, header = p.start, p.start + machine.alpha
    if (p.start, p.end) != (t.start, t.sent):
        _reject(lists, t, "it passes at another time than it is sent")
    if (p.entry, p.header, p.end) != (entry, header, header + t.nbytes * machine.beta):
        _reject(lists, t, "it holds its links for another time than the machine's law says")


def _check_wait(lists: Lists, timing: Timing, t: Transfer, p: Passage) -> None:
    """Check that a message began when ready, or entered when the awaited link became free."""
    if p.waited is None:
        if p.start != p.ready:
            late = seconds(p.start - p.ready)
            _reject(lists, t, f"it begins {late:g} s late, and waits for nobody")
        return
    link, index = p.waited
    other = timing.passages[index] if 0 <= index < len(timing.passages) else None
    if other is None or link not in p.route or link not in other.route or other.end != p.entry:
        seen = f"it waits for link {link}, which was not held by what is named until then"
        _reject(lists, t, seen)


def _reject(lists: Lists, t: Transfer, seen: str) -> None:
    reject_timing(lists, t.source, t.place_at_source, seen)
