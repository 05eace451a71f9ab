"""Addresses for hosts.  They live in the hosts' own namespaces and clash with nobody's there.

A range that this machine itself uses is refused all the same: a program that holds an address of
the one network for an address of the other would be hard to understand.
"""

import ipaddress
import socket
import struct
from pathlib import Path

from collwise.errors import InvalidArgument

Range = ipaddress.IPv4Network
USUAL = tuple(Range(f"10.{second}.0.0/24") for second in range(77, 97))


def in_use(routes: Path = Path("/proc/net/route")) -> list[Range]:
    """The ranges that this machine has routes to, apart from the default."""
    found = []
    try:
        lines = routes.read_text(encoding="ascii").splitlines()[1:]
    except OSError:
        return []
    for line in lines:
        fields = line.split()
        target, mask = (socket.ntohl(int(fields[i], 16)) for i in (1, 7))
        if mask:
            prefix = mask.bit_count()
            found.append(Range((struct.pack("!I", target), prefix), strict=False))
    return found


def choose(hosts: int, asked: str | None, used: list[Range] | None = None) -> tuple[list[str], str]:
    """Addresses for so many hosts, and their netmask.  Raises InvalidArgument."""
    taken = in_use() if used is None else used
    if asked is None:
        for one in USUAL:
            if not any(one.overlaps(other) for other in taken):
                return _of(one, hosts)
        raise InvalidArgument(
            "addresses for emulated hosts",
            f"this machine uses all of {USUAL[0]} to {USUAL[-1]} itself",
            "name a free range with --addresses",
        )
    try:
        chosen = Range(asked)
    except ValueError as problem:
        raise InvalidArgument(
            f"the address range {asked!r}", str(problem), "give one such as 10.77.0.0/24"
        ) from None
    for other in taken:
        if chosen.overlaps(other):
            raise InvalidArgument(
                f"the address range {asked}",
                f"this machine has a route to {other}",
                "choose a free range, or leave out --addresses",
            )
    if chosen.num_addresses - 2 < hosts:
        raise InvalidArgument(
            f"the address range {asked}",
            f"it is too small for {hosts} hosts",
            "give a larger one, such as 10.77.0.0/24",
        )
    return _of(chosen, hosts)


def _of(chosen: Range, hosts: int) -> tuple[list[str], str]:
    first = int(chosen.network_address) + 1
    return [str(ipaddress.IPv4Address(first + i)) for i in range(hosts)], str(chosen.netmask)
