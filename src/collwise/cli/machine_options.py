"""Options that describe a machine and its network, shared by commands."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from collwise.cli.grouped_command import all_of, grouped
from collwise.cli.parameter_types import EXACT, FILE, PLACEMENT, SECONDS
from collwise.errors import InvalidArgument
from collwise.measure.stability import known_to
from collwise.model.levels import Levels
from collwise.model.machine import Machine
from collwise.model.placement import Placement, check_placement
from collwise.model.presets import PRESETS, Preset
from collwise.model.topology import Hypercube, Mesh, Topology, near_square, parse
from collwise.model.topology.base import checked_topology
from collwise.profiles.level_machine import check_depth, filled
from collwise.profiles.profile import Profile
from collwise.profiles.store import of_this_machine


class ChosenMachine(NamedTuple):
    """A machine, its origin, and the network between its ranks (None: links are not modelled).

    profile: the machine's profile, if the machine was measured.   notes: remarks on the profile
    for the user.   digits: how many significant digits of the machine's times are known.
    """

    machine: Machine
    origin: str
    topology: Topology | None
    profile: Profile | None = None
    notes: tuple[str, ...] = ()
    digits: int = 3


_KINDS = {
    "postal": ("t0", "lam"),
    "hockney": ("alpha", "beta", "gamma"),
    "loggp": ("latency", "overhead", "gap", "per_byte"),
    "wormhole": ("send", "receive", "hop", "beta", "gamma", "copy", "all_port"),
}
"""Maps the name of a constructor of `Machine` to the options that give its arguments."""
_OPTIONAL = ("gamma", "copy", "all_port")
_ARGUMENTS = {name: f"{name}_s" for options in _KINDS.values() for name in options}
_ARGUMENTS |= {"lam": "lam", "all_port": "all_port"}
_ARGUMENTS |= {"latency": "L_s", "overhead": "o_s", "gap": "g_s", "per_byte": "G_s"}
"""For each option that describes a machine, the constructor's argument that it gives."""
MACHINE_OPTIONS = ("profile_path", "placement", "preset", "levels", *_ARGUMENTS, "topology")
"""The names of all options that `machine_from` reads."""


_measured = grouped("A measured machine, or one of the papers")
_assumed = partial(
    grouped("An assumed machine (times in seconds, or as in 1.7ms)"), type=SECONDS, metavar="TIME"
)
machine_options = all_of(
    _measured(
        "--profile",
        "profile_path",
        type=FILE,
        help="Profile file to use  [default: the one saved for this machine].",
    ),
    _measured(
        "--placement",
        type=PLACEMENT,
        help="Where ranks are in a profile with levels, such as 4x16, 2x4x16, or '3+5, round robin'"
        "  [default: on nodes filled as when it was measured].",
    ),
    _measured(
        "--preset",
        metavar="NAME",
        help=f"{', '.join(PRESETS)}: with its network, unless --topology says another.",
    ),
    _assumed("--t0", help="Postal: t0 of every message."),
    _assumed("--lam", type=EXACT, metavar="λ", help="Postal: λ, such as 4, 1.8 or 9/5."),
    _assumed("--alpha", help="Hockney: start-up."),
    _assumed("--beta", help="Hockney, wormhole: per byte."),
    _assumed("--gamma", help="Hockney, wormhole: per combined byte  [default: 0]."),
    _assumed("--latency", help="LogGP: L."),
    _assumed("--overhead", help="LogGP: o."),
    _assumed("--gap", help="LogGP: g."),
    _assumed("--per-byte", help="LogGP: G."),
    _assumed("--send", help="Wormhole: the sender's software."),
    _assumed("--receive", help="Wormhole: the receiver's software."),
    _assumed("--hop", help="Wormhole: the header, for every link."),
    _assumed("--copy", help="Wormhole: the sender's software, per byte."),
    _assumed(
        "--all-port",
        is_flag=True,
        type=bool,
        metavar=None,
        default=None,
        help="Wormhole: a rank has a port for each of its links.",
    ),
    grouped("A machine of nodes, racks, sites")(
        "--levels",
        metavar="MACHINE",
        help="4x16: 200ns,2,300ns; 1.7us,4 (nodes x ranks: t0,λ,port of each level, inside first;"
        " 'read 80ns' in the first: its ranks share memory),"
        " a .toml file, or ethernet:2x4x16, cluster:4x16, emulated:4x16, sites:4x16;"
        " docs/reference/machines.md says more.",
    ),
    grouped("The network")(
        "--topology",
        metavar="KIND:SIZES",
        help="mesh:16x16, torus:4x4x8, hypercube:6 or complete:32; messages wait for links"
        " (Hockney, wormhole)  [default: nobody is in anybody's way].",
    ),
)
"""Options for a machine of any kind, and for its network; `machine_from` reads them."""


def machine_from(
    options: Mapping[str, Any],
    ranks: int,
    nbytes: int,
    shape: tuple[int, int] | None,
    combined: tuple[str, str] | None,
) -> ChosenMachine:
    """The machine and network that `machine_options` describe; by default this machine's profile.

    ranks: their number.   nbytes: message size in bytes, for remarks on how well times are known.
    shape: rows and columns if the preset's network is a mesh; None for a mesh near a square.
    combined: operator and element type; None if the collective combines nothing.
    Raises InvalidArgument if options do not describe one machine of `ranks` ranks, UnknownName if
    there is no such preset, DamagedProfile if the profile is damaged or missing.
    """
    topology = None if options["topology"] is None else parse(options["topology"])
    if topology is not None:
        checked_topology(topology, ranks, "a machine with a --topology")
    parameters = {name: options[name] for name in _ARGUMENTS if options[name] is not None}
    others = [name for name in ("preset", "profile_path", "levels") if options[name] is not None]
    kinds = [name for name, kind in _KINDS.items() if parameters.keys() <= {*kind}]
    if len(others) + bool(parameters) > 1 or not kinds:
        described = ", ".join(map(_typed, [*parameters, *others]))
        raise InvalidArgument(
            "one machine to plan for",
            f"options of several ({described})",
            "describe one machine only",
        )
    placement: Placement | None = options["placement"]
    if placement is not None and (parameters or others not in ([], ["profile_path"])):
        seen, remedy = "it is about measured machines", "name a --profile, or place with --levels"
        raise InvalidArgument("--placement with an assumed machine", seen, remedy)
    if parameters:
        return ChosenMachine(_assumed_machine(kinds[0], parameters), "given", topology)
    if (text := options["levels"]) is not None:
        return ChosenMachine(_with_levels(text, ranks), f"levels {text}", topology)
    if (name := options["preset"]) is not None:
        preset = PRESETS[name]
        network = topology or network_of(preset, ranks, shape)
        return ChosenMachine(preset.machine, f"preset {name}", network)
    path, remark = options["profile_path"], ""
    if path is None:
        path, remark = of_this_machine()
    profile = Profile.load(path).at(ranks)
    made, kind = profile.provenance, profile.fingerprint
    origin = f"profile of {', '.join(list(made.hosts)[:3])}, {kind.mpi_library},"
    origin += f" {kind.emulated or kind.layout}, {made.created[:10]}"
    if kind.layout == "several nodes" and not (kind.network or kind.emulated):
        remark += "it does not say of which network; tune again, so that networks are told apart"
    quality, digits = known_to(profile.points, nbytes)
    if placement is not None:
        check_placement(placement, ranks)
        check_depth(placement, profile.every)
    elif topology is None:  # a network of links has no levels
        placement = filled(profile.measurements, ranks)
    machine = profile.machine_on(placement, *(combined or ()))
    return ChosenMachine(
        machine, origin, topology, profile, tuple(filter(None, (remark, quality))), digits
    )


def _with_levels(text: str, ranks: int) -> Levels:
    """The machine of --levels; InvalidArgument for other text or if it has not `ranks` ranks."""
    from collwise.model.level_notation import load, parse
    from collwise.model.level_presets import LEVEL_PRESETS

    name, _, placement = text.partition(":")
    if text.endswith(".toml"):
        machine = load(Path(text))
    elif name.strip().isalpha():  # a preset's name; placements have numbers
        preset = LEVEL_PRESETS.get(name.strip())
        if preset is None or not placement.strip():
            known = ", ".join(f"{each.name}:{each.example}" for each in LEVEL_PRESETS.values())
            seen = "it does not say where the ranks are" if preset else "there is no such preset"
            raise InvalidArgument(f"levels {text[:40]!r}", seen, f"write one of {known}")
        machine = preset.machine(placement)
    else:
        machine = parse(text)
    if machine.placement.ranks != ranks:
        seen = f"--levels places {machine.placement.ranks}"
        raise InvalidArgument(f"{ranks} ranks", seen, "give as many to both")
    return machine


def _typed(name: str) -> str:
    """The option with this name as users type it, such as --per-byte."""
    return "--" + name.removesuffix("_path").replace("_", "-")


def _assumed_machine(kind: str, parameters: Mapping[str, Any]) -> Machine:
    """A machine of a kind from its options; InvalidArgument if one is missing or out of range."""
    required = [name for name in _KINDS[kind] if name not in _OPTIONAL]
    missing = [_typed(name) for name in required if name not in parameters]
    if missing:
        *names, last = missing
        listed = f"{', '.join(names)} and {last} are" if names else f"{last} is"
        raise InvalidArgument(
            f"a {kind} machine",
            f"{listed} missing",
            "give " + ", ".join(map(_typed, required)),
        )
    make: Callable[..., Machine] = getattr(Machine, kind)
    try:
        return make(**{_ARGUMENTS[name]: value for name, value in parameters.items()})
    except InvalidArgument as problem:
        for name in parameters:  # the option's name in place of the argument's
            if problem.asked == f"a machine's {_ARGUMENTS[name]}":
                asked = f"a {kind} machine with {_typed(name)}"
                raise InvalidArgument(asked, problem.seen, problem.remedy) from None
        raise


def network_of(preset: Preset, ranks: int, shape: tuple[int, int] | None = None) -> Topology:
    """The network that a paper's machine has for `ranks` ranks.

    A mesh has `shape`, or is near a square.  A torus is the paper's if that has `ranks` nodes, else
    near a cube.   Raises InvalidArgument for a hypercube unless `ranks` is 2, 4, 8, ….
    """
    usual = preset.topology()
    if isinstance(usual, Mesh):
        return Mesh(*(shape if shape is not None else near_square(ranks)))
    if usual.size == ranks:
        return usual
    if isinstance(usual, Hypercube):
        if ranks < 2 or ranks & (ranks - 1):
            raise InvalidArgument(
                f"{ranks} ranks of the preset {preset.name}",
                "it is a hypercube, and the ranks are no power of two",
                "give 2, 4, 8, … ranks, or name another --topology",
            )
        return preset.topology(ranks.bit_length() - 1)
    first = max(
        n for n in range(1, round(ranks ** (1 / 3)) + 2) if ranks % n == 0 and n**3 <= ranks
    )
    return preset.topology(first, *near_square(ranks // first))
