"""Messages inside a node: through memory that its ranks share, if all ranks of the node can."""

import logging
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from mpi4py import MPI

from collwise.errors import UnknownName
from collwise.mpi.engine.loading import COMPILED, SERVING
from collwise.mpi.runtime.node_memory import map_together

if TYPE_CHECKING:
    from collwise.mpi.engine._engine import Node

log = logging.getLogger("collwise")

ENVIRONMENT = "COLLWISE_NODE"
"""The environment variable that chooses; rank 0's counts."""
TRANSPORTS = ("messages", "memory")
"""MPI's messages, as between nodes, and memory that ranks share.  The first is the default."""
MOST_RANKS = 256
"""Of a node: rows of letters grow with the square of the ranks, to some 70 MB of addresses."""
MOST_BYTES = 1 << 30
"""Of a collective.  Beyond, some libraries cannot count what one rank packs, so MPI carries all."""


def chosen_transport(asked: str | None) -> str:
    """What a setting of `Comm` says, or else the environment.   Raises UnknownName."""
    word = os.environ.get(ENVIRONMENT, "") if asked is None else asked
    if word and word not in TRANSPORTS:
        raise UnknownName.of("transport inside a node", word, TRANSPORTS)
    return word or TRANSPORTS[0]


class Channel(NamedTuple):
    """What messages inside a node go through, of all blocking calls or of one request.

    ranks: the node's ranks, by their ranks in the communicator.   which: of the node's sets.
    """

    ranks: Mapping[int, int]
    node: "Node"
    which: int

    def give_back(self) -> None:
        """Let a later request have it, once all ranks of the node gave it back."""
        if self.which:
            self.node.give_back(self.which)


class NodeTransport:
    """Memory for the messages of one communicator inside this rank's node.

    blocking: the channel of blocking calls, which all ranks make in the same order.
    """

    def __init__(self, memory: object, ranks: Mapping[int, int], rank: int, sets: int) -> None:
        assert COMPILED is not None
        self._ranks = ranks
        self._node: Node = COMPILED.Node(memory, len(ranks), ranks[rank], sets)
        self.blocking = Channel(ranks, self._node, 0)

    def for_request(self, number: int) -> Channel | None:
        """The channel of a persistent request, alike on all ranks of the node; None: messages.

        number: of the request, which all ranks count alike.
        """
        which = self._node.choose(number)
        return Channel(self._ranks, self._node, which) if which else None


def why_no_memory() -> str:
    """Why this process could not share memory with others of its node; empty if it could."""
    able = f"the engine is Python's ({SERVING.why})" if COMPILED is None else ""
    problems = map_together(MPI.COMM_SELF, (0,), {0: 0}, 1, writable=True, able=able).problems
    return problems.get(0, "")


def node_transport(comm: MPI.Intracomm, nodes: Sequence[int]) -> NodeTransport | None:
    """The transport of this rank's node; None, on all its ranks, if MPI carries its messages.

    Collective.   nodes: each rank's.
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
    nbytes = sets = 1
    if COMPILED is not None and not alone:
        # One set: persistent requests send messages, as generated programs with them do not end.
        nbytes = COMPILED.node_nbytes(len(here), sets)
    makers = {node: ranks[0] for node, ranks in members.items()}
    mapped = map_together(comm, nodes, makers, nbytes, writable=True, able=able)
    if problem := mapped.problems.get(nodes[rank]):
        log.info("messages inside the node are MPI's: %s", problem)
    if mapped.writers is None or alone:
        return None
    return NodeTransport(mapped.writers, {one: n for n, one in enumerate(here)}, rank, sets)
