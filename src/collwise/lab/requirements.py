"""Checks what a lab needs of the machine, and says what is missing."""

import os
import platform
import shutil
from pathlib import Path
from typing import NamedTuple

from collwise.errors import LabUnavailable
from collwise.lab.poll_shim import compiler
from collwise.system.host import LAB

_CAPABILITIES = {12: "CAP_NET_ADMIN", 21: "CAP_SYS_ADMIN"}
_CAP_SYS_NICE = 23


class Requirement(NamedTuple):
    """One thing that a lab needs, or, if `needed` is False, that only makes a lab better.

    problem: why the thing is missing; None if it is there.   remedy: what to do about the problem.
    """

    what: str
    problem: str | None
    remedy: str
    needed: bool = True


def unmet() -> list[Requirement]:
    """The requirements that this machine does not meet, in the order in which to fix them."""
    system = platform.system()
    if system != "Linux":
        remedy = "run it on Linux (a virtual machine will do)"
        return [Requirement("Linux", system or "an unknown system", remedy)]
    if (network := os.environ.get(LAB)) is not None:
        remedy = "start it on the machine itself, and run all commands there"
        return [Requirement("a machine of its own", f"this is a host of a lab ({network})", remedy)]
    capabilities = _effective_capabilities()
    lacking = [f"no {name}" for bit, name in _CAPABILITIES.items() if not capabilities >> bit & 1]
    nsenter = shutil.which("nsenter")
    requirements = [
        Requirement(
            "root, or CAP_NET_ADMIN and CAP_SYS_ADMIN",
            " and ".join(lacking) or None,
            "run it as root (sudo, or a privileged container)",
        ),
        Requirement(
            "/dev/net/tun",
            _tun_problem(),
            "load it (`modprobe tun`); in a container pass --device /dev/net/tun",
        ),
        Requirement("nsenter", None if nsenter else "not on the PATH", "install util-linux"),
        Requirement(
            "a C compiler, for the shim that lets waiting ranks sleep",
            None if compiler() else "none on the PATH",
            "install gcc or clang, or expect late packets with more ranks than cores",
            needed=False,
        ),
        Requirement(
            "real-time priority for the switch (CAP_SYS_NICE)",
            None if capabilities >> _CAP_SYS_NICE & 1 else "not allowed",
            "run it as root, or expect late packets",
            needed=False,
        ),
    ]
    return [requirement for requirement in requirements if requirement.problem is not None]


def check() -> None:
    """Raise LabUnavailable if needed things are missing; the error names all of them."""
    if missing := [requirement for requirement in unmet() if requirement.needed]:
        seen = "; ".join(f"needs {lacking.what}: {lacking.problem}" for lacking in missing)
        remedy = "; ".join(lacking.remedy for lacking in missing)
        raise LabUnavailable("emulated hosts on this machine", seen, remedy)


def _effective_capabilities() -> int:
    """The effective capabilities of this process, as a bit mask."""
    status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    return int(status.partition("\nCapEff:")[2].split()[0], 16)


def _tun_problem() -> str | None:
    """Why /dev/net/tun cannot be used; None if it can."""
    try:
        os.close(os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC))
    except OSError as problem:
        return problem.strerror or str(problem)
    return None
