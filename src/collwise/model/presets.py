"""The papers' machines: their numbers, their networks, and the source of each number.

    preset = PRESETS["paragon"]
    simulate(schedule, preset.machine, preset.topology(10, 10))

Notes name the source of each *published* number.  An *estimate* is ours, since few of the papers
give all numbers that a simulation needs.  All presets are one-port.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import NoReturn

from collwise.errors import UnknownName
from collwise.model.machine import Machine, Wormhole
from collwise.model.measured_machine import measured
from collwise.model.topology import Hypercube, Mesh, Topology, Torus


@dataclass(frozen=True)
class Preset:
    """A machine of the papers.

    machine: the wormhole law, per byte.   make: the class of the topology.   sizes: the usual sizes
    of the topology.   notes: for each parameter's name, where its value is published, or how it is
    estimated.   contention_free: a law without contention, for closed forms and plans, if the
    machine's paper measured or assumed such a law; else None.
    """

    name: str
    summary: str
    machine: Wormhole
    make: Callable[..., Topology]
    sizes: tuple[int, ...]
    notes: Mapping[str, str] = field(compare=False)
    contention_free: Machine | None = None

    def topology(self, *sizes: int) -> Topology:
        """The machine's network with the given sizes, or with the usual ones if none are given.

        Raises InvalidArgument for sizes that do not suit the kind of network.

        >>> PRESETS["paragon"].topology(10, 10).describe()
        'mesh of 10 × 10'
        """
        return self.make(*(sizes or self.sizes))

    def describe(self) -> str:
        """The machine as text: name, summary, usual network, and the origin of each number."""
        usual = f"  network: {self.topology().describe()} if no sizes are given"
        notes = [f"  {name}: {note}" for name, note in self.notes.items()]
        return "\n".join([f"{self.name}: {self.summary}", usual, *notes])


ITEM = 4
"""Bytes of an item in [vandeGeijn1991]: a single precision number."""

PACKET = 512
"""Bytes of a packet on the Delta, up to which λ grows [Bruck1996]."""


def _delta_curve(machine: Machine) -> Machine:
    """The Delta's costs without contention: `machine`'s from 512 bytes on; λ is 1.3 at 1 byte."""
    ends = [(n, *machine.message(n)) for n in (PACKET, 32 * PACKET)]
    rows = [(n, gap, latency / gap) for n, gap, latency in ends]
    return measured([[(1, machine.message(1).gap, "1.3"), *rows]])


def _delta() -> Preset:
    machine = Machine.wormhole(
        send_s="54.6e-6",
        receive_s="84.72e-6",
        hop_s="0.1e-6",
        beta_s="40e-9",
        gamma_s="0.0875e-6",
        copy_s="60e-9",
    )
    notes = {
        "send_s": "estimate: with it, beta_s and copy_s, λ falls from 1.8 at 512 bytes to 1.05 at"
        " 16 KB, as is published ([Bruck1996] §2.2, Fig 3)",
        "receive_s": "estimate: 0.8 of the time to send 512 bytes, for the same reason; that the"
        " receiver is later by a constant above 512 bytes is published ([Bruck1996] Fig 4)",
        "hop_s": "published: 75 to 150 ns from node to node (the machine's brochure, as quoted in"
        " comp.arch, June 1991)",
        "beta_s": "published: links of 25 MB/s (the same brochure)",
        "gamma_s": "published for the same processor: 0.35 µs per 4 bytes ([vandeGeijn1991] §6)",
        "copy_s": "estimate: the sender's software fills the network at 10 MB/s in all.  The order"
        " free of contention then saves some 18 % of a random order's time, for a binomial"
        " broadcast of 64 KB on 8 × 8, where [Bruck1996] measured about 10 % (Fig 14)",
        "contention_free": "the same law from 512 bytes on; an estimate below that, where only is"
        " published that λ grows with the size ([Bruck1996] Fig 3)",
    }
    summary = "Intel Touchstone Delta (1991): i860 at 40 MHz, 2-D mesh"
    return Preset("delta", summary, machine, Mesh, (16, 32), notes, _delta_curve(machine))


def _paragon() -> Preset:
    machine = Machine.wormhole(
        send_s="50e-6",
        receive_s="50e-6",
        hop_s="40e-9",
        beta_s=Fraction(1, 175_000_000),
        gamma_s="0.07e-6",
        copy_s="43e-9",
    )
    notes = {
        "send_s": "estimate: half of NX's latency under OSF/1, about 100 µs (published:"
        " [SainiSimon1994])",
        "receive_s": "estimate: the other half",
        "hop_s": "estimate: 40 ns for a router of the mesh",
        "beta_s": "published: 175 MB/s each way ([Top500Reports]), of 200 MB/s peak",
        "gamma_s": "estimate: that of the iPSC/860, at this processor's clock",
        "copy_s": "estimate: 25 ns for the system's copying, with which NX achieves 30 to 35 MB/s"
        " (published: [SainiSimon1994]), and 18 ns for that of programs which join and part"
        " messages, fitted to s-to-p broadcasts: br_xy_source on 10 × 10 then takes 10.7 ms for"
        " 80 KB of 5 sources and 7.9 ms of 40, where [Hambrusch1998] measured about 11.4 and 7.3",
    }
    summary = "Intel Paragon (1993): i860 XP at 50 MHz, 2-D mesh, NX under OSF/1"
    return Preset("paragon", summary, machine, Mesh, (16, 16), notes)


def _t3d() -> Preset:
    machine = Machine.wormhole(
        send_s="20e-6",
        receive_s="20e-6",
        hop_s="20e-9",
        beta_s=Fraction(1, 150_000_000),
        gamma_s="12.5e-9",
        copy_s="30e-9",
    )
    notes = {
        "send_s": "estimate: message passing (PVM, MPI) took some tens of µs",
        "receive_s": "estimate: as send_s",
        "hop_s": "estimate: three cycles at 150 MHz",
        "beta_s": "estimate: half of the 300 MB/s between nodes (published: [Top500Reports]),"
        " since two processors share a node, which is otherwise not modelled",
        "gamma_s": "estimate: 80 MB/s, as for memory that is read twice and written",
        "copy_s": "estimate: copying at 33 MB/s, which leaves some 27 MB/s from end to end",
    }
    summary = "Cray T3D (1993): Alpha 21064 at 150 MHz, 3-D torus"
    return Preset("t3d", summary, machine, Torus, (4, 4, 8), notes)


def _ipsc860() -> Preset:
    machine = Machine.wormhole(
        send_s="126e-6",
        receive_s=0,
        hop_s="10e-6",
        beta_s=Fraction("1.6e-6") / ITEM,
        gamma_s=Fraction("0.35e-6") / ITEM,
    )
    notes = {
        "send_s": "published: with one hop, α = 136 µs for vectors of more than 25 items, of 75 µs"
        " for others, which is not modelled ([vandeGeijn1991] §6, after Dunigan 1990)",
        "receive_s": "0: within α",
        "hop_s": "estimate: 10 µs for a link of the circuit",
        "beta_s": "published: β = 1.6 µs per item of 4 bytes (the same)",
        "gamma_s": "published: γ = 0.35 µs per item of 4 bytes (the same)",
        "copy_s": "0: within β",
        "contention_free": "published: what its programs saw, α = 525 µs with their bookkeeping and"
        " padding, β = 2 µs and γ = 0.35 µs per item of 4 bytes ([vandeGeijn1991] §6, Fig 7)",
    }
    summary = "Intel iPSC/860 (1990): i860 at 40 MHz, hypercube"
    effective = Machine.hockney(
        alpha_s="525e-6", beta_s=Fraction("2e-6") / ITEM, gamma_s=Fraction("0.35e-6") / ITEM
    )
    return Preset("ipsc860", summary, machine, Hypercube, (6,), notes, effective)


class _Presets(dict[str, Preset]):
    def __missing__(self, name: object) -> NoReturn:
        raise UnknownName.of("preset machine", name, self)


PRESETS: Mapping[str, Preset] = MappingProxyType(
    _Presets((preset.name, preset) for preset in (_delta(), _ipsc860(), _paragon(), _t3d()))
)
"""Every machine of the papers, by name."""
