"""How each MPI library's launcher starts ranks on emulated hosts."""

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from collwise.errors import InvalidArgument, NoMPI
from collwise.lab.hosts import DEVICE, INSIDE
from collwise.lab.poll_shim import LONGEST_SHARED_US, LONGEST_US, WAITING
from collwise.system.launcher import find_mpiexec, is_open_mpi

Library: TypeAlias = Literal["mpich", "openmpi", "none"]
LIBRARIES: tuple[Library, ...] = ("mpich", "openmpi", "none")
"""`none` runs the command once, on the first host, without a launcher."""


class Launch(NamedTuple):
    """What to execute on the first host, with which changes of the environment."""

    arguments: list[str]
    environment: dict[str, str]


def find_library(asked: Library | None) -> tuple[Library, str]:
    """The library that is there (or asked for) and its launcher.

    Raises NoMPI if there is none, or another than was asked for.
    """
    if asked == "none":
        return "none", ""
    mpiexec = find_mpiexec()
    seen: Library = "openmpi" if is_open_mpi(mpiexec) else "mpich"
    if asked is not None and asked != seen:
        raise NoMPI(
            f"a lab with {asked}",
            f"this environment's launcher ({mpiexec}) is that of {seen}",
            f"run the collwise of an environment that has {asked} (`pip install"
            f" collwise[{asked}]`), or name its mpiexec in COLLWISE_MPIEXEC",
        )
    return seen, mpiexec


def check_command(command: Sequence[str], environment: Mapping[str, str], folder: Path) -> None:
    """Raise InvalidArgument if there is no such command."""
    if not command:
        raise InvalidArgument(
            "a command to run", "there is none", "give it after --, such as -- python my_program.py"
        )
    program = command[0]
    path = environment.get("PATH", os.defpath)
    found = (
        shutil.which(str(folder / program)) if "/" in program else shutil.which(program, path=path)
    )
    if found is None:
        where = "in this folder" if "/" in program else "on the PATH"
        raise InvalidArgument(
            f"the command {program!r}", f"there is no such program {where}", "correct its name"
        )


def launch(
    library: Library,
    mpiexec: str,
    command: Sequence[str],
    names: Sequence[str],
    ranks: int,
    ranks_per_host: int,
    *,
    quiet: bool,
) -> Launch:
    """The launcher's command line.  Ranks fill one host after the other."""
    if library == "none":
        return Launch([*command], {})
    forced = {}
    if quiet:
        waiting = LONGEST_US if ranks_per_host == 1 else LONGEST_SHARED_US
        forced = {"LD_PRELOAD": f"{INSIDE}/poll_shim.so", WAITING: str(waiting)}
    used = names[: -(-ranks // ranks_per_host)]
    make = _mpich if library == "mpich" else _open_mpi
    return make(mpiexec, command, used, ranks, ranks_per_host, forced)


def _mpich(
    mpiexec: str,
    command: Sequence[str],
    names: Sequence[str],
    ranks: int,
    ranks_per_host: int,
    forced: Mapping[str, str],
) -> Launch:
    environment = {
        "MPIR_CVAR_CH4_NETMOD": "ucx",
        "UCX_TLS": "tcp,self",
        "UCX_NET_DEVICES": DEVICE,
        # Where the library has no UCX.
        "FI_PROVIDER": "tcp",
        "FI_TCP_IFACE": DEVICE,
    }
    if ranks_per_host == 1:
        environment["MPIR_CVAR_NOLOCAL"] = "1"
    arguments = [mpiexec, "-launcher", "ssh", "-launcher-exec", f"{INSIDE}/enter"]
    arguments += ["-iface", DEVICE, "-hosts", ",".join(names), "-ppn", str(ranks_per_host)]
    for name, value in forced.items():
        arguments += ["-genv", name, value]
    return Launch([*arguments, "-n", str(ranks), *command], environment)


def _open_mpi(
    mpiexec: str,
    command: Sequence[str],
    names: Sequence[str],
    ranks: int,
    ranks_per_host: int,
    forced: Mapping[str, str],
) -> Launch:
    transports = "tcp,self" if ranks_per_host == 1 else "tcp,self,sm"
    runtime = {
        "plm": "ssh",
        "plm_ssh_agent": f"{INSIDE}/enter",
        "prte_if_include": DEVICE,
        "prte_tmpdir_base": "/dev/shm",
    }
    parameters = {
        "pml": "ob1",
        "btl": transports,
        "btl_tcp_if_include": DEVICE,
        "coll": "^han",  # it takes emulated hosts for one machine's
        # Otherwise, by the order in which connections happened to be made, a rank may look at its
        # sockets only every 10 ms; a ping-pong over 5 ms then takes 20 ms instead of 10.
        "mpi_event_tick_rate": "1",
    }
    arguments = [mpiexec, "--allow-run-as-root"]
    for name, value in runtime.items():
        arguments += ["--prtemca", name, value]
    for name, value in parameters.items():
        arguments += ["--mca", name, value]
    slots = ",".join(f"{name}:{ranks_per_host}" for name in names)
    arguments += ["--host", slots, "--map-by", "slot", "--bind-to", "none"]
    for name, value in forced.items():
        arguments += ["-x", f"{name}={value}"]
    return Launch([*arguments, "-n", str(ranks), *command], {})
