"""Runs a user's script as `python -m mpi4py` does, and calls a function when it loads MPI."""

import sys
import traceback
from collections.abc import Callable, Sequence
from functools import wraps
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType, TracebackType
from typing import Any

_MPI = "mpi4py.MPI"
_RUNNERS = (__name__, "mpi4py.run", "runpy")


class _WhenLoaded(MetaPathFinder):
    """Calls a function once MPI is initialized: when mpi4py.MPI is imported, or later."""

    def __init__(self, act: Callable[[], None]) -> None:
        self._act = act

    def find_spec(self, name: str, *_: Any) -> ModuleSpec | None:
        """The module spec for mpi4py.MPI, whose loader also calls the function; else None."""
        if name != _MPI:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_act(module: ModuleType) -> None:
                load(module)
                _when_running(module, self._act)

            spec.loader.exec_module = load_and_act  # type: ignore[method-assign]
        return spec


def run_script(arguments: Sequence[str], loaded: Callable[[], None]) -> int | str | None:
    """Run `SCRIPT …`, `-m MODULE …` or `-c COMMAND …`; return the exit code of the process.

    An uncaught exception is shown as Python shows it.  It ends all ranks when this process ends,
    and so does an exit code other than 0, as with `python -m mpi4py`.
    loaded: called when the script loads MPI, or when it initializes MPI, if that is later.
    """
    from mpi4py.run import run_command_line, set_abort_status

    if _MPI in sys.modules:
        _when_running(sys.modules[_MPI], loaded)
    else:
        sys.meta_path.insert(0, _WhenLoaded(loaded))
    try:
        run_command_line(list(arguments))
    except SystemExit as end:
        set_abort_status(end)
        return end.code
    except BaseException as problem:
        interrupted = isinstance(problem, KeyboardInterrupt)
        set_abort_status(problem if interrupted else 1)
        traceback.print_exception(problem.with_traceback(_of_script(problem.__traceback__)))
        return 130 if interrupted else 1
    return 0


def _when_running(mpi: Any, act: Callable[[], None]) -> None:
    """Call a function as soon as MPI is initialized."""
    if mpi.Is_initialized():
        act()
        return

    def followed(start: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(start)
        def both(*arguments: Any) -> Any:
            result = start(*arguments)
            act()
            return result

        return both

    for name in ("Init", "Init_thread"):
        setattr(mpi, name, followed(getattr(mpi, name)))


def _of_script(trace: TracebackType | None) -> TracebackType | None:
    """The part of a traceback that begins in the script."""
    while trace is not None and trace.tb_frame.f_globals.get("__name__") in _RUNNERS:
        trace = trace.tb_next
    return trace
