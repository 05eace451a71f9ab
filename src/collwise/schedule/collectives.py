"""The collectives: what each one is, as one table.  Everything that depends on it is derived.

A new collective is one entry here and one folder of algorithms.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from collwise.errors import UnknownName


@dataclass(frozen=True, kw_only=True)
class Collective:
    """What one collective is.

    name: as in the names of its algorithms.   aliases: other names that users may write.
    methods: the methods of an MPI communicator that it serves, the most general first; each has a
    persistent form, METHOD_init.   rooted: whether one rank, the root, is different from all
    others.   combines: whether everybody's vectors are combined with an operator.   has_sources:
    whether only some ranks, the sources, have data, and each as much as it likes.
    """

    name: str
    aliases: tuple[str, ...] = ()
    methods: tuple[str, ...]
    rooted: bool = False
    combines: bool = False
    has_sources: bool = False

    def has_output(self, rank: int, root: int) -> bool:
        """Whether a rank gets a result."""
        return not (self.rooted and self.combines) or rank == root


COLLECTIVES: Mapping[str, Collective] = MappingProxyType(
    {
        collective.name: collective
        for collective in (
            Collective(name="broadcast", methods=("Bcast",), rooted=True),
            Collective(name="reduce", methods=("Reduce",), rooted=True, combines=True),
            Collective(name="allreduce", methods=("Allreduce",), combines=True),
            Collective(
                name="s_to_p",
                aliases=("allgatherv",),
                methods=("Allgatherv", "Allgather"),
                has_sources=True,
            ),
        )
    }
)
"""Every collective by its name."""

_NAMES = {
    alias: collective.name
    for collective in COLLECTIVES.values()
    for alias in (collective.name, *collective.aliases)
}


def find_collective(name: str) -> Collective:
    """A collective by its name or an alias; raises UnknownName."""
    if not isinstance(name, str) or name not in _NAMES:
        raise UnknownName.of("collective", name, _NAMES)
    return COLLECTIVES[_NAMES[name]]
