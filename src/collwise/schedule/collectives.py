"""The table of collectives: their names and MPI methods, who has data and results, lower bounds.

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
"""A function from (machine, number of ranks, bytes) to a lower bound on the time.  The bytes
are one number for the vector, or a list with one number for each source."""
_EVERYWHERE = "on {ranks}"


@dataclass(frozen=True, kw_only=True)
class Collective:
    """A collective operation of MPI.

    name: its name in collwise; users may write the name of a method instead.
    methods: the MPI communicator methods for this collective, the most general first; each has a
    persistent form, METHOD_init.
    input: who has data at the start: the root, everyone (vectors of one length), or the sources, a
    subset of the ranks, each with its own number of bytes.
    output: who has a result at the end: the root, everyone (the whole result), or "own block":
    everyone, but rank r has only block r of p equal blocks.
    combines: whether the vectors of all ranks are combined with an operator.
    where: format of the text after "NAME of N bytes"; `Problem.__str__` fills it in.
    bound: gives a lower bound on the time of every schedule.   unsegmented_bound: gives a
    lower bound for schedules that cut no vector, block or contribution.
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
        """Whether the collective has a root."""
        return "root" in (self.input, self.output)

    @property
    def has_sources(self) -> bool:
        """Whether the data comes from sources, each with its own number of bytes."""
        return self.input == "sources"

    def unit(self, ranks: int, itemsize: int) -> int:
        """The number of bytes of which a problem's size must be a multiple.

        That is one element, or one element for each rank if every rank ends with its own block.
        """
        return ranks * itemsize if self.output == "own block" else itemsize

    def has_output(self, rank: int, root: int) -> bool:
        """Whether rank number `rank` has a result at the end, in a problem with this root."""
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
                where="from rank {root} to {ranks}",
                bound=bounds.broadcast,
                unsegmented_bound=bounds.broadcast_unsegmented,
            ),
            Collective(
                name="reduce",
                methods=("Reduce",),
                input="everyone",
                output="root",
                combines=True,
                where="from {ranks} to rank {root}",
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
                where="from {sources} to {ranks} ({rows} × {columns})",
                bound=bounds.allgatherv,
                unsegmented_bound=bounds.allgatherv_unsegmented,
            ),
        )
    }
)
"""Maps the name of each collective to the collective."""

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
"""Maps each argument that only some collectives take to the names of these collectives."""


def find_collective(name: str) -> Collective:
    """The collective with a name, alias or MPI method, such as s_to_p or MPI_Allgatherv.

    Case and the prefix MPI_ do not matter.  Raises UnknownName for a name that is not in the table.
    """
    known = _NAMES.get(_plain(name)) if isinstance(name, str) else None
    if known is None:
        raise UnknownName.of("collective", name, _NAMES)
    return COLLECTIVES[known]


@lru_cache(maxsize=64)
def kind_of(name: str) -> Collective:
    """The collective with a name, alias or MPI method, or a new one for an unknown name.

    The new one, for schedules written by hand, has no MPI methods and a broadcast's lower bounds.
    """
    known = COLLECTIVES.get(_NAMES.get(_plain(name), ""))
    return known or replace(COLLECTIVES["broadcast"], name=name, methods=(), where=_EVERYWHERE)


def _plain(name: str) -> str:
    return name.lower().replace("-", "_").removeprefix("mpi_")


def check_about(
    collectives: Sequence[str],
    arguments: Iterable[str],
    about: Mapping[str, tuple[str, ...]] = ABOUT,
    mark: str = "",
) -> None:
    """Raise InvalidArgument for an argument that none of the collectives takes.

    collectives: names of collectives.   arguments: names of the given arguments.   about: maps an
    argument to its collectives' names.   mark: prefix of the arguments in messages, such as --.
    """
    for name in arguments:
        if not set(about[name]) & set(collectives):
            raise InvalidArgument(
                f"{_joined_names(collectives)} with {mark}{name}",
                f"it is for {_joined_names(about[name])} only",
                f"leave out {mark}{name}",
            )


def _joined_names(names: Sequence[str]) -> str:
    """Names joined for a message, such as "reduce, allreduce and allgatherv"."""
    return " and ".join([", ".join(names[:-1])] * (len(names) > 1) + [*names[-1:]])
