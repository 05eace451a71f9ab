"""Finds out, by fingerprints, what the MPI library does at each size, and where that changes.

Rank 0 chooses each next call, because the choice depends on its clock.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import partial
from itertools import groupby, pairwise
from operator import add
from typing import NamedTuple, TypeAlias

import numpy as np

from collwise.errors import InvalidArgument
from collwise.mpi.library.fingerprints import (
    ELEMENT,
    broadcast_tree,
    combined,
    folded,
    sided,
    summed,
)
from collwise.mpi.runtime.world import Communicator
from collwise.schedule.collectives import COLLECTIVES
from collwise.system import formatting
from collwise.tuning.known_shapes import (
    name_of_expressions,
    name_of_tree,
    tree_text,
)

SUM, COMMUTES, IN_ORDER = "MPI.SUM", "user's, commuting", "user's, not commuting"
"""The names of the operators in tables."""
UNNAMED = "none of ours"
MOST_RANKS = 256
"""The most ranks: expressions of more ranks are too long."""
_ROUNDINGS = [
    (rng.choice((-1, 1), MOST_RANKS) * 2.0 ** rng.uniform(0, 8, MOST_RANKS)).tolist()
    for rng in map(np.random.default_rng, range(24))
]
"""Contributions of the ranks to sums.  Few orders of combining round all of these sums equally."""
Subject: TypeAlias = tuple[str, str]
"""The name of a collective, and of its operator if it combines (else empty)."""


class Seen(NamedTuple):
    """What the library did in one call.

    shape: the algorithm's name, or a phrase instead.   example: a tree or an expression, or empty.
    parents: each rank's parent in the tree.   ranks_agree: whether the ranks' results are alike.
    elements_agree: whether all elements are combined alike.   Both: None if nothing is combined.
    """

    shape: str
    example: str
    parents: tuple[int | None, ...] = ()
    ranks_agree: bool | None = None
    elements_agree: bool | None = None


class Stretch(NamedTuple):
    """A range of sizes, in bytes, at which the library was seen to do the same.

    first, last: the smallest and the largest of these sizes.
    """

    collective: str
    operator: str
    first: int
    last: int
    seen: Seen


class Inspection(NamedTuple):
    """What was seen at which sizes, and sentences that say what was left out."""

    ranks: int
    library: str
    stretches: Sequence[Stretch]
    left_out: Sequence[str]


def inspect(
    comm: Communicator,
    library: str,
    collectives: Sequence[str],
    sizes: Sequence[int],
    budget_s: float,
    progress: Callable[[str, float], None],
) -> Inspection:
    """Inspect what the library's collectives do.   Collective; only rank 0's result has stretches.

    sizes: bytes, >= 1, ascending.  If the library acts differently at two successive sizes, sizes
    between them narrow down the change, until `budget_s` seconds are over.
    Raises InvalidArgument for one rank, and for more than MOST_RANKS.
    """
    if not 2 <= comm.Get_size() <= MOST_RANKS:
        asked = f"inspect {formatting.count(comm.Get_size(), 'rank')}"
        why = "one rank sends nothing" if comm.Get_size() < 2 else "their expressions are too long"
        raise InvalidArgument(asked, why, f"use 2 to {MOST_RANKS} ranks")
    begin, rank = time.monotonic(), comm.Get_rank()
    subjects = [
        (name, operator)
        for name in collectives
        for operator in ((SUM, COMMUTES, IN_ORDER) if COLLECTIVES[name].combines else ("",))
        if not COLLECTIVES[name].has_sources
    ]
    seen: dict[Subject, dict[int, Seen]] = {subject: {} for subject in subjects}
    looks = _looks(seen, sizes)
    left_out = [
        f"{name}: every rank waits for all others, whatever the library does"
        for name in collectives
        if COLLECTIVES[name].has_sources
    ]
    while True:
        spent_s = time.monotonic() - begin
        look = next(looks, None) if rank == 0 else None
        if look is not None and spent_s > budget_s:
            looks, look = iter(()), None
            left_out += _not_looked_at(seen, sizes)
        if (look := comm.bcast(look)) is None:
            return Inspection(comm.Get_size(), library, _stretches(seen), left_out)
        (collective, operator), nbytes = look
        progress(f"{collective} of {nbytes} B", min(spent_s / budget_s, 1))
        what = _look(comm, collective, operator, nbytes)
        if rank == 0:
            seen[collective, operator][nbytes] = what


def _looks(
    seen: dict[Subject, dict[int, Seen]], sizes: Sequence[int]
) -> Iterator[tuple[Subject, int]]:
    """Yield each (subject, bytes) to look at; `seen` needs its result before the next."""
    for nbytes in sizes:
        for subject in seen:
            yield subject, _rounded(subject, nbytes)
    for subject, known in sorted(seen.items(), key=lambda one: one[0][1] == ""):  # trees take long
        for low, high in pairwise(sorted(known)):
            while known[low] != known[high] and high - low > _step(subject):
                middle = _rounded(subject, (low + high) // 2)
                middle -= _step(subject) * (middle == high)
                yield subject, middle
                low, high = (middle, high) if known[middle] == known[low] else (low, middle)


def _step(subject: Subject) -> int:
    return ELEMENT if COLLECTIVES[subject[0]].combines else 1


def _rounded(subject: Subject, nbytes: int) -> int:
    """The size, rounded up to whole elements."""
    return -(-nbytes // _step(subject)) * _step(subject)


def _look(comm: Communicator, collective: str, operator: str, nbytes: int) -> Seen:
    """What the library does in one call.   Collective; only rank 0 names what it did."""
    if not operator:
        parents, _, why_not = broadcast_tree(comm, nbytes)
        if comm.Get_rank() or why_not:
            return Seen(why_not, "")
        return Seen(name_of_tree(parents), tree_text(parents), parents)
    (method,), ranks = COLLECTIVES[collective].methods, comm.Get_size()
    told = combined(comm, method, nbytes, commute=operator != IN_ORDER)
    agree = told.ranks_agree, told.elements_agree

    def alike(these: Set[object], known: Set[object]) -> bool:
        """Whether the sets are equal; for fewer than p² elements, `these` may be a subset."""
        return these == known or (nbytes < ranks**2 * ELEMENT and these < known)

    if operator != SUM:
        same = partial(alike, frozenset(map(sided, told.values)))
        name = "" if comm.Get_rank() else name_of_expressions(collective, ranks, same)
        return Seen(name or UNNAMED, next(filter(None, told.by_rank))[0], (), *agree)
    sums = [summed(comm, method, nbytes, values) for values in _ROUNDINGS]
    agree = all(one.ranks_agree for one in sums), all(one.elements_agree for one in sums)

    def fits(expressions: Iterable[str]) -> bool:
        return all(
            alike({*rounded.values}, {folded(one, values.__getitem__, add) for one in expressions})
            for values, rounded in zip(_ROUNDINGS, sums, strict=True)
        )

    name = "" if comm.Get_rank() else name_of_expressions(collective, ranks, fits)
    name = name or (f"as a {COMMUTES}" if fits(told.values) else UNNAMED)
    return Seen(name, "", (), *agree)


def _stretches(seen: Mapping[Subject, Mapping[int, Seen]]) -> list[Stretch]:
    found = []
    for (collective, operator), by_size in seen.items():
        for what, sizes in groupby(sorted(by_size), key=by_size.__getitem__):
            first, *_, last = [*sizes] * 2
            found.append(Stretch(collective, operator, first, last, what))
    return found


def _not_looked_at(seen: Mapping[Subject, Mapping[int, Seen]], sizes: Sequence[int]) -> list[str]:
    """Sentences that say which sizes and changes the budget left out."""
    missing, lines = defaultdict[str, list[str]](list), list[str]()
    for subject, known in seen.items():
        what = f"{subject[0]} ({subject[1]})".removesuffix(" ()")
        if left := [n for n in sizes if _rounded(subject, n) not in known]:
            ends = dict.fromkeys(map(formatting.size, (left[0], left[-1])))
            missing[" … ".join(ends)].append(what)
        lines += [
            f"{what}: it changes somewhere in {formatting.size(low)} … {formatting.size(high)}"
            for low, high in pairwise(sorted(known))
            if known[low] != known[high] and high - low > _step(subject)
        ]
    return lines + [f"{some} of {'; '.join(subjects)}" for some, subjects in missing.items()]
