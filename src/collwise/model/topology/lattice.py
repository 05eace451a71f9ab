"""Meshes, as on Intel's Delta and Paragon, and tori, as in Cray's T3D: lattices of nodes.

Nodes are numbered so that the last coordinate runs fastest.  Let k be the number of dimensions,
which are counted from the last one, 0.  Link 2k·node + 2·dimension leads to the next node along the
dimension, and link 2k·node + 2·dimension + 1 to the previous node.  If there is no such node, the
id has no link.  A message goes along the last dimension first, and along the first one last.
"""

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import ClassVar

from collwise.errors import InvalidArgument
from collwise.model.topology.base import Topology, checked_sizes


class Lattice(Topology):
    """Nodes in rows along each dimension; neighbours are linked both ways."""

    sizes: tuple[int, ...]
    wraps: ClassVar[bool]
    """Whether the last node along a dimension is linked with the first one."""

    @cached_property
    def size(self) -> int:  # noqa: D102
        return prod(self.sizes)

    @cached_property
    def links(self) -> int:  # noqa: D102
        return 2 * len(self.sizes) * self.size

    def route(self, source: int, target: int) -> tuple[int, ...]:  # noqa: D102
        self._check(source, target)
        ways, links = 2 * len(self.sizes), list[int]()
        node, stride = int(source), 1
        for dimension, size in enumerate(reversed(self.sizes)):
            at, to = node // stride % size, int(target) // stride % size
            forwards = to - at
            if self.wraps and not -size < 2 * forwards <= size:
                forwards += size if forwards < 0 else -size
            step, way = (1, 2 * dimension) if forwards > 0 else (-1, 2 * dimension + 1)
            first, hop = ways * node + way, ways * step * stride
            inside = min(forwards * step, size - at if step > 0 else at + 1)  # up to the last node
            links += range(first, first + inside * hop, hop)
            links += range(
                first + (inside - size) * hop, first + (forwards * step - size) * hop, hop
            )
            node, stride = node + (to - at) * stride, stride * size
        return tuple(links)

    def ends(self, link: int) -> tuple[int, int]:  # noqa: D102
        self._check_link(link)
        node, way = divmod(int(link), 2 * len(self.sizes))
        dimension, back = divmod(way, 2)
        inner = len(self.sizes) - dimension
        size, stride = self.sizes[inner - 1], prod(self.sizes[inner:])
        at = node // stride % size
        after = at + 1 - 2 * back
        if size <= 1 + back if self.wraps else not 0 <= after < size:
            raise self._no_link(link)
        return node, node + (after % size - at) * stride

    def describe(self) -> str:  # noqa: D102
        return f"{self.kind} of {' × '.join(map(str, self.sizes))}"


@dataclass(frozen=True)
class Mesh(Lattice):
    """rows × columns nodes, numbered row by row, with XY routing: along the row, then the column.

    rows, columns: from 1, with at most 2^31 nodes.   Links 4·node + 0, 1, 2, 3 lead to the
    next column, the previous column, the next row, the previous row.
    Raises InvalidArgument for a size out of range.
    """

    rows: int
    columns: int
    kind = "mesh"
    wraps = False

    def __post_init__(self) -> None:
        names = "rows", "columns"
        sizes = checked_sizes("mesh", names, (self.rows, self.columns))
        for name, size in zip(names, sizes, strict=True):
            object.__setattr__(self, name, size)  # as Python's own integers

    @property
    def sizes(self) -> tuple[int, int]:  # type: ignore[override]  # noqa: D102
        return self.rows, self.columns

    shape = sizes


@dataclass(frozen=True, init=False, repr=False)
class Torus(Lattice):
    """Rings in two or three dimensions: Torus(rows, columns) or Torus(x, y, z).

    sizes: 2 or 3 numbers from 1, with at most 2^31 nodes.   A ring of one node has no links, and
    a ring of two nodes has one link each way.   A message takes the shorter way round each ring; if
    both ways are equal, it goes towards the next node.  Virtual channels, which keep real tori free
    of deadlock, are not modelled.

    Algorithms see the ranks of a torus of x × y × z as the mesh x × (y·z) or (x·y) × z, whichever
    is nearer to a square.  Raises InvalidArgument for a size out of range.   Source:
    [ScottThorson1994] (the T3D).
    """

    sizes: tuple[int, ...]
    kind = "torus"
    wraps = True

    def __init__(self, *sizes: int) -> None:
        if len(sizes) not in (2, 3):
            seen = f"it was given {len(sizes)} sizes"
            raise InvalidArgument("a torus", seen, "give 2 or 3, such as Torus(4, 4, 8)")
        names = ("a size",) * len(sizes)
        object.__setattr__(self, "sizes", checked_sizes("torus", names, sizes))

    def __repr__(self) -> str:
        return f"Torus({', '.join(map(str, self.sizes))})"

    @cached_property
    def shape(self) -> tuple[int, int]:  # noqa: D102
        first, *middle, last = self.sizes
        between = prod(middle)
        shapes = (first, between * last), (first * between, last)
        return min(shapes, key=lambda shape: abs(shape[0] - shape[1]))
