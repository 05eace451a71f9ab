"""Plans and machines are values: equal, hashable, cached, and whole after a journey."""

import pickle
from typing import Any

import numpy as np
import pytest

from collwise.errors import InvalidArgument
from collwise.measure.race import LIBRARY
from collwise.model.machine import Machine
from collwise.model.topology import Complete
from collwise.planner.choose import decided, plan
from collwise.timing import ideal
from tests.planner.machines import HOCKNEY, LOGGP, MACHINES


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
def test_machines(machine: Machine) -> None:
    copy = pickle.loads(pickle.dumps(machine))
    assert copy is not machine
    assert hash(copy) == hash(machine)
    assert [other for other in MACHINES.values() if other == copy] == [machine]
    for nbytes in (0, 1, 999, 10**6):
        assert copy.message(nbytes) == machine.message(nbytes)


@pytest.mark.parametrize("machine", [HOCKNEY, LOGGP])
def test_a_plan_is_made_once(machine: Machine) -> None:
    made = plan("broadcast", ranks=6, nbytes=5000, machine=machine)
    again = pickle.loads(pickle.dumps(machine))
    assert plan("broadcast", ranks=6, nbytes=5000, machine=again) is made
    sizes: Any = {"ranks": np.int64(6), "nbytes": np.int32(5000)}
    assert plan("broadcast", **sizes, machine=machine) is made
    assert type(made.problem.ranks) is int
    others = [
        plan("broadcast", ranks=6, nbytes=nbytes, machine=machine, **more)
        for nbytes, more in ((5001, {}), (5000, {"root": 1}), (5000, {"topology": Complete(6)}))
    ]
    assert len({made, *others}) == 4


@pytest.mark.parametrize("machine", [HOCKNEY, LOGGP])
def test_a_plan_travels(machine: Machine) -> None:
    """Before and after somebody looked at its schedule."""
    made = plan("broadcast", ranks=6, nbytes=5000, machine=machine, root=1)
    for _ in range(2):
        copy = pickle.loads(pickle.dumps(made))
        assert copy == made
        assert str(copy) == str(made)
        assert copy.schedule.lists == made.schedule.lists
    assert ideal(copy.schedule, copy.machine).completion == made.choice.predicted


def test_a_plan_that_is_the_librarys_own() -> None:
    estimate = plan("broadcast", ranks=6, nbytes=5000, machine=HOCKNEY)
    made = decided(estimate, {LIBRARY: 1e-5}, LIBRARY)
    assert pickle.loads(pickle.dumps(made)) == made
    with pytest.raises(InvalidArgument, match="the schedule of this plan: a race chose the lib"):
        _ = made.schedule
