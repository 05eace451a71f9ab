"""Messages inside a node: through memory that its ranks share, if all ranks of the node can."""

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from mpi4py import MPI

from collwise.mpi.engine.loading import COMPILED, SERVING
from collwise.mpi.runtime.node_memory import map_together

if TYPE_CHECKING:
    from collwise.mpi.engine._engine import Node

log = logging.getLogger("collwise")

MOST_RANKS = 256
"""The most ranks of a node that share memory, whose size grows with the square of the ranks."""
MOST_BYTES = 1 << 30
"""The most bytes of a collective in shared memory.  Some MPI libraries cannot pack more at once."""


class NodeTransport(NamedTuple):
    """The shared memory that carries messages inside this rank's node, on one communicator.

    The memory is divided into lanes.  All blocking calls use one lane.  A request gets a lane of
    its own if one is free; otherwise MPI carries its messages.   ranks: a map from the node's
    ranks in the communicator to their numbers in the node.   node: the C object.
    """

    ranks: Mapping[int, int]
    node: "Node"


def why_no_memory() -> str:
    """Why this process could not share memory with others of its node; empty if it could."""
    able = f"the engine is Python's ({SERVING.why})" if COMPILED is None else ""
    problems = map_together(MPI.COMM_SELF, (0,), {0: 0}, 1, writable=True, able=able).problems
    return problems.get(0, "")


def node_transport(comm: MPI.Intracomm, nodes: Sequence[int]) -> NodeTransport | None:
    """The shared memory of this rank's node; None on all ranks of a node without such memory.

    Collective.   nodes: the number of each rank's node; empty if none shall share memory.
    """
    members: dict[int, list[int]] = {}
    for rank, node in enumerate(nodes):
        members.setdefault(node, []).append(rank)
    sizes = [len(ranks) for ranks in members.values() if 1 < len(ranks) <= MOST_RANKS]
    if not sizes:
        return None
    rank = comm.Get_rank()
    here = members[nodes[rank]]
    able = f"rank {rank} has the engine in Python ({SERVING.why})" if COMPILED is None else ""
    alone = not 1 < len(here) <= MOST_RANKS
    nbytes = 1 if COMPILED is None or alone else COMPILED.node_nbytes(len(here))
    makers = {node: ranks[0] for node, ranks in members.items()}
    mapped = map_together(comm, nodes, makers, nbytes, writable=True, able=able)
    if problem := mapped.problems.get(nodes[rank]):
        log.info("messages inside the node are MPI's: %s", problem)
    if COMPILED is None or mapped.writers is None or alone:
        return None
    ranks = {one: n for n, one in enumerate(here)}
    return NodeTransport(ranks, COMPILED.Node(mapped.writers, len(here), ranks[rank]))
