"""Lower bounds of times: on this machine no schedule is faster.  Each comes with its argument."""

from collections.abc import Sequence
from fractions import Fraction
from heapq import heappop, heappush
from typing import NamedTuple

from collwise.model import postal
from collwise.model.chains import all_chained
from collwise.model.exact import seconds
from collwise.model.levels import Levels
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
"""The argument of a bound that `pace` makes larger than its others."""


def broadcast(machine: Machine, ranks: int, nbytes: int) -> Bound:
    """A bound for every broadcast of nbytes to `ranks` ranks, segmented ones included.

    It is the largest of four:
    1. Some byte must reach every rank: T_λ(p)·t0 with the least t0 and λ·t0 of all sizes up to
    nbytes.
    2. All bytes must leave the root: nbytes times the least t0(x)/x.  Then the last message must
    arrive, (λ − 1)·t0 after it has left the root (earlier than that where λ < 1, as in LogGP).
    3. Take the byte whose first departure from the root is the last one.  All other bytes have left
    by then, and this byte still needs T_λ(p)·t0 to reach every rank; more, if its message of x
    bytes takes longer than the cheapest message does.
    Where ranks share memory, a publication reaches all of them at once, so T_λ(p)·t0 becomes the
    least λ·t0 of one publication and one read: no byte is at another rank sooner, and λ·t0 grows
    with the message that brings it.  The root still publishes every byte once, for t0(x)/x at
    least, and every other rank reads each byte, one read after another.
    4. As `pace` has it, messages from the root need the time to arrive.  Let the last message that
    brings new bytes from the root have x bytes: when it starts, T_λ(p)·t0 is left at least, and
    more as in 3.  So beside sending, the root is idle for that time less t0(x).
    """
    return _pipelined(machine, ranks, nbytes, LEAVING)


def _pipelined(machine: Machine, ranks: int, nbytes: int, move: str) -> Bound:
    """The bound of `broadcast`, and of a reduce, which is a broadcast reversed in time.

    move: what bytes do at the root, in words for the argument; LEAVING marks a broadcast.
    A byte that a reduce sends may combine the contributions of several ranks.
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
    return max(hops, volume, Bound(both, words), paced, key=lambda bound: bound.time)


def _paced(machine: Machine, most: int, nbytes: int | Fraction, idle: Fraction) -> Fraction:
    """The least seconds in which a port receives nbytes, in messages of up to `most` bytes."""
    return soonest(machine, tuple(_sizes(machine, most, 1)), Fraction(nbytes), idle)


def _gap(machine: Machine, nbytes: int, gathers: bool) -> Fraction:
    """t0 of a message of nbytes, after which a rank can inform another, or hear from another.

    It is 0 on a machine whose ranks have many ports.  In memory that ranks share, one publication
    informs all, so t0 is 0 as well, and a rank hears from another after a read.
    gathers: whether contributions have to reach one rank; otherwise a byte has to reach every rank.
    """
    if machine.all_port or machine.shares_memory:
        reads = gathers and machine.shares_memory
        return machine.receipt(nbytes) if reads else Fraction(0)
    return machine.message(nbytes).gap


def _longer(machine: Machine, nbytes: int, least: "_Least", *, gathers: bool) -> Fraction:
    """How much longer than `least.informing` it takes if one message has nbytes."""
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
    """A bound for broadcasts that send all nbytes in one message: T_λ(p)·t0 of that size.

    Source: [BarNoyKipnis1994].
    """
    if ranks == 1 or nbytes == 0:
        return NOTHING
    return _informing(machine, ranks, "if everything goes in one message", nbytes, nbytes)


def combining_unsegmented(machine: Machine, ranks: int, nbytes: int) -> Bound:
    """A bound if no vector is cut in combining: T_λ(p)·t0 for messages of 1 to p vectors.

    An algorithm that combines only in the end sends several vectors together, perhaps faster.
    """
    if ranks == 1 or nbytes == 0:
        return NOTHING
    return _informing(machine, ranks, "if no vector is cut", ranks * nbytes, nbytes, gathers=True)


def reduce(machine: Machine, ranks: int, nbytes: int) -> Bound:
    """A bound for every reduce of vectors of nbytes over `ranks` ranks, segmented ones included.

    A reduce with free combining is a broadcast reversed in time, so a broadcast's four bounds
    hold: every rank's contribution must reach the root, the root must receive nbytes at least, and
    of the byte that is complete at the root first, all contributions arrive before the rest.
    (Shared memory is no exception: let a rank hold F(t) contributions at most at the time t.  Its
    last message was sent λ·t0 before, and what it held before that it held the time r of a read
    earlier, so F(t) ≤ F(t − r) + F(t − λ·t0), which is the postal model with t0 = r.)
    A fifth: every rank but the root sends nbytes at least, and every byte is combined p − 1 times.
    So some rank has to receive (p − 1)/p·n bytes at the best rate, and to combine as many, which
    keeps its ports busy.
    """
    return _combining(machine, ranks, nbytes, sent=1)


def allreduce(machine: Machine, ranks: int, nbytes: int) -> Bound:
    """A bound for every allreduce of vectors of nbytes over `ranks` ranks, segmented ones included.

    The bounds of a reduce hold; but n bytes must be sent p − 1 times to be combined, and p − 1
    times more to be known everywhere, so some rank receives 2(p − 1)/p·n of them.
    Source: [PatarasukYuan2009].
    One more, by `chains`: in a short time only short messages connect all ranks with each other.
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
    """Seconds of receiving (p − 1)/p·n bytes `sent` times, and of combining them once.

    to_root: whether only the root needs the result, so that some ranks may receive nothing.
    The first message to a rank waits for none before: where λ < 1 it may take less than t0, else it
    takes (λ − 1)·t0 more, during which the rank has nothing to combine either.  The bound of `pace`
    holds for the mean over the ranks, too, unless some of them receive nothing.
    """
    least, share = _least(machine, ranks * nbytes, of=nbytes), Fraction(ranks - 1, ranks) * nbytes
    idle = share * least.combining_per_byte
    idle += min(least.lag, Fraction(0)) if to_root else least.lag
    rough = share * sent * least.received_per_byte + idle
    return rough if to_root else max(rough, _paced(machine, ranks * nbytes, share * sent, idle))


def reduce_scatter(machine: Machine, ranks: int, nbytes: int) -> Bound:
    """A bound for every reduce-scatter over `ranks` ranks.   nbytes: all p blocks of a vector.

    Each rank is the root of a reduce of its block: contributions of all ranks must reach it, which
    takes a broadcast's hops, reversed.  Each rank sends its contributions to all blocks but its
    own, (p − 1)/p·n bytes, and the last message must arrive.  Every byte is combined p − 1 times,
    so some rank combines (p − 1)/p·n bytes, which keeps its ports busy.
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
    """A bound if no block is cut: T_λ(p)·t0 for messages of one block, or of several."""
    if ranks == 1 or nbytes == 0:
        return NOTHING
    words = "if every block goes in one message"
    return _informing(machine, ranks, words, ranks * nbytes, nbytes // ranks, gathers=True)


def allgatherv(machine: Machine, ranks: int, contributions: Sequence[int]) -> Bound:
    """A bound for every s-to-p broadcast.   contributions: bytes of each source, all >= 1.

    With one source the bounds of `broadcast` hold.  With several, a byte of some source must reach
    every rank, and some rank receives all bytes that it did not contribute.
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
    """A bound for s-to-p broadcasts that cut no contribution: T_λ(p)·t0 for the largest one.

    It may share messages with others, so t0 and λ·t0 are the least of all sizes from that of the
    largest contribution to that of all together.
    """
    if ranks == 1 or not contributions:
        return NOTHING
    words = "if every contribution goes in one message"
    return _informing(machine, ranks, words, sum(contributions), max(contributions))


class _Least(NamedTuple):
    """The least costs of any message size in a range, in exact seconds.

    lag: (λ − 1)·t0; in shared memory λ·t0 without a read.
    """

    gap: Fraction
    latency: Fraction
    lag: Fraction
    sent_per_byte: Fraction
    received_per_byte: Fraction
    combining_per_byte: Fraction

    def informing(self, ranks: int) -> Fraction:
        """T_λ(p)·t0.  A shorter gap can only be faster: λ counts as SMALLEST_LATENCY at least."""
        gap = min(self.gap, self.latency / postal.SMALLEST_LATENCY)
        return postal.broadcast_time(ranks, self.latency / gap) * gap if gap else self.latency


def _informing(
    machine: Machine, ranks: int, words: str, most: int, least: int = 1, *, gathers: bool = False
) -> Bound:
    """T_λ(p)·t0 for messages of `least` to `most` bytes; `words` say so in the argument.

    On a machine with levels, the time to reach all groups of some level, if that is longer.
    gathers: as in `_gap`.
    """
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
        time = _reaching(machine, level, sizes)
        bound = max(bound, Bound(time, f"every {name} is reached, {words}"), key=lambda b: b.time)
    return bound


def _reaching(machine: Levels, level: int, sizes: Sequence[int]) -> Fraction:
    """The least time in which messages of level `level` and outer ones reach all groups below it.

    A group of up to q ranks starts its message number j (0, 1, …) no earlier than
    max(⌊j/q⌋·t0, j·g) after it is reached, as if all of its ranks then had the data.  t0, λ·t0 and
    g, the time of the group's port, are the least of these sizes.  (T_λ of the number of groups is
    no bound, since several ranks of a group can send at once.)
    """
    groups = machine.placement.members[level - 2]
    most = max(map(len, groups))
    costs = [machine.at(at, n) for at in range(level, machine.placement.depth + 1) for n in sizes]
    gap, latency = min(c.gap for c in costs), min(c.latency for c in costs)
    port = min(machine.port(level - 1, n) for n in sizes)
    time = Fraction(0)
    arrivals = [(latency, Fraction(0), 0)]  # arrival; when its sender was reached; message number
    for _ in groups[1:]:
        time, since, j = heappop(arrivals)
        heappush(arrivals, (time + latency, time, 0))
        later = since + max((j + 1) // most * gap, (j + 1) * port)
        heappush(arrivals, (later + latency, since, j + 1))
    return time


def _least(
    machine: Machine, most: int, least: int = 1, of: int | None = None, *, gathers: bool = False
) -> _Least:
    """The least costs of sizes from `least` to `most` bytes.  With many ports, t0 counts as 0.

    of: bytes of the vector; a longer message has some of them twice, so it brings `of` at most.
    gathers: as in `_gap`.
    All costs are monotone between the sizes at which the laws change slope or jump.
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
    """The sizes from `least` to `most` bytes at which a cost can be least."""
    knots = {x + d for x in (*machine.sizes(), *machine.combining_sizes()) for d in (-1, 0)}
    return [x for x in knots | {least, most} if least <= x <= most]
