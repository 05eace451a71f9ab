"""A grid of races: networks × placements × collectives × sizes, on one or several MPI libraries.

`collwise bench --grid FILE` runs it.  A *launch* starts ranks of one library on one network with
one placement, and races some of the cells there.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import cycle, islice, product
from math import ceil
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec

from collwise.errors import InvalidArgument
from collwise.model.sources import distribute
from collwise.model.topology import near_square
from collwise.planner.choose import problem_for
from collwise.planner.operator_order import DTYPE, OP
from collwise.schedule.collectives import find_collective
from collwise.system.quantities import parse_size, parse_time
from collwise.system.toml_files import read_toml
from collwise.tuning.outcomes import Task

_Positive = Annotated[int, msgspec.Meta(ge=1)]
_PLACEMENT = re.compile(r"([1-9]\d{0,3})x([1-9]\d{0,3})|[1-9]\d{0,3}(?:\+[1-9]\d{0,3})+")


class GridCollective(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A collective of the grid.

    op, dtype: for a collective that combines.   sources: for an allgatherv, how many ranks have
    data: a number, "p/4" for a quarter of the ranks, or "all" (also if None).   counts: the
    sources' shares of the data, repeated as needed; [1]: all sources have equal shares.
    """

    name: str
    op: str | None = None
    dtype: str | None = None
    sources: Annotated[str, msgspec.Meta(pattern="^(all|p/[1-9][0-9]*)$")] | _Positive | None = None
    counts: Annotated[tuple[_Positive, ...], msgspec.Meta(min_length=1)] = (1,)

    def __str__(self) -> str:
        words = [find_collective(self.name).name, self.op or "", self.dtype or ""]
        if find_collective(self.name).has_sources:
            words.append(f"from {self.sources or 'all'}" + ", uneven" * (len(set(self.counts)) > 1))
        return " ".join(filter(None, words))

    def task(self, ranks: int, nbytes: int) -> Task:
        """The task to race on `ranks` ranks.

        nbytes: bytes of the message or vector, rounded up to whole elements and blocks; for an
        allgatherv, of all contributions together, each rounded up to whole bytes.
        """
        if not (kind := find_collective(self.name)).has_sources:
            if self.sources is not None or self.counts != (1,):
                remedy = "leave sources and counts out"
                raise InvalidArgument(f"{kind.name} of a grid", "it has no sources", remedy)
            problem, reason = problem_for(
                kind.name, ranks=ranks, nbytes=0, op=self.op, dtype=self.dtype
            )
            return Task(problem, self.op or OP, self.dtype or DTYPE, reason).resized(nbytes)
        number = self.sources if isinstance(self.sources, int) else ranks
        if isinstance(self.sources, str) and self.sources != "all":
            number = max(ranks // int(self.sources[2:]), 1)
        chosen = distribute("equal", near_square(ranks), min(number, ranks))
        shares = list(islice(cycle(self.counts), len(chosen)))
        each = [ceil(nbytes * share / sum(shares)) for share in shares]
        problem, _ = problem_for(
            kind.name, ranks=ranks, nbytes=each, sources=chosen, op=self.op, dtype=self.dtype
        )
        return Task(problem)


class GridNetwork(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A network of the grid: emulated hosts, or this machine itself if no emulation is given.

    latency, rate, file: options of `collwise lab`; all None for this machine.   placements: where
    ranks are placed on this network; None for the grid's placements.
    """

    latency: str | None = None
    rate: str | None = None
    file: str | None = None
    placements: tuple[str, ...] | None = None

    @property
    def emulated(self) -> bool:
        """Whether the network's hosts are emulated."""
        return (self.latency, self.rate, self.file) != (None, None, None)


class _File(msgspec.Struct, forbid_unknown_fields=True):
    networks: Annotated[dict[str, GridNetwork], msgspec.Meta(min_length=1)]
    collectives: Annotated[list[GridCollective], msgspec.Meta(min_length=1)]
    sizes: Annotated[list[str], msgspec.Meta(min_length=1)]
    placements: list[str] = []
    libraries: dict[str, str] = {}
    race: str = "10s"
    measure: str = "10s"
    rounds: _Positive | None = None


class Launch(NamedTuple):
    """Ranks of one library on one network with one placement, which race some cells.

    turn: the round.   ranks_per_host: one number for each host.   number: 1, or 2 for the launch
    that repeats races which the first launch decided.
    """

    library: str
    turn: int
    network: str
    placement: str
    ranks_per_host: tuple[int, ...]
    number: int

    @property
    def name(self) -> str:
        """The name of the launch's files: letters, digits and hyphens."""
        words = f"{self.library} {self.network} {self.placement} {self.turn} {self.number}"
        return re.sub("[^A-Za-z0-9]+", "-", words).strip("-")

    def __str__(self) -> str:
        again = ", again" * (self.number > 1)
        return f"{self.library} on {self.network}, {self.placement}, round {self.turn + 1}{again}"


class Grid(NamedTuple):
    """What a file of a grid asks for.

    cells: collectives with sizes in bytes; a launch is given places in this list.   libraries: maps
    a library's name to its Python interpreter; "" is this one.   race_s: most seconds of a race.
    measuring_s: the most seconds in which each launch measures the machine.
    rounds: number of rounds.  In a round every launch races one size of each collective, so all is
    raced after as many rounds as there are sizes.
    """

    folder: Path
    networks: dict[str, GridNetwork]
    placements: tuple[str, ...]
    collectives: tuple[GridCollective, ...]
    sizes: tuple[int, ...]
    libraries: dict[str, str]
    race_s: float
    measuring_s: float
    rounds: int

    @classmethod
    def load(cls, path: Path) -> "Grid":
        """Read a file.  Raises InvalidArgument, which names the place of the mistake."""
        return read_toml(path, _File, lambda file: _grid(file, path), "the grid", _PAGE)

    @property
    def cells(self) -> list[tuple[GridCollective, int]]:
        """Every collective with every size."""
        return list(product(self.collectives, self.sizes))

    @property
    def wanted(self) -> int:
        """The number of cells of all rounds."""
        placements = sum(len(self.placements_on(network)) for network in self.networks)
        return placements * self.rounds * len(self.collectives)

    def placements_on(self, network: str) -> Sequence[str]:
        """The placements that are raced on a network."""
        own = self.networks[network].placements
        return self.placements if own is None else own

    def launches(self, turn: int, number: int = 1) -> Iterator[Launch]:
        """The launches of a round: for each network and placement, all libraries in turn."""
        for network in self.networks:
            for placement in self.placements_on(network):
                for library in self.libraries:
                    yield Launch(
                        library, turn, network, placement, ranks_per_host_of(placement), number
                    )

    def cells_of(self, launch: Launch) -> list[int]:
        """The places in `cells` that a launch races: one size of each collective.

        The size moves on by one from one network, placement, collective or round to the next.  A
        collective has raced all sizes everywhere after as many rounds as sizes.
        """
        place = self.placements_on(launch.network).index(launch.placement)
        first = list(self.networks).index(launch.network) + place + launch.turn
        count = len(self.sizes)
        return [
            number * count + (first + number) % count for number in range(len(self.collectives))
        ]


_PAGE = "docs/how-to/grid.md"


def ranks_per_host_of(placement: str) -> tuple[int, ...]:
    """How many ranks each host has: 4x2 is four hosts of two ranks, 5+3 hosts of five and three."""
    if (match := _PLACEMENT.fullmatch(placement)) is None:
        remedy = "write HOSTSxRANKS, or 5+3+8"
        raise InvalidArgument("a placement of a grid", f"{placement[:20]!r} is none", remedy)
    if match[1]:
        return (int(match[2]),) * int(match[1])
    return tuple(map(int, placement.split("+")))


def _grid(file: _File, path: Path) -> Grid:
    libraries = file.libraries or {"this library": ""}
    sizes = tuple(parse_size(size) for size in file.sizes)
    race_s, measuring_s = (float(parse_time(text)) for text in (file.race, file.measure))
    if min(*sizes, race_s, measuring_s) <= 0 or len(set(sizes)) < len(sizes):
        seen, remedy = "sizes and times are above 0, and no size comes twice", "correct them"
        raise InvalidArgument("sizes, race and measure of a grid", seen, remedy)
    rounds = min(file.rounds or len(sizes), len(sizes))
    grid = Grid(
        path.parent, file.networks, tuple(file.placements), tuple(file.collectives), sizes,
        libraries, race_s, measuring_s, rounds,
    )  # fmt: skip
    launches = list(grid.launches(0))
    names = {launch.name for launch in launches}
    labels = {str(collective) for collective in grid.collectives}
    if len(names) < len(launches) or len(labels) < len(grid.collectives):
        seen = "two networks, placements or collectives are alike, or differ by signs only"
        raise InvalidArgument("the names of a grid", seen, "name them apart")
    for launch in launches:
        for collective, nbytes in grid.cells[:: len(sizes)]:
            collective.task(sum(launch.ranks_per_host), nbytes)  # raises for what nobody can race
        if not grid.networks[launch.network].emulated and len(launch.ranks_per_host) > 1:
            seen = f"{launch.placement} on {launch.network}, which has neither latency nor file"
            raise InvalidArgument("a grid", seen, "this machine is one host: write 1xRANKS")
    if not launches:
        raise InvalidArgument("a grid", "it has no placements", "add placements = ['8x1']")
    return grid
