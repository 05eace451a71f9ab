"""Learning while running: candidates serve the program's own calls, and all ranks switch alike."""

import random
import time
from typing import Any

import numpy as np
from mpi4py import MPI

import collwise as cw
from collwise.comm.learning import BLOCKS
from collwise.errors import InvalidArgument
from collwise.mpi.runtime.world import describe
from tests.mpi.programs.alike import assumed
from tests.mpi.programs.checks import check, raises

ENOUGH = 4000
"""Rounds of the program, at the most."""


def learner(comm: MPI.Intracomm, **settings: Any) -> cw.Comm:
    return cw.Comm(comm.Dup(), profile=assumed(describe(comm)), **settings)


@check
def off_unless_asked_for(comm: MPI.Intracomm) -> None:
    ours = learner(comm)
    assert ours._learning is None
    assert not ours._served
    ours.Free()
    for wrong in ("-1%", "200%", 1.5, "much"):
        with raises(InvalidArgument, match="learning while running"):
            learner(comm, learn=wrong)


@check
def nothing_is_tried_beyond_the_share(comm: MPI.Intracomm) -> None:
    ours, data = learner(comm, learn="0.0001%"), np.zeros(64)
    learning: Any = ours._learning
    for _ in range(3000):
        ours.Bcast(data)
    trials = ours._dispatch._trials.values()
    assert all(trial is None or not trial._plans for trial in trials)
    assert learning.results == []
    ours.Free()


@check
def the_librarys_other_algorithms_are_tried(comm: MPI.Intracomm) -> None:
    if comm.size == 1:
        return
    ours = learner(comm, learn="100%")
    learning: Any = ours._learning
    learning.planning_s = 1e-3
    total, trial = np.zeros(32), None
    for number in range(ENOUGH):
        ours.Allreduce(np.full(32, float(comm.rank + number)), total)
        assert (total == comm.size * number + sum(range(comm.size))).all()
        if trial is None:
            trial = next(iter(ours._dispatch._trials.values()), None)
        tried = trial is not None and bool(trial._own)
        if number % 100 == 0 and comm.allreduce(tried, MPI.LAND):
            break
    assert trial is not None
    assert trial._own
    assert all(label.startswith("allreduce/library:") for label in trial._own)
    ours.Free()


@check
def all_ranks_switch_alike(comm: MPI.Intracomm) -> None:
    ours, delays = learner(comm, learn="100%"), random.Random(comm.rank)
    data, total = np.zeros(64), np.zeros(32)
    learning: Any = ours._learning
    learning.planning_s = 1e-3
    rounds, done = 0, comm.size == 1
    while rounds < ENOUGH and not done:
        rounds += 1
        root = rounds % 2
        data[:] = comm.rank + rounds
        ours.Bcast(data if rounds % 3 else [data, 512, MPI.BYTE], root)
        assert (data == root + rounds).all()
        ours.Allreduce(np.full(32, float(comm.rank + rounds)), total)
        assert (total == comm.size * rounds + sum(range(comm.size))).all()
        if delays.random() < 0.02:
            time.sleep(delays.random() / 1000)
        if rounds % 200 == 0:
            everything = comm.allgather(
                [ours.explain("bcast", 512), ours.explain("allreduce", 256)]
            )
            assert all(one == everything[0] for one in everything), everything
            done = "program learned" in " ".join(everything[0])
    assert done, learning.lines
    if comm.size > 1:
        assert rounds > sum(BLOCKS)
        results = comm.bcast([result for _, result in learning.results])
        assert results
        for result in results:
            assert result.learned
            told = ours.explain(result.collective, result.nbytes)
            assert "a program learned while it ran" in told
        assert learning.spent_s > 0
        assert "of the time; the aim is at most 100.0%" in learning.lines[0]
    learning.results.clear()  # nothing is saved
    ours.Free()
