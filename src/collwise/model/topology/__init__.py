"""Networks: which nodes are linked, and the route of a message over directed links.

    topology.Mesh(16, 16).route(0, 18)           # link ids, first along the row, then the column
    topology.parse("torus:4x4x8").distance(0, 127)

Read in this order: `base` (what a topology is), the kinds (`complete`, `hypercube`, `lattice` with
meshes and tori), `embedded` (ranks placed on some nodes), `numbering` (ranks as a mesh, and the
snake through it), `notation` (topologies as text).

A new kind needs its word in `FORMS` of `notation` and an explanation of `--topology` in
`cli/machine_options.py`; `figures/mesh_diagram.py` says whether it can be drawn.  Tests compare
routes with breadth-first search (`SMALL` in `tests/model/test_topology.py`).
"""

from collwise.model.topology.base import Topology
from collwise.model.topology.complete import Complete
from collwise.model.topology.embedded import Embedded
from collwise.model.topology.hypercube import Hypercube
from collwise.model.topology.lattice import Mesh, Torus
from collwise.model.topology.notation import parse
from collwise.model.topology.numbering import near_square, snake, snake_position, snake_rank

__all__ = [
    "Complete",
    "Embedded",
    "Hypercube",
    "Mesh",
    "Topology",
    "Torus",
    "near_square",
    "parse",
    "snake",
    "snake_position",
    "snake_rank",
]
