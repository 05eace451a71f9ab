"""5. Run it: the planned schedules on MPI, in place of the library's own collectives.

    mpiexec -n 4 python examples/run_it.py

A machine that we describe, and algorithms that we name: usually neither is given, and the profile
that `collwise tune` saved decides.
"""

import numpy as np
from mpi4py import MPI

import collwise as cw

comm = cw.Comm(
    MPI.COMM_WORLD,
    machine=cw.Machine.postal(t0_s="1e-6", lam=3),
    algorithms={"broadcast": "postal_tree", "allreduce": "recursive_doubling"},
)

message = np.arange(8.0) if comm.rank == 0 else np.zeros(8)
comm.Bcast(message, root=0)
total = np.empty(8)
comm.Allreduce(message * (comm.rank + 1), total, op=MPI.SUM)

expected = np.arange(8.0) * comm.size * (comm.size + 1) / 2
right = comm.allreduce(bool((total == expected).all()), op=MPI.LAND)
if comm.rank == 0:
    print(f"on {comm.size} ranks:", "right on all of them" if right else "wrong")
    for name in ("broadcast", "allreduce"):
        plan = comm.plan(name, 64)
        print(f"  {name}: {plan.algorithm if plan else 'the library itself'}")
