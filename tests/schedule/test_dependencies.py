"""Which receives a send waits for: the interval map and its obvious twin, byte by byte."""

from hypothesis import given
from hypothesis import strategies as st

from collwise.schedule.data import Block, Operation, Recv, Send, Slot
from collwise.schedule.dependencies import Writers, dependencies

blocks = st.builds(Block, st.integers(0, 2), st.integers(-3, 25), st.integers(0, 12))
slots = st.sampled_from(Slot)


class Bytes:
    """The slow twin: the latest writer of every single byte."""

    def __init__(self) -> None:
        self.writer: dict[tuple[int, int, int], int] = {}

    def write(self, slot: Slot, block: Block, writer: int) -> None:
        for i in range(block.offset, block.end):
            self.writer[slot, block.owner, i] = writer

    def of(self, slot: Slot, block: Block) -> set[int]:
        cells = [(slot, block.owner, i) for i in range(block.offset, block.end)]
        return {self.writer[cell] for cell in cells if cell in self.writer}


@given(st.lists(st.tuples(slots, blocks), max_size=30), st.lists(st.tuples(slots, blocks)))
def test_writers(written: list[tuple[Slot, Block]], asked: list[tuple[Slot, Block]]) -> None:
    fast, slow = Writers(), Bytes()
    for i, (slot, block) in enumerate(written):
        fast.write(slot, block, i)
        slow.write(slot, block, i)
        assert fast.of(slot, block) == slow.of(slot, block) == ({i} if block.length else set())
    for slot, block in asked:
        assert fast.of(slot, block) == slow.of(slot, block)


operations = st.one_of(
    st.builds(Send, st.integers(0, 3), st.lists(blocks, max_size=3).map(tuple), slots),
    st.builds(Recv, st.integers(0, 3), st.lists(blocks, max_size=3).map(tuple), slots),
)


@given(st.lists(operations, max_size=20))
def test_dependencies(ops: list[Operation]) -> None:
    slow, waits = Bytes(), []
    for place, op in enumerate(ops):
        waits.append(
            ()
            if isinstance(op, Recv)
            else tuple(sorted(set[int]().union(*(slow.of(op.slot, b) for b in op.blocks))))
        )
        if isinstance(op, Recv):
            for block in op.blocks:
                slow.write(op.slot, block, place)
    assert dependencies(ops) == waits


def test_only_the_latest_writers_count() -> None:
    a, b = Block(0, 0, 10), Block(0, 4, 2)
    ops: list[Operation] = [
        Recv(1, (a,)),
        Recv(1, (b,)),
        Send(2, (Block(0, 0, 4),)),
        Send(2, (Block(0, 3, 2),)),
        Send(2, (b,)),
        Send(2, (a,)),
        Send(2, (a,), Slot.SCRATCH),
        Send(2, (Block(1, 0, 10),)),
    ]
    assert dependencies(ops) == [(), (), (0,), (0, 1), (1,), (0, 1), (), ()]
