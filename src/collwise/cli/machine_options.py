"""Options that describe a machine and its network, shared by commands."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import click

from collwise.cli.option_groups import grouped
from collwise.cli.parameter_types import EXACT, SECONDS
from collwise.errors import InvalidArgument, UnknownName
from collwise.model.machine import Machine
from collwise.model.presets import PRESETS, Preset
from collwise.model.topology import Hypercube, Mesh, Topology, near_square, parse
from collwise.model.topology.base import checked_topology
from collwise.profiles.profile import Profile
from collwise.profiles.store import newest


class Given(NamedTuple):
    """A machine, where it comes from, and the network between its ranks (None: no links)."""

    machine: Machine
    origin: str
    topology: Topology | None


class _Kind(NamedTuple):
    """What describes a kind of machine: options that it needs, and others that it takes."""

    needs: tuple[str, ...]
    takes: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[str, ...]:
        return self.needs + self.takes


_KINDS = {
    "postal": _Kind(("t0", "lam")),
    "hockney": _Kind(("alpha", "beta"), ("gamma",)),
    "loggp": _Kind(("latency", "overhead", "gap", "per_byte")),
    "wormhole": _Kind(("send", "receive", "hop", "beta"), ("gamma", "copy", "all_port")),
}
_OPTIONS = tuple(dict.fromkeys(name for kind in _KINDS.values() for name in kind.all))


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
    combining: tuple[str, str] | None,
) -> Given:
    """The machine and the network that `machine_options` describe, for so many ranks.

    shape: the mesh that a preset's network is, if it is a mesh; near a square if not given.
    combining: operator and type, whose measured times count; None where nothing is combined.
    Raises InvalidArgument for what describes no machine, or several; DamagedProfile.
    """
    topology: Topology | None = options["topology"]
    if topology is not None:
        checked_topology(topology, ranks, "a machine with a --topology")
    given = [name for name in _OPTIONS if options.get(name) is not None]
    others = [name for name in ("preset", "profile_path") if options.get(name) is not None]
    kinds = [name for name, kind in _KINDS.items() if set(given) <= set(kind.all)]
    if len(others) + bool(given) > 1 or not kinds:
        seen = ", ".join(f"--{_typed(name)}" for name in given + others)
        raise InvalidArgument(
            "one machine to plan for", f"options of several ({seen})", "describe one machine only"
        )
    if given:
        return Given(_assumed(kinds[0], options, given), "given", topology)
    if (name := options.get("preset")) is not None:
        preset = PRESETS[name]
        network = topology or network_of(preset, ranks, shape)
        return Given(preset.machine, f"preset {name}", network)
    path = options["profile_path"]
    measured = Profile.load(path) if path else newest()
    origin = f"profile of {', '.join(list(measured.provenance.hosts)[:3])}"
    machine = measured.machine_combining(*combining) if combining else measured.machine
    return Given(machine, origin, topology)


def _typed(name: str) -> str:
    return name.removesuffix("_path").replace("_", "-")


def _assumed(kind: str, o: Mapping[str, Any], given: list[str]) -> Machine:
    needs = _KINDS[kind].needs
    missing = [f"--{_typed(name)}" for name in needs if name not in given]
    if missing:
        several = len(missing) > 1
        told = f"{', '.join(missing[:-1])} and {missing[-1]}" if several else missing[0]
        raise InvalidArgument(
            f"a {kind} machine",
            f"{told} {'are' if several else 'is'} missing",
            "give " + ", ".join(f"--{_typed(name)}" for name in needs),
        )
    gamma = o["gamma"] or 0
    if kind == "postal":
        return Machine.postal(t0_s=o["t0"], lam=o["lam"])
    if kind == "hockney":
        return Machine.hockney(alpha_s=o["alpha"], beta_s=o["beta"], gamma_s=gamma)
    if kind == "loggp":
        return Machine.loggp(L_s=o["latency"], o_s=o["overhead"], g_s=o["gap"], G_s=o["per_byte"])
    return Machine.wormhole(
        send_s=o["send"],
        receive_s=o["receive"],
        hop_s=o["hop"],
        beta_s=o["beta"],
        gamma_s=gamma,
        copy_s=o["copy"] or 0,
        all_port=bool(o["all_port"]),
    )


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
