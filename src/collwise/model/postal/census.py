"""Global combine in the postal model: the census algorithm, for any n [Bruck1996] §3.

For an integer latency k, every rank does the same, relative to its own number i.  It keeps two
running values.  After round r, T_i combines the N_ε(r) contributions d_i, d_(i+1), …, and S_i
combines the same contributions without d_i.  In round r every rank sends T or S as it was after
round r − 1.  The receiver appends the message to both of its values in round r + k − 1.  So N_ε(r)
= N_ε(r−1) + N_ε(r−k) − ε_(r−k).  The deficiency ε_j is 1 if round j + 1 sends S instead of T.  The
ε_j make N_ε end at n instead of N_k(t), the most ranks that t = T_k(n) rounds can serve.

The paper exchanges S and T (S where ε is 0), which combines too few contributions for every n >= 2.
Its scheme for n = N_k(t) alone is right, and runs downwards from i.
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
"""The most rounds of a census; they are listed one by one."""


class CensusRound(NamedTuple):
    """A round in which every rank j sends one message to rank j − shift (mod n), all at once.

    sent: the round in which the message is sent, from 1.
    state: which running value is sent, "T" or "S", as it was after round sent − 1.
    shift: the distance from sender to receiver, 1 … n−1.
    received: the round after which both of the receiver's values contain the message.
    contributions: how many ranks' contributions the message combines, >= 1.
    """

    sent: int
    state: Literal["T", "S"]
    shift: int
    received: int
    contributions: int


def deficiencies(n: int, lam: Number) -> tuple[int, ...]:
    """The deficiencies (ε_0, …, ε_(t−λ)), each 0 or 1, of the census of n ranks, where t = T_λ(n).

    n: number of ranks, >= 1.   lam: latency in units of t0, an integer >= 1.
    Returns () for n = 1. ε_j = 1 takes N_λ(t−λ−j) off the surplus N_λ(t) − n; the ε_j are chosen
    greedily from j = 0 on.
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
    """The messages of the census of n ranks in sending order; the last arrives in round T_λ(n).

    n: number of ranks, >= 1.   lam: latency in units of t0, an integer >= 1.
    No message is sent in a round in which S would be sent but is still empty.  Every T_i combines
    every contribution exactly once, from d_i up to d_(i−1).  This order differs between ranks, so
    the operator must be commutative.
    Raises InvalidArgument as `deficiencies` does.
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
    """Time, in units of t0, of the census that was made for latency k if the latency is λ.

    n: number of ranks, >= 1.   k: the integer >= 1 for which `census_rounds` are made.
    lam: latency in units of t0, >= 1, exact.
    A message is sent as soon as the previous one has left and all contributions that it combines
    have arrived.  For k = λ the time is T_λ(n).  For k = ⌊λ⌋ it is qλ + r, where T_k(n) = qk + r
    and 0 <= r < k, at most `delay_send_time`.  For k = ⌈λ⌉ it is at most T_k(n) − (k − λ); this is
    less than `delay_receive_time` if λ is no integer and n >= 2.
    Raises InvalidArgument if n < 1, k is no integer >= 1, lam < 1, or T_k(n) > MAX_ROUNDS.

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
    """T_⌈λ⌉(n), in units of t0: the census's time if messages are received ⌈λ⌉ after their start.

    n: number of ranks, >= 1.   lam: latency in units of t0, >= 1, exact.
    This is an upper bound of `census_time` for k = ⌈λ⌉.  (The paper's recursion, as printed, does
    not delay the last receipt: it gives ⌈λ⌉ − λ less for n >= 2.)
    Raises InvalidArgument if n < 1 or lam < 1.
    Source: [Bruck1996] §3.2.

    >>> delay_receive_time(5, "1.4"), delay_send_time(5, "1.4")
    (Fraction(4, 1), Fraction(21, 5))
    """
    n = checked_integer(n, "delay_receive_time(n, lam)", "n")
    return Fraction(time_scaled(n, ceil(latency(lam)), 1))


def delay_send_time(n: int, lam: Number) -> Fraction:
    """λ/⌊λ⌋·T_⌊λ⌋(n), in units of t0: the census's time if a send takes λ/⌊λ⌋ instead of 1.

    n: number of ranks, >= 1.   lam: latency in units of t0, >= 1, exact.
    This is an upper bound of `census_time` for k = ⌊λ⌋.
    Raises InvalidArgument if n < 1 or lam < 1.   Source: [Bruck1996] §3.3.
    """
    n, value = checked_integer(n, "delay_send_time(n, lam)", "n"), latency(lam)
    return value / floor(value) * time_scaled(n, floor(value), 1)


def delay_receive_growth(lam: Number) -> float:
    """γ(⌈λ⌉): the factor per t0 by which the ranks of a delay-receive census grow in the long run.

    lam: latency in units of t0, >= 1, any rational.   Raises InvalidArgument if lam < 1.
    Source: [Bruck1996] §3.2.  `delay_receive_time` says what such a census is.
    """
    return growth(ceil(latency(lam)))


def delay_send_growth(lam: Number) -> float:
    """γ(⌊λ⌋)^(⌊λ⌋/λ): the factor per t0 by which a delay-send census's ranks grow in the long run.

    lam: latency in units of t0, >= 1, any rational.   Raises InvalidArgument if lam < 1.
    The factor equals `delay_receive_growth` if λ is an integer.  For other λ it is larger below
    `break_even(⌊λ⌋)`, and at most as large from there on.
    Source: [Bruck1996] §3.3.  `delay_send_time` says what such a census is.
    """
    value = latency(lam)
    return exp(floor(value) / value * log(growth(floor(value))))


def _integer_latency(lam: Number, asked: str) -> int:
    """Return λ as an integer.  Raises InvalidArgument if it is no integer, or lam < 1."""
    value = latency(lam)
    if value.denominator > 1:
        choice = f"{floor(value)} (delay-send) or {ceil(value)} (delay-receive)"
        remedy = f"the census is made for an integer latency: give {choice}"
        raise InvalidArgument(asked, f"lam = {value}", remedy)
    return value.numerator
