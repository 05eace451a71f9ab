"""Machines: what one message costs.  Numbers only; nothing here knows a schedule.

Every contention-free model answers one question, `message(nbytes)`: for how long is the sender busy
(`gap`), and how long after the send began does the receiver have it (`latency`).  These two are the
postal model's t0 and λ·t0 [Bruck1996 §2.1], and the map from LogGP onto it [Culler1993].
Times are exact Fractions in seconds; `collwise.model.exact.seconds` turns them into floats.
"""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise
from statistics import linear_regression
from typing import NamedTuple

from collwise.errors import InvalidArgument, shown
from collwise.model.exact import Number, exact, rounded_latency
from collwise.system.formatting import chosen_time, count


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
    """A machine's laws of communication.

    Build one with `postal`, `hockney`, `loggp` or `wormhole`.
    """

    kind: str = ""
    independent_ports: bool = True
    """False if messages delay each other beyond their ports: at LogGP's one processor, on the links
    of a wormhole network.  There no closed form holds, and schedules have to be played."""
    all_port: bool = False
    """True if a rank sends and receives one message in every direction at once."""

    def message(self, nbytes: int) -> Cost:
        """Cost of one message of `nbytes` >= 0 between two idle ranks."""
        raise NotImplementedError

    def combine(self, nbytes: int) -> Fraction | None:
        """Seconds for combining two vectors of `nbytes`, both ports busy; None if it is free."""
        return None

    def sizes(self) -> tuple[int, ...]:
        """Message sizes in bytes at which the law changes its slope; none for a straight line."""
        return ()

    def planning_lam(self, nbytes: int) -> Fraction:
        """The λ for which trees are built for messages of this size."""
        return max(self.message(nbytes).lam, Fraction(1))  # LogGP's gap may exceed its latency

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

    @staticmethod
    def wormhole(
        *,
        send_s: Number,
        receive_s: Number,
        hop_s: Number,
        beta_s: Number,
        gamma_s: Number = 0,
        copy_s: Number = 0,
        all_port: bool = False,
    ) -> "Wormhole":
        """Cut-through routing: a message holds all links of its route while it passes.

        n bytes over h links, from the start of the send: the software of the sender takes send_s
        (and copy_s for every byte, where it copies before it sends), the header hop_s for every
        link, the body beta_s per byte.  Then the sender and the links are free, and the receiver's
        software takes receive_s before the message is there.
        gamma_s: seconds per combined byte.   all_port: a rank has a port for each of its links.
        Source: [NiMcKinley1993]; all ports: [vandeGeijn1991] §7.
        """
        return Wormhole(
            _not_negative(send_s, "send_s"),
            _not_negative(receive_s, "receive_s"),
            _not_negative(hop_s, "hop_s"),
            _not_negative(beta_s, "beta_s"),
            _not_negative(gamma_s, "gamma_s"),
            _not_negative(copy_s, "copy_s"),
            bool(all_port),
        )


def checked_machine(machine: object, asked: str) -> Machine:
    """The machine, if it is one; raise InvalidArgument for anything else.   asked: what for."""
    if isinstance(machine, Machine):
        return machine
    remedy = "give a collwise.Machine, such as profile.machine or collwise.presets[name].machine"
    raise InvalidArgument(asked, f"the machine is {shown(machine)}", remedy)


@dataclass(frozen=True)
class Postal(Machine):
    """The postal model with one t0 and one λ for every size."""

    t0: Fraction
    lam: Fraction
    kind = "postal"

    def message(self, nbytes: int) -> Cost:  # noqa: D102
        return Cost(self.t0, self.lam * self.t0)

    def describe(self) -> str:  # noqa: D102
        return f"postal: t0 = {chosen_time(self.t0)}, λ = {self.lam}"


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

    def combine(self, nbytes: int) -> Fraction:  # noqa: D102
        return nbytes * self.gamma

    def describe(self) -> str:  # noqa: D102
        return (
            f"Hockney: α = {chosen_time(self.alpha)}, β = {chosen_time(self.beta)}/B,"
            f" γ = {chosen_time(self.gamma)}/B"
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
            f"LogGP: L = {chosen_time(self.L)}, o = {chosen_time(self.o)},"
            f" g = {chosen_time(self.g)}, G = {chosen_time(self.G)}/B"
        )


@dataclass(frozen=True)
class Wormhole(Machine):
    """Software overheads at both ends, and between them all links of the route at once."""

    send: Fraction
    receive: Fraction
    hop: Fraction
    beta: Fraction
    gamma: Fraction
    copy: Fraction = Fraction(0)
    all_port: bool = False
    kind = "wormhole"
    independent_ports = False

    def message(self, nbytes: int) -> Cost:
        """Cost of one message of `nbytes` between neighbours."""
        sent = self.send + self.hop + nbytes * (self.copy + self.beta)
        return Cost(sent, sent + self.receive)

    def combine(self, nbytes: int) -> Fraction:  # noqa: D102
        return nbytes * self.gamma

    def planning_lam(self, nbytes: int) -> Fraction:
        """The λ between neighbours with a small denominator (`exact.rounded_latency`)."""
        return rounded_latency(self.message(nbytes).lam)

    def describe(self) -> str:  # noqa: D102
        numbers = {"send": self.send, "receive": self.receive, "hop": self.hop}
        rates = {"β": self.beta, "copy": self.copy, "γ": self.gamma}
        told = [f"{name} = {chosen_time(x)}" for name, x in numbers.items()]
        told += [f"{name} = {chosen_time(x)}/B" for name, x in rates.items() if x or name == "β"]
        return f"wormhole: {', '.join(told)}{', all ports' if self.all_port else ''}"


class Point(NamedTuple):
    """One measured size: bytes, and the exact seconds of t0 and λ·t0 there."""

    nbytes: int
    gap: Fraction
    latency: Fraction


class Line(NamedTuple):
    """α + nβ for messages of `first` to `last` bytes: seconds, and seconds per byte."""

    first: int
    last: int
    alpha_s: float
    beta_s: float


@dataclass(frozen=True)
class Measured(Machine):
    """The postal model with t0 and λ as functions of the size, piecewise by protocol.

    segments: one tuple of points per protocol (eager, rendezvous, …), sizes ascending throughout,
    times never falling.  Inside a segment t0 and λ·t0 are straight lines between points; from a
    segment's last point up to the next one's first, the last line goes on; so it does beyond the
    last point.  Below the first point both are constant.  Build one with `measured`.
    combining: (bytes, exact seconds) of combining two vectors, ascending; straight lines likewise.
    """

    segments: tuple[tuple[Point, ...], ...]
    combining: tuple[tuple[int, Fraction], ...] = ()
    kind = "measured"

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """Kept, since plans are cached by machine, and Fractions are slow to hash."""
        return hash((self.segments, self.combining))

    def __getstate__(self) -> dict[str, object]:
        return {"segments": self.segments, "combining": self.combining}

    def __post_init__(self) -> None:
        points = [p for segment in self.segments for p in segment]
        if not points or any(a.nbytes >= b.nbytes for a, b in pairwise(points)):
            seen = f"sizes {[p.nbytes for p in points]}"
            raise InvalidArgument("a measured machine", seen, "give sizes in ascending order")

    def sizes(self) -> tuple[int, ...]:  # noqa: D102
        return tuple(p.nbytes for segment in self.segments for p in segment)

    def message(self, nbytes: int) -> Cost:  # noqa: D102
        return _measured_cost(self, nbytes)

    def lines(self) -> tuple[Line, ...]:
        """Hockney's α + nβ for each protocol: the straight line through its times λ·t0.

        In that model a message keeps both ports busy until it is received, so its α + nβ is the
        postal model's λ(n)·t0(n), and λ is 1.  The line is that of least squares; through one point
        it is level.
        """
        found = []
        for segment in self.segments:
            first, last = segment[0].nbytes, segment[-1].nbytes
            x = [float(p.nbytes) for p in segment]
            y = [float(p.latency) for p in segment]
            slope, start = linear_regression(x, y) if len(segment) > 1 else (0.0, y[0])
            found.append(Line(first, last, start, slope))
        return tuple(found)

    def combine(self, nbytes: int) -> Fraction | None:  # noqa: D102
        if not self.combining:
            return None
        return _measured_combine(self, nbytes)

    def with_combining(self, points: Iterable[tuple[int, Number]]) -> "Measured":
        """The same machine, on which combining takes these times: (bytes, seconds), ascending.

        Times that fall are raised to the largest before them.
        """
        made, most = [], Fraction(0)
        for nbytes, time_s in points:
            most = max(most, _picoseconds(_not_negative(time_s, "time_s")))
            made.append((nbytes, most))
        return replace(self, combining=tuple(made))

    def planning_lam(self, nbytes: int) -> Fraction:
        """The measured λ with a small denominator (`exact.rounded_latency` says which, and why)."""
        return rounded_latency(self.message(nbytes).lam)

    def describe(self) -> str:  # noqa: D102
        first, last = self.segments[0][0], self.segments[-1][-1]
        return (
            f"measured from {first.nbytes} to {last.nbytes} bytes in"
            f" {count(len(self.segments), 'protocol segment')}"
        )


@lru_cache(maxsize=4096)
def _measured_cost(machine: Measured, nbytes: int) -> Cost:
    here = machine.segments[0]
    for segment in machine.segments[1:]:
        if segment[0].nbytes > nbytes:
            break
        here = segment
    if nbytes <= here[0].nbytes or len(here) == 1:
        return Cost(here[0].gap, here[0].latency)
    index = min(bisect_left(here, nbytes, key=lambda p: p.nbytes), len(here) - 1)
    low, high = here[index - 1], here[index]
    share = Fraction(nbytes - low.nbytes, high.nbytes - low.nbytes)
    gap = low.gap + share * (high.gap - low.gap)
    latency = low.latency + share * (high.latency - low.latency)
    return Cost(gap, max(gap, latency))  # beyond the points the two lines may cross


@lru_cache(maxsize=4096)
def _measured_combine(machine: Measured, nbytes: int) -> Fraction:
    points = machine.combining
    if nbytes <= points[0][0] or len(points) == 1:
        return points[0][1]
    index = min(bisect_left(points, nbytes, key=lambda p: p[0]), len(points) - 1)
    (low, before), (high, after) = points[index - 1], points[index]
    return before + Fraction(nbytes - low, high - low) * (after - before)


PICOSECOND = Fraction(1, 10**12)


def measured(segments: Iterable[Iterable[tuple[int, Number, Number]]]) -> Measured:
    """A measured machine from rows (bytes, t0 in seconds, λ), one group of rows per protocol.

    A λ below 1, which noise and buffering can produce, is used as 1; times that fall with the size
    are raised to the largest before them.  Times are kept to the picosecond, which keeps exact
    arithmetic on them fast.  Raises InvalidArgument for a t0 <= 0 or sizes out of order.
    """
    gap = latency = Fraction(0)
    made = []
    for segment in segments:
        points = []
        for nbytes, t0_s, lam in segment:
            t0 = _positive(t0_s, "t0_s")
            gap = max(gap, _picoseconds(t0))
            latency = max(latency, gap, _picoseconds(t0 * exact(lam, "lam")))
            points.append(Point(nbytes, gap, latency))
        made.append(tuple(points))
    return Measured(tuple(made))


def _picoseconds(time: Fraction) -> Fraction:
    return max(round(time / PICOSECOND), 1) * PICOSECOND


def _positive(x: Number, what: str) -> Fraction:
    value = exact(x, what)
    if value <= 0:
        raise InvalidArgument(
            f"a machine's {what}", f"{x} is not above 0", "give a time above 0, in seconds"
        )
    return value


def _not_negative(x: Number, what: str) -> Fraction:
    value = exact(x, what)
    if value < 0:
        raise InvalidArgument(
            f"a machine's {what}", f"{x} is below 0", "give a time of 0 or more, in seconds"
        )
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
