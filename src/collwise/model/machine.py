"""Machines: what one message costs.  This module knows no schedules.

`message(nbytes)` says for how long the sender's port is busy (`gap`), and how long after the send
began the receiver has the message (`latency`); it gives the least where both depend on the ranks.
These two are the postal model's t0 and λ·t0 [Bruck1996 §2.1]; for LogGP see [Culler1993].
Times are exact Fractions in seconds; `collwise.model.exact.seconds` turns them into floats.
`measured_machine` has machines with measured t0 and λ, and `levels` has machines with nodes and
racks.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from collwise.errors import InvalidArgument, shown
from collwise.model import postal
from collwise.model.exact import Number, exact, not_negative_times, positive_time, rounded_latency
from collwise.system.formatting import chosen_time
from collwise.system.integers import checked_integer

if TYPE_CHECKING:
    from collwise.model.levels import Levels
    from collwise.model.measured_machine import Measured
    from collwise.model.placement import Placement
    from collwise.model.shared_memory import Memory


class Cost(NamedTuple):
    """The cost of one message, in exact seconds."""

    gap: Fraction
    """t0: for so long the sender's port is busy (the receiver's port: `Machine.receipt`)."""
    latency: Fraction
    """λ·t0: from the start of the send until the receiver holds the message."""

    @property
    def lam(self) -> Fraction:
        """λ, the latency in units of t0 (1 if t0 is 0)."""
        return self.latency / self.gap if self.gap else Fraction(1)


Law: TypeAlias = Literal[
    "postal", "hockney", "one partner", "loggp", "wormhole", "levels", "memory"
]
"""The laws in *Exact time* of `docs/design.md`; "one partner" is Hockney's with one partner."""


class Machine:
    """The costs of messages and of combining on a machine.

    Build one with `postal`, `hockney`, `loggp`, `wormhole`, `memory` or `levels`.
    """

    kind: str = ""
    law: ClassVar[Law | None] = None
    """The law that messages obey in the simulator and the checks, which refuse None."""
    independent_ports: bool = True
    """False if only simulation gives the times of schedules: messages delay each other elsewhere
    than at ranks' own ports, cost more between some ranks, or are published in shared memory."""
    ports_block: ClassVar[bool] = False
    """True if a send waits until its receiver's port is free for it."""
    all_port: bool = False
    """True if a rank can send and receive one message on each of its links at once."""

    @property
    def shares_memory(self) -> bool:
        """Whether ranks, or with levels the ranks of a node, send by publishing in memory."""
        return False

    def message(self, nbytes: int) -> Cost:
        """Cost of one message of `nbytes` >= 0 between two idle ranks."""
        raise NotImplementedError

    def receipt(self, nbytes: int) -> Fraction:
        """The least seconds between two receipts at one port; the second message has nbytes."""
        return self.message(nbytes).gap

    def combine(self, nbytes: int) -> Fraction | None:
        """Seconds for which combining two vectors of nbytes keeps the ports busy; None if free."""
        return None

    def sizes(self) -> tuple[int, ...]:
        """Message sizes in bytes at which the cost may bend or jump; () for a straight line."""
        return ()

    def combining_sizes(self) -> tuple[int, ...]:
        """Vector sizes in bytes at which the cost of combining may bend; () for a straight line."""
        return ()

    def planning_lam(self, nbytes: int) -> Fraction:
        """The λ >= 1/1024 for which trees with messages of nbytes are built."""
        return max(self.message(nbytes).lam, postal.SMALLEST_LATENCY)  # λ < 1 only in LogGP

    def with_overhead(self, overhead_s: Number) -> "Machine":
        """A machine like this one on which every message takes overhead_s seconds longer.

        With levels, `gap_outside(1)` grows so much, and each level's times in proportion to its t0,
        by at most as much.   LogGP and wormhole machines, and those of `ports_only`, are returned
        unchanged.   Raises InvalidArgument if overhead_s < 0.
        """
        (overhead,) = not_negative_times(overhead_s=overhead_s)
        return self._slower(overhead)

    def _slower(self, seconds: Fraction) -> "Machine":
        """Return this machine; some classes return one whose messages take `seconds` longer."""
        return self

    def ports_only(self) -> "Machine":
        """A machine with the costs of `message` on which only ranks' own ports delay messages.

        If ranks receive in the order of their lists, no schedule takes longer on the new machine.
        A machine whose ranks share memory, or whose ports are independent, is returned unchanged.
        """
        return self if self.independent_ports or self.shares_memory else PortsOnly(self)

    def describe(self) -> str:
        """The machine in one line of text."""
        raise NotImplementedError

    @staticmethod
    def postal(*, t0_s: Number, lam: Number) -> "Postal":
        """A postal machine: a send takes t0_s seconds; its message arrives lam·t0_s after it began.

        Raises InvalidArgument if t0_s <= 0 or lam < 1.  Source: [BarNoyKipnis1994].
        """
        return Postal(positive_time(t0_s, "t0_s"), _latency(lam))

    @staticmethod
    def hockney(
        *, alpha_s: Number, beta_s: Number, gamma_s: Number = 0, exchange_only: bool = False
    ) -> "Hockney":
        """A machine on which a message of n bytes keeps both ports busy for alpha_s + n·beta_s.

        gamma_s: seconds per combined byte.   exchange_only: whether a rank has one partner at a
        time (assumption 3 of [vandeGeijn1991] §2).   Raises InvalidArgument for a time below 0.
        Source: [Hockney1994], [vandeGeijn1991] §2.
        """
        times = not_negative_times(alpha_s=alpha_s, beta_s=beta_s, gamma_s=gamma_s)
        return (ExchangeOnly if _truth(exchange_only, "exchange_only") else Hockney)(*times)

    @staticmethod
    def loggp(*, L_s: Number, o_s: Number, g_s: Number, G_s: Number) -> "LogGP":  # noqa: N803
        """A LogGP machine, in seconds: latency L, overhead o, gap g per message, G per byte.

        Raises InvalidArgument for a time below 0.
        Source: [Alexandrov1995]; the rules are those of LogGOPSim [Hoefler2010].
        """
        return LogGP(*not_negative_times(L_s=L_s, o_s=o_s, g_s=g_s, G_s=G_s))

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
        """A machine with cut-through routing: a message holds all links of its route.

        From the start of the send, the sender's software takes send_s, and copy_s per byte if it
        copies first.  Then the header takes hop_s per link, and the body beta_s per byte.  Then the
        sender and the links are free, and the receiver's software takes receive_s before the
        receiver has the message.
        gamma_s: seconds per combined byte.   all_port: whether a rank has a port for each of its
        links.
        Source: [NiMcKinley1993]; all ports: [vandeGeijn1991] §7.
        """
        send, receive, hop = not_negative_times(send_s=send_s, receive_s=receive_s, hop_s=hop_s)
        beta, gamma, copy = not_negative_times(beta_s=beta_s, gamma_s=gamma_s, copy_s=copy_s)
        return Wormhole(send, receive, hop, beta, gamma, copy, _truth(all_port, "all_port"))

    @staticmethod
    def memory(
        publishing: "Postal | Measured", *, read: "Number | Iterable[tuple[int, Number]]"
    ) -> "Memory":
        """A machine whose ranks share memory: a rank publishes bytes, and all others can read them.

        A rank does one thing at a time.   publishing: a machine whose t0 is the time for which a
        publication keeps the sender busy, for any number of readers, and whose λ·t0 is the time
        until an idle reader has the bytes.   read: the seconds, at most λ·t0, for which a read
        keeps its reader busy, or pairs of bytes and seconds.
        """
        from collwise.model.shared_memory import sharing_memory

        return sharing_memory(publishing, read)

    @staticmethod
    def levels(
        laws: Sequence["Machine"],
        placement: "Placement",
        *,
        ports: "Sequence[Number | Iterable[tuple[int, Number]] | None]" = (),
        names: Sequence[str] = (),
    ) -> "Levels":
        """A machine whose messages cost more the farther apart their two ranks are.

        laws: a postal or measured machine for messages at each level (inside a node, between nodes,
        …); the first may be a `memory`.   placement: where the ranks are, with as many levels.
        ports: for every level but the last, the seconds (or pairs of bytes and seconds) for which a
        message into or out of a group keeps the group's shared port busy, such as a network card;
        None if the group has no shared port.   names: words for a group at every level but the
        last; by default "node", "rack", "site", then "group".   Raises InvalidArgument for laws of
        other kinds, and if laws and placement differ in the number of levels.
        """
        from collwise.model.levels import with_levels

        return with_levels(laws, placement, ports, names)


def checked_machine(machine: object, asked: str) -> Machine:
    """Return `machine`, or raise InvalidArgument if it is no Machine or its law is unknown."""
    if isinstance(machine, Machine):
        if machine.law not in get_args(Law):
            remedy = 'give its class law = "postal" or "hockney", or derive it from one that has it'
            raise InvalidArgument(asked, f"the machine's law is {shown(machine.law)}", remedy)
        return machine
    remedy = "give a collwise.Machine, such as profile.machine or collwise.presets[name].machine"
    raise InvalidArgument(asked, f"the machine is {shown(machine)}", remedy)


def _truth(value: object, name: str) -> bool:
    if isinstance(value, int | np.bool_):
        return bool(value)
    raise InvalidArgument("a machine", f"{name} = {shown(value)}", "give True or False")


def checked_nbytes(nbytes: int) -> int:
    """The size of a message in bytes.  Raises InvalidArgument unless nbytes is an integer >= 0."""
    if type(nbytes) is int and nbytes >= 0:
        return nbytes
    return checked_integer(nbytes, "the cost of a message", "nbytes", 0)


@dataclass(frozen=True)
class Postal(Machine):
    """The postal model with one t0 and one λ for every size."""

    t0: Fraction
    lam: Fraction
    kind = "postal"
    law = "postal"

    def message(self, nbytes: int) -> Cost:  # noqa: D102
        checked_nbytes(nbytes)
        return Cost(self.t0, self.lam * self.t0)

    def _slower(self, seconds: Fraction) -> "Postal":
        longer = self.t0 + seconds
        return Postal(longer, (self.lam * self.t0 + seconds) / longer)

    def describe(self) -> str:  # noqa: D102
        return f"postal: t0 = {chosen_time(self.t0)}, λ = {self.lam}"


@dataclass(frozen=True)
class PortsOnly(Machine):
    """A postal machine with the costs of `machine`, on which only ranks' own ports cause delays."""

    machine: Machine
    kind = "relaxed"
    law = "postal"

    def message(self, nbytes: int) -> Cost:  # noqa: D102
        return self.machine.message(nbytes)

    def combine(self, nbytes: int) -> Fraction | None:  # noqa: D102
        return self.machine.combine(nbytes)

    def sizes(self) -> tuple[int, ...]:  # noqa: D102
        return self.machine.sizes()

    def combining_sizes(self) -> tuple[int, ...]:  # noqa: D102
        return self.machine.combining_sizes()

    def planning_lam(self, nbytes: int) -> Fraction:  # noqa: D102
        return self.machine.planning_lam(nbytes)


@dataclass(frozen=True)
class Hockney(Machine):
    """Hockney's law: a message keeps both ports busy for α + nβ; combining takes γ per byte."""

    alpha: Fraction
    beta: Fraction
    gamma: Fraction
    kind = "hockney"
    ports_block = True
    law: ClassVar[Law | None] = "hockney"

    def message(self, nbytes: int) -> Cost:  # noqa: D102
        busy = self.alpha + checked_nbytes(nbytes) * self.beta
        return Cost(busy, busy)

    def _slower(self, seconds: Fraction) -> "Hockney":
        return replace(self, alpha=self.alpha + seconds)

    def combine(self, nbytes: int) -> Fraction:  # noqa: D102
        return checked_nbytes(nbytes) * self.gamma

    def describe(self) -> str:  # noqa: D102
        return _told("Hockney", {"α": self.alpha}, {"β": self.beta, "γ": self.gamma})


@dataclass(frozen=True)
class ExchangeOnly(Hockney):
    """Hockney's law with one partner at a time for each rank; no closed form holds for it."""

    law = "one partner"
    independent_ports = False

    def ports_only(self) -> Hockney:  # noqa: D102
        return Hockney(self.alpha, self.beta, self.gamma)

    def describe(self) -> str:  # noqa: D102
        return f"{super().describe()}, one partner at a time"


@dataclass(frozen=True)
class LogGP(Machine):
    """LogGP by the rules of LogGOPSim: a rank's one processor sends and receives."""

    L: Fraction
    o: Fraction
    g: Fraction
    G: Fraction
    kind = "loggp"
    law = "loggp"
    independent_ports = False

    def message(self, nbytes: int) -> Cost:  # noqa: D102
        body = max(checked_nbytes(nbytes) - 1, 0) * self.G
        return Cost(max(self.o, self.g + body), self.L + 2 * self.o + body)

    def receipt(self, nbytes: int) -> Fraction:
        """Seconds between two receipts: the larger of o and g, plus G per byte but the first."""
        return max(self.o, self.g) + max(checked_nbytes(nbytes) - 1, 0) * self.G

    def sizes(self) -> tuple[int, ...]:
        """The size in bytes from which on the gap exceeds o; () if o <= g or G = 0."""
        return (int((self.o - self.g) / self.G) + 2,) if self.G and self.o > self.g else ()

    def describe(self) -> str:  # noqa: D102
        return _told("LogGP", {"L": self.L, "o": self.o, "g": self.g}, {"G": self.G})


@dataclass(frozen=True)
class Wormhole(Machine):
    """Wormhole routing: overheads at both ends; a message holds all links of its route."""

    send: Fraction
    receive: Fraction
    hop: Fraction
    beta: Fraction
    gamma: Fraction
    copy: Fraction = Fraction(0)
    all_port: bool = False
    kind = "wormhole"
    law = "wormhole"
    independent_ports = False
    ports_block = True

    def message(self, nbytes: int) -> Cost:
        """Cost of one message of `nbytes` between neighbours."""
        sent = self.send + self.hop + checked_nbytes(nbytes) * (self.copy + self.beta)
        return Cost(sent, sent + self.receive)

    def combine(self, nbytes: int) -> Fraction:  # noqa: D102
        return checked_nbytes(nbytes) * self.gamma

    def planning_lam(self, nbytes: int) -> Fraction:
        """The λ between neighbours, rounded to a fraction with a denominator of at most 32."""
        return rounded_latency(self.message(nbytes).lam)

    def describe(self) -> str:  # noqa: D102
        numbers = {"send": self.send, "receive": self.receive, "hop": self.hop}
        more = {name: x for name, x in (("copy", self.copy), ("γ", self.gamma)) if x}
        ports = ", all ports" if self.all_port else ""
        return _told("wormhole", numbers, {"β": self.beta} | more) + ports


def _told(law: str, times: Mapping[str, Fraction], per_byte: Mapping[str, Fraction]) -> str:
    """The law's name and the machine's numbers by their symbols, as text."""
    terms = [f"{symbol} = {chosen_time(time)}" for symbol, time in times.items()]
    terms += [f"{symbol} = {chosen_time(time)}/B" for symbol, time in per_byte.items()]
    return f"{law}: {', '.join(terms)}"


def _latency(lam: Number) -> Fraction:
    value = exact(lam, "lam")
    if value < 1:
        remedy = "give λ >= 1: a message cannot arrive before it is sent"
        raise InvalidArgument("the latency λ of a postal machine", f"λ = {lam}", remedy)
    return value
