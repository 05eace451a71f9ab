"""Tori of two and three dimensions with dimension-order routing, as in Cray's T3D."""

from dataclasses import dataclass
from functools import cached_property
from math import prod

from collwise.errors import InvalidArgument
from collwise.model.topology.base import Topology, checked_sizes


@dataclass(frozen=True, init=False, repr=False)
class Torus(Topology):
    """Rings in two or three dimensions: Torus(rows, columns) or Torus(x, y, z).

    sizes: 2 or 3 numbers from 1, with at most 2^31 nodes.   Nodes are numbered so that the last
    coordinate runs fastest.   With k dimensions, counted from the last, link 2k·node + 2·dimension
    leads to the next node of that ring, and + 1 to the previous one.   A ring of one node has no
    links, and one of two nodes has one link each way: the other ids have none.

    A message goes round the ring of the last dimension first, as XY does on a mesh, then that of
    the one before; in each the shorter way, and towards the next node where both are equal.
    Virtual channels, which keep real tori free of deadlock, are not modelled.

    Ranks of a torus of x × y × z are seen as the mesh nearer to a square, x × (y·z) or (x·y) × z.
    Raises InvalidArgument for a size out of range.   Source: [ScottThorson1994] (the T3D).
    """

    sizes: tuple[int, ...]
    kind = "torus"

    def __init__(self, *sizes: int) -> None:
        if len(sizes) not in (2, 3):
            seen = f"it was given {len(sizes)} sizes"
            raise InvalidArgument("a torus", seen, "give 2 or 3, such as Torus(4, 4, 8)")
        names = ("a size",) * len(sizes)
        object.__setattr__(self, "sizes", checked_sizes("torus", names, sizes))

    def __repr__(self) -> str:
        return f"Torus({', '.join(map(str, self.sizes))})"

    @cached_property
    def size(self) -> int:  # noqa: D102
        return prod(self.sizes)

    @cached_property
    def shape(self) -> tuple[int, int]:  # noqa: D102
        first, *middle, last = self.sizes
        between = prod(middle)
        shapes = (first, between * last), (first * between, last)
        return min(shapes, key=lambda shape: abs(shape[0] - shape[1]))

    @cached_property
    def links(self) -> int:  # noqa: D102
        return 2 * len(self.sizes) * self.size

    def route(self, source: int, target: int) -> tuple[int, ...]:  # noqa: D102
        self._check(source, target)
        ways, links = 2 * len(self.sizes), []
        node, stride = source, 1
        for dimension, size in enumerate(reversed(self.sizes)):
            at = node // stride % size
            forwards = (target // stride - at) % size
            step = 1 if 2 * forwards <= size else -1
            for _ in range(forwards if step == 1 else size - forwards):
                links.append(node * ways + 2 * dimension + (step == -1))
                after = (at + step) % size
                node += (after - at) * stride
                at = after
            stride *= size
        return tuple(links)

    def ends(self, link: int) -> tuple[int, int]:  # noqa: D102
        self._check_link(link)
        node, way = divmod(link, 2 * len(self.sizes))
        dimension, back = divmod(way, 2)
        inner = len(self.sizes) - dimension
        size, stride = self.sizes[inner - 1], prod(self.sizes[inner:])
        if size == 1 or (size == 2 and back):
            raise self._no_link(link)
        at = node // stride % size
        return node, node + ((at + 1 - 2 * back) % size - at) * stride

    def describe(self) -> str:  # noqa: D102
        return f"torus of {' × '.join(map(str, self.sizes))}"
