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
    the last message must arrive, (λ − 1)·t0 after it left.  The larger of the two counts.
    """
    if ranks == 1 or nbytes == 0:
        return NOTHING
    costs = {x: machine.message(x) for x in _corners(machine, nbytes)}
    gap = min(cost.gap for cost in costs.values())
    latency = max(gap, min(cost.latency for cost in costs.values()))
    hops = postal.broadcast_time(ranks, latency / gap) * gap if gap else latency
    volume = nbytes * min(cost.gap / x for x, cost in costs.items())
    volume += max(Fraction(0), min(cost.latency - cost.gap for cost in costs.values()))
    if hops >= volume:
        return Bound(hops, "T_λ(p)·t0, with the least t0 and λ·t0 of any size")
    return Bound(volume, "all bytes leave the root at its best rate, and the last one arrives")


def broadcast_unsegmented(machine: Machine, ranks: int, nbytes: int) -> Bound:
    """For broadcasts that send everything in one message: T_λ(p)·t0 at that size.

    Source: [BarNoyKipnis1994].
    """
    if ranks == 1 or nbytes == 0:
        return NOTHING
    cost = machine.message(nbytes)
    if not cost.gap:
        return Bound(cost.latency, "one message's latency")
    return Bound(
        postal.broadcast_time(ranks, max(Fraction(1), cost.lam)) * cost.gap,
        "T_λ(p)·t0, if everything goes in one message",
    )


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

    All four are monotone between the sizes at which the laws change slope or jump.
    """
    knots = {x + d for x in machine.sizes() for d in (-1, 0)}
    return {x for x in knots | {1, nbytes} if 1 <= x <= nbytes}
