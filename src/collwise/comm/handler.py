"""How calls that pose the same problem are served; `dispatch` caches the handlers."""

from functools import partial
from typing import Any, NamedTuple

from mpi4py import MPI

from collwise.comm.recording import Tally
from collwise.mpi.execution.executor import Executor
from collwise.mpi.library.switching import Switched, by_default


class Handler(NamedTuple):
    """How equal calls are served: by an executor of ours or by the library.

    executor: runs the plan; None if the library or a `Trial` serves.   op: kept alive, since the
    cache's key has the operator's id.   tally: counts the calls; None if they are not recorded.
    own: the library's own algorithm that serves; None for a plan, and for the library's default.
    """

    executor: Executor | None
    op: MPI.Op | None = None
    tally: Tally | None = None
    own: Switched | None = None

    def by_library(self, call: "partial[Any]") -> Any:
        """Call the library, with `own` if that is not None.   call: the call to make."""
        return by_default(call) if self.own is None else self.own.call(call)

    @property
    def fast_call(self) -> tuple[Any, tuple[()]]:
        """What the compiled engine remembers of calls that the library serves."""
        return None if self.own is None else self.own.in_c, ()
