"""What a topology is: nodes, directed links between them, one route for each pair of ranks."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from math import prod

import numpy as np

from collwise.errors import InvalidArgument
from collwise.system.integers import checked_integer

MAX_NODES = 1 << 31
"""The most nodes of a topology, one more than MPI can number."""


class Topology(ABC):
    """Nodes, directed links, and a fixed route from each node to every other node.

    Ranks are nodes, except in `Embedded`.  Links have numbers (ids), so that a simulator can keep
    one clock for each in a list.  Topologies never change, and equal ones have equal hashes.
    """

    @property
    @abstractmethod
    def kind(self) -> str:
        """The kind of topology: complete, hypercube, mesh or torus."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of ranks."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """(rows, columns) of the mesh that algorithms assume; ranks fill it row by row."""

    @property
    @abstractmethod
    def links(self) -> int:
        """The number of link ids, from 0 on; at the edges of a mesh some ids have no link."""

    @abstractmethod
    def route(self, source: int, target: int) -> tuple[int, ...]:
        """The links from one rank to another in the order in which a message takes them.

        Returns () if source == target.   Raises InvalidArgument for a rank out of range.
        """

    @abstractmethod
    def ends(self, link: int) -> tuple[int, int]:
        """The nodes (from, to) of a link.  Raises InvalidArgument for an id without a link."""

    def distance(self, source: int, target: int) -> int:
        """The number of links from one rank to another.

        Raises InvalidArgument for a rank out of range.
        """
        return len(self.route(source, target))

    @abstractmethod
    def describe(self) -> str:
        """The topology in a few words."""

    def _check(self, source: int, target: int) -> None:
        integers = _is_integer(source) and _is_integer(target)
        if not (integers and 0 <= source < self.size and 0 <= target < self.size):
            seen = f"there are {self.size} ({self.describe()})"
            remedy = f"give ranks from 0 to {self.size - 1}"
            raise InvalidArgument(f"a route from rank {source} to rank {target}", seen, remedy)

    def _check_link(self, link: int) -> None:
        if not (_is_integer(link) and 0 <= link < self.links):
            raise self._no_link(link)

    def _no_link(self, link: int) -> InvalidArgument:
        seen = f"a {self.describe()} has no such link"
        return InvalidArgument(f"the ends of link {link}", seen, "give a link of one of its routes")


def _is_integer(value: object) -> bool:
    return isinstance(value, int | np.integer)


def checked_topology(topology: object, ranks: int, asked: str) -> Topology:
    """Return `topology` if it is a Topology of `ranks` ranks.

    asked: what the topology is for, in the error.   Raises InvalidArgument otherwise.
    """
    if not isinstance(topology, Topology):
        remedy = "give one of collwise.topology, such as topology.parse('mesh:16x16')"
        raise InvalidArgument(asked, f"topology = {topology!r}", remedy)
    if topology.size != ranks:
        seen = f"there are {ranks} ranks, and a {topology.describe()} has {topology.size} nodes"
        raise InvalidArgument(asked, seen, "give a topology with a node for every rank")
    return topology


def checked_sizes(kind: str, names: tuple[str, ...], sizes: Iterable[object]) -> tuple[int, ...]:
    """Return the sizes as integers.

    kind, names: words for the error.   Raises InvalidArgument for a size below 1, and for more than
    MAX_NODES nodes.
    """
    named = zip(names, sizes, strict=True)
    integers = tuple(checked_integer(size, f"a {kind}", name) for name, size in named)
    if (nodes := prod(integers)) > MAX_NODES:
        asked = f"a {kind} of {' × '.join(map(str, integers))}"
        raise InvalidArgument(asked, f"these are {nodes} nodes", f"give at most {MAX_NODES}")
    return integers
