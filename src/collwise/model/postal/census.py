"""Global combine in the postal model: the census algorithm, for any n [Bruck1996] §3.

For an integer latency k, every rank does the same, relative to its own number.  It keeps two
running values: after round r, T_i combines the N_ε(r) contributions d_i, d_(i+1), …, and S_i the
same without d_i.  In round r every rank sends its T or its S, as both were after round r − 1; in
round r + k − 1 what it is sent is appended to both.  So N_ε(r) = N_ε(r−1) + N_ε(r−k) − ε_(r−k): the
deficiency ε_j is 1 where S is sent instead of T, so that N_ε ends at n and not at N_k(t) above it.

The paper says it the other way round (S where ε is 0), which combines too few contributions for
every n >= 2; its [Bruck1996] scheme for n = N_k(t) alone is right, and runs downwards from i.
"""

from fractions import Fraction
from math import ceil, exp, floor, log
from typing import Literal, NamedTuple

from collwise.errors import InvalidArgument
from collwise.model.exact import Number
from collwise.model.postal._scaled import latency, reached_scaled, time_scaled
from collwise.model.postal.growth import growth
from collwise.system.integers import checked_integer

MAX_ROUNDS = 1 << 22
"""The most rounds of a census, since they are listed one by one."""


class CensusRound(NamedTuple):
    """One message of every rank: rank j sends to rank j − shift (mod n), all at once.

    sent: the round in which the message is sent, from 1.
    state: which running value is sent, "T" or "S", as it was after round sent − 1.
    shift: how far down the receiver is, 1 … n−1.
    received: the round after which both of the receiver's values contain the message.
    contributions: how many ranks' contributions the message combines, >= 1.
    """

    sent: int
    state: Literal["T", "S"]
    shift: int
    received: int
    contributions: int


def deficiencies(n: int, lam: Number) -> tuple[int, ...]:
    """(ε_0, …, ε_(t−λ)), each 0 or 1, with which the census of n ranks ends at n, t = T_λ(n).

    n: number of ranks, >= 1.   lam: latency in units of t0, an integer >= 1.
    Returns () for n = 1.  The surplus N_λ(t) − n is paid greedily: ε_j = 1 takes N_λ(t−λ−j) off.
    Raises InvalidArgument if n < 1, lam < 1, lam is no integer, or t is above MAX_ROUNDS.
    Source: [Bruck1996] §3.1, which leaves the choice open.

    >>> deficiencies(13, 2), deficiencies(12, 2)
    ((0, 0, 0, 0, 0), (0, 0, 0, 1, 0))
    """
    n = checked_integer(n, "deficiencies(n, lam)", "n")
    k = _integer_latency(lam, "deficiencies(n, lam)")
    t = time_scaled(n, k, 1)
    if t > MAX_ROUNDS:
        raise InvalidArgument(
            "a census", f"{n} ranks at λ = {k} take {t} rounds", f"ask for at most {MAX_ROUNDS}"
        )
    surplus, chosen = reached_scaled(t, k, 1) - n, []
    for weight in (reached_scaled(t - k - j, k, 1) for j in range(t - k + 1)):
        pays = weight <= surplus
        surplus -= pays * weight
        chosen.append(int(pays))
    return tuple(chosen)


def census_rounds(n: int, lam: Number) -> tuple[CensusRound, ...]:
    """What every rank sends in the census of n ranks; the last message is received in round T_λ(n).

    n: number of ranks, >= 1.   lam: latency in units of t0, an integer >= 1.
    Returns the messages in the order of their sending.  Where S would be sent while it is still
    empty, no message is sent.  Every T_i combines every contribution exactly once, from d_i up to
    d_(i−1): each rank in another order, so the operator must be commutative.
    Raises InvalidArgument if n < 1, lam < 1, or lam is no integer.
    Source: [Bruck1996] §3.1, with S and T exchanged.

    >>> for message in census_rounds(4, 2):
    ...     print(*message)
    1 T 1 2 1
    3 T 2 4 2
    """
    n = checked_integer(n, "census_rounds(n, lam)", "n")
    k = _integer_latency(lam, "census_rounds(n, lam)")
    messages: list[CensusRound] = []
    if not (epsilons := deficiencies(n, k)):
        return ()
    sizes = [1] * k  # N_ε(0), N_ε(1), …
    for j, epsilon in enumerate(epsilons):
        held, shift = sizes[j] - epsilon, sizes[-1] - epsilon
        sizes.append(sizes[-1] + held)
        if held:
            messages.append(CensusRound(j + 1, "S" if epsilon else "T", shift, j + k, held))
    return tuple(messages)


def census_time(n: int, k: int, lam: Number) -> Fraction:
    """Time of the census for latency k where the latency is λ, everything as early as possible.

    n: number of ranks, >= 1.   k: the integer >= 1 for which `census_rounds` are made.
    lam: latency in units of t0, >= 1, exact.
    Returns the time in units of t0.  A message is sent as soon as the one before it has left and
    all receipts that it contains are there.  For k = λ it is T_λ(n); for k = ⌊λ⌋, qλ + r, where
    T_k(n) = qk + r, 0 <= r < k, at most `delay_send_time`; for k = ⌈λ⌉ at most T_k(n) − (k − λ),
    less than `delay_receive_time`, where λ is no integer and n >= 2.
    Raises InvalidArgument if n < 1, k is no integer >= 1, or lam < 1.

    >>> census_time(64, 2, "2.5"), census_time(64, 3, "2.5")
    (Fraction(25, 2), Fraction(12, 1))
    """
    value = latency(lam)
    messages = census_rounds(
        checked_integer(n, "census_time(n, k, lam)", "n"),
        checked_integer(k, "census_time(n, k, lam)", "k"),
    )
    free, received, known = Fraction(0), [Fraction(0)], 0
    for message in messages:
        # received[i + 1] is when message i has come; the first `known` ones are in what is sent.
        while messages[known].received < message.sent:
            known += 1
        start = max(free, received[known])
        free = start + 1
        received.append(max(start + value, received[-1] + 1))
    return received[-1]


def delay_receive_time(n: int, lam: Number) -> Fraction:
    """T_⌈λ⌉(n): the paper's time if every receipt is delayed until ⌈λ⌉ after its sending.

    n: number of ranks, >= 1.   lam: latency in units of t0, >= 1, exact.
    Returns the time in units of t0.  It is an upper bound: see `census_time`.  (The paper's
    recursion for it, read literally with "t >= λ", lets the last receipt be in time: ⌈λ⌉ − λ less.)
    Raises InvalidArgument if n < 1 or lam < 1.
    Source: [Bruck1996] §3.2.

    >>> delay_receive_time(5, "1.4"), delay_send_time(5, "1.4")
    (Fraction(4, 1), Fraction(21, 5))
    """
    n = checked_integer(n, "delay_receive_time(n, lam)", "n")
    return Fraction(time_scaled(n, ceil(latency(lam)), 1))


def delay_send_time(n: int, lam: Number) -> Fraction:
    """λ/⌊λ⌋·T_⌊λ⌋(n): the paper's time if every sending is stretched to λ/⌊λ⌋.

    n: number of ranks, >= 1.   lam: latency in units of t0, >= 1, exact.
    Returns the time in units of t0.  It is an upper bound: see `census_time`.
    Raises InvalidArgument if n < 1 or lam < 1.
    Source: [Bruck1996] §3.3.
    """
    n, value = checked_integer(n, "delay_send_time(n, lam)", "n"), latency(lam)
    return value / floor(value) * time_scaled(n, floor(value), 1)


def delay_receive_growth(lam: Number) -> float:
    """γ(⌈λ⌉): the factor by which the ranks that delay-receive serves grow per t0 in the long run.

    lam: latency in units of t0, >= 1, any rational.   Raises InvalidArgument if lam < 1.
    Source: [Bruck1996] §3.2.
    """
    return growth(ceil(latency(lam)))


def delay_send_growth(lam: Number) -> float:
    """γ(⌊λ⌋)^(⌊λ⌋/λ): by this factor the ranks served by delay-send grow per t0 in the long run.

    lam: latency in units of t0, >= 1, any rational.   Raises InvalidArgument if lam < 1.
    Below `break_even(⌊λ⌋)` it is above `delay_receive_growth`, from there on below.
    Source: [Bruck1996] §3.3.
    """
    value = latency(lam)
    return exp(floor(value) / value * log(growth(floor(value))))


def _integer_latency(lam: Number, asked: str) -> int:
    """λ as an integer.  Raises InvalidArgument if it is none, or lam < 1."""
    value = latency(lam)
    if value.denominator > 1:
        choice = f"{floor(value)} (delay-send) or {ceil(value)} (delay-receive)"
        remedy = f"the census is made for an integer latency: give {choice}"
        raise InvalidArgument(asked, f"lam = {value}", remedy)
    return value.numerator
