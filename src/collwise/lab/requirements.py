"""What a lab needs of the machine, and what is missing."""

import os
import platform
import shutil
from pathlib import Path
from typing import NamedTuple

from collwise.errors import LabUnavailable
from collwise.lab.poll_shim import compiler

_CAPABILITIES = {12: "CAP_NET_ADMIN", 21: "CAP_SYS_ADMIN"}
_NICE = 23


class Requirement(NamedTuple):
    """One thing that a lab needs, or that makes it better."""

    what: str
    met: bool
    needed: bool
    """A lab cannot start without it."""
    seen: str
    remedy: str


def requirements() -> list[Requirement]:
    """Everything a lab needs, in the order in which to mend it."""
    linux = platform.system() == "Linux"
    found = [
        Requirement(
            "Linux",
            linux,
            True,
            platform.system() or "an unknown system",
            "run it on Linux (a virtual machine will do)",
        )
    ]
    if not linux:
        return found
    allowed = _effective_capabilities()
    missing = [name for bit, name in _CAPABILITIES.items() if not allowed >> bit & 1]
    tun, entering = _tun(), shutil.which("nsenter")
    return [
        *found,
        Requirement(
            "root, or CAP_NET_ADMIN and CAP_SYS_ADMIN",
            not missing,
            True,
            "no " + " and no ".join(missing) if missing else "there",
            "run it as root (sudo, or a privileged container)",
        ),
        Requirement(
            "/dev/net/tun",
            tun is None,
            True,
            tun or "there",
            "load it (`modprobe tun`); in a container pass --device /dev/net/tun",
        ),
        Requirement(
            "nsenter",
            entering is not None,
            True,
            entering or "not on the PATH",
            "install util-linux",
        ),
        Requirement(
            "a C compiler, for the shim that lets waiting ranks sleep",
            compiler() is not None,
            False,
            compiler() or "none on the PATH",
            "install gcc or clang, or expect late packets with more ranks than cores",
        ),
        Requirement(
            "real-time priority for the switch (CAP_SYS_NICE)",
            bool(allowed >> _NICE & 1),
            False,
            "allowed" if allowed >> _NICE & 1 else "not allowed",
            "run it as root, or expect late packets",
        ),
    ]


def check() -> None:
    """Raise LabUnavailable, which names everything that is missing."""
    missing = [one for one in requirements() if one.needed and not one.met]
    if missing:
        raise LabUnavailable(
            "emulated hosts on this machine",
            "; ".join(f"needs {one.what}: {one.seen}" for one in missing),
            "; ".join(one.remedy for one in missing),
        )


def _effective_capabilities() -> int:
    for line in (
        Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
    ):
        if line.startswith("CapEff:"):
            return int(line.split()[1], 16)
    return 0


def _tun() -> str | None:
    """Why /dev/net/tun cannot be used; None if it can."""
    try:
        os.close(os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC))
    except OSError as problem:
        return problem.strerror or str(problem)
    return None
