"""Lower bounds: no schedule can be faster on this machine.  Each says which argument it uses."""

from fractions import Fraction
from typing import NamedTuple

from collwise.errors import InvalidArgument
from collwise.model import postal
from collwise.model.exact import seconds
from collwise.model.machine import Machine


class Bound(NamedTuple):
    """A lower bound in exact seconds, and the argument for it."""

    time: Fraction
    argument: str

    @property
    def time_s(self) -> float:
        """The bound as a float, in seconds."""
        return seconds(self.time)


NOTHING = Bound(Fraction(0), "nothing has to be sent")


def broadcast(machine: Machine, ranks: int, nbytes: int) -> Bound:
    """For every broadcast of nbytes to `ranks` ranks, segmented ones included.

    Some first byte must reach every rank: T_λ(p)·t0 with the least t0 and the least λ·t0 of all
    sizes up to nbytes.  And all bytes must leave the root: nbytes times the least t0(x)/x, and then
    the last message must arrive, (λ − 1)·t0 after it left (before, where λ < 1, as LogGP can have
    it).  The larger of the two counts.
    """
    if ranks == 1 or nbytes == 0:
        return NOTHING
    costs = {x: machine.message(x) for x in _corners(machine, nbytes)}
    gap = min(cost.gap for cost in costs.values())
    latency = min(cost.latency for cost in costs.values())
    hops = _informing(ranks, gap, latency)
    volume = nbytes * min(cost.gap / x for x, cost in costs.items())
    volume += min(cost.latency - cost.gap for cost in costs.values())
    if hops >= volume:
        return Bound(hops, "T_λ(p)·t0, with the least t0 and λ·t0 of any size")
    return Bound(volume, "all bytes leave the root at its best rate, and the last one arrives")


def broadcast_unsegmented(machine: Machine, ranks: int, nbytes: int) -> Bound:
    """For broadcasts that send everything in one message: T_λ(p)·t0 at that size.

    Source: [BarNoyKipnis1994].
    """
    if ranks == 1 or nbytes == 0:
        return NOTHING
    time = _informing(ranks, *machine.message(nbytes))
    return Bound(time, "T_λ(p)·t0, if everything goes in one message")


def _informing(ranks: int, gap: Fraction, latency: Fraction) -> Fraction:
    """T_λ(p)·t0 in seconds.  A gap above the latency counts as that: it can only be faster so."""
    gap = min(gap, latency)
    return postal.broadcast_time(ranks, latency / gap) * gap if gap else latency


_BOUNDS = {"broadcast": (broadcast, broadcast_unsegmented)}


def bounds(collective: str, machine: Machine, ranks: int, nbytes: int) -> tuple[Bound, Bound]:
    """The bound for every schedule of a collective, and that for unsegmented ones."""
    try:
        every, unsegmented = _BOUNDS[collective]
    except KeyError:
        raise InvalidArgument(
            f"a lower bound for {collective!r}", "there is none", f"known: {', '.join(_BOUNDS)}"
        ) from None
    return every(machine, ranks, nbytes), unsegmented(machine, ranks, nbytes)


def _corners(machine: Machine, nbytes: int) -> set[int]:
    """Sizes among which the least t0, λ·t0, (λ − 1)·t0 and t0/x of all sizes 1 … nbytes are found.

    All four are monotone between the sizes at which the laws change slope or jump.  The exception
    is LogGP's t0/x where o > g: it can be least in between, so that a root may send faster than at
    either end.  The bound holds all the same, since no rank receives faster: a receipt of x bytes
    takes max(o, g) + (x − 1)G, which over x is monotone, and at the ends no less than t0/x.
    """
    knots = {x + d for x in machine.sizes() for d in (-1, 0)}
    return {x for x in knots | {1, nbytes} if 1 <= x <= nbytes}
