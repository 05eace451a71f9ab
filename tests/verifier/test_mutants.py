"""Schedules that move data, broken in every way: all are caught, the right rank is named.

Every broadcast's and every s-to-p broadcast's; those that combine have mutants of their own.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import product
from random import Random

import pytest
from tests.algorithms.examples import settings_of
from tests.case import in_case
from tests.verifier.rejected import violation

from collwise.algorithms import ALGORITHMS, Algorithm
from collwise.algorithms.registry import algorithms_for
from collwise.model.machine import Machine
from collwise.schedule.operations import Block, Operation, Recv, Send, Slot, size_of
from collwise.schedule.program import Schedule, Written
from collwise.timing import Transfer, ideal
from collwise.verifier import verify

POSTAL = Machine.postal(t0_s=1, lam=2)

A, B, C = Block(0, 0, 4), Block(0, 4, 4), Block(0, 8, 2)

Lists = Sequence[Sequence[Operation]]
SEEDS = range(3)


@lru_cache(maxsize=len(SEEDS))
def whole(name: str, seed: int) -> tuple[Schedule, Sequence[Transfer]]:
    """A valid schedule of an algorithm, and its messages."""
    algorithm, random = ALGORITHMS[name], Random(seed)
    p = random.randrange(4, 12)
    nbytes = random.randrange(p, 60)
    settings = settings_of(algorithm, p, segment=-(-nbytes // 3))
    if algorithm.kind.has_sources:
        sources = random.sample(range(p), random.randint(2, p))
        lengths = [random.randint(2, 9) for _ in sources]
        valid = algorithm.schedule(p, lengths, sources=sources, **settings)
    else:
        valid = algorithm.schedule(p, nbytes, random.randrange(p), **settings)
    return valid, ideal(valid, POSTAL).transfers


class Broken:
    """A valid schedule as lists that can be broken, and one message of it."""

    def __init__(self, algorithm: Algorithm, seed: int, mutation: str = "") -> None:
        self.random = Random(f"{seed} {mutation}")
        self.valid, self.messages = whole(algorithm.name, seed)
        self.root = self.valid.problem.root
        self.lists = [list(ops) for ops in self.valid.lists]
        m = self.random.choice(self.messages)
        self.a, self.at_a, self.b, self.at_b = m[0], m[2], m[1], m[3]

    @property
    def ranks(self) -> int:
        return len(self.lists)

    @property
    def send(self) -> Send:
        op = self.lists[self.a][self.at_a]
        assert isinstance(op, Send)
        return op

    @send.setter
    def send(self, op: Operation) -> None:
        self.lists[self.a][self.at_a] = op

    @property
    def recv(self) -> Recv:
        op = self.lists[self.b][self.at_b]
        assert isinstance(op, Recv)
        return op

    @recv.setter
    def recv(self, op: Operation) -> None:
        self.lists[self.b][self.at_b] = op

    @property
    def owner(self) -> int:
        """Whose data the message has, first of all."""
        return self.recv.blocks[0].owner

    def other(self) -> int:
        """A third rank."""
        return self.random.choice([r for r in range(self.ranks) if r not in (self.a, self.b)])

    def schedule(self) -> Schedule:
        return replace(self.valid, program=Virtual(self.lists, self.root))


def Virtual(lists: Lists, root: int) -> Written:
    """The program of lists that name the user's ranks."""
    p = len(lists)

    def turned(op: Operation) -> Operation:
        assert isinstance(op, Send | Recv)
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
        and any(
            o.owner == g.owner and o.offset < g.end and g.offset < o.end
            for o in op.blocks
            for g in gone
        )
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
    stranger = m.random.choice([r for r in range(m.ranks) if r != m.owner])
    blocks = (m.send.blocks[0]._replace(owner=stranger), *m.send.blocks[1:])
    m.send, m.recv = m.send._replace(blocks=blocks), m.recv._replace(blocks=blocks)
    return {m.a, m.b}, {None, *range(999)}


def turn_around(m: Broken) -> Names:
    sent, received = m.send.blocks, m.recv.blocks
    m.lists[m.a][m.at_a], m.lists[m.b][m.at_b] = Recv(m.b, sent), Send(m.a, received)
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


def tell_the_owner(m: Broken) -> Names:
    """What a rank gave itself is sent back to it."""
    owner = m.owner
    other = m.random.choice([r for r in range(m.ranks) if r != owner])
    blocks = tuple(block for block in m.recv.blocks if block.owner == owner)
    m.lists[other].append(Send(owner, blocks))
    m.lists[owner].append(Recv(other, blocks))
    return {owner}, {len(m.lists[owner]) - 1}


def forget_the_owner(m: Broken) -> Names:
    """Nobody sends anything of what one rank gave: then all others lack it in the end."""
    owner = m.owner
    for rank, operations in enumerate(m.lists):
        rest = [
            op._replace(blocks=tuple(b for b in op.blocks if b.owner != owner)) for op in operations
        ]
        m.lists[rank] = [op for op in rest if op.blocks]
    return {0 if owner else 1}, {None}


def turn_blocks_round(m: Broken) -> Names | None:
    """The message carries the same in another order than is received."""
    if len(m.send.blocks) == 1:
        return None
    m.send = m.send._replace(blocks=m.send.blocks[::-1])
    return {m.b}, {m.at_b}


def swap_blocks(m: Broken) -> Names | None:
    """Two messages of a rank carry each other's blocks."""
    others = [t for t in m.messages if t.source == m.a and t.target != m.b]
    if not others:
        return None
    t = m.random.choice(others)
    there = m.lists[t.target][t.place_at_target]
    if sorted(there.blocks) == sorted(m.recv.blocks):
        return None
    here, other = m.send.blocks, there.blocks
    m.send, m.recv = m.send._replace(blocks=other), m.recv._replace(blocks=other)
    for rank, place in ((m.a, t.place_at_source), (t.target, t.place_at_target)):
        m.lists[rank][place] = m.lists[rank][place]._replace(blocks=here)
    return {m.a, m.b, t.target}, {None, *range(999)}


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
    passing = [
        t
        for t in m.messages
        if any(b.owner != t.source for b in m.lists[t.source][t.place_at_source].blocks)
    ]
    if not passing:  # as in a flat tree
        return None
    t = m.random.choice(passing)
    ops = m.lists[t.source]
    op = ops.pop(t.place_at_source)
    ops.insert(0, op)
    same = [o for o in ops if isinstance(o, Send) and o.peer == t.target]
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
    tell_the_owner,
    forget_the_owner,
    turn_blocks_round,
    swap_blocks,
    own_peer,
    no_such_peer,
    no_blocks,
    into_scratch,
    from_scratch,
    send_too_early,
)


each = pytest.mark.parametrize(
    "algorithm", [*algorithms_for("broadcast"), *algorithms_for("s_to_p")], ids=lambda a: a.name
)


@pytest.mark.no_cover
@each
def test_what_is_broken_was_right(algorithm: Algorithm) -> None:
    for seed in SEEDS:
        verify(Broken(algorithm, seed).schedule(), POSTAL)


@pytest.mark.no_cover
@each
def test_every_mutant_is_caught(algorithm: Algorithm) -> None:
    for mutation, seed in product(MUTATIONS, SEEDS):
        mutant = Broken(algorithm, seed, mutation.__name__)
        names = mutation(mutant)
        if names is None:
            continue
        ranks, steps = names
        with in_case(mutation.__name__, seed):
            error = violation(mutant.schedule())
            assert error.rank in ranks, str(error)
            assert error.step in steps, str(error)
