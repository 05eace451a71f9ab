"""The collectives: what each one is, as one table from which everything else is derived.

CONTRIBUTING.md lists what a new collective needs besides its entry here.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from collwise.errors import InvalidArgument, UnknownName
from collwise.model import bounds
from collwise.model.bounds import Bound
from collwise.model.collective_names import ALIASES
from collwise.model.machine import Machine

LowerBound: TypeAlias = Callable[[Machine, int, Any], Bound]
"""Of a machine, a number of ranks, the bytes of the vector (or a list, those of each source)."""
_EVERYWHERE = "on {ranks} ranks"


@dataclass(frozen=True, kw_only=True)
class Collective:
    """What one collective is.

    name: as in the names of its algorithms; users may write that of a method instead.
    methods: the methods of an MPI communicator that it serves, the most general first; each has a
    persistent form, METHOD_init.
    input: who has data at the start: the root, everyone (vectors of one length), or the sources,
    some of the ranks, each with its own number of bytes.
    output: who has a result at the end: the root, everyone (all of the result), or everyone its
    own block (of p blocks of one length, rank r has block r).
    combines: whether the result is everyone's vectors combined with an operator, not their data.
    where: how a problem reads after "NAME of N bytes", with the names of `Problem`'s attributes.
    bound, unsegmented_bound: no schedule is faster; none that sends everything in one message is.
    """

    name: str
    methods: tuple[str, ...] = ()
    input: Literal["root", "everyone", "sources"] = "root"
    output: Literal["root", "everyone", "own block"] = "everyone"
    combines: bool = False
    where: str = _EVERYWHERE
    bound: LowerBound
    unsegmented_bound: LowerBound

    @property
    def rooted(self) -> bool:
        """Whether one rank, the root, is different from all others."""
        return "root" in (self.input, self.output)

    @property
    def has_sources(self) -> bool:
        """Whether the data comes from sources, each with its own number of bytes."""
        return self.input == "sources"

    def unit(self, ranks: int, itemsize: int) -> int:
        """The bytes of which a problem's nbytes is a multiple: an element, or one in each block."""
        return ranks * itemsize if self.output == "own block" else itemsize

    def has_output(self, rank: int, root: int) -> bool:
        """Whether a rank gets a result."""
        return self.output != "root" or rank == root


COLLECTIVES: Mapping[str, Collective] = MappingProxyType(
    {
        collective.name: collective
        for collective in (
            Collective(
                name="broadcast",
                methods=("Bcast",),
                input="root",
                output="everyone",
                where="from rank {root} to {ranks} ranks",
                bound=bounds.broadcast,
                unsegmented_bound=bounds.broadcast_unsegmented,
            ),
            Collective(
                name="reduce",
                methods=("Reduce",),
                input="everyone",
                output="root",
                combines=True,
                where="from {ranks} ranks to rank {root}",
                bound=bounds.reduce,
                unsegmented_bound=bounds.combining_unsegmented,
            ),
            Collective(
                name="allreduce",
                methods=("Allreduce",),
                input="everyone",
                output="everyone",
                combines=True,
                bound=bounds.allreduce,
                unsegmented_bound=bounds.combining_unsegmented,
            ),
            Collective(
                name="reduce_scatter_block",
                methods=("Reduce_scatter_block",),
                input="everyone",
                output="own block",
                combines=True,
                bound=bounds.reduce_scatter,
                unsegmented_bound=bounds.reduce_scatter_unsegmented,
            ),
            Collective(
                name="allgatherv",
                methods=("Allgatherv", "Allgather"),
                input="sources",
                output="everyone",
                where="from {sources} to {ranks} ranks ({rows} × {columns})",
                bound=bounds.allgatherv,
                unsegmented_bound=bounds.allgatherv_unsegmented,
            ),
        )
    }
)
"""Every collective by its name."""

_NAMES = {
    name.lower(): collective.name
    for collective in COLLECTIVES.values()
    for name in (collective.name, *collective.methods)
} | ALIASES

_COMBINING = tuple(c.name for c in COLLECTIVES.values() if c.combines)
_ROOTED = tuple(c.name for c in COLLECTIVES.values() if c.rooted)
_WITH_SOURCES = tuple(c.name for c in COLLECTIVES.values() if c.has_sources)

ABOUT: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "op": _COMBINING,
        "dtype": _COMBINING,
        "order": _COMBINING,
        "root": _ROOTED,
        "sources": _WITH_SOURCES,
        "shape": _WITH_SOURCES,
    }
)
"""For each argument that not all collectives have, the names of those that do."""


def find_collective(name: str) -> Collective:
    """A collective by its name or by that of its MPI method: allgatherv, s_to_p, MPI_Allgatherv.

    Raises UnknownName.
    """
    known = _NAMES.get(_plain(name)) if isinstance(name, str) else None
    if known is None:
        raise UnknownName.of("collective", name, _NAMES)
    return COLLECTIVES[known]


@lru_cache(maxsize=64)
def kind_of(name: str) -> Collective:
    """The collective of a schedule: the table's, by any of its names, or one without any methods.

    Schedules written by hand may solve something that the table does not have: a broadcast's bounds
    stand for theirs.
    """
    known = COLLECTIVES.get(_NAMES.get(_plain(name), ""))
    return known or replace(COLLECTIVES["broadcast"], name=name, methods=(), where=_EVERYWHERE)


def _plain(name: str) -> str:
    return name.lower().removeprefix("mpi_")


def check_about(
    collectives: Sequence[str],
    arguments: Iterable[str],
    about: Mapping[str, tuple[str, ...]] = ABOUT,
    mark: str = "",
) -> None:
    """Refuse arguments that none of the collectives has: InvalidArgument.

    arguments: the names of those that were given.   mark: how they are written, as in --op.
    """
    for name in arguments:
        if not set(about[name]) & set(collectives):
            raise InvalidArgument(
                f"{_listed(collectives)} with {mark}{name}",
                f"it is for {_listed(about[name])} only",
                f"leave out {mark}{name}",
            )


def _listed(names: Sequence[str]) -> str:
    """Such as "reduce, allreduce and allgatherv"."""
    return " and ".join([", ".join(names[:-1])] * (len(names) > 1) + [*names[-1:]])
