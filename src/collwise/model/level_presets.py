"""Machines with levels to plan for without measuring, and where each number is from.

Notes name the source of each *published* number; an *estimate* is ours.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from collwise.errors import InvalidArgument
from collwise.model.level_notation import parse_costs, parse_placement
from collwise.model.levels import Levels
from collwise.model.machine import Machine


@dataclass(frozen=True)
class LevelPreset:
    """A kind of machine with levels, such as "cluster"; `machine` places ranks on it.

    costs: the costs of all levels as text, such as "1us,2; 5us,4", the innermost level first.
    groups: the words for groups, the innermost level's first.   notes: for each level's name, a
    text that says which costs are published and which are estimates.
    """

    name: str
    summary: str
    costs: str
    groups: tuple[str, ...]
    notes: Mapping[str, str] = field(compare=False)

    def machine(self, placement: str) -> Levels:
        """A machine of this kind with the ranks of `placement`, such as "4x16".

        Raises InvalidArgument for text that is no placement, or has another number of levels.
        """
        laws, ports = parse_costs(self.costs)
        where = parse_placement(placement)
        if where.depth != len(laws):
            kinds = [f"{name}s" for name in (*reversed(self.groups), "rank")]
            raise InvalidArgument(
                f"levels {self.name}:{placement.strip()[:40]}",
                f"{self.name} has {' and '.join(kinds[:-1])}, and the placement has {where.depth}"
                f" level{'s' * (where.depth > 1)} instead of {len(laws)}",
                f"write {' x '.join(kinds)}, such as {self.name}:{self.example}",
            )
        return Machine.levels(laws, where, ports=ports, names=self.groups)

    @property
    def example(self) -> str:
        """The text of a placement with the preset's number of levels, such as "4x16"."""
        return "x".join(["2", "4", "16"][-len(self.groups) - 1 :])


_PRESETS = (
    LevelPreset(
        "emulated",
        "emulated hosts (`collwise lab`), 10 Mbit/s and 5 ms",
        "60us+1ns/B,90us+1ns/B,0.05ms+800ns/B; 0.2ms+1ns/B,5.2ms+800ns/B",
        ("node",),
        {
            "node": "port: published, a rate of 10 Mbit/s is 0.8 µs per byte; estimate: 50 µs for"
            " the headers of its packets, and 60 µs of software for a message in shared memory",
            "network": "published: 5 ms one way and 0.8 µs per byte, as the lab is asked for;"
            " estimate: 0.2 ms of software",
        },
    ),
    LevelPreset(
        "ethernet",
        "nodes on 10 Gbit/s Ethernet in two tiers",
        "0.3us+0.1ns/B,0.6us+0.1ns/B,0.1us+0.8ns/B; 3us+0.8ns/B,15us+0.8ns/B,0s+0.2ns/B;"
        " 3us+0.8ns/B,25us+0.8ns/B",
        ("node", "rack"),
        {
            "node": "estimate: shared memory at 10 GB/s; published: the card's rate, 0.8 ns per"
            " byte (IEEE 802.3ae)",
            "rack": "estimate: 15 µs through one switch with kernel TCP, an uplink of 40 Gbit/s",
            "network": "estimate: 25 µs through three switches",
        },
    ),
    LevelPreset(
        "cluster",
        "nodes on one switch of 100 Gbit/s InfiniBand",
        "0.3us+0.05ns/B,0.6us+0.05ns/B,0.05us+0.08ns/B; 0.4us+0.08ns/B,1.5us+0.08ns/B",
        ("node",),
        {
            "node": "estimate: shared memory at 20 GB/s; published: the card's rate, 0.08 ns per"
            " byte (InfiniBand EDR, 4 lanes)",
            "network": "estimate: 1.5 µs through one switch, 0.4 µs of software",
        },
    ),
    LevelPreset(
        "sites",
        "clusters at several sites, as MagPIe's were",
        "5us+20ns/B,20us+20ns/B,1us+1us/B; 50us+20ns/B,10ms+1us/B",
        ("site",),
        {
            "site": "estimate: 20 µs and 50 MB/s inside a cluster",
            "network": "published: 10 ms one way and 1 MB/s between clusters ([Kielmann1999],"
            " MagPIe's usual setting); estimate: 50 µs of software",
        },
    ),
)

LEVEL_PRESETS: Mapping[str, LevelPreset] = MappingProxyType({p.name: p for p in _PRESETS})
"""Every kind of machine with levels, by name."""
