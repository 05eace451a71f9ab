"""collwise: measure the machine, plan the collective, run it on MPI.

    import collwise as cw

    machine = cw.Machine.postal(t0_s=1.7e-3, lam=4)
    plan = cw.plan("broadcast", ranks=64, nbytes=512, machine=machine)
    print(plan)                                   # the choice, the runners-up, the lower bound
    cw.verify(plan.schedule)

    comm = cw.Comm(MPI.COMM_WORLD)                # a drop-in for mpi4py's
    comm.Bcast(x, root=0)

Importing it needs no MPI; `Comm`, `startall` and `waitall` do.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from collwise import errors
from collwise.algorithms import ALGORITHMS, Algorithm
from collwise.model import hybrid, postal, sources, topology
from collwise.model.machine import Machine
from collwise.model.presets import PRESETS
from collwise.planner.choose import plan
from collwise.planner.plans import Plan
from collwise.profiles.profile import Profile
from collwise.schedule.program import Schedule
from collwise.simulator import Trace, simulate
from collwise.timing import ideal
from collwise.verifier import verify

presets = PRESETS
"""The papers' machines: name -> `collwise.model.presets.Preset`."""

if TYPE_CHECKING:
    from collwise.comm import Comm
    from collwise.mpi.execution.interpreter import startall, waitall

_ON_MPI = {
    "Comm": "collwise.comm",
    "startall": "collwise.mpi.execution.interpreter",
    "waitall": "collwise.mpi.execution.interpreter",
}

__all__ = [
    "ALGORITHMS",
    "Algorithm",
    "Comm",
    "Machine",
    "Plan",
    "Profile",
    "Schedule",
    "Trace",
    "errors",
    "hybrid",
    "ideal",
    "plan",
    "postal",
    "presets",
    "simulate",
    "sources",
    "startall",
    "topology",
    "verify",
    "waitall",
]


def __getattr__(name: str) -> Any:
    if name in _ON_MPI:
        return getattr(import_module(_ON_MPI[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
