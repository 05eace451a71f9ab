"""The MPI world that this process is in: loaded with clear errors, checked, and described."""

import logging
import os
import sys
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple, TypeAlias

from collwise.errors import InvalidArgument, NoMPI
from collwise.measure.clustering import numbered
from collwise.model.placement import Placement
from collwise.profiles.fingerprint import Fingerprint, Layout, local_fingerprint
from collwise.profiles.records import Provenance, local_provenance, ranks_per_node_of
from collwise.profiles.store import transport_of
from collwise.system import formatting
from collwise.system.host import (
    LAB,
    affinity,
    chosen_transport,
    core_limit,
    network,
)
from collwise.system.launcher import INSTALL, launched

try:
    from mpi4py import MPI
except (ImportError, RuntimeError) as problem:  # mpi4py without an MPI library raises RuntimeError
    raise NoMPI(
        "running on MPI", f"mpi4py found no MPI library ({str(problem).splitlines()[0]})", INSTALL
    ) from None
if not MPI.Is_initialized() or MPI.Is_finalized():  # a session alone has no COMM_SELF
    seen = "MPI_Init was not called, or MPI has ended; a session is too little"
    remedy = "call MPI.Init() before the first use of collwise.Comm; sessions may be there, too"
    raise InvalidArgument("a communicator of collwise's", seen, remedy)


log = logging.getLogger("collwise")

Communicator: TypeAlias = MPI.Intracomm
"""The type of communicators, for modules that pass them on and do not import mpi4py."""


class World(NamedTuple):
    """The MPI library, and where a communicator's ranks are."""

    library: str
    """The MPI library's name and version."""
    standard: str
    thread_multiple: bool
    hosts: tuple[str, ...]
    """Processor names in rank order, as the communicator's ranks report them."""
    cores: int
    """How many cores the ranks of the most oversubscribed node share."""
    emulated: str = ""
    """The network that `collwise lab` emulates on one machine; empty for a real network."""
    engine: str = ""
    """Which engine executes plans on rank 0."""
    nodes: tuple[int, ...] = ()
    """Each rank's node number: ranks of one node share memory and a processor name."""
    level_placement: Placement | None = None
    """Where the ranks are in the levels of a profile; None until that is known."""
    transport: str = "messages"
    """What carries data inside nodes, if they have several ranks: "memory" that they share, or
    "messages" of MPI."""

    @property
    def sharing(self) -> tuple[int, ...]:
        """Each rank's node number if shared memory carries data inside nodes; otherwise empty."""
        alone = len(set(self.nodes)) == len(self.nodes)
        return () if alone or self.transport == "messages" else self.nodes

    @property
    def layout(self) -> Layout:
        """Whether the ranks' processor names are equal ("one node") or not ("several nodes")."""
        return "one node" if len(set(self.hosts)) == 1 else "several nodes"

    @property
    def ranks_per_node(self) -> str:
        """Hosts x ranks on each: "2x8" is 2 hosts of 8 ranks, "1x8 1x4" one of 8 and one of 4."""
        return ranks_per_node_of(Counter(self.hosts).values())

    @property
    def oversubscribed(self) -> bool:
        """Whether a node has more ranks than cores that they may use.

        Emulated hosts share the cores of the machine they are on.
        """
        most = len(self.hosts) if self.emulated else max(Counter(self.hosts).values())
        return most > self.cores

    @property
    def crowding(self) -> tuple[str, ...]:
        """One line, which warns that ranks share cores; empty unless `oversubscribed`."""
        cores = formatting.count(self.cores, "core")
        line = f"note     {len(self.hosts)} ranks share {cores}: expect noise"
        return (line,) * self.oversubscribed

    @property
    def within_memory(self) -> bool:
        """Whether all ranks are on one node, and `transport` is "memory"."""
        return bool(self.sharing) and len(set(self.sharing)) == 1

    def part(self, ranks: Sequence[int]) -> "World":
        """The world of a communicator that has only `ranks` of the ranks."""
        return self._replace(
            hosts=tuple(self.hosts[rank] for rank in ranks),
            nodes=tuple(self.nodes[rank] for rank in ranks),
            level_placement=self.level_placement and self.level_placement.part(ranks),
        )

    def fingerprint(self) -> Fingerprint:
        """What identifies this machine in the profiles that are measured on it."""
        apart = self.layout == "several nodes" and not self.emulated
        known = network(MPI.Get_library_version()) if apart else ""
        where = self.library, self.layout, self.emulated, known
        return local_fingerprint(*where, transport=self.transport)

    def provenance(self, **about: Any) -> Provenance:
        """How and where measurements in this world are made.   about: further fields."""
        import mpi4py

        return local_provenance(
            hosts=dict(Counter(self.hosts)),
            mpi4py=mpi4py.__version__,
            command=" ".join(sys.argv[1:]),
            usable_cores=self.cores,
            engine=self.engine,
            notes=(f"emulated network: {self.emulated}",) * bool(self.emulated)
            + ("shared memory: the same buffers again and again",) * bool(self.sharing),
            **about,
        )


@cache
def library_line() -> str:
    """The MPI library's name and version, such as "MPICH 5.0.2"."""
    name, version = MPI.get_vendor()
    return f"{name} {'.'.join(map(str, version))}"


def describe(comm: MPI.Intracomm, transport: str | None = None, profile: object = None) -> World:
    """Describe MPI, and tell the compiled engine if ranks share cores.  Collective over `comm`.

    transport: what carries data inside nodes; None for COLLWISE_NODE's, else for the one that the
    named profile was measured with (`profile`, as `transport_of` takes it), else for memory.  All
    ranks use rank 0's, but messages if some ranks of a node cannot share memory.   Raises
    UnknownName on all ranks if the environment of one rank names an unknown engine, or if rank 0's
    transport is unknown.
    """
    from collwise.mpi.engine.loading import COMPILED, SERVING
    from collwise.mpi.engine.node_transport import why_no_memory
    from collwise.mpi.runtime.agreement import gathered, on_root

    def here() -> tuple[tuple[str, frozenset[int], int], int]:
        if SERVING.wrong is not None:
            raise SERVING.wrong
        return (MPI.Get_processor_name(), affinity(), core_limit()), MPI.Query_thread()

    places, levels = zip(*gathered(comm, here), strict=True)
    emulated, engine, chosen = on_root(
        comm,
        lambda: (
            os.environ.get(LAB, ""),
            SERVING.name,
            chosen_transport(transport) or transport_of(profile),
        ),
    )
    by_node: dict[str, list[tuple[frozenset[int], int]]] = {}
    for host, mask, limit in places:  # emulated hosts are one node
        by_node.setdefault("" if emulated else host, []).append((mask, limit))
    most_crowded = max(by_node.values(), key=lambda ranks: len(ranks) / cores_together(ranks))
    hosts = tuple(host for host, *_ in places)
    nodes = _nodes(comm, hosts)
    carrier = chosen or "memory"
    if carrier == "memory" and len(set(nodes)) < len(nodes) and (why := why_no_memory(comm, nodes)):
        carrier = "messages"
        log.info("messages inside the node are MPI's: %s", why)
    world = World(
        library=library_line(),
        standard="MPI {}.{}".format(*MPI.Get_version()),
        thread_multiple=min(levels) >= MPI.THREAD_MULTIPLE,
        hosts=hosts,
        cores=cores_together(most_crowded),
        emulated=emulated,
        engine=engine,
        nodes=nodes,
        transport=carrier,
    )
    if world.oversubscribed and COMPILED is not None:
        COMPILED.share_cores()
    return world


def _nodes(comm: MPI.Intracomm, hosts: Sequence[str]) -> tuple[int, ...]:
    """Each rank's node number; nodes are numbered in the order of their first ranks."""
    if len(set(hosts)) == 1:
        return (0,) * len(hosts)
    sharing = comm.Split_type(MPI.COMM_TYPE_SHARED)
    first = sharing.bcast(comm.Get_rank())
    sharing.Free()
    return tuple(numbered(list(zip(comm.allgather(first), hosts, strict=True))))


def cores_together(ranks: Sequence[tuple[frozenset[int], int]]) -> int:
    """How many cores the ranks of a node share: the union of their masks, up to the limit.

    ranks: each rank's affinity mask, and its container's limit of cores.
    """
    every = frozenset[int]().union(*(mask for mask, _ in ranks))
    return min(len(every) or os.cpu_count() or 1, *(limit for _, limit in ranks))


def world() -> MPI.Intracomm:
    """COMM_WORLD, if it is the world that the launcher meant; raises NoMPI if it is not.

    Under a launcher of another MPI every rank is in a world of its own, and all of them would do
    rank 0's work.
    """
    if (problem := _alone()) is not None:
        raise problem
    return MPI.COMM_WORLD


def _alone() -> NoMPI | None:
    """The error if each rank that the launcher has started is in a world of its own."""
    launch = launched()
    if launch is None or launch.size == 1 or MPI.COMM_WORLD.Get_size() > 1:
        return None
    remedy = "use the mpiexec of that library (`collwise doctor` shows which), or install the"
    remedy += " launcher's library"
    if launch.launcher == "srun":
        kind = "pmix" if MPI.get_vendor()[0] == "Open MPI" else "pmi2"
        remedy = f"start them by `srun --mpi={kind}`: MPICH and Intel MPI need pmi2, Open MPI needs"
        remedy += " pmix (`srun --mpi=list` says what this Slurm has)"
    return NoMPI(
        f"{launch.size} ranks, started by {launch.launcher}",
        f"mpi4py runs on {library_line()}, in which each of them is alone",
        remedy,
    )


@cache
def warn_if_alone() -> None:
    """Warn, once and on one rank, if each rank is in a world of its own, which plans nothing."""
    launch = launched()
    if launch is not None and launch.rank == 0 and (problem := _alone()) is not None:
        log.warning("%s", problem)
