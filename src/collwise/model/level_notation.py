"""Reads machines with levels from text: from a line, or from a TOML file.

    2x4x16: 200ns,2,300ns; 1.7us+0.8ns/B,4; 10us,20us

This line means 2 racks of 4 nodes of 16 ranks.  After the colon each level, the innermost first,
has two or three terms:
- t0;
- λ, or the time after which a message arrives;
- the time for which a message keeps a group's port busy; without this term there is no port.
A time may have a part per byte.

    4x16: 60ns,200ns,read 80ns+0.05ns/B; 1.7us,4

Here the ranks of a node share memory: publishing keeps the sender busy for t0, and a read keeps a
reader busy for the time after `read`.
"""

import re
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Annotated

import msgspec

from collwise.errors import InvalidArgument
from collwise.model.exact import exact, positive_time
from collwise.model.levels import Levels
from collwise.model.machine import Machine, Postal
from collwise.model.measured_machine import Measured, Point, TimesBySize, measured
from collwise.model.placement import Placement
from collwise.system.quantities import parse_number, parse_time
from collwise.system.toml_files import read_toml

FORM = "4x16: 200ns,2,300ns; 1.7us+0.8ns/B,4 (nodes x ranks: t0,λ,port of a level; of the next)"
READ = "read "
"""The word before the time of a read from shared memory."""
MOST_LEVELS = 32
"""The most levels in a file, since more are surely a mistake."""
FAR = 1 << 20
"""A line α + nβ is stored as its values for 0 bytes and for FAR bytes."""


def parse(text: str) -> Levels:
    """Read a machine with levels from one line.  Raises InvalidArgument for any other text.

    >>> parse("2x3: 1us,2; 5us,4").describe()
    '2 nodes × 3 ranks; inside a node t0 = 1 µs, λ = 2; between nodes t0 = 5 µs, λ = 4'
    """
    shape, colon, costs = text.partition(":")
    if not colon:
        remedy = f"write {FORM}, or name a preset or a file that ends in .toml"
        raise InvalidArgument(f"levels {text[:40]!r}", "no costs follow", remedy)
    laws, ports = parse_costs(costs)
    return Machine.levels(laws, parse_placement(shape), ports=ports)


def parse_placement(text: str) -> Placement:
    """Read a placement from text: 4x16, "2 racks x 4 nodes x 16 ranks" or 3+5+4.

    3+5+4 means nodes of 3, 5 and 4 ranks.  Two racks around nodes are written 2x(3+5+4+4),
    "3+5+4+4, two racks" or "4 nodes x 16 ranks, two racks". All forms may end in ", round robin".
    Raises InvalidArgument for other text.
    """
    asked, written = "a placement", repr(text.strip()[:40])
    where, *clauses = (part.strip() for part in text.lower().split(","))
    *around, last = (part.strip() for part in re.split("[x×]", re.sub("[a-z]{2,}", " ", where)))
    sizes = [size.strip() for size in re.sub(r"^\((.*)\)$", r"\1", last).split("+")]
    robin, outer = "round robin" in clauses, [c for c in clauses if c != "round robin"]
    racks = [re.sub(r"\s+(racks?|sites?|clusters?|regions?|groups?)$", "", c) for c in outer]
    racks = [str(_WORDS.index(word)) if word in _WORDS else word for word in racks]
    numbers = (*around, *sizes, *racks)
    if len(racks) > 1 or not all(re.fullmatch("[0-9]{1,7}", n) and int(n) for n in numbers):
        seen = f"{written} is no product of group sizes"
        remedy = (
            "write 4x16 (nodes x ranks), 3+5+4 (ranks of each node), with ', round robin', with"
            " ', two racks'"
        )
        raise InvalidArgument(asked, seen, remedy)
    counts, ranks = list(map(int, around)), [*map(int, sizes)]
    if racks and len(ranks) == 1 and len(counts) == 1:
        return Placement.nodes(ranks * counts[0], [int(racks[0])], round_robin=robin)
    if racks and (len(ranks) == 1 or counts):
        seen = f"{written} says twice what is in racks"
        raise InvalidArgument(asked, seen, "write racks x nodes x ranks")
    if len(ranks) > 1:
        return Placement.nodes(ranks, [*map(int, racks)] or counts, round_robin=robin)
    return Placement.regular(*counts, *ranks, round_robin=robin)


_WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]


def parse_costs(text: str) -> tuple[list[Machine], list[TimesBySize | None]]:
    """Read each level's law and the times of its groups' port from text such as "1us,2; 5us,4".

    The times are None for a level without a third term.  The last level has an entry only with a
    third term, which `Machine.levels` refuses.   Raises InvalidArgument for other text.
    """
    laws: list[Machine] = []
    ports: list[TimesBySize | None] = []
    for number, level in enumerate(text.split(";"), 1):
        asked = f"level {number}, {level.strip()[:40]!r}"
        every = [term.strip() for term in level.split(",")]
        terms = [term for term in every if not term.startswith(READ)]
        read = [term.removeprefix(READ) for term in every if term.startswith(READ)]
        if not 2 <= len(terms) <= 3 or len(read) > 1 or not all(terms):
            seen = f"number of terms: {len(every)}" if all(terms) else "a term is empty"
            raise InvalidArgument(asked, seen, f"write {FORM}")
        law = _postal_law(asked, *terms[:2])
        times = _line(read[0].strip(), asked) if read else None
        laws.append(law if times is None else Machine.memory(law, read=times))
        ports.append(_line(terms[2], asked) if len(terms) == 3 else None)
    return laws, ports[:-1] if ports[-1] is None else ports


def _postal_law(asked: str, t0: str, arrival: str) -> Postal | Measured:
    busy = _line(t0, asked)
    if re.search(r"[a-zµμ]\b", arrival):  # not the e of 1e3
        arrives = _line(arrival, f"{asked}, λ or when it arrives")
    else:
        lam = parse_number(arrival, asked)
        arrives = tuple((n, lam * time) for n, time in busy)
    if any(late < early for (_, early), (_, late) in zip(busy, arrives, strict=False)):
        seen = "a message arrives before it is sent"
        raise InvalidArgument(asked, seen, "give λ >= 1, or a time of at least t0")
    if len(busy) == len(arrives) == 1:
        gap = positive_time(busy[0][1], "t0_s")
        return Postal(gap, arrives[0][1] / gap)
    rows = [*busy, *((FAR, time) for _, time in busy[:1] if len(busy) == 1)]
    late = [*arrives, *((FAR, time) for _, time in arrives[:1] if len(arrives) == 1)]
    points = [Point(n, t, max(t, a)) for (n, t), (_, a) in zip(rows, late, strict=True)]
    positive_time(points[0].gap, "t0_s")
    return Measured((tuple(points),))


def _line(text: str, asked: str) -> TimesBySize:
    """Read a time such as 1.7us+0.8ns/B as pairs (bytes, seconds); one pair without a rate."""
    match = re.fullmatch(r"(.*?[a-zµμ])(?:\s*\+\s*(.*?)\s*/\s*[Bb](?:yte)?)?", text)
    if match is None:
        remedy = "write a time with its unit, such as 1.7us or 1.7us+0.8ns/B"
        raise InvalidArgument(asked, f"{text!r} is no time", remedy)
    times = [_time(one, asked) for one in match.groups() if one]
    if min(times) < 0:
        raise InvalidArgument(asked, f"{text!r} is below 0", "give times of 0 or more")
    first, *per_byte = times
    return (0, first), *((FAR, first + FAR * time) for time in per_byte)


def _time(text: str, asked: str) -> Fraction:
    return parse_time(text, f"{asked}, {text!r}", unit_needed=True)


class _Level(msgspec.Struct, forbid_unknown_fields=True):
    name: str | None = None
    costs: str | None = None
    table: Annotated[list[tuple[int, str, str | float]], msgspec.Meta(min_length=1)] | None = None
    port: str | list[tuple[int, str]] | None = None
    read: str | list[tuple[int, str]] | None = None


class _File(msgspec.Struct, forbid_unknown_fields=True):
    levels: Annotated[list[_Level], msgspec.Meta(min_length=1)]
    placement: str | None = None
    groups: list[list[list[int]]] | None = None


def load(path: Path) -> Levels:
    """Read a machine with levels from a TOML file; `docs/reference/machines.md` shows one.

    Raises InvalidArgument, with the place in the file, for a file that cannot be read or is wrong.
    """
    return read_toml(path, _File, _machine, "the file of levels", "docs/reference/machines.md")


def _machine(file: _File) -> Levels:
    if len(file.levels) > MOST_LEVELS:
        seen, remedy = f"{len(file.levels)} of them", f"give {MOST_LEVELS} at most"
        raise InvalidArgument("levels", seen, remedy)
    if (file.placement is None) == (file.groups is None):
        raise _not_once("where the ranks are", file.groups, "placement", "groups")
    laws, ports = zip(*map(_of_file, count(1), file.levels), strict=True)
    if file.placement is not None:
        placement = parse_placement(file.placement)
    else:
        groups = file.groups or []
        most = max((rank for level in groups for group in level for rank in group), default=0)
        placement = Placement.of_members(groups, most + 1)
    last = len(laws) if ports[-1] is not None else -1
    names = [level.name for level in file.levels[:-1]]
    named = [name for name in names if name is not None]
    if named and len(named) < len(names):
        seen = "some levels have names, and others have none"
        raise InvalidArgument("the names of the groups", seen, "name all but the last, or none")
    return Machine.levels(laws, placement, ports=ports[:last], names=named)


def _not_once(asked: str, second: object, *keys: str) -> InvalidArgument:
    one, other = keys
    seen = f"neither {one} nor {other} says so" if second is None else f"{one} and {other} say so"
    return InvalidArgument(asked, seen, f"give either {one} or {other}")


def _of_file(number: int, level: _Level) -> tuple[Machine, TimesBySize | None]:
    asked = f"level {number}"
    if (level.costs is None) == (level.table is None):
        raise _not_once(f"the costs of {asked}", level.table, "costs", "table")
    busy = _times(level.port, f"{asked}, its port")
    law, read = _costs_of_file(asked, level), _times(level.read, f"{asked}, a read")
    return law if read is None else Machine.memory(law, read=read), busy


def _times(given: str | list[tuple[int, str]] | None, asked: str) -> TimesBySize | None:
    """Read the times of a port or a read from text, or pairs of bytes and a time; None if None."""
    if given is None or isinstance(given, str):
        return None if given is None else _line(given, asked)
    return tuple((nbytes, _time(time, asked)) for nbytes, time in given)


def _costs_of_file(asked: str, level: _Level) -> Postal | Measured:
    if level.costs is None:
        rows = [
            (n, _time(t0, asked), exact(lam, f"λ of {asked}")) for n, t0, lam in level.table or ()
        ]
        if any(n < 0 or lam < 1 for n, _, lam in rows):
            seen, remedy = "a row of its table is out of range", "give bytes >= 0, and λ >= 1"
            raise InvalidArgument(asked, seen, remedy)
        return measured([rows])
    terms = [term.strip() for term in level.costs.split(",")]
    if len(terms) != 2:
        remedy = 'write "t0,λ", such as "1.7us,4"; port and read are named apart'
        raise InvalidArgument(asked, f"number of terms: {len(terms)}", remedy)
    return _postal_law(asked, terms[0], terms[1])
