"""The event loop and the engine that it replaced (`twin`) say the same, to the last fraction."""

from fractions import Fraction
from random import Random
from typing import Any

import pytest
from tests.algorithms.examples import WHERE_PORTS_BLOCK
from tests.case import in_case
from tests.timing.schedules import LAWS, random_broadcast, random_run, random_schedule
from tests.timing.twin.events import ideal as twin_ideal

from collwise.algorithms import ALGORITHMS
from collwise.errors import InvalidSchedule
from collwise.model.machine import Machine
from collwise.model.topology import Topology
from collwise.schedule.program import Schedule
from collwise.timing import completion, event_loop, ideal, simulate

SEEDS = [range(15), pytest.param(range(15, 500), marks=pytest.mark.exhaustive)]
Case = tuple[Schedule, Machine, Topology | None]


@pytest.fixture(params=["compiled", "plain"])
def loop(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both loops, where there is a compiler."""
    if request.param == "plain":
        monkeypatch.setattr(event_loop, "_event_loop", None)
    elif vars(event_loop)["_event_loop"] is None:
        pytest.skip("the extension is not built")


def some_algorithm(random: Random, law: str) -> Case:
    ranks = random.choice((1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17, 25, 26, 32))
    machine, topology = LAWS[law](random, ranks)
    usable = WHERE_PORTS_BLOCK if machine.ports_block else [*ALGORITHMS.values()]
    return random_run(random, random.choice(usable), ranks, machine), machine, topology


def some_lists(random: Random, law: str) -> Case:
    """Many of these ask for what never comes."""
    ranks = random.randrange(2, 9)
    machine, topology = LAWS[law](random, ranks)
    if random.random() < 0.5:
        return random_schedule(random, ranks, random.randrange(1, 25)), machine, topology
    made = random_broadcast(random, ranks, random.randint(1, 6), mixed=random.random() < 0.7)
    return made, machine, topology


def facts(timing: Any, topology: Topology | None) -> tuple[Any, ...]:
    """All that a timing says; with links also the order in which messages had them."""
    passages = [
        (
            *passage[:-1],
            passage.waited and (passage.waited.link, timing.transfers[passage.waited[1]]),
        )
        for passage in timing.passages
    ]
    in_order = (timing.transfers, timing.passages) if topology else ()
    times = timing.finish, timing.finish_s, timing.completion, timing.completion_s
    lists = sorted(timing.transfers), sorted(timing.combines), sorted(passages, key=repr)
    return *times, *lists, *in_order, timing.link_busy()


def check(schedule: Schedule, machine: Machine, topology: Topology | None) -> None:
    expected, refused = None, ""
    try:
        expected = twin_ideal(schedule, machine, topology)
    except InvalidSchedule as error:
        refused = str(error)
    if expected is None:
        for play in (ideal, completion, simulate):
            with pytest.raises(InvalidSchedule) as caught:
                play(schedule, machine, topology)
            assert str(caught.value) == refused
        return
    assert facts(ideal(schedule, machine, topology), topology) == facts(expected, topology)
    assert simulate(schedule, machine, topology).finish == expected.finish
    time = expected.completion
    assert completion(schedule, machine, topology) == time
    for limit in (time, time * Fraction(9, 10), time / 3, Fraction(-1)):
        within = completion(schedule, machine, topology, limit)
        assert within == (time if time <= limit else None), limit


@pytest.mark.no_cover
@pytest.mark.usefixtures("loop")
@pytest.mark.parametrize("some", [some_algorithm, some_lists])
@pytest.mark.parametrize("seeds", SEEDS)
def test_the_loop_and_its_twin(some: Any, seeds: range) -> None:
    for seed in seeds:
        for law in LAWS:
            with in_case(seed, law):
                check(*some(Random(f"{seed} {law}"), law))
