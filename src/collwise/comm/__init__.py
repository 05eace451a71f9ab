"""The drop-in communicator.  Read in this order:

`communicator`  the communicator `Comm`: its own methods, and mpi4py's that plans serve;
                subclasses with a topology
`served`        the table of functions that serve a communicator's methods, in all forms
`objects`       collectives of Python objects
`family`        communicators that MPI derives from a `Comm` inherit its plans
`dispatch`      finds and caches what serves a call: an executor of ours or the library
`posed`         reads the problem that a call's arguments pose
`handler`       an entry of `dispatch`'s cache: how equal calls are served
`decision`      what plans depend on besides sizes: rank 0's profile, machine, effort, …
`chosen`        the choice: a plan, the library's default, or another of its algorithms
`own_candidates` which of the library's own algorithms are tried, and in which order
`agreed_decision` makes the decision from settings and environment, equal on all ranks
`running`       runs a schedule that the user gives
`sharing`       one copy of a large array on each node
`recording`     on request: records calls, how long they took and what served them
`learning`      on request: tries plans on the program's own calls, for a share of its time
`world_replacement` for `collwise run`: a `Comm` in the place of COMM_WORLD
`checking`      COLLWISE_CHECK=1: ranks compare their calls before they run

All ranks decide alike, by rank 0's settings.  `_CONSTRUCTORS` of `family` names methods that make
communicators; the new communicators inherit plans.
"""

from collwise.comm.communicator import Comm
from collwise.comm.running import run

__all__ = ["Comm", "run"]
