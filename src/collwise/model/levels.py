"""Machines with levels: a message costs more the farther apart its two ranks are."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

from collwise.errors import InvalidArgument, shown
from collwise.model.exact import Number, rounded_latency
from collwise.model.kept_hash import KeptHash
from collwise.model.machine import (
    Cost,
    Machine,
    PortsOnly,
    Postal,
    checked_machine,
    checked_nbytes,
)
from collwise.model.measured_machine import Measured, TimesBySize, interpolated, times_by_size
from collwise.model.placement import Placement, checked_placement
from collwise.model.shared_memory import Memory
from collwise.system.formatting import chosen_time, count
from collwise.system.integers import checked_integer

ASKED = "a machine with levels"
GROUP_NAMES: tuple[str, ...] = ("node", "rack", "site")
"""Default words for groups, the innermost level's first; profiles store them."""


@dataclass(frozen=True)
class Level:
    """The costs of messages between ranks whose smallest common group is of this level.

    name: the word for a group of this level, such as "node".   law: gives t0 and λ of the messages;
    only the innermost level may have `Memory`.   port: seconds, by message size, for which a
    message that leaves or enters a group of this level keeps the group's port busy (a node's
    network card, a site's uplink); empty if groups share no port.
    """

    name: str
    law: Postal | Measured | Memory
    port: TimesBySize = ()


@dataclass(frozen=True)
class Levels(KeptHash, Machine):
    """A machine with levels and a placement of its ranks.

    by_level: the levels, the innermost first.  Build one with `Machine.levels`. `at` and
    `between` give the cost of a message.
    """

    by_level: tuple[Level, ...]
    placement: Placement
    kind = "levels"
    law = "levels"
    independent_ports = False

    def message(self, nbytes: int) -> Cost:
        """The least t0 and the least λ·t0 of all levels: no message of nbytes costs less."""
        costs = [level.law.message(nbytes) for level in self.by_level]
        return Cost(min(c.gap for c in costs), min(c.latency for c in costs))

    def at(self, level: int, nbytes: int) -> Cost:
        """The cost of a message between two ranks whose smallest common group is of this level.

        level: from 1 to the number of levels.
        """
        return self._level(level).law.message(nbytes)

    def between(self, source: int, target: int, nbytes: int) -> Cost:
        """The cost of a message between two ranks.  Raises InvalidArgument if they are the same."""
        if not (level := self.placement.meeting(source, target)):
            seen = f"a message from rank {source} to itself"
            raise InvalidArgument(ASKED, seen, "give two ranks")
        return self.at(level, nbytes)

    def port(self, level: int, nbytes: int) -> Fraction:
        """Seconds for which a message keeps a group's port at this level busy; 0 without a port."""
        points, nbytes = self._level(level).port, checked_nbytes(nbytes)
        return interpolated(points, nbytes)[0] if points else Fraction(0)

    def _level(self, level: int) -> Level:
        return self.by_level[checked_integer(level, ASKED, "level", 1, len(self.by_level)) - 1]

    def receipt(self, nbytes: int) -> Fraction:
        """The least seconds between two receipts at one rank, over all levels."""
        return min(level.law.receipt(nbytes) for level in self.by_level)

    def receipt_at(self, level: int, nbytes: int) -> Fraction:
        """The least seconds between two receipts at a rank, the second of nbytes at this level.

        This is t0, or the time of a read in shared memory.   level: from 1 to the number of levels.
        """
        return self._level(level).law.receipt(nbytes)

    @property
    def shares_memory(self) -> bool:  # noqa: D102
        return self.by_level[0].law.shares_memory

    @property
    def shares_ports(self) -> bool:
        """Whether any group has a port that its ranks share."""
        return any(level.port for level in self.by_level[:-1])

    def combine(self, nbytes: int) -> Fraction | None:
        """Seconds for combining two vectors of nbytes by the innermost law; None if it is free."""
        return self.by_level[0].law.combine(nbytes)

    def sizes(self) -> tuple[int, ...]:  # noqa: D102
        ports = [nbytes for level in self.by_level for nbytes, _ in level.port]
        return tuple(sorted({*ports, *(n for level in self.by_level for n in level.law.sizes())}))

    def combining_sizes(self) -> tuple[int, ...]:  # noqa: D102
        return self.by_level[0].law.combining_sizes()

    def _slower(self, seconds: Fraction) -> "Levels":
        """The machine on which sending between the outermost groups takes `seconds` longer.

        The port of these groups, if any, is busy for `seconds` longer.  The messages of each level
        take longer by `seconds` times its t0 of a byte over gap_outside(1), at most by `seconds`.
        """
        whole, slower = self.gap_outside(1), []
        for level in self.by_level:
            share = min(level.law.message(1).gap / whole, Fraction(1))
            slower.append(replace(level, law=level.law._slower(seconds * share)))
        if len(slower) > 1:
            card = slower[-2]
            port = tuple((nbytes, time + seconds) for nbytes, time in card.port)
            slower[-2] = replace(card, port=port)
        return replace(self, by_level=tuple(slower))

    def gap_outside(self, nbytes: int) -> Fraction:
        """Seconds between two messages at the last level: the longer of t0 and the port's time."""
        depth = len(self.by_level)
        port = self.port(depth - 1, nbytes) if depth > 1 else Fraction(0)
        return max(self.at(depth, nbytes).gap, port)

    def planning_lam(self, nbytes: int) -> Fraction:
        """The λ of the outermost level, for which trees with messages of nbytes are built."""
        return self.by_level[-1].law.planning_lam(nbytes)

    def placed(self, placement: Placement) -> "Levels":
        """A machine with these levels and the ranks placed by `placement`.

        Raises InvalidArgument for a placement with another number of levels.
        """
        depth = checked_placement(placement, ASKED).depth
        if depth != len(self.by_level):
            seen = f"the placement has {count(depth, 'level')}, the machine {len(self.by_level)}"
            raise InvalidArgument(ASKED, seen, "give as many levels to both")
        return replace(self, placement=placement)

    def crossing(self, level: int) -> str:
        """Words for where messages of a level travel: "inside a node", "between racks"."""
        self._level(level)
        return crossing([own.name for own in self.by_level[:-1]], level)

    @property
    def crossings(self) -> tuple[str, ...]:
        """Words for where messages travel (`crossing`), for each level, the innermost first."""
        return tuple(map(self.crossing, range(1, len(self.by_level) + 1)))

    def oddities(self, nbytes: int) -> tuple[str, ...]:
        """Sentences that warn of levels faster than the next inner one, which is seldom meant.

        nbytes: the message size at which the levels are compared.
        """
        costs = [level.law.message(nbytes) for level in self.by_level]
        sentences = []
        for outer, (inside, outside) in enumerate(pairwise(costs), 2):
            there, here = f"messages {self.crossing(outer)}", f"those {self.crossing(outer - 1)}"
            if outside.latency < inside.latency:
                sentences.append(f"{there} are faster than {here}")
            elif outside.gap < inside.gap:
                sentences.append(f"{there} keep their sender busy for a shorter time than {here}")
        return tuple(sentences)

    def describe(self) -> str:  # noqa: D102
        placed = self.placement.describe([level.name for level in self.by_level[:-1]])
        laws = []
        for number, level in enumerate(self.by_level, 1):
            gap, latency = level.law.message(1)
            alike = isinstance(level.law, Postal) and len(level.port) < 2
            size = "" if alike else " for a byte"
            port = f", port {chosen_time(self.port(number, 1))}" if level.port else ""
            lam = f"{float(latency / gap):.4g}"
            read = f", read {chosen_time(level.law.receipt(1))}" if level.law.shares_memory else ""
            costs = f"t0 = {chosen_time(gap)}, λ = {lam}{read}{port}{size}"
            laws.append(f"{self.crossing(number)} {costs}")
        return f"{placed}; {'; '.join(laws)}"


def crossing(names: Sequence[str], level: int) -> str:
    """Words for where messages of a level travel.   names: groups' words, innermost first."""
    if level == 1:
        return f"inside a {names[0]}" if names else "in the network"
    return f"between {names[level - 2]}s"


@dataclass(frozen=True)
class OneLevel(PortsOnly):
    """A postal machine on which all messages cost what they cost at one level of `machine`.

    level: the level of all messages; they also pass the ports of inner levels.   overhead: exact
    seconds that each message takes more than on `machine`.   crowd: the number of ranks of a group
    that send through the group's port at the same time.
    """

    machine: Levels
    level: int
    overhead: Fraction = Fraction(0)
    crowd: int = 1
    kind = "flat"

    @property
    def independent_ports(self) -> bool:  # type: ignore[override]
        """False if the ranks share memory at this level, else True."""
        return not self.shares_memory

    @property
    def shares_memory(self) -> bool:  # noqa: D102
        return self.level == 1 and self.machine.shares_memory

    def _slower(self, seconds: Fraction) -> "OneLevel":
        return replace(self, overhead=self.overhead + seconds)

    def message(self, nbytes: int) -> Cost:  # noqa: D102
        gap, latency = self.machine.at(self.level, nbytes)
        if self.level > 1:
            port = max(self.machine.port(level, nbytes) for level in range(1, self.level))
            gap, latency = max(gap, self.crowd * port), latency + (self.crowd - 1) * port
        return Cost(gap + self.overhead, max(gap, latency) + self.overhead)

    def receipt(self, nbytes: int) -> Fraction:  # noqa: D102
        if self.shares_memory:
            return self.machine.receipt_at(1, nbytes) + self.overhead
        return self.message(nbytes).gap

    def planning_lam(self, nbytes: int) -> Fraction:  # noqa: D102
        if self.shares_memory:
            return self.machine.by_level[0].law.planning_lam(nbytes)
        return rounded_latency(self.message(nbytes).lam)

    def describe(self) -> str:  # noqa: D102
        return f"level {self.level} of {self.machine.describe()}"


def with_levels(
    laws: Sequence[Machine],
    placement: Placement,
    ports: Sequence[Number | Iterable[tuple[int, Number]] | None] = (),
    names: Sequence[str] = (),
) -> Levels:
    """Return the machine of `Machine.levels`.  Raises InvalidArgument for unsuitable arguments."""
    for what, value in (("laws", laws), ("ports", ports), ("names", names)):
        if not isinstance(value, list | tuple):
            seen = f"{what} = {shown(value)}"
            raise InvalidArgument(ASKED, seen, "give a list, one for each level")
    if not laws:
        raise InvalidArgument(ASKED, "it has no levels", "give a law for each, the innermost first")
    for level, law in enumerate(laws, 1):
        if isinstance(checked_machine(law, ASKED), Memory) and level > 1:
            remedy = "only the ranks of an innermost group can share memory"
            raise InvalidArgument(ASKED, f"level {level} is memory", remedy)
        if not isinstance(law, Postal | Measured | Memory):
            seen = f"a level whose law is {law.kind}"
            remedy = "levels stand on the postal law only: give Machine.postal or measured levels"
            raise InvalidArgument(ASKED, seen, remedy)
    checked_placement(placement, ASKED)
    groups = len(laws) - 1
    if len(ports) > groups:
        number = count(groups, "level")
        seen = f"{count(len(ports), 'port')}, and {number} whose groups can have one"
        raise InvalidArgument(ASKED, seen, "the last level is everything: nothing leaves it")
    if names and len(names) != groups:
        seen, remedy = count(len(names), "name"), f"give {groups}, one per kind of group"
        raise InvalidArgument(ASKED, seen, remedy)
    for name in names:
        if not (isinstance(name, str) and name.strip() and name.isprintable()):
            seen = f"a kind of group is called {shown(name)}"
            raise InvalidArgument(ASKED, seen, "give a word, such as node")
        if list(names).count(name) > 1:
            seen = f"two kinds of groups are called {name!r}"
            raise InvalidArgument(ASKED, seen, "give each a name of its own")
    words = [*(names or [*GROUP_NAMES[:groups], *("group" for _ in range(groups - 3))]), "network"]
    busy = [() if port is None else times_by_size(port, ASKED, "port") for port in ports]
    rows = [*busy, *((),) * (len(laws) - len(ports))]
    levels = tuple(map(Level, words, laws, rows))  # type: ignore[arg-type]
    return Levels(levels, placement).placed(placement)
