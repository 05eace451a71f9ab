"""Programs drawn at random: communicators, forms and first calls in every order that MPI allows.

A program is one list of calls; each rank makes its part of them, in an order of its own.  It is
legal if it ends even where every collective waits for all ranks: `ends` tells.  Then it must end on
ours, with the right bytes.
"""

import time
from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple

import numpy as np
from mpi4py import MPI

import collwise as cw
from collwise.comm.recording import Way
from collwise.comm.served import METHODS
from tests.mpi.programs.alike import PLANNED, Call

FIRST = 18
"""The first program's number.

Number 19 on 3 ranks, and 24 on 4, hung when a first non-blocking call made a duplicate.
"""
WAYS: dict[str, Way] = {"start": "nonblocking", "init": "persistent"}
SIZES = 2, 30, 20_000
"""Elements of a block; the longest messages wait for their receivers."""
LOCAL = {"start", "begin"}


class Step(NamedTuple):
    """One call of a program.

    what: "derive", "call", "object", "init", and "message" wait for others; "start" (a non-blocking
    call) and "begin" (`Start`) do not, and "wait" ends what they started.   over: the number of the
    communicator.   of: the number of the communicator that is made, or else of what is called; a
    request has one number.   pair: of a message, who sends it, and who receives it.
    """

    what: str
    over: int
    of: int
    method: str = ""
    root: int = 0
    elements: int = 0
    pair: tuple[int, ...] = ()

    @property
    def collective(self) -> bool:
        """Whether its order among others on its communicator is everybody's."""
        return self.what not in ("begin", "wait", "message")

    def ranks(self, members: Sequence[Sequence[int]]) -> Sequence[int]:
        """Who makes it."""
        return self.pair or members[self.over]


class Program(NamedTuple):
    """members: the ranks of each communicator.   ranks: the calls of each rank."""

    members: Sequence[Sequence[int]]
    ranks: Sequence[Sequence[Step]]


def drawn(chance: Random, size: int) -> Program:
    """A legal program."""
    members: list[tuple[int, ...]] = [tuple(range(size))]
    steps: list[Step] = []
    running: list[Step] = []  # requests, with their beginnings
    for number in range(chance.randrange(6, 24)):
        over = chance.randrange(len(members))
        group = members[over]
        about = chance.choice(METHODS), chance.randrange(len(group)), chance.choice(SIZES)
        kind = chance.choice(("derive", "call", "start", "start", "init", "object", "message"))
        if kind == "derive":
            if len(members) == 6:
                continue
            members.append(group if chance.random() < 0.6 else group[chance.randrange(2) :: 2])
            members[-1] = members[-1] or group
            steps.append(Step("derive", over, len(members) - 1))
        elif kind == "message":
            if size > 1:
                pair = tuple(chance.sample(range(size), 2))
                steps.append(Step("message", 0, number, pair=pair))
        elif kind == "start":
            running.append(Step("start", over, number, *about))
            steps.append(running[-1])
        elif kind == "init":
            steps.append(Step("init", over, number, *about))
            running.append(Step("begin", over, number, *about))
            steps.append(running[-1])
        else:
            steps.append(Step(kind, over, number, *about))
        if running and chance.random() < 0.4:
            steps.append(running.pop(chance.randrange(len(running)))._replace(what="wait"))
    chance.shuffle(running)
    steps += [one._replace(what="wait") for one in running]
    ranks = []
    for rank in range(size):
        mine = [step for step in steps if rank in step.ranks(members)]
        for _ in range(chance.choice((0, 10, 60)) if len(mine) > 1 else 0):
            place = chance.randrange(len(mine) - 1)
            if not bound(*mine[place : place + 2]):
                mine[place : place + 2] = reversed(mine[place : place + 2])
        ranks.append(mine)
    made = Program(members, ranks)
    return made if ends(made) else drawn(chance, size)


def bound(one: Step, other: Step) -> bool:
    """Whether two calls of a rank that follow each other have to."""
    if one.what == "derive" and one.of == other.over:
        return True
    if one.collective and other.collective:
        return one.over == other.over
    return one.what == other.what == "message" or one.of == other.of


def ends(program: Program) -> bool:
    """Whether it ends where every call that may wait waits for all."""
    at = [0] * len(program.ranks)
    begun: dict[int, set[int]] = {}

    def here(rank: int) -> Step | None:
        return program.ranks[rank][at[rank]] if at[rank] < len(program.ranks[rank]) else None

    moved = True
    while moved:
        moved = False
        for rank in range(len(at)):
            step = here(rank)
            if step is None:
                continue
            every = step.ranks(program.members)
            if step.what in LOCAL:
                begun.setdefault(step.of, set()).add(rank)
                going = [rank]
            elif step.what == "wait":
                going = [rank] if begun.get(step.of) == {*every} else []
            else:
                going = [*every] if all(here(other) == step for other in every) else []
            for one in going:
                at[one] += 1
                moved = True
    return all(here(rank) is None for rank in range(len(at)))


def run(comm: MPI.Intracomm, program: Program) -> None:
    """This rank's part, on fresh communicators."""
    rank, plain = comm.rank, comm.Dup()
    record = len(program.members) % 3 == 0  # calls take other ways
    ours: dict[int, Any] = {0: cw.Comm(comm.Dup(), record=record, **PLANNED)}
    requests: dict[int, tuple[Any, Call]] = {}
    for step in program.ranks[rank]:
        if step.pair:
            send = rank == step.pair[0]
            (plain.Send if send else plain.Recv)(np.zeros(1), step.pair[send])
            continue
        if step.what == "derive":
            parent, group = program.members[step.over], program.members[step.of]
            colour = 0 if rank in group else MPI.UNDEFINED
            over = ours[step.over]
            made = over.Dup() if len(parent) == len(group) else over.Split(colour, rank)
            if rank in group:
                ours[step.of] = made
            continue
        here = ours[step.over]
        if step.what == "object":
            assert here.allreduce(1) == here.size
            assert here.bcast({here.rank}, step.root) == {step.root}
        elif step.what in ("begin", "wait"):
            request, call = requests[step.of]
            if step.what == "begin":
                request.Start()
                continue
            while step.of % 2 and not request.Test():
                time.sleep(0)  # others need the core
            request.Wait()
            call.check()
        else:
            call = Call(here, step.method, step.elements, step.root)
            call.fill(step.of)
            made = call.make(here, WAYS.get(step.what, "blocking"))
            if step.what == "call":
                call.check()
            else:
                requests[step.of] = made, call
    for one in (*(ours[number] for number in sorted(ours)), plain):
        one.Free()
