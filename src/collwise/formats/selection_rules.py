"""Rules by which an MPI library chooses its own algorithms, whatever the format of their file."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from collwise.errors import InvalidArgument
from collwise.system import formatting

_MARK = "collwise export: rules for"
"""The mark in the first line of every file of rules."""
_FLAT = re.compile(r"1x\d+|\d+x1|")
"""Matches placements with one node, or with one rank on each node."""


class Named(NamedTuple):
    """One of the library's algorithms: the library's number for it, and its default settings."""

    number: int
    settings: Mapping[str, int] = {}


class Installed(NamedTuple):
    """An installed MPI library's description of itself (`mpi/library/description.py`).

    library: name and version.   algorithms: by MPI's method and the algorithm's name.   tables: the
    JSON tables by which it chooses.   accepted: the algorithms that such a table may name.
    Tables and accepted are empty unless it is an MPICH.
    """

    library: str
    algorithms: Mapping[str, Mapping[str, Named]] = {}
    tables: Sequence[str] = ()
    accepted: Sequence[str] = ()


class Rule(NamedTuple):
    """A rule: which of the library's own algorithms serves some blocking calls on `ranks` ranks.

    first, last: the smallest and the largest message in bytes, as collwise counts them; for an
    allgatherv or a reduce-scatter, of all ranks together.   raced: the sizes of the races.
    name, number: the algorithm.   settings: all of its settings.   changed: those that are not the
    defaults.   evidence: a line for each race.   ranks_per_node: how the ranks lay on nodes, such
    as "2x8"; empty if that is not known.
    """

    collective: str
    method: str
    ranks: int
    first: int
    last: int
    raced: tuple[int, ...]
    name: str
    number: int
    settings: Mapping[str, int]
    changed: Mapping[str, int]
    evidence: tuple[str, ...]
    ranks_per_node: str = ""

    @property
    def composed(self) -> bool:
        """Whether any of several nodes had several ranks; the library then composes algorithms."""
        return not _FLAT.fullmatch(self.ranks_per_node)

    def __str__(self) -> str:
        changed = ", ".join(f"{name}={value}" for name, value in self.changed.items())
        where = f"{self.first} to {self.last} bytes on {formatting.count(self.ranks, 'rank')}"
        where += f" ({self.ranks_per_node})" * self.composed
        return f"{self.method} of {where}: {self.name}" + f"({changed})" * bool(changed)


class RuleFormat(NamedTuple):
    """A format of rules, which one MPI library reads.

    vendor: the library's name.   first: the first version that reads the rules as they are written.
    below: the first later version that does not.   why_not: returns why the files cannot express a
    rule; "" if they can.   bodies: returns the files without their comments, by the suffix of their
    path: "" for the first file, such as ".han" for one beside it.   comment: the pattern of a line
    of comments.   variables: returns the environment variables that put rules in force, from the
    first file's path.   in_order: by method, the algorithms that are right if an operator does not
    commute; if a method is missing, all count as right.   clash: returns why the files cannot hold
    a rule beside another one; "" if they can.   undoing: returns those of the variables
    that undo what a job's own variables force.   cannot_say: what no file of the format says,
    whatever the races.   not_raced: what a file could say, or its library could do, but no race
    tries.
    """

    vendor: str
    first: tuple[int, ...]
    below: tuple[int, ...]
    why_not: Callable[[Rule, Installed], str]
    bodies: Callable[[Sequence[Rule], Installed], Mapping[str, str]]
    comment: str
    variables: Callable[[Sequence[Rule], str], Mapping[str, str]]
    in_order: Mapping[str, Sequence[str]] = {}
    clash: Callable[[Rule, Rule], str] = lambda rule, other: ""
    undoing: Callable[[Sequence[Rule]], Mapping[str, str]] = lambda rules: {}
    cannot_say: Sequence[str] = ()
    not_raced: Sequence[str] = ()

    def check(self, library: str) -> None:
        """Raise InvalidArgument unless `library` is a version that reads these rules."""
        name, _, said = library.rpartition(" ")
        version = tuple(map(int, re.findall(r"\d+", said)))
        if name != self.vendor or not self.first <= version < self.below:
            first, below = (".".join(map(str, one)) for one in (self.first, self.below))
            raise InvalidArgument(
                f"rules for {self.vendor}",
                f"this is {library or 'no MPI library'}",
                f"they are for {self.vendor} from {first} on, before {below}: name a --profile"
                " measured with it",
            )

    def texts(
        self, rules: Sequence[Rule], library: Installed, sizes: str, unsaid: Sequence[str]
    ) -> dict[str, str]:
        """The files by path suffix: origin, evidence, what the files do not say, and rules.

        sizes: for which sizes rules count, as a sentence.   unsaid: what the files cannot express.
        """
        caution = "another version may abort every program that is given this file"
        lines = [f"{_MARK} {library.library}, from races of blocking calls; {caution}", sizes]
        for rule in rules:
            lines += [str(rule), *(f"  {line}" for line in rule.evidence)]
        lists = {"This file cannot say": unsaid, "No race tried": self.not_raced}
        for title, some in lists.items():
            lines += [f"{title}:"] * bool(some) + [f"  {line}" for line in some]
        comments = "".join(self.comment.format(line) for line in lines)
        return {which: comments + body for which, body in self.bodies(rules, library).items()}


def is_export(content: bytes) -> bool:
    """Whether collwise wrote the file with this content, as rules for an MPI library."""
    return _MARK.encode() in content.partition(b"\n")[0]


def by_method(rules: Iterable[Rule]) -> dict[str, dict[int, list[Rule]]]:
    """Rules by method and by number of ranks, in the order of their sizes."""
    found: dict[str, dict[int, list[Rule]]] = {}
    for rule in sorted(rules, key=lambda rule: (rule.method, rule.ranks, rule.first)):
        found.setdefault(rule.method, {}).setdefault(rule.ranks, []).append(rule)
    return found
