"""S-to-p broadcasts told slowly and plainly: rounds of pairs, sets of what ranks hold.

The twins of the algorithms of [Hambrusch1998], from its text.  A mesh is a list of rows of ranks.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, zip_longest
from typing import Any, TypeAlias

from collwise.algorithms.allgatherv.ideal_places import rows, snake
from collwise.schedule.operations import Send
from collwise.schedule.program import Schedule

Mesh: TypeAlias = Sequence[Sequence[int]]
Pair: TypeAlias = tuple[int, int]
Message: TypeAlias = tuple[int, int, frozenset[int]]
"""Who sends, who receives, whose contributions."""
Held: TypeAlias = dict[int, frozenset[int]]
NOTHING: frozenset[int] = frozenset()


def mesh_of(shape: tuple[int, int]) -> Mesh:
    rows, columns = shape
    return [[row * columns + column for column in range(columns)] for row in range(rows)]


class Told:
    """What happens round by round; nobody is sent what it gave itself."""

    def __init__(self, held: Held) -> None:
        self.held = held
        self.rounds: list[list[Message]] = []

    def all(self, *rounds: Iterable[Pair]) -> None:
        """In each round the first of each pair sends all that it held before to the second."""
        for pairs in rounds:
            self.those([(a, b, self.held.get(a, NOTHING)) for a, b in pairs])

    def those(self, messages: Iterable[Message]) -> None:
        """A round of messages."""
        sent = [(a, b, what - {b}) for a, b, what in messages if what - {b}]
        self.rounds.append(sent)
        for a, b, what in messages:
            assert what <= self.held.get(a, NOTHING)
            if what:
                self.held[b] = self.held.get(b, NOTHING) | what

    def handed_over(self, pairs: Iterable[Pair]) -> None:
        """In one round; who sends holds nothing any more, as the algorithm sees it."""
        pairs = list(pairs)
        self.all(pairs)
        for a, _ in pairs:
            del self.held[a]


# --- lines and meshes: who sends to whom in which round, whoever has data ---


def halving(line: Sequence[int]) -> list[list[Pair]]:
    """p_i exchanges with p_(i + p/2), and so on in both halves [Hambrusch1998 §2].

    If p is odd the last one of the first half, which is the longer, tells its neighbour.
    """
    if len(line) == 1:
        return []
    half = (len(line) + 1) // 2
    first, second = line[:half], line[half:]
    pairs = [pair for a, b in zip(first, second, strict=False) for pair in ((a, b), (b, a))]
    if len(first) > len(second):
        pairs.append((first[-1], second[0]))
    return [pairs, *at_once([halving(first), halving(second)])]


def at_once(several: Iterable[list[list[Pair]]]) -> list[list[Pair]]:
    """The first rounds of all together, then the second ones, and so on."""
    return [[*chain(*rounds)] for rounds in zip_longest(*several, fillvalue=[])]


def snaked(mesh: Mesh) -> list[int]:
    return [rank for i, row in enumerate(mesh) for rank in (row if i % 2 == 0 else row[::-1])]


def along_snake(told: Told, mesh: Mesh) -> None:
    told.all(*halving(snaked(mesh)))


def along_lines(told: Told, mesh: Mesh, rows_first: bool) -> None:
    by_rows = at_once([halving(row) for row in mesh])
    by_columns = at_once([halving(column) for column in zip(*mesh, strict=True)])
    told.all(*by_rows, *by_columns) if rows_first else told.all(*by_columns, *by_rows)


def fullest(mesh: Mesh, holders: Iterable[int]) -> int:
    """The largest number of holders in a row."""
    return max(sum(rank in set(holders) for rank in row) for row in mesh)


def by_sources(told: Told, mesh: Mesh) -> None:
    """H2: rows first if the fullest row has fewer sources than the fullest column."""
    turned = list(zip(*mesh, strict=True))
    along_lines(told, mesh, fullest(mesh, told.held) < fullest(turned, told.held))


def by_shape(told: Told, mesh: Mesh) -> None:
    """H3: the longer lines first, rows if both are as long."""
    along_lines(told, mesh, len(mesh[0]) >= len(mesh))


def two_step(told: Told, mesh: Mesh) -> None:
    """H4: every source sends straight to the first rank, which broadcasts all."""
    first = mesh[0][0]
    told.handed_over((rank, first) for rank in [*told.held] if rank != first)
    along_snake(told, mesh)


def repositioned(places: Any, spread: Callable[[Told, Mesh], None]) -> Callable[..., None]:
    """H7: one permutation, in which whoever has an ideal place already keeps it."""

    def tell(told: Told, mesh: Mesh) -> None:
        move(told, places_in(mesh, places, len(told.held)))
        spread(told, mesh)

    return tell


def places_in(mesh: Mesh, places: Any, count: int) -> list[int]:
    ranks = [rank for row in mesh for rank in row]
    return [ranks[i] for i in places((len(mesh), len(mesh[0])), count)] if count else []


def move(told: Told, places: Sequence[int]) -> None:
    movers = sorted(told.held.keys() - set(places))
    told.handed_over(zip(movers, sorted(set(places) - told.held.keys()), strict=True))


def partitioned(places: Any, spread: Callable[[Told, Mesh], None]) -> Callable[..., None]:
    """H8: half of the sources at ideal places in each half; then the halves exchange."""

    def tell(told: Told, mesh: Mesh) -> None:
        size = len(mesh) * len(mesh[0])
        if size == 1:
            return
        if len(mesh) >= len(mesh[0]):
            cut = (len(mesh) + 1) // 2
            halves = mesh[:cut], mesh[cut:]
        else:
            cut = (len(mesh[0]) + 1) // 2
            halves = [row[:cut] for row in mesh], [row[cut:] for row in mesh]
        one, other = ([rank for row in half for rank in row] for half in halves)
        count = len(told.held)
        share = -(-count * len(one) // size)
        move(
            told, places_in(halves[0], places, share) + places_in(halves[1], places, count - share)
        )
        inside = [Told({r: told.held[r] for r in half if r in told.held}) for half in (one, other)]
        for part, half in zip(inside, halves, strict=True):
            spread(part, half)
            told.held.update(part.held)
        told.rounds += [
            a + b for a, b in zip_longest(*(part.rounds for part in inside), fillvalue=[])
        ]
        servants = [other[i % len(other)] for i in range(len(one))]
        told.all(
            [*zip(one, other, strict=False), *((b, a) for a, b in zip(one, servants, strict=True))]
        )

    return tell


def xor(told: Told, mesh: Mesh) -> None:
    """H5: turns of partners i xor k, those beyond the last rank skipped."""
    p, sources = len(mesh) * len(mesh[0]), [*told.held]
    for k in range(1, 2 ** (p - 1).bit_length()):
        told.those([(s, s ^ k, frozenset([s])) for s in sources if s ^ k < p])


TWINS: dict[str, Callable[[Told, Mesh], None]] = {
    "br_lin": along_snake,
    "br_xy_source": by_sources,
    "br_xy_dim": by_shape,
    "two_step": two_step,
    "xor": xor,
    "repos_lin": repositioned(snake, along_snake),
    "repos_xy_source": repositioned(rows, by_sources),
    "part_lin": partitioned(snake, along_snake),
    "part_xy_source": partitioned(rows, by_sources),
}


def told_of(name: str, shape: tuple[int, int], sources: Iterable[int]) -> list[list[Message]]:
    """The messages of every round, rounds without any left out."""
    told = Told({rank: frozenset([rank]) for rank in sorted(sources)})
    TWINS[name](told, mesh_of(shape))
    return [messages for messages in told.rounds if messages]


def messages_of(schedule: Schedule) -> Counter[Message]:
    return Counter(
        (rank, op.peer, frozenset(block.owner for block in op.blocks))
        for rank, operations in enumerate(schedule.lists)
        for op in operations
        if isinstance(op, Send)
    )
