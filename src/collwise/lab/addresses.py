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
"""Without a range that is asked for, the first of these that is free is used."""


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
    """An IPv4 address for each of `hosts` hosts, and their netmask.

    asked: a range such as "10.77.0.0/24"; a free one if None.   used: ranges to avoid; those that
    this machine has routes to if None.
    Raises InvalidArgument for a malformed, used or small range, or if no default range is free.
    """
    used = routed() if used is None else used
    if asked is None:
        free = [network for network in DEFAULTS if not any(map(network.overlaps, used))]
        if not free:
            seen = f"this machine uses all of {DEFAULTS[0]} to {DEFAULTS[-1]} itself"
            remedy = "name a free range with --addresses"
            raise InvalidArgument("addresses for emulated hosts", seen, remedy)
        network = free[0]
    else:
        network = _checked(asked, hosts, used)
    return [str(address) for address in islice(network.hosts(), hosts)], str(network.netmask)


def _checked(asked: str, hosts: int, used: list[IPv4Network]) -> IPv4Network:
    what, remedy = f"the address range {asked}", "give one such as 10.77.0.0/24"
    try:
        network = IPv4Network(asked)
    except ValueError as problem:
        raise InvalidArgument(what, str(problem), remedy) from None
    for other in filter(network.overlaps, used):
        remedy = "choose a free range, or leave out --addresses"
        raise InvalidArgument(what, f"this machine has a route to {other}", remedy)
    if network.num_addresses - 2 < hosts:
        raise InvalidArgument(what, f"it is too small for {hosts} hosts", remedy)
    return network
