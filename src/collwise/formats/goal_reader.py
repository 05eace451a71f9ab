"""GOAL programs, read into rows, and timed.  They are neither run nor verified.

The list of a rank is the order of its lines, as far as `requires` and `irequires` leave it so.
What a list cannot say is refused with its line: receives are posted at once, so none can wait for a
send; and what waits for another operation's start only is in list order with it, or not to be had.
A calc is processor time: like a combine it keeps both ports of its rank busy.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush
from math import lcm
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np

from collwise.errors import InvalidArgument
from collwise.formats.goal_writer import NANOSECONDS
from collwise.model.machine import LogGP, Machine
from collwise.model.topology import Topology
from collwise.schedule.operations import Operation
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program, Schedule
from collwise.schedule.rows import NONE, Rows
from collwise.system.files import read_input
from collwise.system.integers import MOST_RANKS, Ints
from collwise.system.quantities import LARGEST_SIZE
from collwise.timing import Timing
from collwise.timing.event_loop import play
from collwise.timing.law import EXACT, Law, Ticks, law_of, with_links

_NAME = r"[A-Za-z_]\w*"
_OPERATION = re.compile(
    rf"(?:(?P<label>{_NAME})\s*:\s*)?(?:(?P<kind>send|recv)\s+(?P<nbytes>\d+)\s*b?"
    r"\s+(?P<way>to|from)\s+(?P<peer>\d+)(?:\s+tag\s+(?P<tag>\d+))?|calc\s+(?P<ns>\d+))"
    r"(?:\s+(?:cpu|nic)\s+(?P<unit>\d+))*"
)
_RELATION = re.compile(rf"(?P<later>{_NAME})\s+(?P<how>i?requires)\s+(?P<earlier>{_NAME})")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


class _Operation(NamedTuple):
    """kind: "send", "recv" or "calc".   size: bytes, or nanoseconds.   line: in the file.

    place: in its rank's list.   needs: the places of what it waits for there.
    """

    rank: int
    kind: str
    size: int
    peer: int
    tag: int
    line: int
    place: int = NONE
    needs: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Goal:
    """A GOAL program.   rows: bytes of a calc are its nanoseconds."""

    name: str
    ranks: int
    rows: Rows

    @property
    def sizes(self) -> Ints:
        """Bytes of every message."""
        return self.rows.nbytes[~self.rows.combines]

    @property
    def largest(self) -> int:
        """Bytes of the largest message; 0 if none is sent."""
        return int(self.sizes.max(initial=0))

    @property
    def calc_s(self) -> float:
        """Seconds of all calcs of all ranks."""
        return int(self.rows.nbytes[self.rows.combines].sum()) / NANOSECONDS

    @property
    def outline(self) -> Schedule:
        """What pictures say of it: so many ranks, of which each may have data from the start."""
        problem = Problem.of("allgatherv", self.ranks, 1, sources=range(self.ranks))
        return Schedule(problem, _Unknown(), self.name)

    def time(self, machine: Machine, topology: Topology | None = None) -> Timing:
        """The exact times of all messages and calcs on a machine.

        Raises InvalidArgument for calcs on a LogGP machine, whose law has none, for a topology
        where the machine knows no links, and where ranks wait for each other in a circle.
        """
        asked = f"the times of {self.name}"
        if isinstance(machine, LogGP) and self.rows.combines.any():
            remedy = "take a postal, Hockney or wormhole machine"
            raise InvalidArgument(asked, "it has calcs, and LogGP's law combines for free", remedy)
        if topology is not None and topology.size != self.ranks:
            seen = f"the topology has {topology.size} nodes, the program {self.ranks} ranks"
            raise InvalidArgument(asked, seen, "give one of as many")
        law = law_of(machine, self.rows, self.ranks, with_links(machine, topology))
        law = _with_calcs(law, self.rows)
        played = play(self.rows, law)
        if played.stuck:
            seen = "ranks wait for each other in a circle: some messages never go"
            raise InvalidArgument(asked, seen, "mend the order of its messages")
        return Timing(self.rows, law, played.at)


class _Unknown(Program):
    """What GOAL leaves open: which blocks messages carry."""

    def operations(self, rank: int) -> list[Operation]:
        """Raise InvalidArgument: a GOAL program is only timed."""
        raise InvalidArgument("run a GOAL program", "it names no data", "only time it")


def _with_calcs(law: Law, rows: Rows) -> Law:
    """The law with calcs that take their nanoseconds; both in the coarsest ticks that serve."""
    calcs = rows.combines
    tick = Fraction(1, lcm(law.unit.denominator, NANOSECONDS))
    finer, per_ns = int(law.unit / tick), int(Fraction(1, NANOSECONDS) / tick)
    most = max(int(law.reach.max(initial=0)) * finer, int(rows.nbytes.max(initial=0)) * per_ns)
    kind = np.int64 if most <= EXACT else object

    def scaled(ticks: Ticks) -> Ticks:
        return ticks.astype(kind) * finer

    gap, reach = scaled(law.gap), scaled(law.reach)
    gap[calcs] = reach[calcs] = rows.nbytes[calcs].astype(kind) * per_ns
    return replace(
        law,
        gap=gap,
        reach=reach,
        entry=scaled(law.entry),
        absorb=scaled(law.absorb),
        header=scaled(law.header),
        unit=tick,
        shared=tuple(port._replace(busy=scaled(port.busy)) for port in law.shared),
    )


def read_goal(path: Path) -> Goal:
    """Read a GOAL file.  Raises InvalidArgument, with the line, for what is none or cannot be said.

    Source: [Hoefler2010].
    """
    try:
        text = read_input(path).decode("utf-8", errors="replace")
    except OSError as problem:
        seen = problem.strerror or str(problem)
        raise InvalidArgument(f"read {path}", seen, "name a GOAL file") from None
    return _Reader(str(path)).read(text)


class _Reader:
    """Reads one file."""

    def __init__(self, name: str) -> None:
        self.name = name

    def read(self, text: str) -> Goal:
        """The program in a text."""
        lines = self._lines(text)
        number, first = next(lines, (1, ""))
        header = re.fullmatch(r"num_ranks\s+(\d{1,9})", first)
        if header is None or not 1 <= int(header[1]) <= MOST_RANKS:
            self._refuse(number, f"{first[:40]!r}", "begin with num_ranks and their number")
        ranks = int(header[1])
        listed: dict[int, list[_Operation]] = {}
        for number, line in lines:
            begin = re.fullmatch(r"rank\s+(\d{1,9})\s*\{", line)
            if begin is None:
                self._refuse(number, f"{line[:40]!r}", "write rank NUMBER { … }")
            rank = int(begin[1])
            if rank >= ranks or rank in listed:
                twice = "is there twice" if rank in listed else f"is none of {ranks}"
                self._refuse(number, f"rank {rank} {twice}", f"give each of 0 to {ranks - 1} once")
            listed[rank] = self._read_rank(rank, ranks, number, lines)
        return Goal(Path(self.name).name, ranks, self._match(listed))

    def _lines(self, text: str) -> Iterator[tuple[int, str]]:
        """Lines with something in them, numbered from 1, without comments."""
        text = _COMMENT.sub(lambda found: "\n" * found[0].count("\n"), text)
        for number, line in enumerate(text.splitlines(), 1):
            for part in re.split(r"(?<=[{])|(?=[}])|;", line):
                if stripped := " ".join(part.split()):
                    yield number, stripped

    def _read_rank(
        self, rank: int, ranks: int, begun: int, lines: Iterator[tuple[int, str]]
    ) -> list[_Operation]:
        """The operations of a rank, in an order that its relations allow."""
        operations: list[_Operation] = []
        labels: dict[str, int] = {}
        relations: list[tuple[int, str, str, str]] = []
        for number, line in lines:
            if line == "}":
                return self._in_order(operations, labels, relations)
            if relation := _RELATION.fullmatch(line):
                relations.append((number, relation["later"], relation["how"], relation["earlier"]))
                continue
            found = _OPERATION.fullmatch(line)
            if found is None:
                self._refuse(number, f"{line[:40]!r}", "write a send, recv, calc, or requires")
            if (label := found["label"]) in labels:
                self._refuse(number, f"the label {label} is there twice", "name each once")
            if label is not None:
                labels[label] = len(operations)
            operations.append(self._operation(number, found, rank, ranks))
        return self._refuse(begun, f"rank {rank} has no end", "close it with }")

    def _operation(self, number: int, found: re.Match[str], rank: int, ranks: int) -> _Operation:
        size = int(found["nbytes"] or found["ns"] or 0)
        if size > LARGEST_SIZE:  # also in nanoseconds
            self._refuse(number, f"{size} is too much", f"give at most {LARGEST_SIZE}")
        if found["unit"] not in (None, "0"):
            self._refuse(number, "a second processor", "put everything on cpu 0, or leave it out")
        if (kind := found["kind"]) is None:
            return _Operation(rank, "calc", size, NONE, 0, number)
        peer = int(found["peer"])
        for wrong, seen in (
            (peer >= ranks, f"there is no rank {peer}"),
            (peer == rank, f"a message from rank {rank} to itself"),
            (size == 0, "an empty message"),
        ):
            if wrong:
                self._refuse(number, seen, "give another rank, and 1 byte or more")
        if (found["way"] == "to") != (kind == "send"):
            self._refuse(number, f"{kind} {found['way']}", "write send … to, recv … from")
        return _Operation(rank, kind, size, peer, int(found["tag"] or 0), number)

    def _in_order(
        self,
        operations: Sequence[_Operation],
        labels: dict[str, int],
        relations: Sequence[tuple[int, str, str, str]],
    ) -> list[_Operation]:
        """Sort by the relations, as near to the order of lines as can be."""
        after: list[set[int]] = [set() for _ in operations]
        needs: list[set[int]] = [set() for _ in operations]
        for number, later, how, earlier in relations:
            for label in (later, earlier):
                if label not in labels:
                    self._refuse(number, f"there is no label {label}", "define it on this rank")
            one, other = labels[later], labels[earlier]
            self._check_said(number, operations[one].kind, how, operations[other].kind)
            after[one].add(other)
            brings = operations[one].kind != "recv" and operations[other].kind != "send"
            if brings and how == "requires":
                needs[one].add(other)
        sorter = TopologicalSorter(dict(enumerate(after)))
        try:
            sorter.prepare()
        except CycleError as problem:
            line = min(operations[one].line for one in problem.args[1])
            self._refuse(line, "what it waits for waits for it", "break the cycle")
        ready: list[int] = []
        order: list[int] = []
        while sorter.is_active():
            for one in sorter.get_ready():
                heappush(ready, one)
            order.append(one := heappop(ready))
            sorter.done(one)
        place = {one: at for at, one in enumerate(order)}
        return [
            operations[one]._replace(place=at, needs=tuple(sorted(place[n] for n in needs[one])))
            for at, one in enumerate(order)
        ]

    def _check_said(self, number: int, later: str, how: str, earlier: str) -> None:
        """Refuse what list order cannot say."""
        if later == "recv" and (earlier == "send" or (earlier == "calc" and how != "requires")):
            seen = f"a receive that waits for a {earlier}; receives are posted at once here"
            self._refuse(number, seen, "let the sender wait instead")
        if later != "recv" and how == "irequires" and earlier == "recv":
            seen = f"a {later} that waits until a receive is posted, which all are at the start"
            self._refuse(number, seen, "write requires, or leave it out")

    def _match(self, listed: dict[int, list[_Operation]]) -> Rows:
        """The rows: a row for each send with its receive, and for each calc."""
        every = [operation for rank in sorted(listed) for operation in listed[rank]]
        waiting: dict[tuple[int, int, int], list[_Operation]] = {}
        for receive in reversed([one for one in every if one.kind == "recv"]):
            waiting.setdefault((receive.peer, receive.rank, receive.tag), []).append(receive)
        columns: list[tuple[int, ...]] = []
        brought: dict[tuple[int, int], int] = {}
        kept = [operation for operation in every if operation.kind != "recv"]
        for row, one in enumerate(kept):
            if one.kind == "calc":
                brought[one.rank, one.place] = row
                columns.append((one.rank, NONE, one.place, NONE, one.size))
                continue
            if not (heard := waiting.get((one.rank, one.peer, one.tag))):
                seen = f"rank {one.peer} receives no such message from rank {one.rank}"
                self._refuse(one.line, f"{seen} with tag {one.tag}", "add its receive")
            receive = heard.pop()
            if receive.size != one.size:
                seen = f"{one.size} bytes are sent, line {receive.line} receives {receive.size}"
                self._refuse(one.line, seen, "give both the same size")
            brought[one.peer, receive.place] = row
            columns.append((one.rank, one.peer, one.place, receive.place, one.size))
        if left := [receive for some in waiting.values() for receive in some]:
            first = min(left, key=lambda receive: receive.line)
            seen = f"rank {first.peer} sends no such message to rank {first.rank}"
            self._refuse(first.line, seen, "add its send")
        source, target, at_source, at_target, nbytes = (
            np.array(columns, np.int64).reshape(-1, 5).T.copy()
        )
        begins = np.cumsum([0, *(len(one.needs) for one in kept)], dtype=np.int64)
        needs = np.array([brought[one.rank, n] for one in kept for n in one.needs], np.int64)
        return Rows(source, target, at_source, at_target, nbytes, begins, needs)

    def _refuse(self, line: int, seen: str, remedy: str) -> NoReturn:
        raise InvalidArgument(f"read {self.name}", f"line {line}: {seen}", remedy)
