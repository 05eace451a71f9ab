"""How each MPI library's launcher starts ranks on emulated hosts."""

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from collwise.errors import InvalidArgument, NoMPI
from collwise.lab import poll_shim
from collwise.lab.hosts import DEVICE, SHARED_FROM_HOSTS
from collwise.system.launcher import find_mpiexec, is_open_mpi, version_line

Library: TypeAlias = Literal["mpich", "openmpi", "none"]
"""An MPI library; "none" runs a command once, on the first host, without a launcher."""

_ENTER = f"{SHARED_FROM_HOSTS}/enter"
"""The path of the script that stands in for ssh."""

_MPICH = {
    "MPIR_CVAR_CH4_NETMOD": "ucx",
    "UCX_TLS": "tcp,self",
    "UCX_NET_DEVICES": DEVICE,
    # Where the library has no UCX.
    "FI_PROVIDER": "tcp",
    "FI_TCP_IFACE": DEVICE,
}
"""Environment variables that make MPICH send by TCP through a host's device."""

_PRRTE = {
    "plm": "ssh",
    "plm_ssh_agent": _ENTER,
    "prte_if_include": DEVICE,
    "prte_tmpdir_base": "/dev/shm",
}
_OPEN_MPI = {
    "pml": "ob1",
    "btl_tcp_if_include": DEVICE,
    # Otherwise, by the order in which connections happened to be made, a rank may look at its
    # sockets only every 10 ms; a ping-pong over 5 ms then takes 20 ms instead of 10.
    "mpi_event_tick_rate": "1",
}
"""MCA parameters of Open MPI: those of its runtime (_PRRTE), and those of the library."""


def find_library(asked: Library | None) -> tuple[Library, str]:
    """The installed MPI library and its launcher's path; ("none", "") if "none" is asked for.

    Raises NoMPI if no library is installed, or not the one that is asked for.
    """
    if asked == "none":
        return "none", ""
    mpiexec = find_mpiexec()
    installed: Library = "openmpi" if is_open_mpi(mpiexec) else "mpich"
    if old := re.search(r"\((?:OpenRTE|Open MPI)\) ([1-4]\.\S+)", version_line(mpiexec)):
        seen, remedy = "it cannot start ranks there", "use Open MPI 5, MPICH, or --mpi none"
        raise NoMPI(f"a lab with Open MPI {old[1]}", seen, remedy)
    if asked is not None and asked != installed:
        seen = f"this environment's launcher ({mpiexec}) is that of {installed}"
        remedy = (
            f"run the collwise of an environment that has {asked} (`pip install"
            f" collwise[{asked}]`), or name its mpiexec in COLLWISE_MPIEXEC"
        )
        raise NoMPI(f"a lab with {asked}", seen, remedy)
    return installed, mpiexec


def check_command(command: Sequence[str], environment: Mapping[str, str], folder: Path) -> None:
    """Raise InvalidArgument unless the program is found on the PATH, or as a path from `folder`."""
    if not command:
        remedy = "give it after --, such as -- python my_program.py"
        raise InvalidArgument("a command to run", "there is none", remedy)
    program = command[0]
    if "/" in program:
        path, where = shutil.which(folder / program), "in this folder"
    else:
        search = environment.get("PATH", os.defpath)
        path, where = shutil.which(program, path=search), "on the PATH"
    if path is None:
        seen = f"there is no such program {where}"
        raise InvalidArgument(f"the command {program!r}", seen, "correct its name")


def launch(
    library: Library,
    mpiexec: str,
    command: Sequence[str],
    places: Mapping[str, int],
    *,
    has_shim: bool,
) -> tuple[list[str], dict[str, str]]:
    """The command line to run on the first host (the launcher's, if any), and variables to set.

    places: how many ranks run on each host, in order.   has_shim: whether to preload the poll shim.
    """
    if library == "none":
        return [*command], {}
    shared = max(places.values()) > 1
    slots = ",".join(f"{name}:{number}" for name, number in places.items())
    preload = {}
    if has_shim:
        longest = poll_shim.LONGEST_SHARED_US if shared else poll_shim.LONGEST_US
        preload["LD_PRELOAD"] = f"{SHARED_FROM_HOSTS}/{poll_shim.NAME}"
        preload[poll_shim.LONGEST_VARIABLE] = str(longest)
    environment = {}
    if library == "mpich":
        environment = dict(_MPICH)
        if not shared:
            environment["MPIR_CVAR_NOLOCAL"] = "1"
        options = ["-launcher", "ssh", "-launcher-exec", _ENTER, "-iface", DEVICE]
        options += ["-hosts", slots]
        for name, value in preload.items():
            options += ["-genv", name, value]
    else:
        parameters = {**_OPEN_MPI, "btl": "tcp,self,sm" if shared else "tcp,self"}
        if not shared:
            parameters["coll"] = "^han"  # it takes all emulated hosts for a single one
        options = ["--allow-run-as-root"]
        for name, value in _PRRTE.items():
            options += ["--prtemca", name, value]
        for name, value in parameters.items():
            options += ["--mca", name, value]
        options += ["--host", slots, "--map-by", "slot", "--bind-to", "none"]
        for name, value in preload.items():
            options += ["-x", f"{name}={value}"]
    return [mpiexec, *options, "-n", str(sum(places.values())), *command], environment
