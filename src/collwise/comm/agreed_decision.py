"""Makes a communicator's decision from rank 0's settings and environment, equal on all ranks."""

import logging
import os
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from itertools import zip_longest
from os import PathLike
from textwrap import shorten
from typing import NamedTuple

from mpi4py import MPI
from msgspec import structs

from collwise.algorithms import registry
from collwise.comm.checking import check_limit_s
from collwise.comm.decision import ALGORITHMS, FALLBACK, ORDER, Decision
from collwise.errors import CollwiseError, InvalidArgument, UnknownName, shown
from collwise.model.levels import Levels
from collwise.model.machine import Machine, checked_machine
from collwise.model.placement import Placement, check_placement
from collwise.mpi.bench.placing import find_placement
from collwise.mpi.library.switching import check_switch
from collwise.mpi.runtime.agreement import everywhere, gathered, on_root
from collwise.mpi.runtime.world import World, describe, warn_if_alone
from collwise.planner.by_hand import parse_choices, read_choices
from collwise.profiles.fingerprint import Fingerprint, Layout
from collwise.profiles.level_machine import check_depth, placement_on
from collwise.profiles.profile import ENVIRONMENT, Profile
from collwise.profiles.store import find as find_profile
from collwise.profiles.store import loaded
from collwise.schedule.problem import ORDERS, Order
from collwise.system.host import network as here_network
from collwise.system.quantities import parse_share

log = logging.getLogger("collwise")

LEARN = "COLLWISE_LEARN"
"""The environment variable that says which share of the time learning may take, such as 2%."""
FORMER = "COLLWISE_HAND_OVER"
"""COLLWISE_FALLBACK's former name; this variable is still read."""
EFFORTS = ("measure", "estimate")
_version = cache(version)  # version reads files


class Settings(NamedTuple):
    """The settings of `cw.Comm`, as its constructor takes them."""

    profile: Profile | str | PathLike[str] | bool | None
    machine: Machine | None
    effort: str
    algorithms: Mapping[str, str] | None
    order: Order | None
    placement: Placement | None
    learn: float | str | None
    transport: str | None = None


def agreed(comm: MPI.Intracomm, settings: Settings) -> tuple[Decision, World]:
    """Returns the decision by rank 0's settings, and the world's description; equal on all ranks.

    The decision is not yet `on` this world.   Collective.   comm: an mpi4py communicator, no
    `cw.Comm`, since a `cw.Comm` might run plans.
    """
    _check_algorithms(comm)
    world = describe(comm, settings.transport, settings.profile)
    warn_if_alone()
    machine, placement = settings.machine, settings.placement

    def decide() -> tuple[Decision, tuple[Placement | None, Machine | None]]:
        decision = _decided(world, settings)
        if isinstance(machine, Levels) and placement not in (None, machine.placement):
            raise InvalidArgument(
                "a communicator with a placement and a machine with levels",
                f"the machine has its ranks elsewhere ({_shown(machine.placement)})",
                "leave the placement out, or pass machine.placed(placement)",
            )
        return decision, (placement, machine)

    decision, of_root = on_root(comm, decide)

    def check() -> None:
        for here, on_rank_0 in zip((placement, machine), of_root, strict=True):
            about_levels = isinstance(here, Placement | Levels)
            odd = here is placement is not None and not about_levels  # of a wrong type
            if odd or (about_levels and here != on_rank_0):
                raise InvalidArgument(
                    "a communicator with levels",
                    f"rank {comm.Get_rank()} gives {_shown(here)}; rank 0, {_shown(on_rank_0)}",
                    "give the same on all ranks, or on rank 0 only",
                )

    everywhere(comm, check)
    places, profile = decision.level_placement, decision.profile  # equal on all ranks
    if places is None and profile is not None and any(one.levels for one in profile.every):
        places = find_placement(comm, world).placement
    world = world._replace(level_placement=places)
    return decision, world


def _decided(world: World, settings: Settings) -> Decision:
    """The decision that follows from the settings and this rank's environment."""
    profile, machine, effort, algorithms, order, placement, learn, _ = settings
    if machine is not None:
        checked_machine(machine, "a communicator with a machine")
    if not isinstance(effort, str) or effort not in EFFORTS:
        raise UnknownName.of("effort", effort, EFFORTS)
    asked = os.environ.get(ORDER) or None if order is None else order
    if asked is not None and (not isinstance(asked, str) or asked not in ORDERS):
        raise UnknownName.of("order", asked, ORDERS)
    named = parse_choices(os.environ.get(ALGORITHMS, ""), f"the algorithms in {ALGORITHMS}")
    chosen = read_choices(named) | read_choices({} if algorithms is None else algorithms)
    fingerprint = world.fingerprint()
    if placement is None and isinstance(machine, Levels):
        placement = machine.placement
    if placement is not None:
        check_placement(placement, len(world.hosts))
    used: Profile | None = None
    near: Profile | None = None
    if profile is not None and not isinstance(profile, bool):
        used = profile if isinstance(profile, Profile) else loaded(profile)
        used.check(fingerprint)
    elif profile is not False and machine is None:
        used, near = find_profile(fingerprint), _elsewhere(fingerprint, "one node")
        far = None if used else _elsewhere(fingerprint, "several nodes")
        if far is not None and placement_on(far.every, world.hosts, world.nodes):
            used = far
    if used is not None and placement is not None and machine is None:
        check_depth(placement, used.every)
    if used is not None and placement is None:
        nearest = used.at(len(world.hosts), world.ranks_per_node)
        placement = placement_on(nearest.every, world.hosts, world.nodes)
    check_switch()
    decision = Decision(
        used,
        machine=machine,
        effort=effort,
        algorithms=chosen,
        order=asked,
        progress=world.thread_multiple,
        check_limit_s=check_limit_s(),
        engine=world.engine,
        within_memory=world.within_memory,
        one_node_profile=near,
        falls_back=_falls_back(),
        learn=_share(learn),
    )
    return decision.on(world._replace(level_placement=placement))


def _share(learn: float | str | None) -> float:
    """The share of the time for learning, 0 to 1.   learn: the setting; None: COLLWISE_LEARN."""
    text = os.environ.get(LEARN, "") if learn is None else str(learn)
    asked = f"{LEARN}={text}" if learn is None else f"learn={learn}"
    return parse_share(text, f"learning while running, {asked}")


def _falls_back() -> bool:
    """Whether the environment lets the library serve calls without a plan."""
    value, former = (os.environ.get(name, "") for name in (FALLBACK, FORMER))
    if former:
        _say_renamed()
        if value not in ("", former):
            seen = f"{FORMER}={former}, as it was called before, says otherwise"
            raise InvalidArgument(f"{FALLBACK}={value}", seen, f"leave out {FORMER}")
    value = value or former
    if value not in ("", "never"):
        raise InvalidArgument(f"{FALLBACK}={value}", "it is no such word", "say never, or nothing")
    return not value


@cache
def _say_renamed() -> None:
    log.warning("%s is called %s now: write that", FORMER, FALLBACK)


def _elsewhere(here: Fingerprint, layout: Layout) -> Profile | None:
    """The profile saved for machines like `here` but in `layout`, one node or several nodes.

    None if none can be read, if `here` has `layout` or is emulated, or if COLLWISE_PROFILE is set.
    """
    if here.layout == layout or here.emulated or os.environ.get(ENVIRONMENT):
        return None
    network = here_network(MPI.Get_library_version()) if layout == "several nodes" else ""
    try:
        return find_profile(structs.replace(here, layout=layout, network=network))
    except CollwiseError as problem:
        log.warning("for ranks on %s: %s", layout, problem)
        return None


def _check_algorithms(comm: MPI.Intracomm) -> None:
    """Raise InvalidArgument on all ranks if the ranks' versions or algorithms differ."""

    def facts() -> list[tuple[object, ...]]:
        every = registry.ALGORITHMS.values()
        known = [(one.name, one.summary, one.source, one.time, *one.parameters) for one in every]
        return [(f"version {_version('collwise')}",), *known]

    if len(set(gathered(comm, lambda: sha256(repr(facts()).encode()).digest()))) == 1:
        return
    first, *others = gathered(comm, facts)
    for rank, theirs in enumerate(others, 1):
        for ours, other in zip_longest(first, theirs):
            if ours != other:
                raise InvalidArgument(
                    "ranks with the same algorithms",
                    f"rank 0 and rank {rank} differ in {(ours or other)[0]}",
                    "install the same version on all nodes, and register alike on all ranks",
                )


def _shown(setting: object) -> str:
    if isinstance(setting, Levels):
        return f"{setting.describe()}; {_shown(setting.placement)}"
    if isinstance(setting, Placement):
        return f"{setting.describe()}, in the groups {shorten(str(setting.groups), 99)}"
    if isinstance(setting, Machine):
        return setting.describe()
    return "none" if setting is None else shown(setting)
