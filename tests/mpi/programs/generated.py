"""Generated programs: started collectives in all states, and plain MPI between their calls.

All ranks have the same list of points: a collective is started there, or blocks, or plain messages
are exchanged.  Where a rank tests, waits, drops, collects or frees in between is its own matter.
What the rank at the earliest point waits for was started by all others or will be, so every such
program ends if started collectives are driven.
"""

import gc
import random
import time
from typing import Any

import numpy as np
from mpi4py import MPI

import collwise as cw
from collwise.comm.recording import Way
from collwise.errors import BrokenCommunicator
from tests.mpi.programs.alike import MACHINE, Call, adding
from tests.mpi.programs.checks import check, drawn, raises

ALGORITHMS = (
    {"broadcast": "chain", "allreduce": "reduce_broadcast", "allgatherv": "ring"},
    {"broadcast": "binomial", "allreduce": "recursive_doubling", "allgatherv": "bruck"},
)


class Generated(Call):
    """A collective call, equal on all ranks but for the buffers, and its request."""

    def __init__(self, comm: MPI.Intracomm, chance: random.Random, op: MPI.Op) -> None:
        method = chance.choice(("Bcast", "Allreduce", "Allgather", "user"))
        self.users = method == "user"
        self.way: Way = chance.choice(("persistent", "persistent", "nonblocking", "blocking"))
        self.starts = chance.randint(1, 3) if self.way == "persistent" else 1
        self.turn = 0
        self.request: Any = None
        root, count = chance.randrange(comm.size), chance.choice((1, 100, 3000))
        if self.users:
            super().__init__(comm, "Allreduce", count, op=op)
        else:
            super().__init__(comm, method, count, root)


class Program:
    """One generated program on one rank.   mine: what only this rank decides."""

    def __init__(self, comm: MPI.Intracomm, seed: int) -> None:
        self.comm, self.seed = comm, seed
        self.common, self.mine = random.Random(seed), random.Random(seed * 1009 + comm.rank)
        self.active: list[Generated] = []
        self.others: list[Any] = []  # likely where buffers were that were dropped

    def run(self, op: MPI.Op) -> None:
        comm, common = self.comm, self.common
        ours = cw.Comm(comm.Dup(), machine=MACHINE, algorithms=common.choice(ALGORITHMS))
        calls = [Generated(comm, common, op) for _ in range(common.randint(1, 4))]
        for call in calls:
            if call.way == "persistent":
                call.request = call.make(ours, call.way)
        points: list[Generated | None] = [call for call in calls for _ in range(call.starts)]
        points += [None] * common.randint(0, 4)
        common.shuffle(points)
        for point in points:
            if point is None:
                self.plain()
            else:
                self.start(point, ours)
            self.between(ours)
        broken = common.random() < 0.1
        if broken:
            self.break_off(ours)
        while self.active and not broken:
            self.end(self.mine.choice(self.active))
        if self.mine.random() < 0.5:
            for call in calls:
                if call.way == "persistent" and call.request is not None:
                    call.request.Free()
        private = ours._dispatch.duplicate.made
        ours.Free()
        if any(call.users and call.result is None for call in calls):
            while private is not None and private._left:  # what was dropped needs its operator
                private._sweep()
        comm.Barrier()
        assert all((other == 7).all() for other in self.others)

    def act(self) -> None:
        """What the user's operator does besides adding."""
        act = self.mine.randrange(4)
        if act == 0:
            gc.collect(0)
        elif act == 1:
            MPI.COMM_SELF.Sendrecv(np.zeros(9), 0, 0, np.zeros(9), 0, 0)
        elif act == 2:
            time.sleep(0.001)

    def start(self, call: Generated, ours: cw.Comm) -> None:
        if call in self.active:
            self.end(call)
        call.turn += 1
        call.fill(call.turn)
        if call.way == "persistent":
            call.request.Start()
            call.starts -= 1
        else:
            call.request = call.make(ours, call.way)
        if call.way == "blocking":
            call.check()
        else:
            self.active.append(call)

    def end(self, call: Generated) -> None:
        while self.mine.random() < 0.3:
            if call.request.Test():
                break
        call.request.Wait()
        self.active.remove(call)
        call.check()

    def plain(self) -> None:
        """Messages of the user's, which come only from ranks that got here."""
        comm, kind = self.comm, self.common.randrange(3)
        source, target = self.common.randrange(comm.size), self.common.randrange(comm.size)
        if kind == 0:
            comm.Barrier()
        elif kind == 1 and source != target:
            if comm.rank == source:
                comm.Send(np.zeros(1), target, 3)
            elif comm.rank == target:
                comm.Recv(np.zeros(1), source, 3)
        else:
            right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
            comm.Sendrecv(np.zeros(5000), right, 4, np.zeros(5000), left, 4)

    def between(self, ours: cw.Comm) -> None:
        for _ in range(self.mine.randrange(3)):
            act = self.mine.randrange(7)
            call = self.mine.choice(self.active) if self.active else None
            if act == 0:
                self.comm.Iprobe()
            elif act == 1:
                gc.collect(0)
            elif act == 2 and call is not None:
                self.end(call)
            elif act == 3 and call is not None and call.way == "persistent" and not call.starts:
                self.active.remove(call)  # dropped while it is running, with its buffers
                self.others.append(np.full(call.result.size, 7, "i4"))
                call.request = call.given = call.result = None
                self.others.append(np.full_like(self.others[-1], 7))
            elif call is not None:
                for look in self.mine.choices(("Test", "Get_status"), k=self.mine.randrange(3)):
                    if getattr(call.request, look)() and look == "Test":
                        self.active.remove(call)
                        call.check()
                        break

    def break_off(self, ours: cw.Comm) -> None:
        """All ranks are interrupted at the same point; generalized requests are MPI's, and end."""
        for call in [one for one in self.active if isinstance(one.request, MPI.Request)]:
            self.end(call)
        self.comm.Barrier()
        private = ours._dispatch.duplicate.made
        if private is not None:
            private.mark_broken(MPI.Exception(MPI.ERR_OTHER))
            for call in self.active:
                for act in (call.request.Test, call.request.Wait):
                    if call.way == "persistent":
                        with raises(BrokenCommunicator):
                            act()
        self.active.clear()


@check
def generated_programs_end_and_are_right(comm: MPI.Intracomm) -> None:
    for number in drawn(40):
        seed = 1000 * comm.size + number
        program = Program(comm, seed)
        try:
            with adding(program.act) as op:
                program.run(op)
        except BaseException as problem:
            problem.add_note(f"program {seed} on {comm.size} ranks")
            raise
