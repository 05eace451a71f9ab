"""Lower bounds of the time of collectives on a machine, each with the argument for it.

In all functions `machine` gives the costs of messages, `ranks` is p, and times are exact seconds.
T_λ(p)·t0 is the least time of a broadcast to p ranks in the postal model.
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import islice
from typing import NamedTuple

from collwise.model import group_bounds, postal, relayed
from collwise.model.chains import all_chained
from collwise.model.exact import seconds
from collwise.model.levels import Levels
from collwise.model.limits import SEARCHED_RANKS
from collwise.model.machine import Machine
from collwise.model.pace import lines_below, soonest


class Bound(NamedTuple):
    """A lower bound in exact seconds, and the argument for it."""

    time: Fraction
    argument: str

    @property
    def time_s(self) -> float:
        """The bound as a float, in seconds."""
        return seconds(self.time)


NOTHING = Bound(Fraction(0), "nothing has to be sent")
LEAVING = "leave the root"
LEAST = "with the least t0 and λ·t0 of any size"
CHAINED = "every rank needs every byte of every rank: long messages leave time for few ways"
PACED = "all of them in messages that have the time to travel"
"""The argument, in words, of a bound that the module `pace` computes."""
RELAYED = "all ranks have all bytes, and nobody sends before it is reached"
"""The argument, in words, of a bound that the module `relayed` computes."""


def broadcast(machine: Machine, ranks: int, nbytes: int) -> Bound:
    """Return a lower bound for every broadcast of nbytes to `ranks` ranks, segmented ones included.

    The result is the largest of five bounds:
    1.  Some byte must reach every rank.  This takes T_λ(p)·t0 with the least t0 and λ·t0 of all
    sizes up to nbytes.
    2.  All bytes must leave the root, which takes nbytes times the least t0(x)/x.  Then the last
    message must arrive, (λ − 1)·t0 after it has left the root (earlier where λ < 1, as in LogGP).
    3.  Take the byte whose first departure from the root is the last one.  All other bytes have
    left by then, and this byte still needs T_λ(p)·t0 to reach every rank.  The byte needs more if
    its message of x bytes takes longer than the cheapest message.
    4.  Let x bytes be the size of the last message that brings new bytes from the root.  From its
    start at least T_λ(p)·t0 remains, and more if x bytes take longer than the cheapest message.  So
    the root is idle for this time less t0(x), and the bound of the module `pace` applies.
    5.  All other ranks receive all bytes, and nobody sends before it is reached (`relayed`).

    Where ranks share memory, one publication reaches all of them.  So T_λ(p)·t0 becomes the least
    λ·t0 of one publication and one read, and this λ·t0 grows with the size of the message.  The
    root still publishes every byte once, for at least t0(x)/x, and every other rank reads each
    byte.

    On a machine with levels, all bytes must also leave the root's group of every level.
    """
    bound = _pipelined(machine, ranks, nbytes, LEAVING)
    if bound != NOTHING and isinstance(machine, Levels) and machine.placement.ranks == ranks:
        sizes = _sizes(machine, nbytes, 1)
        for level in range(2, machine.placement.depth + 1):
            if len(machine.placement.members[level - 2]) == 1:
                continue  # nothing leaves a group of all ranks
            name = machine.by_level[level - 2].name
            words = f"all bytes leave the root's {name}, and the last one arrives"
            passed = f"every {name} has all bytes, and none sends before it is reached"
            leaving, passing = group_bounds.leaving(machine, level, nbytes, sizes)
            more = Bound(leaving, words), Bound(passing, passed)
            bound = max(bound, *more, key=lambda bound: bound.time)
    return bound


def _pipelined(machine: Machine, ranks: int, nbytes: int, move: str) -> Bound:
    """The largest of the five bounds of `broadcast`; they also hold for a reduce.

    move: what all bytes do at the root, as words for the argument; LEAVING marks a broadcast.
    A reduce may send vectors of several ranks in one message, so messages of up to p·nbytes count.
    """
    if ranks == 1 or nbytes == 0:
        return NOTHING
    gathers = move != LEAVING
    most = ranks * nbytes if gathers else nbytes
    least = _least(machine, most, of=nbytes, gathers=gathers)
    volume = _volume(machine, most, move, nbytes)
    hops = _informing(machine, ranks, LEAST, most, gathers=gathers)
    rate = least.sent_per_byte if move == LEAVING else least.received_per_byte
    both = least.informing(ranks) + min(
        max(nbytes - x, 0) * rate + _longer(machine, x, least, gathers=gathers)
        for x in {nbytes, *_sizes(machine, most, 1)}
    )
    words = f"all bytes {move} at its best rate, and the last one takes T_λ(p)·t0"
    idle = least.informing(ranks) - max(
        max(least.gap, _gap(machine, x, gathers) + least.latency - machine.message(x).latency)
        for x in _sizes(machine, most, 1)
    )
    paced = Bound(_paced(machine, most, nbytes, idle), PACED)
    bounds = [hops, volume, Bound(both, words), paced]
    if ranks <= SEARCHED_RANKS and not machine.shares_memory:
        starts = islice(relayed.reached(least.latency, least.gap), ranks)
        passed = relayed.soonest(starts, (ranks - 1) * nbytes * rate, least.lag)
        bounds.append(Bound(passed, RELAYED))
    return max(bounds, key=lambda bound: bound.time)


def _paced(machine: Machine, most: int, nbytes: int | Fraction, idle: Fraction) -> Fraction:
    """A lower bound of the seconds in which a port receives nbytes, 0 if none is known (`soonest`).

    most: bytes of the longest message.   idle: seconds in which the port receives nothing.
    """
    return soonest(machine, tuple(_sizes(machine, most, 1)), Fraction(nbytes), idle)


def _gap(machine: Machine, nbytes: int, gathers: bool) -> Fraction:
    """The least seconds from one message of nbytes to the next on a rank's port: t0.

    The result is 0 if ranks have many ports.  If ranks share memory, the result is the time of a
    read if `gathers`, else 0, since one publication informs all ranks.
    gathers: True if contributions must reach one rank, False if a byte must reach every rank.
    """
    if machine.all_port or machine.shares_memory:
        reads = gathers and machine.shares_memory
        return machine.receipt(nbytes) if reads else Fraction(0)
    return machine.message(nbytes).gap


def _longer(machine: Machine, nbytes: int, least: "_Least", *, gathers: bool) -> Fraction:
    """The least seconds by which T_λ(p)·t0 (`least.informing`) grows if one message has nbytes."""
    travels = machine.message(nbytes).latency - least.latency
    if machine.shares_memory and not gathers:
        return travels
    return min(_gap(machine, nbytes, gathers) - least.gap, travels)


def _volume(machine: Machine, most: int, move: str, nbytes: int) -> Bound:
    least = _least(machine, most, of=nbytes)
    words = f"all bytes {move} at its best rate, and the last one arrives"
    best = Bound(nbytes * least.received_per_byte + least.lag, words)
    paced = Bound(_paced(machine, most, nbytes, least.lag), PACED)
    return max(best, paced, key=lambda bound: bound.time)


def broadcast_unsegmented(machine: Machine, ranks: int, nbytes: int) -> Bound:
    """A lower bound for broadcasts that do not cut the message: T_λ(p)·t0 for nbytes.

    Source: [BarNoyKipnis1994].
    """
    return _informing(machine, ranks, "if everything goes in one message", nbytes, nbytes)


def combining_unsegmented(machine: Machine, ranks: int, nbytes: int) -> Bound:
    """A lower bound for reduces and allreduces that cut no vector: T_λ(p)·t0 for 1 to p vectors.

    An algorithm that combines only at the end sends messages of several vectors.
    """
    return _informing(machine, ranks, "if no vector is cut", ranks * nbytes, nbytes, gathers=True)


def reduce(machine: Machine, ranks: int, nbytes: int) -> Bound:
    """A lower bound for every reduce, segmented or not, of n = nbytes over `ranks` ranks.

    If combining is free, a reduce is a broadcast reversed in time, so the five bounds of
    `broadcast` hold.  Every rank's contribution must reach the root.  The root must receive at
    least nbytes.  The first byte to be complete at the root takes T_λ(p)·t0, and all other bytes
    become complete after it.
    These bounds hold in shared memory, too.  Let a rank hold at most F(t) contributions at time t.
    The rank holds what it held before its last read, which took r, and what the sender of that
    message held λ·t0 earlier.  So F(t) ≤ F(t − r) + F(t − λ·t0), which is the postal model
    with t0 = r.
    A sixth bound: every rank but the root sends at least nbytes, and every byte is combined p − 1
    times.  So some rank has to receive (p − 1)/p·n bytes at the best rate, and to combine
    (p − 1)/p·n bytes while its ports are busy.
    """
    return _combining(machine, ranks, nbytes, sent=1)


def allreduce(machine: Machine, ranks: int, nbytes: int) -> Bound:
    """A lower bound for every allreduce, segmented or not, of n = nbytes over `ranks` ranks.

    All bounds of a reduce hold.  Moreover, combining takes p − 1 transfers of n bytes, and telling
    all ranks the result takes p − 1 more transfers.  So some rank receives 2(p − 1)/p·n bytes.
    Source: [PatarasukYuan2009].
    The module `chains` has another bound: messages must be short to connect all ranks quickly.
    """
    bound = _combining(machine, ranks, nbytes, sent=2)
    if bound == NOTHING or not machine.independent_ports:
        return bound
    lines = lines_below(machine, tuple(_sizes(machine, ranks * nbytes, 1)))
    chained = all_chained(lines, ranks, nbytes, bound.time)
    return Bound(chained, CHAINED) if chained > bound.time else bound


def _combining(machine: Machine, ranks: int, nbytes: int, sent: int) -> Bound:
    bound = _pipelined(machine, ranks, nbytes, "reach a rank")
    if bound == NOTHING:
        return NOTHING
    times = "twice (p − 1)/p" if sent > 1 else "(p − 1)/p"
    words = f"some rank has its share: {times} of the bytes, and of combining"
    share = _share(machine, ranks, nbytes, sent, to_root=sent == 1)
    return Bound(share, words) if share > bound.time else bound


def _share(machine: Machine, ranks: int, nbytes: int, sent: int, *, to_root: bool) -> Fraction:
    """The least seconds to receive (p − 1)/p·nbytes `sent` times, and to combine them once.

    to_root: whether only the root needs the result, so that some ranks may receive nothing.
    While the first message to a rank travels, the rank receives nothing else, and has nothing to
    combine.  So (λ − 1)·t0 is added; with `to_root` only if λ < 1, where it is below 0.  The bound
    of `pace` also holds for the mean over the ranks, unless some ranks receive nothing.
    """
    least, share = _least(machine, ranks * nbytes, of=nbytes), Fraction(ranks - 1, ranks) * nbytes
    idle = share * least.combining_per_byte
    idle += min(least.lag, Fraction(0)) if to_root else least.lag
    rough = share * sent * least.received_per_byte + idle
    return rough if to_root else max(rough, _paced(machine, ranks * nbytes, share * sent, idle))


def reduce_scatter(machine: Machine, ranks: int, nbytes: int) -> Bound:
    """A lower bound for every reduce-scatter over `ranks` ranks.   nbytes: all p blocks together.

    Each rank is the root of a reduce of its block, so contributions of all ranks must reach it.
    This takes at least T_λ(p)·t0, like a broadcast.  Each rank sends its contributions to all other
    blocks, (p − 1)/p·n bytes with n = nbytes, and the last message must arrive.  Every byte is
    combined p − 1 times, so some rank combines (p − 1)/p·n bytes while its ports are busy.
    Source: [PatarasukYuan2009], the first half of their argument for allreduce.
    """
    if ranks == 1 or nbytes == 0:
        return NOTHING
    least = _least(machine, ranks * nbytes, of=nbytes)
    return max(
        _informing(machine, ranks, LEAST, ranks * nbytes, gathers=True),
        Bound(
            Fraction(ranks - 1, ranks) * nbytes * least.received_per_byte + least.lag,
            "(p − 1)/p of the bytes leave every rank, and the last message arrives",
        ),
        Bound(
            _share(machine, ranks, nbytes, 1, to_root=False),
            "some rank has its share: (p − 1)/p of the bytes, and of combining",
        ),
        key=lambda bound: bound.time,
    )


def reduce_scatter_unsegmented(machine: Machine, ranks: int, nbytes: int) -> Bound:
    """A lower bound for reduce-scatters that cut no block: T_λ(p)·t0 for one block or several."""
    words = "if every block goes in one message"
    return _informing(machine, ranks, words, ranks * nbytes, nbytes // ranks, gathers=True)


def allgatherv(machine: Machine, ranks: int, contributions: Sequence[int]) -> Bound:
    """Return a lower bound for every allgatherv.   contributions: bytes of each source, all >= 1.

    With one source this is the bound of a broadcast.  With several, a byte of some source must
    reach every rank, and some rank receives all bytes that it did not contribute.
    """
    others = sum(contributions) - (min(contributions) if len(contributions) == ranks else 0)
    if ranks == 1 or not others:
        return NOTHING
    if len(contributions) == 1:
        return broadcast(machine, ranks, others)
    hops = _informing(machine, ranks, LEAST, others)
    volume = _volume(machine, others, "of others reach a rank", others)
    return hops if hops.time >= volume.time else volume


def allgatherv_unsegmented(machine: Machine, ranks: int, contributions: Sequence[int]) -> Bound:
    """A lower bound for an allgatherv that cuts no contribution: T_λ(p)·t0 for the largest one.

    The largest contribution may share messages with other ones.  So t0 and λ·t0 are the least of
    all sizes from the largest contribution to the sum of all contributions.
    """
    words, largest = "if every contribution goes in one message", max(contributions, default=0)
    return _informing(machine, ranks, words, sum(contributions), largest)


class _Least(NamedTuple):
    """The least costs of all message sizes in a range, in exact seconds or seconds per byte.

    gap: t0 (`_gap`).   latency: λ·t0.   lag: (λ − 1)·t0; in shared memory, λ·t0 less a read.
    """

    gap: Fraction
    latency: Fraction
    lag: Fraction
    sent_per_byte: Fraction
    received_per_byte: Fraction
    combining_per_byte: Fraction

    def informing(self, ranks: int) -> Fraction:
        """Return T_λ(p)·t0 with these costs, or λ·t0 if t0 is 0.

        If λ is below SMALLEST_LATENCY, a shorter t0 is used, which can only lower the bound.
        """
        gap = min(self.gap, self.latency / postal.SMALLEST_LATENCY)
        return postal.broadcast_time(ranks, self.latency / gap) * gap if gap else self.latency


def _informing(
    machine: Machine, ranks: int, words: str, most: int, least: int = 1, *, gathers: bool = False
) -> Bound:
    """T_λ(p)·t0 for messages of `least` to `most` bytes; `words` name the sizes in the argument.

    On a machine with levels, return the time to reach all groups of some level if that is longer.
    gathers: True if contributions must reach one rank, False if a byte must reach every rank.
    """
    if ranks == 1 or not most:
        return NOTHING
    time = _least(machine, most, least, gathers=gathers).informing(ranks)
    bound = Bound(time, f"T_λ(p)·t0, {words}")
    if machine.shares_memory:
        reads = "T_λ(p)·t0, where t0 is a read," if gathers else "one publication and one read,"
        bound = Bound(time, f"{reads} {words}")
    if not isinstance(machine, Levels) or machine.placement.ranks != ranks:
        return bound
    sizes = _sizes(machine, most, least)
    for level in range(2, machine.placement.depth + 1):
        name = machine.by_level[level - 2].name
        groups = len(machine.placement.members[level - 2])
        time = next(islice(group_bounds.reaching(machine, level, sizes), groups - 1, None))
        bound = max(bound, Bound(time, f"every {name} is reached, {words}"), key=lambda b: b.time)
    return bound


def _least(
    machine: Machine, most: int, least: int = 1, of: int | None = None, *, gathers: bool = False
) -> _Least:
    """Return the least costs of messages of `least` to `most` bytes.

    of: bytes of the vector, by default `most`; a longer message brings at most `of` different ones.
    gathers: True if contributions must reach one rank, False if a byte must reach every rank.
    Costs are monotone between sizes at which the law bends or jumps, so only these sizes are tried,
    and `least`, `most` and `of`.
    """
    of = most if of is None else of
    sizes = list({*_sizes(machine, most, least), of})
    latencies = [machine.message(x).latency for x in sizes]
    gaps = [_gap(machine, x, gathers) for x in sizes]
    sends = [machine.message(x).gap for x in sizes] if machine.shares_memory else gaps
    receipts = [Fraction(0) if machine.all_port else machine.receipt(x) for x in sizes]
    lags = receipts if machine.shares_memory else gaps
    return _Least(
        min(gaps),
        min(latencies),
        min(latency - gap for latency, gap in zip(latencies, lags, strict=True)),
        min(gap / min(x, of) for gap, x in zip(sends, sizes, strict=True) if x),
        min(receipt / min(x, of) for receipt, x in zip(receipts, sizes, strict=True) if x),
        min((machine.combine(x) or Fraction(0)) / x for x in sizes if 0 < x <= of),
    )


def _sizes(machine: Machine, most: int, least: int) -> list[int]:
    """Return the sizes from `least` to `most` bytes at which a cost can be least."""
    knots = {x + d for x in (*machine.sizes(), *machine.combining_sizes()) for d in (-1, 0)}
    return [x for x in knots | {least, most} if least <= x <= most]
