"""collwise: measure the machine, plan the collective, run it on MPI.

    import collwise as cw

    machine = cw.Machine.postal(t0_s=1.7e-3, lam=4)
    plan = cw.plan("broadcast", ranks=64, nbytes=512, machine=machine)
    print(plan)                                   # the choice, the runners-up, the lower bound
    cw.verify(plan.schedule)

    comm = cw.Comm(MPI.COMM_WORLD)                # a drop-in for mpi4py's
    comm.Bcast(x, root=0)

Names are loaded when they are first used.  Importing it needs no MPI; `Comm`, `run`, `startall`
and `waitall` do.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from collwise import errors

if TYPE_CHECKING:
    from collwise.algorithms import ALGORITHMS, Algorithm, register
    from collwise.comm import Comm, run
    from collwise.model import hybrid, postal, sources, topology
    from collwise.model.machine import Machine
    from collwise.model.placement import Placement
    from collwise.model.presets import PRESETS
    from collwise.mpi.execution.persistent import startall, waitall
    from collwise.planner.choose import plan
    from collwise.planner.plans import Plan
    from collwise.profiles.profile import Profile
    from collwise.schedule.program import Schedule
    from collwise.simulator import Trace, simulate
    from collwise.timing import ideal
    from collwise.verifier import verify

    __version__: str
    presets = PRESETS
    """The papers' machines: name -> `collwise.model.presets.Preset`."""

_ON_MPI = ("Comm", "run", "startall", "waitall")
_MODULES = {
    "ALGORITHMS": "algorithms",
    "Algorithm": "algorithms",
    "Comm": "comm",
    "Machine": "model.machine",
    "Placement": "model.placement",
    "Plan": "planner.plans",
    "Profile": "profiles.profile",
    "Schedule": "schedule.program",
    "Trace": "simulator",
    "hybrid": "model.hybrid",
    "ideal": "timing",
    "plan": "planner.choose",
    "postal": "model.postal",
    "presets": "model.presets",
    "register": "algorithms",
    "run": "comm",
    "simulate": "simulator",
    "sources": "model.sources",
    "startall": "mpi.execution.persistent",
    "topology": "model.topology",
    "verify": "verifier",
    "waitall": "mpi.execution.persistent",
}
"""Where each public name is defined."""

__all__ = [
    "ALGORITHMS",
    "Algorithm",
    "Comm",
    "Machine",
    "Placement",
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
    "register",
    "run",
    "simulate",
    "sources",
    "startall",
    "topology",
    "verify",
    "waitall",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return version("collwise")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in _ON_MPI:
        import_module("collwise.mpi.runtime.world")  # first: it explains a missing MPI library
    module = import_module(f"{__name__}.{_MODULES[name]}")
    if name == "presets":
        value = module.PRESETS
    else:
        value = module if module.__name__.endswith(f".{name}") else getattr(module, name)
    return globals().setdefault(name, value)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
