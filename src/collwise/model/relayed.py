"""A lower bound of the time until all have all bytes: nobody sends before it has been reached.

Let the i-th rank be reached at a_i at the earliest, and the root at a_0 = 0.  The p − 1 other ranks
receive all bytes.  Sending so much keeps ports busy for a sum of B seconds, and a message that has
left its port arrives no sooner than `lag` seconds later.  Within T seconds the port of rank i can
be busy for T − lag − a_i at most.  So the sum of all positive T − lag − a_i is at least B.
A reduce is a broadcast reversed in time: what a rank receives late no longer reaches the root.
Source: the argument of [Karp1993] for broadcasts of k items.
"""

from collections.abc import Iterable, Iterator
from fractions import Fraction
from heapq import heappop, heappush
from math import lcm


def reached(
    latency: Fraction, gap: Fraction, *, together: int = 1, port: Fraction = Fraction(0)
) -> Iterator[Fraction]:
    """Yield, without end, the earliest seconds at which one group more is reached; first 0.

    latency: seconds from the start of a message to its receipt.   gap: seconds from one message of
    a rank to its next.   together: ranks of a group, which all have the data at once.   port:
    seconds for which each message keeps the group's shared port busy.
    """
    scale = lcm(latency.denominator, gap.denominator, port.denominator)
    travel, own, shared = (int(value * scale) for value in (latency, gap, port))
    yield Fraction(0)
    arrivals = [(travel, 0, 0)]  # arrival; when its sender was reached; the sender's message number
    while True:
        time, since, j = heappop(arrivals)
        yield Fraction(time, scale)
        heappush(arrivals, (time + travel, time, 0))
        later = since + max((j + 1) // together * own, (j + 1) * shared)
        heappush(arrivals, (later + travel, since, j + 1))


def soonest(starts: Iterable[Fraction], busy: Fraction, lag: Fraction) -> Fraction:
    """The least T for which the sum of all positive T − lag − a, over the starts a, is `busy`.

    starts: ascending seconds, at least one.   Returns 0 if ports are not busy.
    """
    total, time = busy, None
    for count, start in enumerate(starts, 1):
        if time is not None and time <= start:
            break
        total += start
        time = total / count
    return lag + time if busy and time is not None else Fraction(0)
