"""Machines: what one message costs.  Numbers only; nothing here knows a schedule.

Every contention-free model answers one question, `message(nbytes)`: for how long is the sender busy
(`gap`), and how long after the send began does the receiver have it (`latency`).  These two are the
postal model's t0 and λ·t0 [Bruck1996 §2.1], and the map from LogGP onto it [Culler1993].
Times are exact Fractions in seconds; `collwise.model.exact.seconds` turns them into floats.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from collwise.errors import InvalidArgument
from collwise.model.exact import Number, exact, rounded_latency


class Cost(NamedTuple):
    """What one message costs, in exact seconds."""

    gap: Fraction
    """t0: the sender's port is busy this long; consecutive receipts are at least this far apart."""
    latency: Fraction
    """λ·t0: from the start of the send until the receiver holds the message."""

    @property
    def lam(self) -> Fraction:
        """λ, the latency in units of t0 (1 where messages cost nothing)."""
        return self.latency / self.gap if self.gap else Fraction(1)


class Machine:
    """A machine's laws of communication.  Build one with `postal`, `hockney` or `loggp`."""

    kind: str = ""
    independent_ports: bool = True
    """False if sending delays receiving on the same rank (LogGP's one processor)."""

    def message(self, nbytes: int) -> Cost:
        """Cost of one message of `nbytes` >= 0 between two idle ranks."""
        raise NotImplementedError

    def sizes(self) -> tuple[int, ...]:
        """Message sizes in bytes at which the law changes its slope (none for one straight line)."""
        return ()

    def describe(self) -> str:
        """One line for people."""
        raise NotImplementedError

    @staticmethod
    def postal(*, t0_s: Number, lam: Number) -> "Postal":
        """Every message takes t0_s seconds to send and arrives lam·t0_s after its send began.

        Raises InvalidArgument if t0_s <= 0 or lam < 1.  Source: [BarNoyKipnis1994].
        """
        return Postal(_positive(t0_s, "t0_s"), _latency(lam))

    @staticmethod
    def hockney(*, alpha_s: Number, beta_s: Number, gamma_s: Number = 0) -> "Hockney":
        """A message of n bytes keeps both ports busy for alpha_s + n·beta_s seconds.

        gamma_s: seconds per combined byte.  Source: [Hockney1994], [vandeGeijn1991] §2.
        """
        return Hockney(
            _not_negative(alpha_s, "alpha_s"),
            _not_negative(beta_s, "beta_s"),
            _not_negative(gamma_s, "gamma_s"),
        )

    @staticmethod
    def loggp(*, L_s: Number, o_s: Number, g_s: Number, G_s: Number) -> "LogGP":  # noqa: N803
        """LogGP in seconds: latency L, overhead o, gap g per message, G per byte.

        Source: [Alexandrov1995]; the rules are LogGOPSim's [Hoefler2010].
        """
        return LogGP(
            _not_negative(L_s, "L_s"),
            _not_negative(o_s, "o_s"),
            _not_negative(g_s, "g_s"),
            _not_negative(G_s, "G_s"),
        )


@dataclass(frozen=True)
class Postal(Machine):
    """The postal model with one t0 and one λ for every size."""

    t0: Fraction
    lam: Fraction
    kind = "postal"

    def message(self, nbytes: int) -> Cost:  # noqa: D102
        return Cost(self.t0, self.lam * self.t0)

    def describe(self) -> str:  # noqa: D102
        return f"postal: t0 = {float(self.t0):g} s, λ = {self.lam}"


@dataclass(frozen=True)
class Hockney(Machine):
    """α + nβ on both ports, γ per combined byte."""

    alpha: Fraction
    beta: Fraction
    gamma: Fraction
    kind = "hockney"

    def message(self, nbytes: int) -> Cost:  # noqa: D102
        busy = self.alpha + nbytes * self.beta
        return Cost(busy, busy)

    def describe(self) -> str:  # noqa: D102
        return (
            f"Hockney: α = {float(self.alpha):g} s, β = {float(self.beta):g} s/B,"
            f" γ = {float(self.gamma):g} s/B"
        )


@dataclass(frozen=True)
class LogGP(Machine):
    """LogGP as LogGOPSim has it: one processor per rank sends, receives and computes."""

    L: Fraction
    o: Fraction
    g: Fraction
    G: Fraction
    kind = "loggp"
    independent_ports = False

    def message(self, nbytes: int) -> Cost:  # noqa: D102
        body = max(nbytes - 1, 0) * self.G
        return Cost(max(self.o, self.g + body), self.L + 2 * self.o + body)

    def describe(self) -> str:  # noqa: D102
        return (
            f"LogGP: L = {float(self.L):g} s, o = {float(self.o):g} s,"
            f" g = {float(self.g):g} s, G = {float(self.G):g} s/B"
        )


class Point(NamedTuple):
    """One measured size: bytes, and the exact seconds of t0 and λ·t0 there."""

    nbytes: int
    gap: Fraction
    latency: Fraction


@dataclass(frozen=True)
class Measured(Machine):
    """The postal model with t0 and λ as functions of the size, piecewise by protocol.

    segments: one tuple of points per protocol (eager, rendezvous, …), sizes ascending throughout.
    Inside a segment t0 and λ·t0 are interpolated; from a segment's last point up to the next one's
    first, the segment's last slope goes on; so it does beyond the last point.  Neither ever falls
    with the size, λ >= 1 and λ has a small denominator (`rounded_latency`).
    """

    segments: tuple[tuple[Point, ...], ...]
    kind = "measured"

    def __post_init__(self) -> None:
        sizes = self.sizes()
        if not sizes or any(a >= b for a, b in pairwise(sizes)):
            raise InvalidArgument("a measured machine", f"sizes {sizes}", "give ascending sizes")

    def sizes(self) -> tuple[int, ...]:  # noqa: D102
        return tuple(p.nbytes for segment in self.segments for p in segment)

    def message(self, nbytes: int) -> Cost:  # noqa: D102
        return _measured_cost(self, nbytes)

    def describe(self) -> str:  # noqa: D102
        first, last = self.segments[0][0], self.segments[-1][-1]
        return (
            f"measured from {first.nbytes} to {last.nbytes} bytes in"
            f" {len(self.segments)} protocol segment(s)"
        )


@lru_cache(maxsize=4096)
def _measured_cost(machine: Measured, nbytes: int) -> Cost:
    before = Cost(Fraction(0), Fraction(0))
    for segment in machine.segments:
        if segment[0].nbytes > nbytes and segment is not machine.segments[0]:
            break
        floor, here = before, segment
        before = Cost(
            max(before.gap, *(p.gap for p in segment)),
            max(before.latency, *(p.latency for p in segment)),
        )
    gap = max(floor.gap, _interpolate([(p.nbytes, p.gap) for p in here], nbytes))
    latency = max(floor.latency, _interpolate([(p.nbytes, p.latency) for p in here], nbytes))
    return Cost(gap, rounded_latency(latency / gap) * gap)


def _interpolate(points: list[tuple[int, Fraction]], x: int) -> Fraction:
    """Piecewise-linear through the points (their running maximum), flat before the first."""
    rising: list[tuple[int, Fraction]] = []
    for size, value in points:
        rising.append((size, max(value, rising[-1][1]) if rising else value))
    if x <= rising[0][0] or len(rising) == 1:
        return rising[0][1]
    for (x0, y0), (x1, y1) in pairwise(rising):
        if x <= x1:
            break
    return y0 + (y1 - y0) * Fraction(x - x0, x1 - x0)


def measured(segments: Iterable[Iterable[tuple[int, Number, Number]]]) -> Measured:
    """A measured machine from rows (bytes, t0 in seconds, λ) grouped by protocol.

    A λ below 1, which noise and buffering can produce, is used as 1.
    """
    return Measured(
        tuple(
            tuple(
                Point(
                    nbytes,
                    _positive(t0, "t0_s"),
                    _positive(t0, "t0_s") * max(Fraction(1), exact(lam, "lam")),
                )
                for nbytes, t0, lam in segment
            )
            for segment in segments
        )
    )


def _positive(x: Number, what: str) -> Fraction:
    value = exact(x, what)
    if value <= 0:
        raise InvalidArgument(what, f"{what} = {x}", "give a time above 0, in seconds")
    return value


def _not_negative(x: Number, what: str) -> Fraction:
    value = exact(x, what)
    if value < 0:
        raise InvalidArgument(what, f"{what} = {x}", "give a time of 0 or more, in seconds")
    return value


def _latency(lam: Number) -> Fraction:
    value = exact(lam, "lam")
    if value < 1:
        raise InvalidArgument(
            "the latency λ of a postal machine",
            f"λ = {lam}",
            "give λ >= 1: a message cannot arrive before it is sent",
        )
    return value
