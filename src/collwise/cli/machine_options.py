"""Options that describe a machine and its network, shared by commands."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import click

from collwise.cli.grouped_command import grouped
from collwise.cli.parameter_types import EXACT, SECONDS
from collwise.errors import InvalidArgument, UnknownName
from collwise.model.machine import Machine
from collwise.model.presets import PRESETS, Preset
from collwise.model.topology import Hypercube, Mesh, Topology, near_square, parse
from collwise.model.topology.base import checked_topology
from collwise.profiles.profile import Profile
from collwise.profiles.store import newest


class ChosenMachine(NamedTuple):
    """A machine, where it comes from, and the network between its ranks (None: no links)."""

    machine: Machine
    origin: str
    topology: Topology | None


class _Kind(NamedTuple):
    """A kind of machine: its constructor, whose arguments stand by the names of the options."""

    make: Callable[..., Machine]
    required: Mapping[str, str]
    optional: Mapping[str, str] = {}

    @property
    def arguments(self) -> Mapping[str, str]:
        return {**self.required, **self.optional}


_KINDS = {
    "postal": _Kind(Machine.postal, {"t0": "t0_s", "lam": "lam"}),
    "hockney": _Kind(Machine.hockney, {"alpha": "alpha_s", "beta": "beta_s"}, {"gamma": "gamma_s"}),
    "loggp": _Kind(
        Machine.loggp, {"latency": "L_s", "overhead": "o_s", "gap": "g_s", "per_byte": "G_s"}
    ),
    "wormhole": _Kind(
        Machine.wormhole,
        {"send": "send_s", "receive": "receive_s", "hop": "hop_s", "beta": "beta_s"},
        {"gamma": "gamma_s", "copy": "copy_s", "all_port": "all_port"},
    ),
}
_PARAMETERS = tuple(dict.fromkeys(name for kind in _KINDS.values() for name in kind.arguments))
MACHINE_OPTIONS = ("profile_path", "preset", *_PARAMETERS, "topology")
"""The names of all options that `machine_from` reads."""


def _topology(ctx: click.Context, param: click.Parameter, text: str | None) -> Topology | None:
    return None if text is None else parse(text)


def _preset(ctx: click.Context, param: click.Parameter, name: str | None) -> str | None:
    if name is not None and name not in PRESETS:
        raise UnknownName.of("preset machine", name, PRESETS)
    return name


def machine_options(command: Any) -> Any:
    """Options for a machine of any kind, and for its network; `machine_from` reads them."""
    profile = grouped("A measured machine, or one of the papers")
    assumed = grouped("An assumed machine (times in seconds, or as in 1.7ms)")
    seconds = {"type": SECONDS, "metavar": "TIME"}
    options = (
        profile(
            "--profile",
            "profile_path",
            type=click.Path(path_type=Path),
            help="Profile file to use  [default: the one saved for this machine].",
        ),
        profile(
            "--preset",
            metavar="NAME",
            callback=_preset,
            help=f"{', '.join(PRESETS)}: with its network, unless --topology says another.",
        ),
        assumed("--t0", **seconds, help="Postal: t0 of every message."),
        assumed("--lam", type=EXACT, metavar="λ", help="Postal: λ, such as 4, 1.8 or 9/5."),
        assumed("--alpha", **seconds, help="Hockney: start-up."),
        assumed("--beta", **seconds, help="Hockney, wormhole: per byte."),
        assumed("--gamma", **seconds, help="Hockney, wormhole: per combined byte  [default: 0]."),
        assumed("--latency", **seconds, help="LogGP: L."),
        assumed("--overhead", **seconds, help="LogGP: o."),
        assumed("--gap", **seconds, help="LogGP: g."),
        assumed("--per-byte", **seconds, help="LogGP: G."),
        assumed("--send", **seconds, help="Wormhole: the sender's software."),
        assumed("--receive", **seconds, help="Wormhole: the receiver's software."),
        assumed("--hop", **seconds, help="Wormhole: the header, for every link."),
        assumed("--copy", **seconds, help="Wormhole: the sender's software, per byte."),
        assumed(
            "--all-port",
            is_flag=True,
            default=None,
            help="Wormhole: a rank has a port for each of its links.",
        ),
        grouped("The network")(
            "--topology",
            metavar="KIND:SIZES",
            callback=_topology,
            help="mesh:16x16, torus:4x4x8, hypercube:6 or complete:32; messages wait for links"
            " (Hockney, wormhole)  [default: nobody is in anybody's way].",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def machine_from(
    options: Mapping[str, Any],
    ranks: int,
    shape: tuple[int, int] | None,
    combined: tuple[str, str] | None,
) -> ChosenMachine:
    """The machine and the network that `machine_options` describe, for so many ranks.

    shape: the mesh that a preset's network is, if it is a mesh; near a square if not given.
    combined: operator and type, whose measured times count; None where nothing is combined.
    Raises InvalidArgument for what describes no machine, or several; DamagedProfile.
    """
    topology: Topology | None = options["topology"]
    if topology is not None:
        checked_topology(topology, ranks, "a machine with a --topology")
    parameters = {name: options[name] for name in _PARAMETERS if options[name] is not None}
    others = [name for name in ("preset", "profile_path") if options[name] is not None]
    kinds = [name for name, kind in _KINDS.items() if parameters.keys() <= kind.arguments.keys()]
    if len(others) + bool(parameters) > 1 or not kinds:
        described = ", ".join(map(_typed, [*parameters, *others]))
        raise InvalidArgument(
            "one machine to plan for",
            f"options of several ({described})",
            "describe one machine only",
        )
    if parameters:
        return ChosenMachine(_assumed(kinds[0], parameters), "given", topology)
    if (name := options["preset"]) is not None:
        preset = PRESETS[name]
        network = topology or network_of(preset, ranks, shape)
        return ChosenMachine(preset.machine, f"preset {name}", network)
    path = options["profile_path"]
    profile = Profile.load(path) if path else newest()
    origin = f"profile of {', '.join(list(profile.provenance.hosts)[:3])}"
    machine = profile.machine_combining(*combined) if combined else profile.machine
    return ChosenMachine(machine, origin, topology)


def _typed(name: str) -> str:
    """An option as it is typed."""
    return "--" + name.removesuffix("_path").replace("_", "-")


def _assumed(kind: str, parameters: Mapping[str, Any]) -> Machine:
    """A machine of a kind from the values of its options; raises InvalidArgument if one lacks."""
    make, required, _ = _KINDS[kind]
    missing = [_typed(name) for name in required if name not in parameters]
    if missing:
        *names, last = missing
        listed = f"{', '.join(names)} and {last} are" if names else f"{last} is"
        raise InvalidArgument(
            f"a {kind} machine",
            f"{listed} missing",
            "give " + ", ".join(map(_typed, required)),
        )
    arguments = _KINDS[kind].arguments
    return make(**{arguments[name]: value for name, value in parameters.items()})


def network_of(preset: Preset, ranks: int, shape: tuple[int, int] | None = None) -> Topology:
    """The network that a paper's machine has for so many ranks.

    Its usual one if that has as many nodes; else a mesh of `shape` or near a square, a torus of
    three sizes near a cube, a hypercube.   Raises InvalidArgument where no hypercube fits.
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
