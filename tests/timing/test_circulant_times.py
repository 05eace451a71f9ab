"""Exchanges around a circle, all ranks at once: what the event engine says of each."""

from random import Random

import pytest
from tests.algorithms.examples import HOCKNEY, MACHINES
from tests.timing.test_exchange_times import ODD

from collwise.model.machine import Machine
from collwise.schedule.circulant_exchange import CirculantExchange
from collwise.schedule.exchange import Stage
from collwise.schedule.problem import Problem
from collwise.schedule.program import Schedule
from collwise.timing import ideal_completion
from collwise.timing.circulant_times import circulant_time


def random_exchange(seed: int) -> tuple[CirculantExchange, Machine]:
    """Any radix or stages, in pieces or not, parts that are empty or nearly 2^200 bytes."""
    random = Random(seed)
    collective = random.choice(("reduce", "reduce", "allreduce", "reduce_scatter_block"))
    scatters, ranks = collective == "reduce_scatter_block", random.randint(2, 30)
    items = random.choice((1, 2, ranks - 1, ranks, 1000, 2**61 + 1, 2**200))
    stages = tuple(
        Stage(random.choice((2, 2, 2, 3, 4, 7)), random.random() < 0.6)
        for _ in range(0 if scatters else random.randrange(5))
    )
    nbytes = 4 * items * (ranks if scatters else 1)
    problem = Problem(collective, ranks, nbytes, 0, 4, "same")
    pieces, latency = (random.choice((1, 1, 2, 5)) for _ in range(2))
    exchange = CirculantExchange(problem, random.choice((2, 3, ranks)), pieces, latency, stages)
    return exchange, random.choice((*MACHINES, ODD))


def check(exchange: CirculantExchange, machine: Machine) -> None:
    time = circulant_time(exchange, machine)
    if time is None:
        assert machine.law == "hockney"
        assert exchange.latency > 1
    else:
        assert time == ideal_completion(Schedule(exchange.problem, exchange), machine), exchange


def test_any_exchange() -> None:
    for seed in range(60):
        check(*random_exchange(seed))


@pytest.mark.exhaustive
def test_many_exchanges() -> None:
    for seed in range(60, 6000):
        check(*random_exchange(seed))


def test_receivers_that_keep_senders_waiting_for_later_sends() -> None:
    problem = Problem("reduce", 5, 40, 0, 4, "same")
    assert circulant_time(CirculantExchange(problem, latency=2), HOCKNEY) is None
