"""The drop-in communicator.  Read in this order:

`communicator`  the communicator `Comm`, with its own methods and those of mpi4py that plans serve;
                its classes with a topology
`served`        what serves each of these methods, in all forms: one table of functions
`objects`       collectives of Python objects
`family`        communicators that MPI derives from a `Comm` inherit its plans
`dispatch`      what serves a call, an executor of ours or the library: one cache
`handler`       how equal calls are served: an executor of ours or a call of the library's
`decision`      what plans depend on besides sizes: rank 0's profile, machine, effort, …
`chosen`        what serves a call: a plan, the library's default, or one of its own algorithms
`agreed_decision` from settings and environment to a decision, the same on all ranks
`running`       runs a schedule that the user gives
`sharing`       one copy of a large array on each node
`recording`     on request: which calls were made, how long they took and what served them
`learning`      on request: plans are tried on the program's own calls, for a share of its time
`world_replacement` for `collwise run`: a `Comm` in the place of COMM_WORLD
`checking`      COLLWISE_CHECK=1: ranks compare their calls before they run

All ranks decide alike, by rank 0's settings.  `_CONSTRUCTORS` of `family` names the methods that
make communicators, which inherit plans without communication.
"""

from collwise.comm.communicator import Comm
from collwise.comm.running import run

__all__ = ["Comm", "run"]
