"""Ranks on some nodes of a topology, in any order."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from collwise.errors import InvalidArgument, shown
from collwise.model.kept_hash import KeptHash
from collwise.model.topology.base import Topology
from collwise.model.topology.numbering import near_square
from collwise.system.integers import Shape, checked_integer, checked_shape


@dataclass(frozen=True, init=False, repr=False)
class Embedded(KeptHash, Topology):
    """A topology with rank i on node places[i]; nodes without a rank still forward messages.

    topology: the nodes and links.   places: distinct nodes, one for each rank.   shape: (rows,
    columns) of the mesh that algorithms assume; by default the topology's shape if every node has a
    rank, and otherwise the mesh nearest to a square.

    Routes and distances take ranks.  Links are those of `topology`, so `ends` returns nodes, not
    ranks.   Raises InvalidArgument for no places, a node out of range or used twice, or a shape
    with another number of ranks.

    >>> from collwise.model.topology import Hypercube
    >>> ring = Embedded(Hypercube(3), [0, 1, 3, 2, 6, 4])
    >>> [ring.distance(rank, (rank + 1) % 6) for rank in range(6)]
    [1, 1, 1, 1, 1, 1]
    """

    topology: Topology
    places: tuple[int, ...]
    mesh: Shape

    def __init__(
        self, topology: Topology, places: Iterable[int], shape: Shape | None = None
    ) -> None:
        if not isinstance(topology, Topology):
            remedy = "give one of collwise.topology, such as topology.parse('mesh:16x16')"
            raise InvalidArgument("ranks on a topology", f"topology = {shown(topology)}", remedy)
        asked = f"ranks on a {topology.describe()}"
        if not isinstance(places, Iterable):
            raise InvalidArgument(asked, f"places = {places!r}", "give a node for each rank")
        nodes = tuple(checked_integer(node, asked, "node", 0, topology.size - 1) for node in places)
        if not nodes:
            raise InvalidArgument(asked, "no places are given", "give a node for each rank")
        rank_on: dict[int, int] = {}
        for rank, node in enumerate(nodes):
            if (other := rank_on.setdefault(node, rank)) != rank:
                seen = f"ranks {other} and {rank} are both on node {node}"
                raise InvalidArgument(asked, seen, "give each rank a node of its own")
        object.__setattr__(self, "topology", topology)
        object.__setattr__(self, "places", nodes)
        if shape is None:
            shape = topology.shape if self.size == topology.size else near_square(self.size)
        asked = f"a {self.describe()}, seen as a mesh"
        rows, columns = checked_shape(shape, asked)
        if rows * columns != self.size:
            seen = f"a mesh of {rows} × {columns} has {rows * columns}"
            remedy = f"give rows and columns whose product is {self.size}"
            raise InvalidArgument(asked, seen, remedy)
        object.__setattr__(self, "mesh", (rows, columns))

    def __repr__(self) -> str:
        return f"Embedded({self.topology!r}, {self.places!r}, {self.shape!r})"

    @property
    def kind(self) -> str:  # noqa: D102
        return self.topology.kind

    @cached_property
    def size(self) -> int:  # noqa: D102
        return len(self.places)

    @property
    def shape(self) -> Shape:  # noqa: D102
        return self.mesh

    @property
    def links(self) -> int:  # noqa: D102
        return self.topology.links

    def route(self, source: int, target: int) -> tuple[int, ...]:  # noqa: D102
        self._check(source, target)
        return self.topology.route(self.places[source], self.places[target])

    def ends(self, link: int) -> tuple[int, int]:  # noqa: D102
        return self.topology.ends(link)

    def describe(self) -> str:  # noqa: D102
        return f"{self.topology.describe()} with {self.size} embedded rank{'s' * (self.size > 1)}"
