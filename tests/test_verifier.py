"""The verifier: what it says of wrong schedules and wrong timings, and that it finds them all."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collwise.algorithms import ALGORITHMS, Algorithm
from collwise.algorithms.registry import collectives
from collwise.errors import InvalidSchedule, UnknownName
from collwise.model.machine import Machine
from collwise.schedule.data import (
    Block,
    Operation,
    Problem,
    Recv,
    Schedule,
    Send,
    Slot,
    Written,
    size_of,
)
from collwise.schedule.timing import Timing, Transfer, ideal
from collwise.verifier import PROMISES, check_flow, check_ports, verify

POSTAL = Machine.postal(t0_s=1, lam=2)
HOCKNEY = Machine.hockney(alpha_s=1, beta_s="1/10")
LOGGP = Machine.loggp(L_s=10, o_s=2, g_s=3, G_s="1/2")
MACHINES = (POSTAL, HOCKNEY, LOGGP)

A, B, C = Block(0, 0, 4), Block(0, 4, 4), Block(0, 8, 2)
ALL = Block(0, 0, 10)

Lists = Sequence[Sequence[Operation]]


def broadcast(*lists: Sequence[Operation], nbytes: int = 10, ranks: int | None = None) -> Schedule:
    problem = Problem("broadcast", len(lists) if ranks is None else ranks, nbytes)
    return Schedule(problem, Written(tuple(map(tuple, lists))))


def violation(schedule: Schedule, machine: Machine | None = None) -> InvalidSchedule:
    with pytest.raises(InvalidSchedule) as caught:
        verify(schedule, machine)
    assert caught.value.asked
    assert caught.value.seen
    assert caught.value.remedy
    return caught.value


# --- what is right ---


@pytest.mark.parametrize("machine", [None, *MACHINES])
def test_right_schedules_pass(machine: Machine | None) -> None:
    verify(broadcast([]), machine)
    verify(broadcast([], [], [], nbytes=0), machine)
    verify(broadcast([Send(1, (ALL,))], [Recv(0, (ALL,))]), machine)
    # Different cuts on the way: whole to rank 1, on in two messages, in another order.
    on: list[Operation] = [Send(2, (Block(0, 3, 7),)), Send(2, (Block(0, 0, 1), Block(0, 1, 2)))]
    to = [Recv(1, (Block(0, 3, 7),)), Recv(1, (Block(0, 0, 1), Block(0, 1, 2)))]
    verify(broadcast([Send(1, (ALL,))], [Recv(0, (ALL,)), *on], to), machine)


def test_blocks_of_no_bytes_may_go_along() -> None:
    blocks = (Block(0, 3, 0), ALL)
    verify(broadcast([Send(1, blocks)], [Recv(0, blocks)]))


def test_scratch_is_another_place() -> None:
    """What passes through scratch may come again into the output, and is not owed there."""
    first = [Send(1, (ALL,)), Send(1, (ALL,))]
    into: list[Operation] = [
        Recv(0, (ALL,), Slot.SCRATCH),
        Recv(0, (ALL,)),
        Send(2, (ALL,), Slot.SCRATCH),
    ]
    verify(broadcast(first, into, [Recv(1, (ALL,))]))


@pytest.mark.parametrize("collective", collectives())
def test_every_collective_has_a_promise(collective: str) -> None:
    assert collective in PROMISES


def test_the_promise_of_a_broadcast() -> None:
    problem = Problem("broadcast", 3, 10, root=1)
    everything = ((Slot.OUTPUT, Block(1, 0, 10)),)
    assert PROMISES["broadcast"](problem, 1) == (everything, everything)
    assert PROMISES["broadcast"](problem, 2) == ((), everything)


def test_unknown_collective() -> None:
    with pytest.raises(UnknownName, match=r"collective 'braodcast': .* did you mean broadcast\?"):
        verify(Schedule(Problem("braodcast", 1, 1), Written(((),))))


# --- what is said of wrong ones: (schedule, rank, step, block, what the text says) ---

STORIES: dict[str, tuple[Schedule, int | None, int | None, Block | None, str]] = {
    "a list is missing": (
        broadcast([], ranks=2),
        None,
        None,
        None,
        "broadcast over 2 ranks: 1 lists of operations are written; write one list for every rank",
    ),
    "a list too many": (
        broadcast([Send(1, (ALL,))], [Recv(0, (ALL,))], [], ranks=2),
        None,
        None,
        None,
        "3 lists of operations are written",
    ),
    "peer out of range": (
        broadcast([Send(1, (ALL,)), Send(2, (ALL,))], [Recv(0, (ALL,))]),
        0,
        1,
        None,
        "rank 0, step 1: send bytes 0…9 of rank 0's data to rank 2: there are 2 ranks; "
        "name a peer from 0 to 1",
    ),
    "negative peer": (
        broadcast([Send(1, (ALL,))], [Recv(-1, (ALL,))]),
        1,
        0,
        None,
        "receive bytes 0…9 of rank 0's data from rank -1",
    ),
    "message to itself": (
        broadcast([Send(0, (ALL,)), Recv(0, (ALL,))]),
        0,
        0,
        None,
        "to rank 0: this is the rank itself; leave the message out",
    ),
    "negative length": (
        broadcast([Send(1, (Block(0, 5, -2),))], [Recv(0, (ALL,))]),
        0,
        0,
        Block(0, 5, -2),
        "send -2 bytes at 5 of rank 0's data to rank 1: a length is negative",
    ),
    "no block": (
        broadcast([Send(1, ())], []),
        0,
        0,
        None,
        "send nothing to rank 1: the message is",
    ),
    "only empty blocks": (
        broadcast([], [Recv(0, (Block(0, 3, 0),))]),
        1,
        0,
        None,
        "receive 0 bytes at 3 of rank 0's data from rank 0: the message is empty; leave out",
    ),
    "into the input": (
        broadcast([Send(1, (ALL,))], [Recv(0, (ALL,), Slot.INPUT)]),
        1,
        0,
        ALL,
        "it would overwrite the user's input; receive into the output or scratch",
    ),
    "a send that nobody receives": (
        broadcast([Send(1, (A,)), Send(1, (B,)), Send(1, (C,))], [Recv(0, (A,)), Recv(0, (C,))]),
        0,
        1,
        B,
        "no receive matches: rank 0 sends 3 message(s) to rank 1, which receives 2; "
        "let rank 1 receive it, or drop it",
    ),
    "a receive that nobody sends": (
        broadcast([Send(1, (ALL,))], [Recv(0, (ALL,))], [Recv(1, (ALL,))]),
        2,
        0,
        ALL,
        "no send matches: rank 1 sends 0 message(s) to rank 2, which receives 1; let rank 1 send",
    ),
    "other blocks": (
        broadcast([Send(1, (A, B)), Send(1, (C,))], [Recv(0, (B, A)), Recv(0, (C,))]),
        1,
        0,
        B,
        "message 1 from rank 0, its step 0, carries bytes 0…3 of rank 0's data, bytes 4…7 of rank "
        "0's data; name the same blocks in the same order on both sides",
    ),
    "beyond the end": (
        broadcast([Send(1, (Block(0, 0, 12),))], [Recv(0, (Block(0, 0, 12),))]),
        0,
        0,
        Block(0, 10, 2),
        "there is no such data as bytes 10…11 of rank 0's data; stay within the data",
    ),
    "before the start": (
        broadcast([Send(1, (Block(0, -2, 12),))], [Recv(0, (Block(0, -2, 12),))]),
        0,
        0,
        Block(0, -2, 2),
        "there is no such data as bytes -2…-1 of rank 0's data",
    ),
    "of somebody else": (
        broadcast([Send(1, (Block(1, 0, 10),))], [Recv(0, (Block(1, 0, 10),))]),
        0,
        0,
        Block(1, 0, 10),
        "there is no such data as bytes 0…9 of rank 1's data",
    ),
    "sent too early": (
        broadcast(
            [Send(1, (A,)), Send(1, (B, C))],
            [Recv(0, (A,)), Send(2, (A, B, C)), Recv(0, (B, C))],
            [Recv(1, (A, B, C))],
        ),
        1,
        1,
        Block(0, 4, 6),
        "it does not hold bytes 4…9 of rank 0's data in slot 1 by then, but gets data for it only "
        "at step 2; put the send after step 2",
    ),
    "sent without ever having it": (
        broadcast([], [Send(2, (A,))], [Recv(1, (A,))]),
        1,
        0,
        A,
        "in slot 1 by then, nor ever; receive the data first",
    ),
    "sent from a slot that has nothing": (
        broadcast([Send(1, (ALL,), Slot.INPUT)], [Recv(0, (ALL,))]),
        0,
        0,
        ALL,
        "it does not hold bytes 0…9 of rank 0's data in slot 0 by then, nor ever",
    ),
    "received by the root": (
        broadcast([Send(1, (ALL,)), Recv(1, (B,))], [Recv(0, (ALL,)), Send(0, (B,))]),
        0,
        1,
        B,
        "it holds bytes 4…7 of rank 0's data from the start, and sends that read them may be under "
        "way; leave them out here: every byte of a slot is received once",
    ),
    "received again": (
        broadcast(
            [Send(1, (Block(0, 0, 6),)), Send(1, (Block(0, 4, 6),))],
            [Recv(0, (Block(0, 0, 6),)), Recv(0, (Block(0, 4, 6),))],
        ),
        1,
        1,
        Block(0, 4, 2),
        "it holds bytes 4…5 of rank 0's data since step 0",
    ),
    "twice in one message": (
        broadcast([Send(1, (ALL, B))], [Recv(0, (ALL, B))]),
        1,
        0,
        B,
        "it holds bytes 4…7 of rank 0's data from this very message",
    ),
    "left without": (
        broadcast([Send(1, (A,)), Send(1, (C,))], [Recv(0, (A,)), Recv(0, (C,))]),
        1,
        None,
        B,
        "rank 1, at the end: bytes 4…7 of rank 0's data in its output: none of its 2 operations "
        "brings them; send them to this rank",
    ),
    "only into scratch": (
        broadcast([Send(1, (ALL,))], [Recv(0, (ALL,), Slot.SCRATCH)]),
        1,
        None,
        ALL,
        "rank 1, at the end: bytes 0…9 of rank 0's data in its output",
    ),
}


@pytest.mark.parametrize("story", STORIES)
def test_what_is_said(story: str) -> None:
    schedule, rank, step, block, text = STORIES[story]
    error = violation(schedule)
    assert text in str(error)
    assert (error.rank, error.step, error.block) == (rank, step, block)
    assert error.exit_code == 1


def test_many_blocks_are_cut_short() -> None:
    blocks = tuple(Block(0, i, 1) for i in range(10))
    error = violation(broadcast([Send(1, blocks)], []))
    assert "bytes 2…2 of rank 0's data and 7 more blocks to rank 1" in error.asked


def test_the_root_is_the_users() -> None:
    """A program speaks of virtual ranks; the violation names the user's."""
    problem = Problem("broadcast", 3, 10, root=2)
    lists = ((Send(1, (ALL,)),), (Recv(0, (ALL,)),), ())
    error = violation(Schedule(problem, Written(lists)))
    assert (error.rank, error.block) == (1, Block(2, 0, 10))


# --- deadlock ---


def circle(*orders: str) -> Schedule:
    """Ranks 1, 2, 3 get A, B, C from the root, and each the others' from each other, as told."""
    block = dict(zip("ABC", (A, B, C), strict=True))
    ops: list[list[Operation]] = [[Send(r + 1, (block["ABC"[r]],)) for r in range(3)]]
    for order in orders:
        ops.append([])
        for word in order.split():
            kind, what, peer = tuple(word)
            ops[-1].append((Send if kind == ">" else Recv)(int(peer), (block[what],)))
    return broadcast(*ops)


def test_a_circle_of_receives() -> None:
    schedule = circle(
        "<B2 <A0 >A3 <C3 >B3",
        "<C3 <B0 >B1 <A3",
        "<A1 <C0 >C2 >C1 <B1 >A2",
    )
    error = violation(schedule)
    assert (error.rank, error.step, error.block) == (1, 0, B)
    assert error.asked == "rank 1, step 0: receive bytes 4…7 of rank 0's data from rank 2"
    assert error.seen == (
        "it never completes even if sends are buffered, for ranks wait in a circle: "
        "rank 1 at step 0 (receive) waits for rank 2, rank 2 at step 2 (send) waits for its data, "
        "rank 2 at step 0 (receive) waits for rank 3, rank 3 at step 2 (send) waits for its data, "
        "rank 3 at step 0 (receive) waits for rank 1, rank 1 at step 2 (send) waits for its data"
    )
    assert "another order" in error.remedy
    for machine in MACHINES[:2]:
        with pytest.raises(InvalidSchedule, match="never completes"):
            ideal(schedule, machine)


def test_blocking_sends_can_wait_where_buffered_ones_do_not() -> None:
    """Rank 0 offers A to rank 1, which first wants B; B comes from 0 by way of 2, but after A."""
    schedule = broadcast(
        [Send(1, (A,)), Send(2, (B,)), Send(2, (A,))],
        [Recv(2, (B,)), Recv(0, (A,))],
        [Recv(0, (B,)), Send(1, (B,)), Recv(0, (A,))],
        nbytes=8,
    )
    ideal(schedule, POSTAL)
    error = violation(schedule)
    assert (error.rank, error.step, error.block) == (0, 0, A)
    assert error.seen == (
        "it never completes if a send waits for its receiver, for ranks wait in a circle: "
        "rank 0 at step 0 (send) waits for rank 1, rank 1 at step 0 (receive) waits for rank 2, "
        "rank 2 at step 1 (send) waits for its data, rank 2 at step 0 (receive) waits for rank 0"
    )
    with pytest.raises(InvalidSchedule, match="never completes"):
        ideal(schedule, HOCKNEY)


def test_two_messages_of_one_pair_do_not_overtake() -> None:
    """While its first message waits to be taken, a sender does not start another one."""
    lists: list[list[Operation]] = [
        [Send(1, (A,)), Send(1, (B,)), Send(2, (A, B))],
        [Recv(0, (A,)), Recv(2, (C,)), Recv(0, (B,))],
        [Recv(0, (A, B)), Send(1, (C,))],
    ]
    lists[0].insert(2, Send(2, (C,)))
    lists[2].insert(0, Recv(0, (C,)))
    error = violation(broadcast(*lists))
    assert (error.rank, error.step) == (0, 1)
    assert "if a send waits for its receiver" in error.seen


def test_a_long_circle_is_cut_short() -> None:
    """Around a ring of 12, each receives what its neighbour gets last before what it passes on."""
    p = 12
    mine = [Block(0, r - 1, 1) for r in range(1, p)]
    lists: list[list[Operation]] = [[Send(r, (mine[r - 1],)) for r in range(1, p)]]
    for r in range(1, p):
        left, right = (r - 2) % (p - 1) + 1, r % (p - 1) + 1
        theirs = mine[left - 1]
        lists.append([Recv(left, (theirs,)), Recv(0, (mine[r - 1],)), Send(right, (mine[r - 1],))])
        rest = tuple(b for b in mine if b not in (theirs, mine[r - 1]))
        lists[0].append(Send(r, rest))
        lists[r].append(Recv(0, rest))
    error = violation(broadcast(*lists, nbytes=p - 1))
    assert error.rank == 1
    assert error.seen.count("waits") == 7
    assert "… 15 more …" in error.seen


def orders(lists: Lists, random: Random) -> list[list[Operation]]:
    """Every list in another order in which nothing is sent before it is held."""
    mixed = []
    for rank, operations in enumerate(lists):
        left, held, order = list(operations), {0: set(range(999))}.get(rank, set()), []
        while left:
            able = [
                op
                for op in left
                if isinstance(op, Recv)
                or all(held.issuperset(range(b.offset, b.end)) for b in op.blocks)
            ]
            # Messages of one pair stay in their order on both sides.
            able = [op for op in able if op is next(o for o in left if same_way(o, op))]
            op = random.choice(able)
            left.remove(op)
            order.append(op)
            if isinstance(op, Recv):
                held = held | {i for b in op.blocks for i in range(b.offset, b.end)}
        mixed.append(order)
    return mixed


def same_way(a: Operation, b: Operation) -> bool:
    return type(a) is type(b) and a.peer == b.peer


@given(st.integers(2, 7), st.integers(1, 4), st.randoms(use_true_random=False))
def test_deadlocks_are_those_of_the_timing_engine(p: int, parts: int, random: Random) -> None:
    """Buffered: where postal time does not end.  Blocking: where Hockney's does not."""
    lists: list[list[Operation]] = [[] for _ in range(p)]
    for i in range(parts):
        informed, rest = [0], list(range(1, p))
        random.shuffle(rest)
        for rank in rest:
            source = random.choice(informed)
            informed.append(rank)
            lists[source].append(Send(rank, (Block(0, 3 * i, 3),)))
            lists[rank].append(Recv(source, (Block(0, 3 * i, 3),)))
    try:
        mixed = orders(lists, random)
    except IndexError:  # two messages of a pair, the second of which would have to be first
        return
    schedule = broadcast(*mixed, nbytes=3 * parts)
    ends = []
    for machine in (POSTAL, HOCKNEY):
        try:
            ideal(schedule, machine)
            ends.append(True)
        except InvalidSchedule:
            ends.append(False)
    try:
        check_flow(schedule)
        seen = [True, True]
    except InvalidSchedule as error:
        seen = ["if a send waits for its receiver" in error.seen, False]
    assert ends == seen
    if all(ends):
        for any_machine in MACHINES:
            verify(schedule, any_machine)


# --- mutants: every algorithm, broken in every way ---


def schedule_of(algorithm: Algorithm, p: int, nbytes: int, root: int) -> Schedule:
    values: dict[str, Any] = {"segment": -(-nbytes // 3), "lam": 2, "alpha": "3/5", "k": 3}
    settings = {name: values[name] for name in algorithm.parameters}
    return algorithm.schedule(p, nbytes, root, **settings)


class Broken:
    """A valid schedule as lists that can be broken, and one message of it."""

    def __init__(self, algorithm: Algorithm, seed: int) -> None:
        self.random = Random(seed)
        p = self.random.randrange(4, 12)
        self.nbytes = self.random.randrange(p, 60)
        self.valid = schedule_of(algorithm, p, self.nbytes, self.random.randrange(p))
        self.root = self.valid.problem.root
        self.lists = [list(ops) for ops in self.valid.lists]
        self.messages = ideal(self.valid, POSTAL).transfers
        m = self.random.choice(self.messages)
        self.a, self.at_a, self.b, self.at_b = m[0], m[2], m[1], m[3]

    @property
    def ranks(self) -> int:
        return len(self.lists)

    @property
    def send(self) -> Operation:
        return self.lists[self.a][self.at_a]

    @send.setter
    def send(self, op: Operation) -> None:
        self.lists[self.a][self.at_a] = op

    @property
    def recv(self) -> Operation:
        return self.lists[self.b][self.at_b]

    @recv.setter
    def recv(self, op: Operation) -> None:
        self.lists[self.b][self.at_b] = op

    def other(self) -> int:
        """A third rank."""
        return self.random.choice([r for r in range(self.ranks) if r not in (self.a, self.b)])

    def schedule(self) -> Schedule:
        return replace(self.valid, program=Virtual(self.lists, self.root))


def Virtual(lists: Lists, root: int) -> Written:
    """The program of lists that name the user's ranks."""
    p = len(lists)

    def turned(op: Operation) -> Operation:
        blocks = tuple(b._replace(owner=(b.owner - root) % p) for b in op.blocks)
        peer = (op.peer - root) % p if 0 <= op.peer < p else op.peer
        return op._replace(peer=peer, blocks=blocks)

    return Written(tuple(tuple(map(turned, lists[(v + root) % p])) for v in range(p)))


Names = tuple[set[int | None], set[int | None]]
"""The ranks and the steps that a violation may name."""


def drop_send(m: Broken) -> Names:
    del m.lists[m.a][m.at_a]
    return {m.b}, {m.at_b}


def drop_receive(m: Broken) -> Names:
    del m.lists[m.b][m.at_b]
    return {m.a}, {m.at_a}


def drop_message(m: Broken) -> Names:
    """Then b has to do without: it may send what it has not, or it lacks it in the end."""
    gone = m.recv.blocks
    del m.lists[m.a][m.at_a], m.lists[m.b][m.at_b]
    sends = {
        step
        for step, op in enumerate(m.lists[m.b])
        if isinstance(op, Send)
        and any(o.offset < g.end and g.offset < o.end for o in op.blocks for g in gone)
    }
    return {m.b}, {min(sends)} if sends else {None}


def send_elsewhere(m: Broken) -> Names:
    m.send = m.send._replace(peer=m.other())
    return {m.a, m.b, m.send.peer}, set(range(999))


def receive_from_elsewhere(m: Broken) -> Names:
    m.recv = m.recv._replace(peer=m.other())
    return {m.a, m.b, m.recv.peer}, set(range(999))


def shifted(blocks: tuple[Block, ...], by: int) -> tuple[Block, ...]:
    return (blocks[0]._replace(offset=blocks[0].offset + by), *blocks[1:])


def shift_send(m: Broken) -> Names:
    m.send = m.send._replace(blocks=shifted(m.send.blocks, m.random.choice([-1, 1])))
    return {m.b}, {m.at_b}


def shift_message(m: Broken) -> Names:
    blocks = shifted(m.send.blocks, m.random.choice([-1, 1]))
    m.send, m.recv = m.send._replace(blocks=blocks), m.recv._replace(blocks=blocks)
    return {m.a, m.b}, {None, *range(999)}


def shorten_receive(m: Broken) -> Names:
    block = m.recv.blocks[0]
    m.recv = m.recv._replace(blocks=(block._replace(length=block.length - 1), *m.recv.blocks[1:]))
    return {m.b}, {m.at_b}


def shorten_message(m: Broken) -> Names:
    """Its last byte is missing at b, or the message is empty now."""
    block = m.recv.blocks[-1]
    blocks = (*m.recv.blocks[:-1], block._replace(length=block.length - 1))
    m.send, m.recv = m.send._replace(blocks=blocks), m.recv._replace(blocks=blocks)
    return ({m.b}, {None, *range(999)}) if size_of(m.recv) else ({m.a, m.b}, {m.at_a, m.at_b})


def other_owner(m: Broken) -> Names:
    stranger = next(r for r in range(m.ranks) if r != m.root)
    blocks = tuple(b._replace(owner=stranger) for b in m.send.blocks)
    m.send, m.recv = m.send._replace(blocks=blocks), m.recv._replace(blocks=blocks)
    return {m.a, m.b}, {None, *range(999)}


def turn_around(m: Broken) -> Names:
    m.send, m.recv = Recv(m.b, m.send.blocks), Send(m.a, m.recv.blocks)
    return {m.a, m.b}, {None, *range(999)}


def repeat_send(m: Broken) -> Names:
    m.lists[m.a].append(m.send)
    return {m.a}, {len(m.lists[m.a]) - 1}


def repeat_receive(m: Broken) -> Names:
    m.lists[m.b].append(m.recv)
    return {m.b}, {len(m.lists[m.b]) - 1}


def repeat_message(m: Broken) -> Names:
    m.lists[m.a].append(m.send)
    m.lists[m.b].append(m.recv)
    return {m.b}, {len(m.lists[m.b]) - 1}


def receive_from_two(m: Broken) -> Names:
    """Somebody else sends b the same, after both have it."""
    other = m.other()
    m.lists[other].append(m.send._replace(peer=m.b))
    m.lists[m.b].append(m.recv._replace(peer=other))
    return {m.b}, {len(m.lists[m.b]) - 1}


def tell_the_root(m: Broken) -> Names:
    other = next(r for r in range(m.ranks) if r != m.root)
    m.lists[other].append(Send(m.root, m.recv.blocks))
    m.lists[m.root].append(Recv(other, m.recv.blocks))
    return {m.root}, {len(m.lists[m.root]) - 1}


def own_peer(m: Broken) -> Names:
    m.send = m.send._replace(peer=m.a)
    return {m.a}, {m.at_a}


def no_such_peer(m: Broken) -> Names | None:
    if m.root:  # the numbers of virtual ranks go around
        return None
    m.recv = m.recv._replace(peer=m.random.choice([m.ranks, -1, 10**9]))
    return {m.b}, {m.at_b}


def no_blocks(m: Broken) -> Names:
    m.send, m.recv = m.send._replace(blocks=()), m.recv._replace(blocks=())
    return {m.a, m.b}, {m.at_a, m.at_b}


def into_scratch(m: Broken) -> Names:
    m.recv = m.recv._replace(slot=Slot.SCRATCH)
    return {m.b}, {None, *range(999)}


def from_scratch(m: Broken) -> Names:
    m.send = m.send._replace(slot=Slot.SCRATCH)
    return {m.a}, {m.at_a}


def send_too_early(m: Broken) -> Names | None:
    """A rank passes on first what it gets later."""
    passing = [t for t in m.messages if t.source != m.root]
    if not passing:  # as in a flat tree
        return None
    t = m.random.choice(passing)
    ops = m.lists[t.source]
    op = ops.pop(t.place_at_source)
    ops.insert(0, op)
    same = [o for o in ops if same_way(o, op)]
    if len(same) > 1:  # the order between the two changes too: then the partner may be named
        return {t.source, t.target}, set(range(999))
    return {t.source}, {0}


Mutation = Callable[[Broken], Names | None]
MUTATIONS: tuple[Mutation, ...] = (
    drop_send,
    drop_receive,
    drop_message,
    send_elsewhere,
    receive_from_elsewhere,
    shift_send,
    shift_message,
    shorten_receive,
    shorten_message,
    other_owner,
    turn_around,
    repeat_send,
    repeat_receive,
    repeat_message,
    receive_from_two,
    tell_the_root,
    own_peer,
    no_such_peer,
    no_blocks,
    into_scratch,
    from_scratch,
    send_too_early,
)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("algorithm", ALGORITHMS.values(), ids=lambda a: a.name)
def test_every_mutant_is_caught(algorithm: Algorithm, mutation: Mutation) -> None:
    for seed in range(6):
        mutant = Broken(algorithm, seed)
        verify(mutant.schedule(), POSTAL)  # as long as it is whole
        names = mutation(mutant)
        if names is None:
            continue
        ranks, steps = names
        error = violation(mutant.schedule())
        assert error.rank in ranks, str(error)
        assert error.step in steps, str(error)


# --- timings that break the laws of their machine ---


def relay() -> Schedule:
    """0 sends A, B to 1 and both to 2; 1 passes C, which it got last, on to 2."""
    return broadcast(
        [Send(1, (A,)), Send(1, (B, C)), Send(2, (A, B))],
        [Recv(0, (A,)), Recv(0, (B, C)), Send(2, (C,))],
        [Recv(0, (A, B)), Recv(1, (C,))],
    )


def changed(timing: Timing, source: int, step: int, **new: Any) -> Timing:
    """The timing with another transfer, and with finish times that fit."""
    transfers = tuple(
        t._replace(**new) if (t.source, t.place_at_source) == (source, step) else t
        for t in timing.transfers
    )
    return fitting(transfers, len(timing.finish))


def fitting(transfers: tuple[Transfer, ...], ranks: int) -> Timing:
    finish = [Fraction(0)] * ranks
    for t in transfers:
        finish[t.source] = max(finish[t.source], t.sent)
        finish[t.target] = max(finish[t.target], t.received)
    return Timing(tuple(finish), transfers)


F = Fraction

BAD_TIMINGS: dict[str, tuple[Machine, int, int, dict[str, Any], int, int, str]] = {
    # machine, source and step of the transfer that is changed, how; rank, step and text reported
    "a send before the start": (POSTAL, 0, 0, {"start": F(-1)}, 0, 0, "faster than the machine"),
    "a sender free too soon": (POSTAL, 0, 0, {"sent": F(1, 2)}, 0, 0, "faster than the machine"),
    "no latency": (
        POSTAL,
        0,
        0,
        {"received": F(3, 2)},
        1,
        0,
        "received 1.5 s after its send began",
    ),
    "two sends at once": (
        POSTAL,
        0,
        1,
        {"start": F(1, 2), "sent": F(3, 2)},
        0,
        1,
        "the send port is still busy with step 0",
    ),
    "a longer send": (POSTAL, 0, 0, {"sent": F(5, 4)}, 0, 1, "still busy with step 0"),
    "a send without its data": (
        POSTAL,
        1,
        2,
        {"start": F(5, 2), "sent": F(7, 2), "received": F(5)},
        1,
        2,
        "it begins before its data is received",
    ),
    "receipts too close": (
        POSTAL,
        0,
        2,
        {"received": F(9, 2)},
        2,
        1,
        "it is less than t0 after the receipt of step 0",
    ),
    "two transfers into one port": (
        HOCKNEY,
        1,
        2,
        {"start": F(21, 5), "sent": F(27, 5), "received": F(27, 5)},
        2,
        1,
        "it is less than t0 after the receipt of step 0",
    ),
    "sends out of order": (
        POSTAL,
        0,
        0,
        {"start": F(9), "sent": F(10), "received": F(11)},
        0,
        0,
        "it begins after step 2",
    ),
    "receipts out of order": (
        POSTAL,
        0,
        2,
        {"received": F(19)},
        2,
        0,
        "it is received after step 1",
    ),
    "other bytes": (POSTAL, 0, 0, {"nbytes": 5}, 0, 0, "the schedule has no such message there"),
    "another target": (POSTAL, 0, 0, {"target": 2}, 0, 0, "has no such message there"),
    "another place": (POSTAL, 0, 0, {"place_at_target": 2}, 1, 2, "has no such message there"),
    "a place that is not": (POSTAL, 0, 2, {"place_at_target": 7}, 2, 7, "no such message there"),
}


@pytest.mark.parametrize("name", BAD_TIMINGS)
def test_bad_timings(name: str) -> None:
    machine, source, at, new, rank, step, text = BAD_TIMINGS[name]
    schedule = relay()
    timing = ideal(schedule, machine)
    check_ports(schedule, timing, machine)
    with pytest.raises(InvalidSchedule) as caught:
        check_ports(schedule, changed(timing, source, at, **new), machine)
    assert text in str(caught.value)
    assert "timing" in str(caught.value) or "time the schedule" in str(caught.value)
    assert (caught.value.rank, caught.value.step) == (rank, step)


@pytest.mark.parametrize("machine", MACHINES)
def test_a_timing_must_be_complete(machine: Machine) -> None:
    schedule = relay()
    timing = ideal(schedule, machine)
    missing = fitting(timing.transfers[1:], 3)
    with pytest.raises(InvalidSchedule, match="it is not in the timing"):
        check_ports(schedule, missing, machine)
    twice = fitting((*timing.transfers, timing.transfers[-1]), 3)
    with pytest.raises(InvalidSchedule, match="twice"):
        check_ports(schedule, twice, machine)
    late = replace(timing, finish=(F(100), *timing.finish[1:]))
    with pytest.raises(InvalidSchedule, match=r"rank 0: when it finishes: .* at another time"):
        check_ports(schedule, late, machine)


@pytest.mark.parametrize("machine", MACHINES)
def test_a_timing_for_a_faster_machine_is_bad(machine: Machine) -> None:
    faster = {
        "postal": Machine.postal(t0_s="0.9", lam=2),
        "hockney": Machine.hockney(alpha_s=1, beta_s="1/11"),
        "loggp": Machine.loggp(L_s=10, o_s=2, g_s=3, G_s="0.49"),
    }[machine.kind]
    schedule = relay()
    with pytest.raises(InvalidSchedule):
        check_ports(schedule, ideal(schedule, faster), machine)


def test_one_processor_does_one_thing_at_a_time() -> None:
    """LogGP by hand: rank 1 cannot send while it works on a message that came in."""
    schedule = broadcast(
        [Send(1, (A,)), Send(1, (B, C)), Send(2, (B, C))],
        [Recv(0, (A,)), Send(2, (A,)), Recv(0, (B, C))],
        [Recv(1, (A,)), Recv(0, (B, C))],
    )
    machine = Machine.loggp(L_s=10, o_s=2, g_s=0, G_s=0)
    timing = ideal(schedule, machine)  # 1 takes A in [12, 14), sends it, takes B, C in [16, 18)
    check_ports(schedule, timing, machine)
    busy = changed(timing, 1, 1, start=F(17), sent=F(19), received=F(31))
    with pytest.raises(InvalidSchedule, match="the processor is still busy with step 2") as caught:
        check_ports(schedule, busy, machine)
    assert (caught.value.rank, caught.value.step) == (1, 1)


def test_loggp_gap_between_receipts() -> None:
    """Two senders at once: the receiver takes their messages g apart."""
    schedule = broadcast(
        [Send(1, (A,)), Send(2, (A,)), Send(1, (B, C)), Send(2, (B,))],
        [Recv(0, (A,)), Recv(0, (B, C)), Send(2, (C,))],
        [Recv(0, (A,)), Recv(0, (B,)), Recv(1, (C,))],
    )
    machine = Machine.loggp(L_s=10, o_s=0, g_s=5, G_s=0)
    timing = ideal(schedule, machine)  # rank 2 takes A at 15, B at 25, C (sent at 20) at 30
    check_ports(schedule, timing, machine)
    sooner = changed(timing, 0, 3, received=F(27), sent=F(17), start=F(17))
    with pytest.raises(InvalidSchedule, match="it is less than a gap after step 1") as caught:
        check_ports(schedule, sooner, machine)
    assert (caught.value.rank, caught.value.step) == (2, 2)


@given(st.integers(0, 2**32), st.sampled_from(MACHINES))
def test_moving_any_transfer_forward_is_seen(seed: int, machine: Machine) -> None:
    """Ideal time is as early as possible: nothing can be done earlier, alone."""
    random = Random(seed)
    algorithm = random.choice(list(ALGORITHMS.values()))
    schedule = schedule_of(algorithm, random.randrange(2, 9), 40, 0)
    timing = ideal(schedule, machine)
    t = random.choice(timing.transfers)
    by = Fraction(1, 1000)
    sooner = {"start": t.start - by, "sent": t.sent - by, "received": t.received - by}
    with pytest.raises(InvalidSchedule):
        check_ports(schedule, changed(timing, t.source, t.place_at_source, **sooner), machine)
    alone = changed(timing, t.source, t.place_at_source, received=t.received - by)
    with pytest.raises(InvalidSchedule):
        check_ports(schedule, alone, machine)
