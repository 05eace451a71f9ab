"""The description of a network to emulate: uniform, or read from a TOML file.

A file has groups of hosts and links between groups; `docs/lab.md` shows one.  A group of one host
describes a single host, and a link between two such groups a pair of hosts.
"""

import os
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path
from typing import Annotated

import msgspec

from collwise.errors import InvalidArgument
from collwise.system import formatting
from collwise.system.quantities import parse_rate, parse_time
from collwise.system.toml_files import read_toml

_HOSTS_PER_CORE = 16
_HOSTS_ANYWHERE = 32
_HOSTS_AT_MOST = 250

_LATENCIES_S = (Fraction(1, 10_000), 2)
"""The lowest and highest one-way latency, in seconds, that the switch can keep.  Below, its own
lateness would distort times; above, TCP's timers would."""
_RATES = (64_000, 500_000_000)
"""The lowest and highest rate in bits per second.  Below, a packet takes longer than TCP waits for
its answer; above, there are more packets than the switch can carry."""

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

    rates: bits per second of each host's port; the tuple has one entry for each host.
    latencies_ns[i][j]: the one-way latency from host i to host j.
    trunk_rates: bits per second of each shared trunk.   trunks: None without any trunk; otherwise
    trunks[i][j] is the number of the trunk from host i to host j, or None.   description: the
    network in words, without the total of hosts, for reports and fingerprints.
    """

    rates: tuple[int, ...]
    latencies_ns: tuple[tuple[int, ...], ...]
    trunk_rates: tuple[int, ...]
    trunks: tuple[tuple[int | None, ...], ...] | None
    description: str

    @property
    def hosts(self) -> int:
        """The number of hosts."""
        return len(self.rates)

    @property
    def least_latency_ns(self) -> int:
        """The shortest one-way latency between two hosts; of a single host, to itself."""
        rows = self.latencies_ns
        return min((rows[i][j] for i, j in combinations(range(self.hosts), 2)), default=rows[0][0])

    def __str__(self) -> str:
        return f"{formatting.count(self.hosts, 'host')}, {self.description}"

    @classmethod
    def uniform(cls, hosts: int, latency: str, rate: str) -> "Network":
        """A network of equal hosts.   latency: one way, such as "5ms".   rate: such as "10mbit".

        Raises InvalidArgument for text that cannot be read, and for values out of range.
        """
        _check_count(hosts)
        delay, bits = _latency_ns(latency), _rate_bits(rate)
        description = f"{formatting.chosen_time(delay / 1e9)} one way, {formatting.rate(bits)}"
        return cls((bits,) * hosts, ((delay,) * hosts,) * hosts, (), None, description)

    @classmethod
    def load(cls, path: Path) -> "Network":
        """Read a TOML file of groups and links.  Raises InvalidArgument, with what is wrong."""
        return read_toml(path, _File, cls._of, "the network file", "docs/lab.md")

    @classmethod
    def _of(cls, file: _File) -> "Network":
        names = [group.name for group in file.groups]
        for name in names:
            if names.count(name) > 1:
                raise InvalidArgument(f"the group {name!r}", "there are two", "name them apart")
        _check_count(sum(group.hosts for group in file.groups))
        rates = [_rate_bits(group.rate or file.rate) for group in file.groups]
        # For each pair of groups: its latency, and the number of its trunk.
        delays = dict.fromkeys(product(range(len(names)), repeat=2), _latency_ns(file.latency))
        trunks: dict[tuple[int, int], int] = {}
        trunk_rates: list[int] = []
        for number, group in enumerate(file.groups):
            if group.latency is not None:
                delays[number, number] = _latency_ns(group.latency)
        for link, (one, other) in zip(file.links, _ends(file.links, names), strict=True):
            for pair in ((one, other), (other, one)):
                if link.latency is not None:
                    delays[pair] = _latency_ns(link.latency)
                if link.rate is not None:
                    trunks[pair] = len(trunk_rates)
                    trunk_rates.append(_rate_bits(link.rate))
        # Equal networks have equal descriptions.
        parts = [
            f"{group.name} {group.hosts} × {formatting.chosen_time(delays[g, g] / 1e9)}"
            f" {formatting.rate(rates[g])}"
            for g, group in enumerate(file.groups)
        ]
        for a, b in combinations(range(len(names)), 2):
            trunk = trunks.get((a, b))
            shared = "" if trunk is None else f" {formatting.rate(trunk_rates[trunk])} shared"
            delay = formatting.chosen_time(delays[a, b] / 1e9)
            parts.append(f"{names[a]}–{names[b]} {delay}{shared}")
        # For each pair of hosts: its latency, and the number of its trunk.
        group_of = [g for g, group in enumerate(file.groups) for _ in range(group.hosts)]
        trunk_rows = tuple(tuple(trunks.get((a, b)) for b in group_of) for a in group_of)
        return cls(
            tuple(rates[g] for g in group_of),
            tuple(tuple(delays[a, b] for b in group_of) for a in group_of),
            tuple(trunk_rates),
            trunk_rows if trunks else None,
            "; ".join(parts),
        )


def _ends(links: list[_Link], names: list[str]) -> list[tuple[int, int]]:
    """For each link, the indices in `names` of the two groups that it joins."""
    joined: list[tuple[int, int]] = []
    for link in links:
        one, other = link.between
        asked = f"the link between {one!r} and {other!r}"
        for name in link.between:
            if name not in names:
                remedy = "groups: " + ", ".join(names)
                raise InvalidArgument(asked, f"there is no group {name!r}", remedy)
        if one == other:
            remedy = "a group's own latency goes to the group"
            raise InvalidArgument(asked, "both ends are one group", remedy)
        ends = names.index(one), names.index(other)
        if ends in joined or ends[::-1] in joined:
            remedy = "keep one; a link holds in both directions"
            raise InvalidArgument(asked, "there are two", remedy)
        joined.append(ends)
    return joined


def _check_count(hosts: int) -> None:
    cores = os.cpu_count() or 1
    most = min(_HOSTS_AT_MOST, max(_HOSTS_ANYWHERE, _HOSTS_PER_CORE * cores))
    if not 1 <= hosts <= most:
        seen = f"this machine has {cores} core(s), enough for 1 to {most}"
        remedy = "choose a number in this range (more ranks fit with --ranks-per-host)"
        raise InvalidArgument(f"{hosts} emulated hosts", seen, remedy)


def _latency_ns(text: str) -> int:
    """Nanoseconds of a one-way latency such as "5ms"."""
    asked = f"a latency of {text!r}"
    latency_s = parse_time(text, asked, unit_needed=True)
    low, high = _LATENCIES_S
    if not low <= latency_s <= high:
        bounds = f"{formatting.chosen_time(low)} to {formatting.chosen_time(high)}"
        seen = f"an emulated network can keep {bounds}"
        raise InvalidArgument(asked, seen, "choose a latency in this range")
    return round(latency_s * 10**9)


def _rate_bits(text: str) -> int:
    """Bits per second of a rate such as "10mbit" or "1.25 MB/s"."""
    asked = f"a rate of {text!r}"
    bits = parse_rate(text, asked)
    low, high = _RATES
    if not low <= bits <= high:
        seen = f"an emulated network can keep {formatting.rate(low)} to {formatting.rate(high)}"
        raise InvalidArgument(asked, seen, "choose a rate in this range")
    return round(bits)
