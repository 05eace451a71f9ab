"""Lower bounds: no schedule can be faster on this machine.  Each says which argument it uses."""

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from collwise.model import postal
from collwise.model.exact import seconds
from collwise.model.machine import Cost, Machine


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
    costs = {x: _cost(machine, x) for x in _corners(machine, nbytes)}
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
    time = _informing(ranks, *_cost(machine, nbytes))
    return Bound(time, "T_λ(p)·t0, if everything goes in one message")


def _informing(ranks: int, gap: Fraction, latency: Fraction) -> Fraction:
    """T_λ(p)·t0 in seconds.  A gap above the latency counts as that: it can only be faster so."""
    gap = min(gap, latency)
    return postal.broadcast_time(ranks, latency / gap) * gap if gap else latency


def reduce(machine: Machine, ranks: int, nbytes: int) -> Bound:
    """For every reduce of vectors of nbytes over `ranks` ranks, segmented ones included.

    A broadcast's bounds hold for its time-reverse, in which free combining changes nothing: every
    rank's contribution must reach the root, which receives nbytes at least.  And every rank but the
    root sends nbytes at least, every byte is combined p − 1 times: some rank has its share of it,
    (p − 1)/p·n of receiving at the best rate and of combining, which keeps its ports busy.
    """
    return _combining(machine, ranks, nbytes, sent=1)


def allreduce(machine: Machine, ranks: int, nbytes: int) -> Bound:
    """For every allreduce of vectors of nbytes over `ranks` ranks, segmented ones included.

    As for a reduce; but n bytes have to be sent p − 1 times to be combined, and p − 1 times more to
    be known everywhere, so the share of some rank is 2(p − 1)/p·n.  Source: [PatarasukYuan2009].
    """
    return _combining(machine, ranks, nbytes, sent=2)


def _combining(machine: Machine, ranks: int, nbytes: int, sent: int) -> Bound:
    least = broadcast(machine, ranks, nbytes)
    if ranks == 1 or nbytes == 0:
        return least
    corners = _corners(machine, nbytes)
    rate = min(_cost(machine, x).gap / x for x in corners)
    combine = min((machine.combine(x) or Fraction(0)) / x for x in corners)
    share = Fraction(ranks - 1, ranks) * nbytes * (sent * rate + combine)
    if share > least.time:
        times = "twice (p − 1)/p" if sent > 1 else "(p − 1)/p"
        return Bound(share, f"some rank has its share: {times} of the bytes, and of combining")
    return Bound(least.time, least.argument.replace("leave the root", "reach a rank"))


def reduce_scatter(machine: Machine, ranks: int, nbytes: int) -> Bound:
    """For every reduce-scatter of vectors of nbytes, all p blocks together, over `ranks` ranks.

    Each rank is the root of a reduce of its block: contributions of all ranks must reach it, which
    takes a broadcast's hops, reversed.  Each rank sends its contributions to all blocks but its
    own, (p − 1)/p·n bytes, and the last message must arrive.  Every byte is combined p − 1 times,
    so some rank combines (p − 1)/p·n bytes, which keeps its ports busy.
    Source: [PatarasukYuan2009], the first half of their argument for allreduce.
    """
    if ranks == 1 or nbytes == 0:
        return NOTHING
    costs = {x: _cost(machine, x) for x in _corners(machine, nbytes)}
    gap = min(cost.gap for cost in costs.values())
    latency = min(cost.latency for cost in costs.values())
    hops = Bound(
        _informing(ranks, gap, latency), "T_λ(p)·t0, with the least t0 and λ·t0 of any size"
    )
    share = Fraction(ranks - 1, ranks) * nbytes
    sending = share * min(cost.gap / x for x, cost in costs.items())
    arriving = min(cost.latency - cost.gap for cost in costs.values())
    combining = share * min((machine.combine(x) or Fraction(0)) / x for x in costs)
    sent = Bound(
        sending + arriving, "(p − 1)/p of the bytes leave every rank, and the last message arrives"
    )
    combined = Bound(
        sending + combining, "some rank has its share: (p − 1)/p of the bytes, and of combining"
    )
    return max(hops, sent, combined, key=lambda bound: bound.time)


def reduce_scatter_unsegmented(machine: Machine, ranks: int, nbytes: int) -> Bound:
    """For reduce-scatters that cut no block: T_λ(p)·t0 for one block, with or without others."""
    if ranks == 1 or nbytes == 0:
        return NOTHING
    time = _informing_together(machine, ranks, nbytes // ranks, nbytes)
    return Bound(time, "T_λ(p)·t0, if every block goes in one message")


def s_to_p(machine: Machine, ranks: int, given: Sequence[int]) -> Bound:
    """For every s-to-p broadcast of sources that give so many bytes (each >= 1).

    A broadcast's bounds hold: a first byte of some source must reach every rank, and some rank
    receives all that it did not give, as a broadcast's root sends it.
    """
    others = sum(given) - (min(given) if len(given) == ranks else 0)
    if ranks == 1 or not others:
        return NOTHING
    bound = broadcast(machine, ranks, others)
    return Bound(bound.time, bound.argument.replace("leave the root", "of others reach a rank"))


def s_to_p_unsegmented(machine: Machine, ranks: int, given: Sequence[int]) -> Bound:
    """For s-to-p broadcasts that cut no contribution: T_λ(p)·t0 for the largest one.

    It may travel with others: the least t0 and λ·t0 count of all sizes from its own to everything.
    """
    if ranks == 1 or not given:
        return NOTHING
    time = _informing_together(machine, ranks, max(given), sum(given))
    return Bound(time, "T_λ(p)·t0, if every contribution goes in one message")


def _informing_together(machine: Machine, ranks: int, least: int, most: int) -> Fraction:
    """T_λ(p)·t0 with the least t0 and the least λ·t0 of all sizes from `least` to `most`."""
    sizes = {x for x in _corners(machine, most) if x > least} | {least}
    costs = [_cost(machine, x) for x in sizes]
    gap, latency = min(cost.gap for cost in costs), min(cost.latency for cost in costs)
    return _informing(ranks, gap, latency)


def _cost(machine: Machine, nbytes: int) -> Cost:
    """The least that a message costs: a rank with many ports sends any number of them at once."""
    cost = machine.message(nbytes)
    return Cost(Fraction(0), cost.latency) if machine.all_port else cost


def _corners(machine: Machine, nbytes: int) -> set[int]:
    """Sizes among which the least t0, λ·t0, (λ − 1)·t0 and t0/x of all sizes 1 … nbytes are found.

    All four are monotone between the sizes at which the laws change slope or jump.  The exception
    is LogGP's t0/x where o > g: it can be least in between, so that a root may send faster than at
    either end.  The bound holds all the same, since no rank receives faster: a receipt of x bytes
    takes max(o, g) + (x − 1)G, which over x is monotone, and at the ends no less than t0/x.
    """
    knots = {x + d for x in machine.sizes() for d in (-1, 0)}
    return {x for x in knots | {1, nbytes} if 1 <= x <= nbytes}
