"""IPv4 addresses for hosts.  They exist only in the hosts' own network namespaces.

A range to which this machine has a route is refused all the same: a program that confused an
address of one network with an address of the other would be hard to debug.
"""

import socket
from ipaddress import IPv4Network
from itertools import islice
from pathlib import Path

from collwise.errors import InvalidArgument

DEFAULTS = tuple(IPv4Network(f"10.{second}.0.0/24") for second in range(77, 97))
"""The first of these that is free is used, unless a range is asked for."""


def routed(table: Path = Path("/proc/net/route")) -> list[IPv4Network]:
    """The ranges to which this machine has routes, apart from the default route."""
    try:
        lines = table.read_text(encoding="ascii").splitlines()[1:]
    except OSError:
        return []
    columns = [line.split() for line in lines]
    pairs = [[socket.ntohl(int(fields[i], 16)) for i in (1, 7)] for fields in columns]
    return [IPv4Network((target, mask.bit_count()), strict=False) for target, mask in pairs if mask]


def choose(
    hosts: int, asked: str | None, used: list[IPv4Network] | None = None
) -> tuple[list[str], str]:
    """An address for each host, and their netmask.

    asked: a range such as "10.77.0.0/24"; a free one if None.   used: ranges to avoid; those that
    this machine has routes to if None.
    Raises InvalidArgument for a malformed, used or small range, or if no default range is free.
    """
    used = routed() if used is None else used
    if asked is None:
        free = (one for one in DEFAULTS if not any(map(one.overlaps, used)))
        if (chosen := next(free, None)) is None:
            raise InvalidArgument(
                "addresses for emulated hosts",
                f"this machine uses all of {DEFAULTS[0]} to {DEFAULTS[-1]} itself",
                "name a free range with --addresses",
            )
    else:
        chosen = _checked(asked, hosts, used)
    return [str(address) for address in islice(chosen.hosts(), hosts)], str(chosen.netmask)


def _checked(asked: str, hosts: int, used: list[IPv4Network]) -> IPv4Network:
    try:
        network = IPv4Network(asked)
    except ValueError as problem:
        raise InvalidArgument(
            f"the address range {asked!r}", str(problem), "give one such as 10.77.0.0/24"
        ) from None
    if clash := next(filter(network.overlaps, used), None):
        seen = f"this machine has a route to {clash}"
        remedy = "choose a free range, or leave out --addresses"
    elif network.num_addresses - 2 < hosts:
        seen = f"it is too small for {hosts} hosts"
        remedy = "give a larger one, such as 10.77.0.0/24"
    else:
        return network
    raise InvalidArgument(f"the address range {asked}", seen, remedy)
