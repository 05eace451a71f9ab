"""Describes this machine: its processor, its network, and the cores this process may use."""

import os
import platform
import re
import sys
from contextlib import suppress
from pathlib import Path

from collwise.errors import UnknownName

_NETWORK_VARIABLES = (
    *("MPIR_CVAR_CH4_NETMOD", "FI_PROVIDER", "UCX_TLS", "UCX_NET_DEVICES", "I_MPI_FABRICS"),
    *("OMPI_MCA_pml", "OMPI_MCA_mtl", "OMPI_MCA_btl"),
)
"""The environment variables that choose how MPI libraries reach other nodes."""
LAB = "COLLWISE_LAB"
"""The environment variable with which `collwise lab` describes the network to its commands."""
NODE = "COLLWISE_NODE"
"""The environment variable that chooses one of TRANSPORTS inside nodes; rank 0's value counts."""
TRANSPORTS = ("messages", "memory")
"""How data travel inside a node: by MPI's messages, or in memory that ranks share."""


def chosen_transport(asked: str | None = None) -> str:
    """The transport inside a node: `asked`; if None, COLLWISE_NODE's, which is empty by default.

    Empty is memory where all ranks can share it, else messages.   Raises UnknownName for a word
    that is not in TRANSPORTS.
    """
    word = os.environ.get(NODE, "") if asked is None else asked
    if word and word not in TRANSPORTS:
        raise UnknownName.of("transport inside a node", word, TRANSPORTS)
    return word


def cpu_model(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The processor's name, as the system reports it, or the architecture's; never empty."""
    try:
        text = cpuinfo.read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    facts: dict[str, str] = {}
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon and value.strip():
            facts.setdefault(key.strip(), " ".join(value.split()))
    for key in ("model name", "cpu model", "cpu", "Processor", "uarch"):
        if key in facts:
            return facts[key]
    if "CPU part" in facts:  # Arm gives numbers only
        return f"Arm implementer {facts.get('CPU implementer', '?')} part {facts['CPU part']}"
    return platform.processor() or platform.machine() or "unknown"


def network(library: str, root: Path = Path("/")) -> str:
    """MPI's transport between nodes and the links' speed, such as "ch4:ofi, 25000 Mbit/s".

    library: MPI's own text on its version.   root: the root of the file system.
    The library or the environment names the transport.  What is unknown is left out.
    """
    known = [line.strip() for line in re.findall(r"Device:(.+)", library)]
    known += [f"{name}={os.environ[name]}" for name in _NETWORK_VARIABLES if name in os.environ]
    known += sorted({_line(path) for path in root.glob("sys/class/infiniband/*/ports/*/rate")})
    with suppress(OSError):
        routes = map(str.split, (root / "proc/net/route").read_text("ascii").splitlines())
        device = next((row[0] for row in routes if row[1:2] == ["00000000"]), "")
        if (speed := _line(root / "sys/class/net" / device / "speed")).isdigit():
            known.append(f"{speed} Mbit/s")
    return ", ".join(filter(None, known))


def _line(path: Path) -> str:
    try:
        return path.read_text("ascii").strip()
    except OSError:  # of devices that are down
        return ""


def affinity() -> frozenset[int]:
    """The logical processors on which this process may run; empty where the system does not say."""
    return frozenset(os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else ())


def core_limit(root: Path = Path("/")) -> int:
    """How many processors the CPU limits here allow, at least 1; sys.maxsize without limit.

    Limits of this process's control groups (v1, v2) and of those around them count.   root: of the
    file system.
    """
    least = sys.maxsize
    with suppress(OSError):
        groups = (root / "proc/self/cgroup").read_text("utf-8", "replace").splitlines()
        for controllers, group in (line.split(":", 2)[1:] for line in groups):
            names = ["cpu.cfs_quota_us", "cpu.cfs_period_us"] if controllers else ["cpu.max"]
            inside = root / "sys/fs/cgroup" / controllers / group.lstrip("/")
            for folder in (inside, *inside.parents):
                with suppress(OSError, ValueError, ZeroDivisionError):  # ValueError for "max"
                    texts = [(folder / name).read_text("ascii") for name in names]
                    limit, period = map(int, " ".join(texts).split())
                    if limit > 0:  # -1 is no limit
                        least = min(least, max(1, round(limit / period)))
    return least


def usable_cores() -> int:
    """The number of logical processors that this process's affinity and container allow."""
    return min(len(affinity()) or os.cpu_count() or 1, core_limit())
