"""The network that is asked for: hosts, rates, latencies; all alike, or from a file.

A file (TOML) has groups of hosts, and links between groups:

    latency = "5 ms"            # between any two hosts, unless said otherwise below
    rate = "10 Mbit/s"          # of each host's port

    [[groups]]
    name = "left"
    hosts = 8
    latency = "200 us"          # between two hosts of this group
    rate = "100 Mbit/s"

    [[groups]]
    name = "right"
    hosts = 8

    [[links]]
    between = ["left", "right"]
    latency = "10 ms"
    rate = "20 Mbit/s"          # a trunk: all traffic of one direction shares it

A group of one host is a host of its own; a link between two such groups is a pair of hosts.
"""

import os
import tomllib
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Annotated

import msgspec

from collwise.errors import InvalidArgument
from collwise.system import formatting
from collwise.system.quantities import parse_rate, parse_time

MOST_PER_CORE = 16
_LEAST_MOST = 32
_MOST = 250

LATENCIES_S = (Fraction(1, 10_000), 2)
"""One-way latencies that the switch can keep: below, its own lateness would show; above, TCP's
timers would."""
RATES = (64_000, 500_000_000)
"""Bits per second: below, one packet takes longer than TCP waits; above, there are more packets
than the switch can carry."""

Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,30}$")]


class _Group(msgspec.Struct, forbid_unknown_fields=True):
    name: Name
    hosts: Annotated[int, msgspec.Meta(ge=1)]
    latency: str | None = None
    rate: str | None = None


class _Link(msgspec.Struct, forbid_unknown_fields=True):
    between: tuple[str, str]
    latency: str | None = None
    rate: str | None = None


class _File(msgspec.Struct, forbid_unknown_fields=True):
    latency: str
    rate: str
    groups: Annotated[list[_Group], msgspec.Meta(min_length=1)]
    links: list[_Link] = []


@dataclass(frozen=True)
class Network:
    """A network to emulate.

    rates: bits per second of each host's port, which also counts the hosts.
    latencies_ns[i][j]: one way from host i to host j.
    trunk_rates: bits per second of shared trunks.   trunks[i][j]: the trunk from i to j, or None.
    description: what it is, apart from the number of hosts, for reports and fingerprints.
    """

    rates: tuple[int, ...]
    latencies_ns: tuple[tuple[int, ...], ...]
    trunk_rates: tuple[int, ...]
    trunks: tuple[tuple[int | None, ...], ...] | None
    description: str

    @property
    def hosts(self) -> int:
        """How many hosts."""
        return len(self.rates)

    @property
    def least_latency_ns(self) -> int:
        """The shortest one-way latency between two hosts."""
        rows = self.latencies_ns
        return min((rows[i][j] for i, j in combinations(range(self.hosts), 2)), default=rows[0][0])

    def __str__(self) -> str:
        return f"{self.hosts} host{'s' * (self.hosts > 1)}, {self.description}"

    @classmethod
    def uniform(cls, hosts: int, latency: str, rate: str) -> "Network":
        """All hosts alike.  Raises InvalidArgument."""
        _check_count(hosts)
        delay, bits = latency_ns(latency), rate_bits(rate)
        return cls(
            (bits,) * hosts,
            ((delay,) * hosts,) * hosts,
            (),
            None,
            f"{formatting.chosen_time(delay / 1e9)} one way, {formatting.rate(bits)}",
        )

    @classmethod
    def load(cls, path: Path) -> "Network":
        """Read a file of groups and links.  Raises InvalidArgument, which names the place."""
        asked = f"the network file {path}"
        remedy = "mend it; docs/lab.md shows the form"
        try:
            document = tomllib.loads(path.read_text(encoding="utf-8"))
            file = msgspec.convert(document, _File)
        except OSError as problem:
            raise InvalidArgument(
                asked, problem.strerror or str(problem), "name another file"
            ) from None
        except (UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
            raise InvalidArgument(asked, f"it is no TOML ({problem})", remedy) from None
        except msgspec.ValidationError as problem:
            raise InvalidArgument(asked, str(problem), remedy) from None
        try:
            return cls._built(file)
        except InvalidArgument as problem:
            raise InvalidArgument(
                asked, f"{problem.asked}: {problem.seen}", problem.remedy
            ) from None

    @classmethod
    def _built(cls, file: _File) -> "Network":
        names = [group.name for group in file.groups]
        for name in names:
            if names.count(name) > 1:
                raise InvalidArgument(f"the group {name!r}", "there are two", "name them apart")
        _check_count(sum(group.hosts for group in file.groups))
        usual = latency_ns(file.latency)
        count = len(names)
        between = [[usual] * count for _ in names]
        trunk_of: list[list[int | None]] = [[None] * count for _ in names]
        trunk_rates: list[int] = []
        for number, group in enumerate(file.groups):
            if group.latency is not None:
                between[number][number] = latency_ns(group.latency)
        linked: set[frozenset[str]] = set()
        for link in file.links:
            one, other = _ends(link, names, linked)
            if link.latency is not None:
                between[one][other] = between[other][one] = latency_ns(link.latency)
            if link.rate is not None:
                for a, b in ((one, other), (other, one)):
                    trunk_of[a][b] = len(trunk_rates)
                    trunk_rates.append(rate_bits(link.rate))
        member = [number for number, group in enumerate(file.groups) for _ in range(group.hosts)]
        rates = [rate_bits(group.rate or file.rate) for group in file.groups]
        return cls(
            tuple(rates[g] for g in member),
            tuple(tuple(between[a][b] for b in member) for a in member),
            tuple(trunk_rates),
            tuple(tuple(trunk_of[a][b] for b in member) for a in member) if trunk_rates else None,
            _words(file, rates, between, trunk_of, trunk_rates),
        )


def latency_ns(text: str) -> int:
    """Nanoseconds of a one-way latency such as "5ms".  Raises InvalidArgument."""
    asked = f"a latency of {text!r}"
    latency_s = parse_time(text, asked, unit_needed=True)
    low, high = LATENCIES_S
    if not low <= latency_s <= high:
        seen = f"an emulated network can keep {float(low) * 1e6:g} us to {high:g} s"
        raise InvalidArgument(asked, seen, "choose a latency in this range")
    return round(latency_s * 10**9)


def rate_bits(text: str) -> int:
    """Bits per second of a rate such as "10mbit" or "1.25 MB/s".  Raises InvalidArgument."""
    asked = f"a rate of {text!r}"
    bits = parse_rate(text, asked)
    low, high = RATES
    if not low <= bits <= high:
        seen = f"an emulated network can keep {formatting.rate(low)} to {formatting.rate(high)}"
        raise InvalidArgument(asked, seen, "choose a rate in this range")
    return round(bits)


def _check_count(hosts: int) -> None:
    cores = os.cpu_count() or 1
    most = min(_MOST, max(_LEAST_MOST, MOST_PER_CORE * cores))
    if not 1 <= hosts <= most:
        raise InvalidArgument(
            f"{hosts} emulated hosts",
            f"this machine has {cores} core(s), enough for 1 to {most}",
            "choose a number in this range (more ranks fit with --ranks-per-host)",
        )


def _ends(link: _Link, names: list[str], linked: set[frozenset[str]]) -> tuple[int, int]:
    """The numbers of the groups that a link joins."""
    asked = f"the link between {link.between[0]!r} and {link.between[1]!r}"
    for name in link.between:
        if name not in names:
            raise InvalidArgument(
                asked, f"there is no group {name!r}", "groups: " + ", ".join(names)
            )
    ends = frozenset(link.between)
    if len(ends) == 1:
        raise InvalidArgument(
            asked, "both ends are one group", "a group's own latency goes to the group"
        )
    if ends in linked:
        raise InvalidArgument(asked, "there are two", "keep one; a link holds in both directions")
    linked.add(ends)
    return names.index(link.between[0]), names.index(link.between[1])


def _words(
    file: _File,
    rates: list[int],
    between: list[list[int]],
    trunk_of: list[list[int | None]],
    trunk_rates: list[int],
) -> str:
    """The network in one line; equal networks have equal lines."""
    groups = file.groups
    parts = [
        f"{group.name} {group.hosts} × {formatting.chosen_time(between[i][i] / 1e9)}"
        f" {formatting.rate(rates[i])}"
        for i, group in enumerate(groups)
    ]
    for i, j in combinations(range(len(groups)), 2):
        trunk = trunk_of[i][j]
        shared = "" if trunk is None else f" {formatting.rate(trunk_rates[trunk])} shared"
        latency = formatting.chosen_time(between[i][j] / 1e9)
        parts.append(f"{groups[i].name}–{groups[j].name} {latency}{shared}")
    return "; ".join(parts)
