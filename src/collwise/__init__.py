"""collwise: measure the machine, plan the collective, run it on MPI.

    import collwise as cw

    machine = cw.Machine.postal(t0_s=1.7e-3, lam=4)
    plan = cw.plan("broadcast", ranks=64, nbytes=512, machine=machine)
    print(plan)                                   # the choice, the runners-up, the lower bound
    cw.verify(plan.schedule)

    comm = cw.Comm(MPI.COMM_WORLD)                # a drop-in for mpi4py's
    comm.Bcast(x, root=0)

Names are loaded when they are first used.  Importing collwise needs no MPI; `Comm`, `run`,
`startall` and `waitall` do.
"""

import sys
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from collwise import errors

if TYPE_CHECKING:
    from collwise.algorithms import ALGORITHMS as ALGORITHMS
    from collwise.algorithms import Algorithm as Algorithm
    from collwise.algorithms import register as register
    from collwise.comm import Comm as Comm
    from collwise.comm import run as run
    from collwise.model import hybrid as hybrid
    from collwise.model import postal as postal
    from collwise.model import sources as sources
    from collwise.model import topology as topology
    from collwise.model.machine import Machine as Machine
    from collwise.model.placement import Placement as Placement
    from collwise.model.presets import PRESETS
    from collwise.mpi.execution.persistent import startall as startall
    from collwise.mpi.execution.persistent import waitall as waitall
    from collwise.planner.choose import plan as plan
    from collwise.planner.plans import Plan as Plan
    from collwise.profiles.profile import Profile as Profile
    from collwise.schedule.program import Schedule as Schedule
    from collwise.simulator import Trace as Trace
    from collwise.simulator import simulate as simulate
    from collwise.timing import ideal as ideal
    from collwise.verifier import verify as verify

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
"""The module from which each public name but `errors` is loaded."""

_PICTURED = {"Plan": "planner.plans", "Profile": "profiles.profile", "Trace": "timing.trace"}
"""The modules of the classes that notebooks show as pictures, which `report.notebook` draws."""

__all__ = ["errors", *_MODULES]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return version("collwise")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in _ON_MPI:
        import_module("collwise.mpi.runtime.world")  # first: it explains a missing MPI library
    module = import_module(f"{__name__}.{_MODULES[name]}")
    _show_in_notebooks()
    if name == "presets":
        value = module.PRESETS
    else:
        value = module if module.__name__.endswith(f".{name}") else getattr(module, name)
    return globals().setdefault(name, value)


def _show_in_notebooks() -> None:
    """Let notebooks show objects of loaded classes as pictures; only drawing loads Matplotlib."""
    for name, where in _PICTURED.items():
        if (module := sys.modules.get(f"{__name__}.{where}")) is None:
            continue
        for form in ("svg", "html"):

            def shown(self: Any, form: str = form) -> Any:
                return getattr(import_module(f"{__name__}.report.notebook"), form)(self)

            setattr(getattr(module, name), f"_repr_{form}_", shown)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
