"""Plans executed on memory that is really overwritten, messages as early or late as can be."""

from collections.abc import Iterable, Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from collwise.algorithms import Algorithm
from collwise.algorithms.registry import ALGORITHMS
from collwise.mpi.execution.instructions import (
    Await,
    RankPlan,
    Start,
    in_place,
    publications,
    rank_plan,
    read_once,
    reduce_local_form,
)
from collwise.schedule.operations import (
    Block,
    Combine,
    Copy,
    Operation,
    Recv,
    Send,
    Slot,
    blocks_in,
    scratch,
)
from collwise.schedule.program import Schedule
from tests.algorithms.examples import root_of, roots, settings_of

Numbers = NDArray[np.int64]
A, B = Block(0, 0, 8), Block(0, 8, 8)
X, Y = scratch(0), scratch(1)
RANKS = (1, 2, 3, 4, 5, 7, 8, 13)
COMBINING = [algorithm for algorithm in ALGORITHMS.values() if algorithm.kind.combines]


class Rank:
    """One rank's memory, and how far it has come in its plan."""

    def __init__(self, plan: RankPlan, given: Numbers, shared: bool) -> None:
        self.plan = plan
        self.slots: dict[int, Numbers] = {Slot.OUTPUT: np.full_like(given, -1)}
        self.slots[Slot.INPUT] = given.copy()
        if shared:
            self.slots[Slot.OUTPUT] = self.slots[Slot.INPUT]
        self.size = len(given)
        self.started: set[int] = set()
        self.complete: set[int] = set()
        self.todo = list(self.plan.instructions)

    def memory(self, slot: int, blocks: Iterable[Block]) -> list[Numbers]:
        whole = self.slots.setdefault(slot, np.full(self.size * RANKS[-1], -7))
        return [whole[b.offset // 8 : b.end // 8] for b in blocks]

    def do(self, op: Combine | Copy) -> None:
        if isinstance(op, Copy):
            both = (self.memory(slot, blocks_in(op, slot)) for slot in (op.into, op.source))
            for into, source in zip(*both, strict=True):
                into[:] = source
            return
        three = (self.memory(slot, op.blocks) for slot in (op.left, op.right, op.into))
        for left, right, into in zip(*three, strict=True):
            combined = left + right
            if op.right >= Slot.SCRATCH and op.right != op.into:
                right[:] = -99  # used up
            into[:] = combined


def plans(schedule: Schedule, sharing: bool) -> list[tuple[RankPlan, bool]]:
    """Of every rank, and whether its input shares the output's memory, where it can."""
    made = []
    for operations in schedule.lists:
        shared = in_place(operations) if sharing else None
        made.append((rank_plan(operations if shared is None else shared), shared is not None))
    return made


class Walk:
    """All ranks at their plans.  eager: messages arrive when they are sent, else when needed."""

    def __init__(
        self, made: list[tuple[RankPlan, bool]], inputs: list[Numbers], *, eager: bool
    ) -> None:
        self.ranks = [
            Rank(plan, given, shared) for (plan, shared), given in zip(made, inputs, strict=True)
        ]
        self.eager = eager
        self.partner: dict[tuple[int, int], tuple[int, int]] = {}
        unmatched: dict[tuple[int, int], list[int]] = {}
        for number, rank in enumerate(self.ranks):
            for place, op in enumerate(rank.plan.messages):
                if isinstance(op, Send):
                    unmatched.setdefault((number, op.peer), []).append(place)
        for number, rank in enumerate(self.ranks):
            for place, op in enumerate(rank.plan.messages):
                if isinstance(op, Recv):
                    sender = op.peer, unmatched[op.peer, number].pop(0)
                    self.partner[number, place] = sender
                    self.partner[sender] = number, place

    def deliver(self, number: int, place: int) -> bool:
        """Complete a message, seen from either side, if its send has started."""
        ends = (number, place), self.partner[number, place]
        is_send = isinstance(self.ranks[number].plan.messages[place], Send)
        source, target = ends if is_send else ends[::-1]
        sender, receiver = self.ranks[source[0]], self.ranks[target[0]]
        if source[1] not in sender.started:
            return False
        if source[1] not in sender.complete:
            send, recv = sender.plan.messages[source[1]], receiver.plan.messages[target[1]]
            assert isinstance(send, Send)
            assert isinstance(recv, Recv)
            data = [piece.copy() for piece in sender.memory(send.slot, send.blocks)]
            for into, piece in zip(receiver.memory(recv.slot, recv.blocks), data, strict=True):
                into[:] = piece
            sender.complete.add(source[1])
            receiver.complete.add(target[1])
        return True

    def run(self) -> None:
        moved = True
        while moved:
            moved = False
            for number, rank in enumerate(self.ranks):
                while rank.todo and self.step(number, rank):
                    rank.todo.pop(0)
                    moved = True
        for number, rank in enumerate(self.ranks):
            assert not rank.todo, f"rank {number} waits for ever"
            assert rank.started == rank.complete == set(range(len(rank.plan.messages)))

    def step(self, number: int, rank: Rank) -> bool:
        """Whether the next instruction can be executed; it has been, then."""
        match rank.todo[0]:
            case Await(messages):
                assert rank.started >= set(messages)
                return all(self.deliver(number, message) for message in messages)
            case Start(messages):
                for message in messages:
                    rank.started.add(message)
                    if self.eager and isinstance(rank.plan.messages[message], Send):
                        assert self.deliver(number, message)
            case Combine() | Copy() as op:
                rank.do(op)
        return True


@pytest.mark.no_cover
@pytest.mark.parametrize("algorithm", COMBINING, ids=lambda a: a.name)
def test_nothing_is_overwritten_too_early(algorithm: Algorithm) -> None:
    """Each schedule in one of the four ways to walk it, in turn."""
    for turn, (schedule, count) in enumerate(schedules(algorithm)):
        check_result(schedule, plans(schedule, turn % 2 == 0), count, eager=turn // 2 % 2 == 0)


@pytest.mark.exhaustive
def test_nor_in_any_way() -> None:
    for algorithm in COMBINING:
        for schedule, count in schedules(algorithm):
            for sharing in (True, False):
                made = plans(schedule, sharing)
                for eager in (True, False):
                    check_result(schedule, made, count, eager=eager)


def schedules(algorithm: Algorithm) -> Iterator[tuple[Schedule, int]]:
    """For some numbers of ranks, of all kinds of roots and some lengths, with the length."""
    for p in RANKS:
        for root in roots(algorithm, p):
            at = root_of(algorithm, root)
            for count in (1, p + 2, 3 * p):
                if 8 * count % algorithm.kind.unit(p, 8) == 0:
                    settings = settings_of(algorithm, p, segment=16)
                    yield algorithm.schedule(p, 8 * count, at, itemsize=8, **settings), count


def check_result(
    schedule: Schedule, made: list[tuple[RankPlan, bool]], count: int, *, eager: bool
) -> None:
    inputs = [np.arange(count) ** 2 + 100 * rank for rank in range(schedule.ranks)]
    walk = Walk(made, inputs, eager=eager)
    walk.run()
    right = sum(inputs[1:], inputs[0])
    for number, rank in enumerate(walk.ranks):
        for block in schedule.problem.output_of(number):
            part = slice(block.offset // 8, block.end // 8)
            assert np.array_equal(rank.slots[Slot.OUTPUT][part], right[part]), schedule.problem


def test_a_broadcasts_sends_wait_for_their_receives() -> None:
    plan = rank_plan([Recv(1, (A,)), Recv(1, (B,)), Send(2, (A,)), Send(2, (B,)), Send(3, (A,))])
    waits = (Await((0,)), Start((2,)), Await((1,)), Start((3, 4)))
    assert plan.instructions == (Start((0, 1)), *waits, Await((2, 3, 4)))
    assert plan.forwarding == 5


def test_what_nobody_waits_for_comes_last() -> None:
    combine = Combine(Slot.INPUT, X, Slot.OUTPUT, (A,))
    plan = rank_plan([Recv(1, (A,), X), combine, Send(1, (A,), Slot.INPUT)])
    assert plan.instructions == (Start((0, 1)), Await((0,)), combine, Await((1,)))
    assert plan.forwarding == 1


def test_sends_of_what_is_changed_complete_before() -> None:
    combine = Combine(X, Slot.OUTPUT, Slot.OUTPUT, (A,))
    copy = Copy(Slot.INPUT, Slot.OUTPUT, (A,))
    plan = rank_plan([copy, Send(1, (A,)), Recv(1, (A,), X), combine, Send(2, (A,))])
    first = (Start((1,)), copy, Start((0,)))
    assert plan.instructions == (*first, Await((0, 1)), combine, Start((2,)), Await((2,)))


def test_a_combine_that_uses_a_value_comes_before_one_that_changes_it() -> None:
    combine = Combine(Slot.INPUT, X, Y, (A,))  # reads and uses up X; no send needs it
    copy = Copy(Slot.INPUT, X, (A,))
    plan = rank_plan([Recv(1, (A,), X), combine, copy, Send(1, (A,), X)])
    assert plan.instructions == (Start((0,)), Await((0,)), combine, copy, Start((1,)), Await((1,)))


def test_what_comes_after_waits_for_everything() -> None:
    copy = Copy(Slot.OUTPUT, X, (A,))
    plan = rank_plan([Recv(1, (A,)), Send(1, (B,), Slot.INPUT)], [copy])
    assert plan == RankPlan(plan.messages, (Start((0, 1)), Await((0, 1)), copy), 1)
    assert rank_plan([]) == RankPlan((), (), 0)


@pytest.mark.parametrize(
    ("operations", "possible"),
    [
        ([Send(1, (A,), Slot.INPUT), Recv(1, (A,), X), Combine(0, X, 1, (A,))], True),
        ([Copy(Slot.INPUT, Slot.OUTPUT, (A,)), Send(1, (A,), Slot.OUTPUT)], True),
        ([Copy(Slot.INPUT, Slot.OUTPUT, (A,)), Send(1, (A,), Slot.INPUT)], True),
        ([Recv(1, (A,), X), Combine(X, 0, 1, (A,)), Send(1, (A,), Slot.INPUT)], False),
        ([Recv(1, (A,), Slot.OUTPUT), Combine(0, 1, 1, (A,))], False),
        ([Send(1, (A,), Slot.INPUT), Recv(1, (B,), Slot.OUTPUT)], True),
        ([Send(1, (A,), Slot.INPUT), Recv(1, (A,), Slot.OUTPUT)], False),
    ],
)
def test_an_input_can_lie_where_the_output_will_be(
    operations: list[Operation], possible: bool
) -> None:
    shared = in_place(operations)
    assert (shared is not None) == possible
    if shared is not None:
        for op in shared:
            slots = vars(op) if hasattr(op, "__dict__") else op._asdict()
            assert Slot.INPUT not in [slots.get(n) for n in ("slot", "left", "right", "source")]


def test_sends_of_the_same_bytes_are_one_publication() -> None:
    def to(peer: int, *blocks: Block) -> Send:
        return Send(peer, blocks, X)

    everybody = range(9)
    flat = rank_plan([to(1, A), to(2, A), to(3, A, B), to(4, A), to(5, A, B)])
    assert publications(flat, everybody) == [0, 0, 2, 0, 2]
    assert publications(flat, {2, 4, 5}) == [0, 1, 2, 1, 4]
    assert publications(flat, ()) == [0, 1, 2, 3, 4]


def test_a_publication_ends_where_its_bytes_are_written_or_a_message_would_overtake() -> None:
    def to(peer: int, block: Block) -> Send:
        return Send(peer, (block,), X)

    everybody = range(9)
    written: list[Operation] = [to(1, A), Copy(Y, X, (A,)), to(2, A), to(3, A)]
    assert publications(rank_plan(written), everybody) == [0, 1, 1]
    clobbering = Start((0,)), Combine(Y, X, Y, (A,)), Start((1,))
    assert publications(RankPlan((to(1, A), to(2, A)), clobbering, 3), everybody) == [0, 1]
    twice = [to(1, A), to(1, A), to(2, A)]
    assert publications(rank_plan(twice), everybody) == [0, 1, 1]
    overtaking = [to(1, A), to(2, B), to(2, A), to(1, B)]
    assert publications(rank_plan(overtaking), everybody) == [0, 1, 2, 1]


def test_what_a_combine_alone_reads_may_stay_where_it_was_published() -> None:
    whole = (Block(0, 0, 16),)
    received = [Recv(1, (A, B), X), Recv(2, whole, Y)]
    combines = [Combine(X, Slot.INPUT, Slot.OUTPUT, (A, B)), Combine(Slot.OUTPUT, Y, Y, whole)]
    lists: dict[str, tuple[list[Operation], list[bool]]] = {
        "each by one": ([*received, *combines], [True, True]),
        "sent on, too": ([*received, Send(3, (A,), X), *combines], [False, True, False]),
        "copied, too": ([*received, Copy(X, Slot.OUTPUT, (B,)), *combines], [False, True]),
        "combined in parts": (
            [*received, *(Combine(X, Slot.INPUT, Slot.OUTPUT, (one,)) for one in (A, B))],
            [False, False],
        ),
        "in the user's memory": (
            [Recv(1, whole), Combine(Slot.OUTPUT, Slot.INPUT, Slot.OUTPUT, whole)],
            [False],
        ),
        "twice by one": ([received[0], Combine(X, X, Slot.OUTPUT, (A, B))], [False]),
    }
    for name, (operations, once) in lists.items():
        plan = rank_plan(operations)
        found = read_once(plan)
        assert [place >= 0 for place in found] == once, name
        for place, message in zip(found, plan.messages, strict=True):
            reader = plan.instructions[place]
            assert place < 0 or (isinstance(reader, Combine) and message.slot in reader[:2]), name
    # The result of `MPI_Reduce_local` is where its right operand was, and is copied from there.
    right = Recv(1, whole, X), Combine(Slot.INPUT, X, Slot.OUTPUT, whole)
    assert read_once(rank_plan(list(reduce_local_form(right)))) == [2]
