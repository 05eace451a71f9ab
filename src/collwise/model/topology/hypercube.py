"""The binary hypercube with e-cube routing [DallySeitz1987]."""

from dataclasses import dataclass
from functools import cached_property

from collwise.model.topology.base import MAX_NODES, Topology
from collwise.system.integers import checked_integer


@dataclass(frozen=True)
class Hypercube(Topology):
    """2^dimension nodes; two are linked, both ways, if their numbers differ in one bit.

    dimension: d, from 1 to 31.   Link node·d + j leads from a node to the one that differs in bit
    j.   A route changes the bits that differ, from the lowest to the highest.   Algorithms see the
    ranks as a mesh of 2^⌊d/2⌋ × 2^⌈d/2⌉.   Raises InvalidArgument for a dimension out of range.
    """

    dimension: int
    kind = "hypercube"

    def __post_init__(self) -> None:
        most = MAX_NODES.bit_length() - 1
        dimension = checked_integer(self.dimension, "a hypercube", "dimension", 1, most)
        object.__setattr__(self, "dimension", dimension)

    @cached_property
    def size(self) -> int:  # noqa: D102
        return 1 << self.dimension

    @cached_property
    def shape(self) -> tuple[int, int]:  # noqa: D102
        low = self.dimension // 2
        return 1 << low, 1 << (self.dimension - low)

    @cached_property
    def links(self) -> int:  # noqa: D102
        return self.dimension << self.dimension

    def route(self, source: int, target: int) -> tuple[int, ...]:  # noqa: D102
        self._check(source, target)
        node, differ, links = int(source), int(source) ^ int(target), []
        for bit in range(differ.bit_length()):
            if differ >> bit & 1:
                links.append(node * self.dimension + bit)
                node ^= 1 << bit
        return tuple(links)

    def ends(self, link: int) -> tuple[int, int]:  # noqa: D102
        self._check_link(link)
        node, bit = divmod(link, self.dimension)
        return node, node ^ (1 << bit)

    def describe(self) -> str:  # noqa: D102
        return f"hypercube of dimension {self.dimension}"
