"""What an operation waits for: the interval map and its obvious twin, byte by byte."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from collwise.schedule.dependencies import Writers, dependencies, overwritten, publications
from collwise.schedule.operations import (
    Block,
    Combine,
    Copy,
    Operation,
    Recv,
    Send,
    Slot,
    blocks_in,
    clobbers,
    reads,
    scratch,
    writes,
)

blocks = st.builds(Block, st.integers(0, 2), st.integers(-3, 25), st.integers(0, 12))
slots = st.sampled_from([*map(int, Slot), scratch(1)])


class Bytes:
    """The slow twin: the latest writer of every single byte."""

    def __init__(self) -> None:
        self.writer: dict[tuple[int, int, int], int] = {}

    def write(self, slot: int, block: Block, writer: int) -> None:
        for i in range(block.offset, block.end):
            self.writer[slot, block.owner, i] = writer

    def of(self, slot: int, block: Block) -> set[int]:
        cells = [(slot, block.owner, i) for i in range(block.offset, block.end)]
        return {self.writer[cell] for cell in cells if cell in self.writer}


@given(st.lists(st.tuples(slots, blocks), max_size=30), st.lists(st.tuples(slots, blocks)))
def test_writers(written: list[tuple[int, Block]], asked: list[tuple[int, Block]]) -> None:
    fast, slow = Writers(), Bytes()
    for i, (slot, block) in enumerate(written):
        fast.write(slot, block, i)
        slow.write(slot, block, i)
        assert set(fast.of(slot, block)) == slow.of(slot, block) == ({i} if block.length else set())
    for slot, block in asked:
        assert set(fast.of(slot, block)) == slow.of(slot, block)


some = st.lists(blocks, max_size=3).map(tuple)
operations = st.one_of(
    st.builds(Send, st.integers(0, 3), some, slots),
    st.builds(Recv, st.integers(0, 3), some, slots),
    st.builds(Combine, slots, slots, slots, some),
    st.builds(Copy, slots, slots, some, st.integers(-3, 9)).map(
        lambda op: op._replace(shift=0) if op.source == op.into else op  # none within a slot
    ),
)


@given(st.lists(operations, max_size=20))
def test_dependencies(ops: list[Operation]) -> None:
    slow, waits = Bytes(), []
    for place, op in enumerate(ops):
        asked = [slow.of(slot, block) for slot in reads(op) for block in blocks_in(op, slot)]
        waits.append(tuple(sorted(set[int]().union(*asked))))
        if (slot := writes(op)) is not None:
            for block in blocks_in(op, slot):
                slow.write(slot, block, place)
    assert dependencies(ops) == waits


def cells(op: Operation, slots_: tuple[int, ...]) -> set[tuple[int, int, int]]:
    return {
        (s, b.owner, i) for s in slots_ for b in blocks_in(op, s) for i in range(b.offset, b.end)
    }


@given(st.lists(operations, max_size=20))
def test_overwritten(ops: list[Operation]) -> None:
    """All earlier sends of a byte that is changed, and no operation that sends nothing of it.

    A send of other bytes may be among them, if a later one has some of its bytes and some of these.
    """
    sends = [place for place, op in enumerate(ops) if isinstance(op, Send)]
    for place, found in enumerate(overwritten(ops)):
        changed = cells(ops[place], clobbers(ops[place]))
        needed = {s for s in sends if s < place and cells(ops[s], reads(ops[s])) & changed}
        assert needed <= set(found) <= {s for s in sends if s < place}
        assert bool(needed) == bool(found)


def often_sent(random: Random) -> list[Operation]:
    """Sends of a few things from two slots to ranks 0 to 3, and what changes these."""
    slots = (int(Slot.OUTPUT), scratch(0))

    def one() -> Operation:
        block = (random.choice((Block(0, 0, 4), Block(0, 4, 4), Block(0, 0, 8))),)
        slot, other = random.sample(slots, 2)
        changing = (
            Recv(0, block, slot),
            Copy(int(Slot.INPUT), slot, block),
            Combine(int(Slot.INPUT), slot, other, block),
        )
        sending = Send(random.randrange(4), block, slot)
        return random.choice(changing) if random.random() < 0.3 else sending

    return [one() for _ in range(12)]


def same_bytes(ops: list[Operation], before: int, place: int) -> bool:
    """Whether two sends are of the same bytes: from the same place, and unchanged since."""
    one, other = ops[before], ops[place]
    assert isinstance(one, Send)
    assert isinstance(other, Send)
    changed = set().union(*(cells(op, clobbers(op)) for op in ops[before:place]))
    here = cells(other, reads(other))
    return (one.slot, one.blocks) == (other.slot, other.blocks) and not here & changed


def test_publications() -> None:
    """Ranks 0 to 2 read what was published last of the same bytes, and nothing overtakes."""
    for seed in range(200):
        ops = often_sent(Random(seed))
        readers = {n: op.peer for n, op in enumerate(ops) if isinstance(op, Send) and op.peer < 3}
        published: dict[int, int] = {}  # each of these sends with the one that publishes its bytes
        for place, reader in readers.items():
            read = [first for sent, first in published.items() if readers[sent] == reader]
            known = [first for first in set(published.values()) if same_bytes(ops, first, place)]
            again = max(known, default=-1)
            published[place] = again if again > max(read, default=-1) else place
        assert publications(ops, range(3)) == [published.get(n, n) for n in range(len(ops))], seed


def test_sends_that_have_to_leave_first() -> None:
    a, b, c = Block(0, 0, 4), Block(0, 4, 4), Block(0, 0, 8)
    s0, s1 = scratch(0), scratch(1)
    ops: list[Operation] = [
        Send(1, (a,), s0),
        Send(2, (b,), s0),
        Combine(Slot.INPUT, s0, Slot.OUTPUT, (a,)),  # uses up what the first one sends
        Send(1, (a,), s1),
        Combine(Slot.INPUT, s1, s1, (c,)),
        Combine(s1, Slot.OUTPUT, s0, (b,)),
        Copy(s1, Slot.OUTPUT, (c,)),
        Recv(3, (c,), s0),
    ]
    assert overwritten(ops) == [(), (), (0,), (), (3,), (1,), (), (0, 1)]


def test_sends_of_the_same_bytes_have_to_leave_first_all_of_them() -> None:
    a, c = Block(0, 0, 4), Block(0, 0, 8)
    ops: list[Operation] = [
        Send(1, (c,), Slot.OUTPUT),
        Send(2, (a,), Slot.OUTPUT),
        Send(3, (a,), Slot.OUTPUT),
        Combine(Slot.INPUT, Slot.OUTPUT, Slot.OUTPUT, (a,)),
    ]
    assert overwritten(ops)[3] == (0, 1, 2)
