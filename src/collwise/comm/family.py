"""Communicators that MPI derives from a `Comm` (`Dup`, `Split`, …) inherit its plans.

A communicator's group tells which ranks it has, and on which nodes they are.  So inheriting takes
no communication, except in blocking methods with COLLWISE_CHECK or order="fixed".
"""

from collections.abc import Callable, Mapping, Set
from functools import wraps
from types import MappingProxyType
from typing import Any, Self
from weakref import WeakValueDictionary

from mpi4py import MPI

from collwise.comm.checking import ArgumentExchange, checked_methods
from collwise.comm.decision import HINT, Decision
from collwise.comm.dispatch import Dispatch
from collwise.comm.learning import Learning
from collwise.comm.recording import Record, Way
from collwise.comm.served import served_methods
from collwise.mpi.library.switching import OwnCalls
from collwise.mpi.runtime.private_communicator import PrivateDuplicate
from collwise.mpi.runtime.world import World
from collwise.schedule.collectives import COLLECTIVES

_CONSTRUCTORS = (
    "Dup", "Dup_with_info", "Clone", "Split", "Split_type", "Create", "Create_group", "Create_cart",
    "Create_graph", "Create_dist_graph", "Create_dist_graph_adjacent",
    "Idup", "Idup_with_info",
)  # fmt: skip
CONSTANTS = ("COMM_WORLD", "COMM_SELF")


class Inheritable(MPI.Intracomm):
    """The base of `Comm`: communicators that MPI derives from it inherit its plans."""

    _has_plans = False
    """Whether plans may serve this communicator, and those that MPI derives from it."""
    _served: Set[str] = frozenset()
    """Methods that plans of ours may serve; with a record, all methods of `COLLECTIVES`."""
    _dispatch: Dispatch
    _world: World
    _record: Record | None = None
    """Counts the calls on this communicator and those derived from it; None without a record."""
    _learning: Learning | None = None
    """The budget for learning, shared with derived communicators; None without learning."""
    _argument_exchange: ArgumentExchange | None = None
    """Compares the ranks' arguments before calls; None without COLLWISE_CHECK."""
    _views: Mapping[str, Any] = MappingProxyType({})
    """Other Python objects for this same communicator, by name.

    The name of an object that `using` made is the text of the arguments.  The object that serves
    collectives of Python objects has the name "object"."""

    def __new__(cls, comm: MPI.Intracomm | None = None, **_: Any) -> Self:  # noqa: D102
        made: Self = MPI.Intracomm.__new__(cls, comm)  # for those with a topology, too
        return made

    @property
    def _decision(self) -> Decision:
        return self._dispatch.decision

    def __copy__(self) -> Self:
        """Another object for the same communicator, with the same plans."""
        copied = type(self).__new__(type(self), self)
        vars(copied).update(vars(self))
        return copied

    def __reduce__(self) -> Any:
        """Pickle replaced COMM_WORLD and COMM_SELF by name, other communicators as mpi4py does."""
        for name in CONSTANTS:
            constant = getattr(MPI, name)
            if isinstance(constant, Inheritable) and constant == self:
                return _constant, (name,)
        return super().__reduce__()

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle as `__reduce__` says, with every protocol."""
        return self.__reduce__()

    def _serve(
        self,
        decision: Decision,
        world: World,
        rank: int,
        *,
        later: bool = False,
        like: "Inheritable | None" = None,
        way: Way = "blocking",
    ) -> None:
        """Start serving this communicator's calls by `decision`.

        later: MPI has not finished making this communicator, so nothing can be sent on it yet.
        like: this object, or another one for this communicator, whose private duplicate is used.
        way: how blocking calls are recorded, such as "object".
        """
        ranks, record = len(world.hosts), self._record
        names = decision.served(ranks) if record is None else COLLECTIVES.keys()
        if like is self:
            self._dispatch.forget()
        elif like is None:
            comms_by_handle[self.handle] = self
        known = None if like is None else like._dispatch.duplicate
        duplicate = known or PrivateDuplicate(self, world.sharing)
        self._served = {method for name in names for method in COLLECTIVES[name].methods}
        self._world, self._has_plans = world, True
        common_clock = world.layout == "one node"
        own = OwnCalls(self) if like is None else like._dispatch.own
        about = decision, duplicate, own, self._served, rank, ranks
        self._dispatch = Dispatch(*about, record, way, self._learning, common_clock)
        table = served_methods(self)
        if limit_s := decision.check_limit_s:
            theirs = None if like is None else like._argument_exchange
            self._argument_exchange = theirs or ArgumentExchange(self, limit_s, later=later)
            table |= checked_methods(self, self._argument_exchange, table)
        if record is not None:
            table |= record.counted_methods(self, ranks, decision)
        self.__dict__ |= table

    def _unwrap(self) -> None:
        """Remove functions set in place of mpi4py's methods; the class's methods serve again."""
        for name in [name for name in vars(self) if hasattr(MPI.Intracomm, name)]:
            delattr(self, name)

    def _end_service(self) -> None:
        self._has_plans = False
        self._unwrap()
        if self._argument_exchange is not None:
            self._argument_exchange.free()
            self._argument_exchange = None
        if self._served:
            self._dispatch.free()
            self._served = frozenset()  # the library's methods raise from now on

    def using(self, **algorithms: str) -> Self:
        """The same communicator with algorithms chosen by hand; all ranks choose alike.

            comm.using(broadcast="chain_segmented(segment=8k)").Bcast(x)

        algorithms: the algorithm for each collective, as a keyword.  Asking again costs little,
        since the result is cached.  Do not free the result.
        """
        if (view := self._views.get(text := repr(algorithms))) is None:
            view = self._view(
                text, self._decision.with_algorithms(algorithms) if self._has_plans else None
            )
        return view

    def _view(self, name: str, decision: Decision | None, way: Way = "blocking") -> Self:
        """Another object for this communicator, cached by name.   decision: None for no plans."""
        if name not in self._views:
            view = type(self).__new__(type(self), self)
            view._record, view._learning = self._record, self._learning
            if decision is not None:
                view._serve(decision, self._world, self.Get_rank(), like=self, way=way)
            self._views = {**self._views, name: view}
        made: Self = self._views[name]
        return made

    def Set_info(self, info: MPI.Info) -> None:  # noqa: N802
        """Set hints, as mpi4py does; the key `collwise_algorithms` chooses algorithms.

        The key's value is text like COLLWISE_ALGORITHMS, equal on all ranks.   Collective.
        """
        super().Set_info(info)
        self._take_hint(info)

    def _take_hint(self, info: MPI.Info) -> None:
        if self._has_plans and (text := _hint(info)):
            decision = self._decision.with_hint(text)  # raises before anything is changed
            self._unwrap()
            self._views = {}
            self._serve(decision, self._world, self.Get_rank(), like=self)
            self._dispatch.agree_on_own()

    def _derived(
        self, made: MPI.Intracomm, *, later: bool = False, hint: str = ""
    ) -> MPI.Intracomm:
        """Make a `Comm` of `made`, which MPI derived from this communicator; it inherits plans.

        later: MPI has not finished making `made`, which has the same ranks.   hint: the algorithms
        that the `MPI.Info` of `made` names.
        """
        if (kind := _kinds.get(type(made))) is not None:
            made = kind.__new__(kind, made)
        if not self._has_plans or not isinstance(made, Inheritable):
            return made
        made._record, made._learning = self._record, self._learning
        decision = self._decision.with_hint(hint)
        if later:
            made._serve(decision, self._world, self.Get_rank(), later=True)
        elif made != MPI.COMM_NULL:
            part, whole = made.Get_group(), self.Get_group()
            # MPICH 5.0 may return the whole group for a smaller Cartcomm, so count its ranks.
            places = part.Translate_ranks(range(made.Get_size()), whole)
            part.Free()
            whole.Free()
            world = self._world.part(places)
            made._serve(decision.on(world), world, made.Get_rank())
            if decision.order == "fixed" and decision.progress and made.Get_size() > 1:
                made._dispatch.duplicate.exists()  # no non-blocking call may be the library's
        return made


comms_by_handle: WeakValueDictionary[int, Inheritable] = WeakValueDictionary()
"""Communicators of ours, by MPI's handle."""
_kinds: dict[type[MPI.Intracomm], type[Inheritable]] = {}
"""Our classes, by the class of mpi4py's that they replace."""


def replaces_class(theirs: type[MPI.Intracomm]) -> Callable[[type[Any]], type[Any]]:
    """A class decorator: derived communicators get this class in place of mpi4py's `theirs`."""

    def register(ours: type[Any]) -> type[Any]:
        _kinds[theirs] = ours
        return ours

    return register


def wrap_constructor(owner: type[Any], name: str) -> None:
    """Wrap an mpi4py method that makes communicators, so that the communicators inherit plans."""
    library = getattr(owner, name)

    @wraps(library)
    def make(self: Inheritable, *arguments: Any, **named: Any) -> Any:
        made = library(self, *arguments, **named)
        infos = [one for one in (*arguments, *named.values()) if isinstance(one, MPI.Info)]
        hint = _hint(infos[0]) if infos else ""
        if isinstance(made, tuple):  # with a request, to be completed before it is used
            return self._derived(made[0], later=True, hint=hint), made[1]
        return self._derived(made, hint=hint)

    setattr(owner, name, make)


for _name in _CONSTRUCTORS:
    wrap_constructor(Inheritable, _name)


def _hint(info: MPI.Info) -> str:
    return "" if info == MPI.INFO_NULL else info.Get(HINT) or ""


def _constant(name: str) -> MPI.Intracomm:
    constant: MPI.Intracomm = getattr(MPI, name)
    return constant
