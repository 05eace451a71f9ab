"""Communicators with a topology: mpi4py's classes, with planned collectives."""

from mpi4py import MPI

from collwise.comm.communicator import Comm
from collwise.comm.family import inherits, stands_for


@stands_for(MPI.Cartcomm)
class Cartcomm(Comm, MPI.Cartcomm):
    """A Cartesian communicator; `Create_cart` makes it."""


@stands_for(MPI.Graphcomm)
class Graphcomm(Comm, MPI.Graphcomm):
    """A communicator with a graph; `Create_graph` makes it."""


@stands_for(MPI.Distgraphcomm)
class Distgraphcomm(Comm, MPI.Distgraphcomm):
    """A communicator with a distributed graph; `Create_dist_graph` makes it."""


inherits(Cartcomm, "Sub")
