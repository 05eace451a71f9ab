"""Fingerprints: the kind of machine to which a profile belongs, by what affects its times.

Host names are not part of a fingerprint, since containers and batch jobs often get new ones.  The
number of ranks is not part of a fingerprint either.
"""

import os
import platform
from typing import Literal, TypeAlias

import msgspec

from collwise.system.host import LAB, chosen_transport, cpu_model

Layout: TypeAlias = Literal["one node", "several nodes"]


# A field at its default is left out, so that profiles of real machines keep their names.
class Fingerprint(
    msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True, omit_defaults=True
):
    """A kind of machine with an MPI library; a profile is used only on the same kind."""

    cpu_model: str
    architecture: str
    """The operating system's name for the architecture, such as "x86_64"."""
    cores_per_node: int
    """The number of logical processors of a node."""
    operating_system: str
    mpi_library: str
    """Name and version of the MPI library, such as "MPICH 5.0.2"."""
    layout: Layout
    """Whether the ranks share one node's memory or communicate over a network."""
    emulated: str = ""
    """The network that `collwise lab` emulates between the ranks; empty on a real network."""

    network: str = ""
    """The network that MPI uses between nodes; empty on one node, if emulated, and in old files."""

    transport: str = "messages"
    """What carries data inside a node: "messages" of MPI (in old files, too), or "memory" that its
    ranks share."""

    @property
    def is_here(self) -> bool:
        """Whether this machine has this fingerprint; library, layout and network do not count.

        The transport inside a node counts if COLLWISE_NODE names one.
        """
        lab = os.environ.get(LAB, "")
        inside = chosen_transport() or self.transport
        here = local_fingerprint(self.mpi_library, self.layout, lab, transport=inside)
        return not self.differences(here)

    def differences(self, other: "Fingerprint") -> list[str]:
        """One line for each field that differs: this fingerprint's value, then the other's.

        The networks differ only if both fingerprints name one.
        """
        return [
            f"{label}: {mine!r} there, {theirs!r} here"
            for name, label in LABELS.items()
            if (mine := getattr(self, name)) != (theirs := getattr(other, name))
            and (name != "network" or (mine and theirs))
        ]


LABELS = {
    "cpu_model": "processor",
    "architecture": "architecture",
    "cores_per_node": "cores per node",
    "operating_system": "operating system",
    "mpi_library": "MPI library",
    "layout": "layout of the ranks",
    "emulated": "emulated network",
    "network": "network",
    "transport": "transport inside a node",
}


def local_fingerprint(
    mpi_library: str,
    layout: Layout,
    emulated: str = "",
    network: str = "",
    transport: str = "messages",
) -> Fingerprint:
    """The fingerprint of this node; the arguments are the fields with the same names."""
    return Fingerprint(
        cpu_model=cpu_model(),
        architecture=platform.machine(),
        cores_per_node=os.cpu_count() or 1,
        operating_system=platform.system(),
        mpi_library=mpi_library,
        layout=layout,
        emulated=emulated,
        network=network,
        transport=transport,
    )
