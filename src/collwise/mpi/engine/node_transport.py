"""Messages inside a node: through memory that its ranks share, if all ranks of the node can."""

import logging
import mmap
import time
from collections import Counter
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

_LINES, _ROUNDS, _TIMED = 128, 1000, 100
"""Bytes of a pair's two cache lines; rounds, and how many are timed together: the least counts."""


class NodeTransport(NamedTuple):
    """The shared memory that carries messages inside this rank's node, on one communicator.

    The memory is divided into lanes.  All blocking calls use one lane.  A request gets a lane of
    its own if one is free; otherwise MPI carries its messages.   ranks: a map from the node's
    ranks in the communicator to their numbers in the node.   node: the C object.
    """

    ranks: Mapping[int, int]
    node: "Node"


def why_no_memory(comm: MPI.Intracomm, nodes: Sequence[int]) -> str:
    """Why the ranks of some node could not share memory; empty if all could.  Collective.

    nodes: the number of each rank's node.
    """
    if max(Counter(nodes).values()) > MOST_RANKS:
        return f"a node has more than {MOST_RANKS} ranks"
    makers = {node: nodes.index(node) for node in nodes}
    mapped = map_together(comm, nodes, makers, 1, writable=True, able=_unable(comm))
    return next(iter(mapped.problems.values()), "")


def _unable(comm: MPI.Intracomm) -> str:
    why = f"rank {comm.Get_rank()} has the engine in Python ({SERVING.why})"
    return why if COMPILED is None else ""


def node_transport(comm: MPI.Intracomm, nodes: Sequence[int]) -> NodeTransport | None:
    """The shared memory of this rank's node; None on all ranks of a node without such memory.

    Collective.   nodes: the number of each rank's node; empty if none shall share memory.
    """
    members: dict[int, list[int]] = {}
    for rank, node in enumerate(nodes):
        members.setdefault(node, []).append(rank)
    if len(members) == len(nodes):
        return None
    rank = comm.Get_rank()
    here = members[nodes[rank]]
    alone = len(here) == 1
    nbytes = 1 if COMPILED is None or alone else COMPILED.node_nbytes(len(here))
    makers = {node: ranks[0] for node, ranks in members.items()}

    def end(memory: mmap.mmap) -> NodeTransport | None:
        ranks = {one: n for n, one in enumerate(here)}
        node = None if COMPILED is None or alone else COMPILED.Node(memory, len(here), ranks[rank])
        return node and NodeTransport(ranks, node)

    able = _unable(comm)
    mapped = map_together(comm, nodes, makers, nbytes, writable=True, able=able, use=end)
    if problem := mapped.problems.get(nodes[rank]):
        log.info("messages inside the node are MPI's: %s", problem)
    made: NodeTransport | None = mapped.used
    return made


def line_times_s(comm: MPI.Intracomm, nodes: Sequence[int]) -> tuple[float, ...]:
    """Seconds for a cache line from a rank to the next one of its node and back.  Collective.

    The times are those of each rank but the last of each node, in the order of ranks; a virtual
    machine that moves its cores changes them.  Empty without the compiled engine or shared memory.
    nodes: each rank's node, or () for none.  Ranks may not share cores: they wait for each other.
    """
    if len(set(nodes)) == len(nodes):
        return ()
    rank, node = comm.Get_rank(), nodes[comm.Get_rank()]
    here = [one for one, other in enumerate(nodes) if other == node]
    place, makers = here.index(rank), {one: nodes.index(one) for one in nodes}
    mapped = map_together(
        comm, nodes, makers, len(nodes) * _LINES, writable=True, able=_unable(comm)
    )
    taken_s: list[float] = []
    for pair in (place - place % 2, place - 1 + place % 2):  # the first at even places, then at odd
        comm.Barrier()
        if COMPILED is None or mapped.writers is None or pair < 0 or pair + 1 >= len(here):
            continue
        memory = memoryview(mapped.writers)[pair * _LINES : (pair + 1) * _LINES]
        for first in range(1, _ROUNDS, _TIMED):
            begin = time.perf_counter()
            if not COMPILED.bounce(memory, pair == place, first, first + _TIMED):
                break
            taken_s += [(time.perf_counter() - begin) / _TIMED] * (pair == place)
    return tuple(min(times_s) for times_s in comm.allgather(taken_s) if times_s)
