"""The drop-in communicator.  Read in this order:

`communicator`  the methods of mpi4py that are ours
`request_forms` the same as requests
`objects`       the same of Python objects
`family`        communicators that MPI makes of ours inherit its plans
`topologies`    those with a topology
`call_keys`     the cheap keys by which calls are looked up
`handing_over`  what the library serves, in one lookup
`dispatch`      which executor of ours serves a call, or the library's own: one cache
`decision`      what plans depend on besides sizes: profile, machine, effort; rank 0's for all
`agreed_decision` how ranks come by the same one
`running`       any schedule, run by hand
`recording`     which calls were made, for how long, and who served them: on request
`learning`      trying plans on the program's own calls, for a share of its time: on request
`standing_in`   `collwise run`: one of ours in the place of COMM_WORLD
`checking`      COLLWISE_CHECK=1: ranks compare their calls before they run
"""

import collwise.comm.topologies  # noqa: F401
from collwise.comm.communicator import Comm
from collwise.comm.running import run

__all__ = ["Comm", "run"]
