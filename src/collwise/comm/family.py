"""Communicators that MPI derives from ours (`Dup`, `Split`, …) plan as theirs did.

What plans depend on is inherited locally, without communication, so `Idup` does not block: a part
has fewer ranks, and where they lie follows from its group.
"""

from collections.abc import Callable, Mapping, Set
from functools import wraps
from types import MappingProxyType
from typing import Any, Self
from weakref import WeakValueDictionary

from mpi4py import MPI

from collwise.comm.decision import HINT, Decision
from collwise.comm.dispatch import Dispatch
from collwise.comm.learning import Learning
from collwise.comm.recording import Record, Way
from collwise.mpi.runtime.world import World

_MADE = (
    "Dup", "Dup_with_info", "Clone", "Split", "Split_type", "Create", "Create_group", "Create_cart",
    "Create_graph", "Create_dist_graph", "Create_dist_graph_adjacent",
)  # fmt: skip
_STARTED = ("Idup", "Idup_with_info")
CONSTANTS = ("COMM_WORLD", "COMM_SELF")


class Inheritable(MPI.Intracomm):
    """The base of `Comm`: communicators that MPI derives from it inherit its plans."""

    _has_plans = False
    """Whether it has plans that others inherit."""
    _served: Set[str] = frozenset()
    """Methods that plans of ours may serve; equal on all ranks."""
    _dispatch: Dispatch
    _world: World
    _record: Record | None = None
    """Of its calls and those on its derived communicators, if somebody wants one."""
    _learning: Learning | None = None
    """On all of them, if it is asked for."""
    _views: Mapping[str, Any] = MappingProxyType({})
    """What `using` returned, by what was asked for."""

    def __new__(cls, comm: MPI.Intracomm | None = None, **_: Any) -> Self:  # noqa: D102
        made: Self = MPI.Intracomm.__new__(cls, comm)  # also those with a topology
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
        """The world and COMM_SELF are found again by their names; others as mpi4py's."""
        for name in CONSTANTS:
            constant = getattr(MPI, name)
            if isinstance(constant, Inheritable) and constant == self:
                return _constant, (name,)
        return super().__reduce__()

    def __reduce_ex__(self, protocol: Any) -> Any:
        """As `__reduce__`."""
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
        """Serve from now on.

        later: MPI has not finished making this communicator.   like: one with the same handle.
        way: as which blocking calls are counted.
        """
        raise NotImplementedError

    def _unwrap(self) -> None:
        """Undo what checks and records put before methods."""
        raise NotImplementedError

    def using(self, **algorithms: str) -> Self:
        """The same communicator with algorithms chosen by hand; all ranks choose alike.

            comm.using(broadcast="chain_segmented(segment=8k)").Bcast(x)

        algorithms: by collective, as `Comm` takes them.  What it returns is kept, so asking again
        costs little; it is not to be freed.
        """
        if (view := self._views.get(text := repr(algorithms))) is None:
            view = self._view(
                text, self._decision.choosing(algorithms) if self._has_plans else None
            )
        return view

    def _view(self, name: str, decision: Decision | None, way: Way = "blocking") -> Self:
        """Another object for this communicator, kept by its name; without plans if None decides."""
        if name not in self._views:
            view = type(self).__new__(type(self), self)
            view._record, view._learning = self._record, self._learning
            if decision is not None:
                view._serve(decision, self._world, self.Get_rank(), like=self, way=way)
            self._views = {**self._views, name: view}
        made: Self = self._views[name]
        return made

    def Set_info(self, info: MPI.Info) -> None:  # noqa: N802
        """As mpi4py's; the key `collwise_algorithms` chooses by hand, equally on all ranks.

        Its value is like COLLWISE_ALGORITHMS'.   Collective.
        """
        super().Set_info(info)
        self._take_hint(info)

    def _take_hint(self, info: MPI.Info) -> None:
        if self._has_plans and (text := _hint(info)):
            self._unwrap()
            self._views = {}
            self._serve(self._decision.hinted(text), self._world, self.Get_rank(), like=self)

    def _derived(
        self, made: MPI.Intracomm, *, later: bool = False, hint: str = ""
    ) -> MPI.Intracomm:
        """A communicator that MPI made of this one, as one of ours.

        later: as `_serve` takes it; it has the same ranks.   hint: of its `MPI.Info`.
        """
        if (kind := _kinds.get(type(made))) is not None:
            made = kind.__new__(kind, made)
        if not self._has_plans or not isinstance(made, Inheritable):
            return made
        made._record, made._learning = self._record, self._learning
        decision = self._decision.hinted(hint)
        if later:
            made._serve(decision, self._world, self.Get_rank(), later=True)
        elif made != MPI.COMM_NULL:
            part, whole = made.Get_group(), self.Get_group()
            # Of a smaller Cartcomm, MPICH 5.0 gives the group of the whole.
            places = part.Translate_ranks(range(made.Get_size()), whole)
            part.Free()
            whole.Free()
            world = self._world.part(places)
            made._serve(decision.on(world), world, made.Get_rank())
        return made


comms_by_handle: WeakValueDictionary[int, Inheritable] = WeakValueDictionary()
"""By MPI's handles, communicators of ours."""
_kinds: dict[type[MPI.Intracomm], type[Inheritable]] = {}
"""Which class of ours stands for one of mpi4py's."""


def stands_for(theirs: type[MPI.Intracomm]) -> Callable[[type[Any]], type[Any]]:
    """A class of ours, for communicators that MPI makes of ours."""

    def register(ours: type[Any]) -> type[Any]:
        _kinds[theirs] = ours
        return ours

    return register


def inherits(owner: type[Any], name: str) -> None:
    """Give a class the method of mpi4py's that makes communicators, whose plans are inherited."""
    library = getattr(owner, name)

    @wraps(library)
    def make(self: Inheritable, *arguments: Any, **named: Any) -> Any:
        made = library(self, *arguments, **named)
        infos = [one for one in (*arguments, *named.values()) if isinstance(one, MPI.Info)]
        hint = _hint(infos[0]) if infos else ""
        if isinstance(made, tuple):  # with a request: it may be used when that is complete
            return self._derived(made[0], later=True, hint=hint), made[1]
        return self._derived(made, hint=hint)

    setattr(owner, name, make)


for _name in (*_MADE, *_STARTED):
    inherits(Inheritable, _name)


def _hint(info: MPI.Info) -> str:
    return "" if info == MPI.INFO_NULL else info.Get(HINT) or ""


def _constant(name: str) -> MPI.Intracomm:
    constant: MPI.Intracomm = getattr(MPI, name)
    return constant
