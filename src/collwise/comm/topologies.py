"""Communicators with a topology: mpi4py's classes, with planned collectives."""

from mpi4py import MPI

from collwise.comm.communicator import Comm
from collwise.comm.family import replaces_class, wrap_constructor


@replaces_class(MPI.Cartcomm)
class Cartcomm(Comm, MPI.Cartcomm):
    """A Cartesian communicator; `Create_cart` makes it."""


@replaces_class(MPI.Graphcomm)
class Graphcomm(Comm, MPI.Graphcomm):
    """A communicator with a graph; `Create_graph` makes it."""


@replaces_class(MPI.Distgraphcomm)
class Distgraphcomm(Comm, MPI.Distgraphcomm):
    """A communicator with a distributed graph; `Create_dist_graph` makes it."""


wrap_constructor(Cartcomm, "Sub")
