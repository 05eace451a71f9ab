"""An emulated host: namespaces of its own and one network device, held by open descriptors only.

Nothing has a name outside: when the last descriptor is closed and the last process has ended, the
kernel takes everything back.
"""

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from collwise.lab import kernel

KINDS = ("net", "uts", "ipc", "mnt")
"""Namespaces of a host.  No PID namespace of its own: a launcher on the first host must be able to
enter the others."""
SHELF = "/dev/shm"
"""Where the keeper has a file system of its own, which vanishes with it."""
INSIDE = f"/proc/1/root{SHELF}"
"""How every process of the lab finds the keeper's shelf; the keeper is their process 1."""
DEVICE = "eth0"
MTU = 1500
_QUEUE = 100
"""Packets that wait for the switch at most; a longer queue makes a second of delay."""

_BURST_S = 0.5e-3
"""What a port may let out ahead of its rate; the switch then times every packet exactly."""

_SETTINGS = {
    "net/ipv6/conf/all/disable_ipv6": "1",
    "net/ipv6/conf/default/disable_ipv6": "1",
    "net/ipv4/tcp_slow_start_after_idle": "0",
    "net/ipv4/tcp_congestion_control": "reno",
    "net/ipv4/tcp_no_metrics_save": "1",
    # Probes for lost tails take a queue for a loss, and send again what was not lost.
    "net/ipv4/tcp_early_retrans": "0",
}
_OPTIONAL = {"net/ipv6/conf/all/disable_ipv6", "net/ipv6/conf/default/disable_ipv6"}


class Host(NamedTuple):
    """A host: its name, its address, its TUN device, its namespaces by kind (descriptors)."""

    name: str
    address: str
    tun: int
    namespaces: dict[str, int]


def enter(namespaces: dict[str, int]) -> None:
    """Move this process into namespaces."""
    for descriptor in namespaces.values():
        kernel.setns(descriptor)


def own_namespaces() -> dict[str, int]:
    """Descriptors of the namespaces that this process is in."""
    return {kind: os.open(f"/proc/self/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC) for kind in KINDS}


def prepare(names: Sequence[str], addresses: Sequence[str]) -> None:
    """Give the keeper, process 1 of its PID namespace, a private view of the file system."""
    kernel.mount("none", "/", flags=kernel.MS_REC | kernel.MS_PRIVATE)
    flags = kernel.MS_NOSUID | kernel.MS_NODEV
    kernel.mount("proc", "/proc", "proc", flags | kernel.MS_NOEXEC)
    kernel.mount("tmpfs", SHELF, "tmpfs", flags, "mode=1777")
    lines = ["127.0.0.1 localhost", *(f"{a} {n}" for a, n in zip(addresses, names, strict=True))]
    known = Path(SHELF, "hosts")
    known.write_text("\n".join(lines) + "\n", encoding="ascii")
    with contextlib.suppress(FileNotFoundError):
        kernel.mount(str(known), "/etc/hosts", flags=kernel.MS_BIND)
    Path(SHELF, "cgroup").mkdir()
    with contextlib.suppress(OSError):
        kernel.mount("/sys/fs/cgroup", f"{SHELF}/cgroup", flags=kernel.MS_BIND | kernel.MS_REC)


def make_host(name: str, address: str, netmask: str, rate: int, base: dict[str, int]) -> Host:
    """Make a host; the caller ends in the namespaces of `base`, as it began.

    rate: of its port, in bits per second.
    """
    kernel.unshare(
        kernel.CLONE_NEWNET | kernel.CLONE_NEWUTS | kernel.CLONE_NEWIPC | kernel.CLONE_NEWNS
    )
    kernel.sethostname(name)
    _mount_own()
    for setting, value in _SETTINGS.items():
        try:
            Path("/proc/sys", setting).write_text(value, encoding="ascii")
        except FileNotFoundError:
            if setting not in _OPTIONAL:
                raise
    kernel.configure("lo", address="127.0.0.1", netmask="255.0.0.0")
    tun = kernel.open_tun(DEVICE)
    kernel.configure(DEVICE, address=address, netmask=netmask, mtu=MTU, queue=_QUEUE)
    with contextlib.suppress(FileNotFoundError):  # a kernel without tbf: more drops, no more
        kernel.shape(DEVICE, rate, 2 * MTU + round(rate / 8 * _BURST_S))
    host = Host(name, address, tun, own_namespaces())
    enter(base)
    return host


def _mount_own() -> None:
    flags = kernel.MS_NOSUID | kernel.MS_NODEV
    with contextlib.suppress(OSError):
        # MPI libraries look for devices in /sys, which shows those of the mounting process.
        kernel.mount("sysfs", "/sys", "sysfs", flags | kernel.MS_NOEXEC)
        kernel.mount(f"{SHELF}/cgroup", "/sys/fs/cgroup", flags=kernel.MS_BIND | kernel.MS_REC)
    kernel.mount("tmpfs", "/dev/shm", "tmpfs", flags, "mode=1777")


def counters(host: Host, base: dict[str, int]) -> dict[str, int]:
    """What the kernel counted on a host since its start: packets dropped, segments sent again."""
    kernel.setns(host.namespaces["net"])
    try:
        devices = Path("/proc/thread-self/net/dev").read_text(encoding="ascii")
        protocols = Path("/proc/thread-self/net/snmp").read_text(encoding="ascii")
    finally:
        kernel.setns(base["net"])
    numbers = next(
        line.partition(":")[2].split()
        for line in devices.splitlines()
        if line.strip().startswith(f"{DEVICE}:")
    )
    titles, values = (line.split() for line in protocols.splitlines() if line.startswith("Tcp:"))
    tcp = dict(zip(titles, values, strict=True))
    return {
        "drops": int(numbers[3]) + int(numbers[11]),
        "resent": int(tcp["RetransSegs"]),
    }
