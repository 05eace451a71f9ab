"""Reads GOAL programs into a schedule's rows, and times them.  They are neither run nor verified.

A rank's operations start in the order of its lines.  The reader refuses, with the line, a program
that needs another order: no operation may wait for one that stands below it; no receive may wait
for a send, since all receives are posted at the start; and an operation that waits only for the
start of another (`irequires`) must start after it anyway, by the order of lines.
A calc is processor time: like a combine it keeps both ports of its rank busy.
"""

import re
from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np

from collwise.errors import InvalidArgument
from collwise.formats.export_rows import NANOSECONDS
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
from collwise.timing.law import law_of, with_links
from collwise.timing.trace import check_simulable

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_NAME, _NUMBER = r"[A-Za-z_]\w*", r"\d{1,18}"
_LINE = re.compile(
    rf"rank (?P<begun>{_NUMBER}) ?{{|(?P<end>}})"
    rf"|(?P<later>{_NAME}) (?P<how>i?requires) (?P<earlier>{_NAME})"
    rf"|(?:(?P<label>{_NAME}) ?: ?)?"
    rf"(?:(?P<kind>calc|send(?=.* to )|recv(?=.* from )) (?P<size>{_NUMBER})"
    rf"(?: ?b? (?:to|from) (?P<peer>{_NUMBER})(?: tag (?P<tag>{_NUMBER}))?)?)(?: (?:cpu|nic) 0)*"
)
_IN_A_RANK = "write send … to, recv … from, calc, all on cpu 0, or requires"


class _Operation(NamedTuple):
    """The operation of one line.   kind: "send", "recv" or "calc".   size: in bytes; of a calc, in
    nanoseconds.   peer: the other rank of a message; of a calc, NONE.   line: the line's number.
    """

    rank: int
    kind: str
    size: int
    peer: int
    tag: int
    line: int


@dataclass(frozen=True, eq=False)
class Goal(Program):
    """A GOAL program.   messages: a row for each message and each calc (computation).

    A calc of n nanoseconds is a row that combines n bytes.
    """

    name: str
    ranks: int
    messages: Rows

    def operations(self, rank: int) -> list[Operation]:
        """Raise InvalidArgument, since GOAL does not say which data messages carry."""
        raise InvalidArgument("run a GOAL program", "it names no data", "only time it")

    @property
    def sizes(self) -> Ints:
        """The bytes of each message, as an array."""
        return self.messages.nbytes[~self.messages.combines]

    @property
    def calc_s(self) -> float:
        """The sum of all calcs of all ranks, in seconds."""
        return int(self.messages.nbytes[self.messages.combines].sum()) / NANOSECONDS

    @property
    def schedule(self) -> Schedule:
        """A schedule of the program, for a problem in which every rank has data at the start."""
        problem = Problem.of("allgatherv", self.ranks, 1, sources=range(self.ranks))
        return Schedule(problem, self, self.name)

    def time(self, machine: Machine, topology: Topology | None = None) -> Timing:
        """The exact times of all messages and calcs on a machine.

        Raises InvalidArgument if there are calcs and the machine is LogGP, which cannot time them;
        if a topology is given to a machine without links; if ranks wait for each other in a circle.
        """
        asked, rows = f"the times of {self.name}", self.messages
        check_simulable(asked, self.schedule, machine, topology)
        if isinstance(machine, LogGP) and rows.combines.any():
            remedy = "take a postal, Hockney or wormhole machine"
            raise InvalidArgument(asked, "it has calcs, and LogGP's law combines for free", remedy)
        links = with_links(machine, topology)
        law = law_of(machine, rows, self.ranks, links, lambda ns: Fraction(ns, NANOSECONDS))
        played = play(rows, law)
        if played.stuck:
            seen = "ranks wait for each other in a circle: some messages never go"
            raise InvalidArgument(asked, seen, "mend the order of its messages")
        return Timing(rows, law, played.at)


def read_goal(path: Path) -> Goal:
    """Read a GOAL file.  Source: [Hoefler2010].

    Raises InvalidArgument, with the line, for text that is not GOAL or that rows cannot express.
    """
    try:
        text = read_input(path).decode("utf-8", errors="replace")
    except OSError as problem:
        seen = problem.strerror or str(problem)
        raise InvalidArgument(f"read {path}", seen, "name a GOAL file") from None
    reader = _Reader(path)
    reader.read(text)
    return Goal(path.name, reader.ranks, reader.rows())


@dataclass
class _Reader:
    """Reads one GOAL file.

    operations: in the order of lines; an operation's place is its index in this list.   labels:
    maps (rank, label) to a place.   needs: for each operation, the places of operations it needs.
    """

    path: Path
    ranks: int = 0
    operations: list[_Operation] = field(default_factory=list)
    labels: dict[tuple[int, str], int] = field(default_factory=dict)
    needs: list[list[int]] = field(default_factory=list)

    def read(self, text: str) -> None:
        """Read all lines of a program.  Raises InvalidArgument, with the line, for wrong ones."""
        lines = _lines(text)
        number, first = next(lines, (1, ""))
        header = re.fullmatch(rf"num_ranks ({_NUMBER})", first)
        if header is None or not 1 <= int(header[1]) <= MOST_RANKS:
            remedy = f"begin with num_ranks and their number, 1 to {MOST_RANKS}"
            self._refuse(number, f"{first[:40]!r}", remedy)
        self.ranks = int(header[1])
        rank, begun = None, dict[int, int]()
        for number, line in lines:
            found = _LINE.fullmatch(line)
            if found is None or (rank is None) != (found["begun"] is not None):
                remedy = "write rank NUMBER { … }" if rank is None else _IN_A_RANK
                self._refuse(number, f"{line[:40]!r}", remedy)
            if rank is None:
                rank = int(found["begun"])
                if rank >= self.ranks or rank in begun:
                    seen = "is there twice" if rank in begun else f"is none of {self.ranks}"
                    self._refuse(number, f"rank {rank} {seen}", "give each once, from 0 on")
                begun[rank] = number
            elif found["end"]:
                rank = None
            elif found["how"]:
                self._relate(number, rank, *found.group("later", "how", "earlier"))
            else:
                self._add(number, rank, found)
        if rank is not None:
            self._refuse(begun[rank], f"rank {rank} has no end", "close it with }")

    def _add(self, number: int, rank: int, found: re.Match[str]) -> None:
        """Append the operation of line `number`.   found: the line as matched by _LINE."""
        kind, size, label = found["kind"], int(found["size"]), found["label"]
        peer = NONE if found["peer"] is None else int(found["peer"])
        for wrong, seen, remedy in (
            ((kind == "calc") != (peer == NONE), f"{found[0][:40]!r}", _IN_A_RANK),
            ((rank, label) in self.labels, f"the label {label} is there twice", "name each once"),
            (size > LARGEST_SIZE, f"{size} is too much", f"give at most {LARGEST_SIZE}"),
            (peer >= self.ranks, f"there is no rank {peer}", f"there are {self.ranks}"),
            (peer == rank, f"a message from rank {rank} to itself", "leave it out"),
            (kind != "calc" and not size, "an empty message", "give 1 byte or more"),
        ):
            if wrong:
                self._refuse(number, seen, remedy)
        if label is not None:
            self.labels[rank, label] = len(self.operations)
        tag = int(found["tag"] or 0)
        self.operations.append(_Operation(rank, kind, size, peer, tag, number))
        self.needs.append([])

    def _relate(self, number: int, rank: int, later: str, how: str, earlier: str) -> None:
        """Check and, if needed, note that `later` waits for the end (or start) of `earlier`.

        later, earlier: labels of operations.   how: "requires" or "irequires".
        """
        for label in (later, earlier):
            if (rank, label) not in self.labels:
                self._refuse(number, f"there is no label {label} above", "define it on this rank")
        one, other = self.labels[rank, later], self.labels[rank, earlier]
        kind, awaited = self.operations[one].kind, self.operations[other].kind
        if other >= one:
            seen = f"{later} {how} {earlier}, which does not stand above it"
            self._refuse(number, seen, "list first what others wait for, in no circle")
        if (kind, awaited) == ("recv", "send") or (
            how == "irequires" and (kind == "recv") != (awaited == "recv")
        ):
            seen = f"a {kind} that {how} a {awaited}, and all receives are posted at the start"
            self._refuse(number, seen, "let the sender wait, or write requires")
        if how == "requires" and kind != "recv" and awaited != "send":
            self.needs[one].append(other)

    def _receives(self) -> dict[int, int]:
        """Map each send's place to its receive's: the next one with the same ranks and tag."""
        waiting: dict[tuple[int, int, int], deque[int]] = defaultdict(deque)
        for place, op in enumerate(self.operations):
            if op.kind == "recv":
                waiting[op.peer, op.rank, op.tag].append(place)
        receives = {}
        for place, op in enumerate(self.operations):
            if op.kind != "send":
                continue
            if not (heard := waiting[op.rank, op.peer, op.tag]):
                seen = f"rank {op.peer} receives no such message with tag {op.tag}"
                self._refuse(op.line, seen, "add its receive")
            receive = self.operations[heard[0]]
            if receive.size != op.size:
                seen = f"{op.size} bytes are sent, line {receive.line} receives {receive.size}"
                self._refuse(op.line, seen, "give both the same size")
            receives[place] = heard.popleft()
        if left := [self.operations[heard[0]] for heard in waiting.values() if heard]:
            seen = f"rank {left[0].peer} sends no such message with tag {left[0].tag}"
            self._refuse(left[0].line, seen, "add its send")
        return receives

    def rows(self) -> Rows:
        """The program's rows: one for each send with its receive, and one for each calc."""
        receives = self._receives()
        kept = [place for place, op in enumerate(self.operations) if op.kind != "recv"]
        kept.sort(key=lambda place: self.operations[place].rank)
        row_of = {receives.get(place, place): row for row, place in enumerate(kept)}
        columns = []
        for place in kept:
            op = self.operations[place]
            columns.append((op.rank, op.peer, place, receives.get(place, NONE), op.size))
        source, target, at_source, at_target, nbytes = (
            np.array(columns, np.int64).reshape(-1, 5).T.copy()
        )
        begins = np.cumsum([0, *(len(self.needs[place]) for place in kept)], dtype=np.int64)
        needs = np.array([row_of[n] for place in kept for n in self.needs[place]], np.int64)
        return Rows(source, target, at_source, at_target, nbytes, begins, needs)

    def _refuse(self, line: int, seen: str, remedy: str) -> NoReturn:
        raise InvalidArgument(f"read {self.path}", f"line {line}: {seen}", remedy)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, statement), without comments, with one blank between words."""
    text = _COMMENT.sub(lambda found: "\n" * found[0].count("\n"), text)
    for number, line in enumerate(text.splitlines(), 1):
        for part in re.split(r"(?<=[{])|(?=[}])|;", line):
            if words := part.split():
                yield number, " ".join(words)
