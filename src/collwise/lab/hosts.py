"""An emulated host: namespaces and one network device, held only by open descriptors.

Nothing has a name outside the lab.  When the last descriptor is closed and the last process has
ended, the kernel frees everything.
"""

import contextlib
import os
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from collwise.lab import kernel

KINDS = ("net", "uts", "ipc", "mnt")
"""The kinds of namespaces that every host has for itself.  PID is not among them: a launcher on
the first host must be able to enter the other hosts."""
SHARED = "/dev/shm"
"""The folder on which the supervisor mounts a file system that vanishes with the supervisor."""
SHARED_FROM_HOSTS = f"/proc/1/root{SHARED}"
"""The path of SHARED on hosts, through process 1 of the lab, the supervisor."""
DEVICE = "eth0"
MTU = 1500
_QUEUE = 100
"""How many packets a host's device queues for the switch; more can make a second of delay."""

_WINDOW = 256
"""How many packets TCP sends on a connection before the first answer, instead of 10.  With 10 a
message in many short segments waits for several round trips, so its size would not tell its cost.
"""

_BURST_S = 0.5e-3
"""A port may send at once two packets and what its rate lets through in this time."""

_SYSCTL = {
    "net/ipv6/conf/all/disable_ipv6": "1",
    "net/ipv6/conf/default/disable_ipv6": "1",
    "net/ipv4/tcp_slow_start_after_idle": "0",
    "net/ipv4/tcp_congestion_control": "reno",
    "net/ipv4/tcp_no_metrics_save": "1",
    # Messages leave a host in the order in which they were sent.  TCP holds back what follows on a
    # connection while its last packets wait for the port, and then sends it ahead of other
    # connections' packets, which is hardly seen where a port takes microseconds.
    "net/ipv4/tcp_autocorking": "0",
    "net/ipv4/tcp_pacing_ss_ratio": "1000",  # bounds what may wait for the port
    "net/ipv4/tcp_pacing_ca_ratio": "1000",
    # Tail loss probes take queueing delay for a loss, and retransmit what was not lost.
    "net/ipv4/tcp_early_retrans": "0",
}


class Host(NamedTuple):
    """A host: its name, its address, and descriptors of its TUN device and namespaces (by kind)."""

    name: str
    address: str
    tun: int
    namespaces: dict[str, int]


def enter(namespaces: dict[str, int]) -> None:
    """Move this process into namespaces, given as open descriptors by kind."""
    for descriptor in namespaces.values():
        kernel.setns(descriptor)


def own_namespaces() -> dict[str, int]:
    """Descriptors of the namespaces that this process is in, by kind."""
    return {kind: os.open(f"/proc/self/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC) for kind in KINDS}


def prepare(names: Sequence[str], addresses: Sequence[str]) -> None:
    """Give the supervisor, process 1 of its PID namespace, a private view of the file system.

    names, addresses: the hosts', for /etc/hosts.
    """
    kernel.mount("none", "/", flags=kernel.MS_REC | kernel.MS_PRIVATE)
    flags = kernel.MS_NOSUID | kernel.MS_NODEV
    kernel.mount("proc", "/proc", "proc", flags | kernel.MS_NOEXEC)
    kernel.mount("tmpfs", SHARED, "tmpfs", flags, "mode=1777")
    lines = ["127.0.0.1 localhost", *(f"{a} {n}" for a, n in zip(addresses, names, strict=True))]
    hosts_file = Path(SHARED, "hosts")
    hosts_file.write_text("\n".join(lines) + "\n", encoding="ascii")
    with contextlib.suppress(FileNotFoundError):
        kernel.mount(str(hosts_file), "/etc/hosts", flags=kernel.MS_BIND)
    Path(SHARED, "cgroup").mkdir()
    with contextlib.suppress(OSError):
        kernel.mount("/sys/fs/cgroup", f"{SHARED}/cgroup", flags=kernel.MS_BIND | kernel.MS_REC)


def make_host(name: str, address: str, netmask: str, rate: int, base: dict[str, int]) -> Host:
    """Make a host.

    rate: of the host's port, in bits per second.   base: the caller's namespaces, to which this
    process returns.
    """
    kernel.unshare(
        kernel.CLONE_NEWNET | kernel.CLONE_NEWUTS | kernel.CLONE_NEWIPC | kernel.CLONE_NEWNS
    )
    socket.sethostname(name)
    flags = kernel.MS_NOSUID | kernel.MS_NODEV
    with contextlib.suppress(OSError):
        # MPI libraries look for devices in /sys, which shows those of the mounting process.
        kernel.mount("sysfs", "/sys", "sysfs", flags | kernel.MS_NOEXEC)
        kernel.mount(f"{SHARED}/cgroup", "/sys/fs/cgroup", flags=kernel.MS_BIND | kernel.MS_REC)
    kernel.mount("tmpfs", "/dev/shm", "tmpfs", flags, "mode=1777")
    for setting, value in _SYSCTL.items():
        path = Path("/proc/sys", setting)
        if path.exists() or "ipv6" not in setting:  # kernels without IPv6 have no such settings
            path.write_text(value, encoding="ascii")
    kernel.configure("lo", "127.0.0.1", "255.0.0.0")
    tun = kernel.open_tun(DEVICE)
    kernel.configure(DEVICE, address, netmask, mtu=MTU, queue=_QUEUE)
    with contextlib.suppress(FileNotFoundError):  # kernels without tbf only drop more packets
        kernel.add_token_bucket(DEVICE, rate, 2 * MTU + round(rate / 8 * _BURST_S))
        kernel.set_initial_windows(DEVICE, address, netmask, _WINDOW)
    host = Host(name, address, tun, own_namespaces())
    enter(base)
    return host


def counters(hosts: Sequence[Host], base: dict[str, int]) -> dict[str, int]:
    """The counts "host_drops" (packets) and "resent" (TCP segments) of all hosts since their start.

    base: the caller's namespaces, to which this process returns.
    """
    drops = resent = 0
    for host in hosts:
        kernel.setns(host.namespaces["net"])
        try:
            devices = Path("/proc/thread-self/net/dev").read_text(encoding="ascii")
            protocols = Path("/proc/thread-self/net/snmp").read_text(encoding="ascii")
        finally:
            kernel.setns(base["net"])
        fields = devices.partition(f"{DEVICE}:")[2].split()
        drops += int(fields[3]) + int(fields[11])  # received, sent
        titles, values = (row.split() for row in protocols.splitlines() if row.startswith("Tcp:"))
        resent += int(values[titles.index("RetransSegs")])
    return {"host_drops": drops, "resent": resent}
