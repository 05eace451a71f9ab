"""An allreduce through all ports of a cube [vandeGeijn1991 §7]: its closed form, and its plans."""

from fractions import Fraction
from typing import Any

import pytest

from collwise.algorithms import ALGORITHMS
from collwise.model import hybrid
from collwise.model.machine import Machine
from collwise.model.topology import Hypercube
from collwise.planner.choose import plan
from collwise.schedule.operations import Send
from collwise.timing import ideal
from tests.algorithms.examples import strategy_for

COSTS: dict[str, Any] = {
    "send_s": "1e-5",
    "receive_s": 0,
    "hop_s": 0,
    "beta_s": "1e-9",
    "gamma_s": "1e-10",
}
CUBE = Machine.wormhole(**COSTS, all_port=True)
ONE_PORT = Machine.wormhole(**COSTS)
NAME = "allreduce/all_ports"


@pytest.mark.parametrize("d", [2, 3, 4, 5])
def test_parts_take_the_time_of_one_and_are_combined_one_after_another(d: int) -> None:
    nbytes = (d << d) * 64
    for bits in (0, 0b10110, -1):
        strategy = strategy_for(1 << d, bits)
        schedule = ALGORITHMS[NAME].schedule(1 << d, nbytes, strategy=strategy)
        form = hybrid.time(strategy, nbytes // d, "1e-5", "1e-9", d * Fraction("1e-10"))
        assert ideal(schedule, CUBE, Hypercube(d)).completion == form
        peers = {op.peer for op in schedule.lists[0][: 4 * d] if isinstance(op, Send)}
        assert peers == {1 << direction for direction in range(d)}


@pytest.mark.parametrize(("nbytes", "at_least"), [(4096, "1.2"), (1 << 20, "3.1")])
def test_plans_for_cubes_with_all_ports_choose_it(nbytes: int, at_least: str) -> None:
    made = plan("allreduce", ranks=16, nbytes=nbytes, machine=CUBE, topology=Hypercube(4))
    assert made.algorithm == NAME
    others = [one.predicted for one in made.candidates if one.name != NAME]
    assert min(others) > Fraction(at_least) * made.candidates[0].predicted


def test_plans_for_machines_with_one_port_leave_it_out() -> None:
    made = plan("allreduce", ranks=16, nbytes=4096, machine=ONE_PORT, topology=Hypercube(4))
    assert "does not apply" in made.excluded[NAME]
