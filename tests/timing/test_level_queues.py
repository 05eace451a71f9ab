"""All messages as columns at shared ports: what the event engine says of each, and its limits."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from tests.algorithms.examples import MACHINES, settings_of, sources_for
from tests.case import in_case
from tests.timing.levels_twin import random_levels, random_placement

from collwise.algorithms import ALGORITHMS
from collwise.model.level_notation import parse
from collwise.model.levels import Levels
from collwise.model.machine import Machine
from collwise.model.placement import Placement
from collwise.schedule.exchange import Exchange, Stage
from collwise.schedule.operations import Block, Combine, Operation, Recv, Send, Slot, scratch
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program, Schedule, Written
from collwise.timing import ideal, level_queues
from collwise.timing.rank_state import PastLimit
from collwise.timing.vectorised import vectorised_timing


@pytest.fixture(params=["compiled", "python"])
def loop(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both loops, where there is a compiler."""
    if request.param == "python":
        monkeypatch.setattr(level_queues, "COMPILED", False)
    elif not level_queues.COMPILED:
        pytest.skip("the extension is not built")


def random_problems(seed: int, part: float) -> Iterator[tuple[Schedule, Levels]]:
    """Some algorithms, with their settings, on ranks in any groups."""
    random = Random(seed)
    ranks = random.randrange(2, 24)
    placement = random_placement(random, ranks, random.choice((2, 3, 3)))
    if seed % 4 == 1:
        placement = Placement.nodes((3, 1, 4, 2), round_robin=seed % 8 == 1)
    machine = random_levels(random, placement, combining=seed % 2 == 0)
    ranks = placement.ranks
    for algorithm in ALGORITHMS.values():
        nbytes = 8 * random.choice((ranks, 3 * ranks, 1, random.randrange(1, 50)))
        if algorithm.collective == "reduce_scatter_block":
            nbytes *= ranks
        root = random.randrange(ranks) if algorithm.collective in ("broadcast", "reduce") else 0
        if random.random() < part and (algorithm.kind.combines or random.random() < part):
            given = settings_of(algorithm, ranks) | sources_for(algorithm, ranks)
            yield (
                algorithm.schedule(ranks, nbytes, root, itemsize=8, placement=placement, **given),
                machine,
            )


def check(schedule: Schedule, machine: Levels) -> None:
    timing, expected = vectorised_timing(schedule, machine), ideal(schedule, machine)
    if timing is None:  # bytes that a rank receives twice
        assert not schedule.problem.kind.combines
        return
    assert timing.finish == expected.finish
    assert sorted(timing.transfers) == sorted(expected.transfers)


def test_any_algorithm(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(9):
        if seed % 3 == 2:
            monkeypatch.setattr(level_queues, "COMPILED", False)
        for schedule, machine in random_problems(seed, 0.12):
            with in_case(f"{seed}: {schedule.algorithm}"):
                check(schedule, machine)
        monkeypatch.undo()


@pytest.mark.exhaustive
@pytest.mark.parametrize("part", range(8))
@pytest.mark.usefixtures("loop")
def test_more_of_all_algorithms(part: int) -> None:
    for seed in range(9 + part, 400, 8):
        for schedule, machine in random_problems(seed, 1):
            with in_case(f"{seed}: {schedule.algorithm}"):
                check(schedule, machine)


def alike() -> Iterator[Schedule]:
    """Where the queues are made of few lists, or of none."""
    for ranks in (2, 7, 16):
        pieces = {"latency": 3, "pieces": 2}
        for name in ("census", "circulant", "postal_rounds"):
            algorithm = ALGORITHMS[f"s_to_p/{name}"]
            given: dict[str, Any] = {key: pieces[key] for key in algorithm.parameters}
            yield algorithm.schedule(ranks, 9, sources=range(ranks), **given)
            yield algorithm.schedule(ranks, 9, sources=range(0, ranks, 2), **given)
        for name in ("circulant", "postal_rounds", "two_trees"):
            algorithm = ALGORITHMS[f"reduce/{name}"]
            given = settings_of(algorithm, ranks, segment=16)
            yield algorithm.schedule(ranks, 80, ranks // 2, itemsize=8, **given)
    exchange = ALGORITHMS["allreduce/mixed_radix_pieces"]
    for stages, nbytes in (("2d 3 2d", 96), ("2d 3 2d", 100), ("3d 4", 72)):
        yield exchange.schedule(12, nbytes, itemsize=4, stages=stages, pieces=2, latency=2)


@pytest.mark.usefixtures("loop")
def test_alike() -> None:
    for number, schedule in enumerate(alike()):
        random = Random(number)
        placement = random_placement(random, schedule.ranks, 2 + number % 2)
        with in_case(schedule.algorithm):
            check(schedule, random_levels(random, placement, combining=number % 2 == 0))


@pytest.mark.parametrize("name", ["reduce", "allreduce"])
def test_teams_alike(name: str) -> None:
    """Of a rank of each place in its teams, whatever the other teams' sizes."""
    placements = Placement.regular(3, 4), Placement.regular(2, 3, 2), Placement.nodes((3, 4, 4, 1))
    for number, placement in enumerate(placements):
        random = Random(number)
        algorithm = ALGORITHMS[f"{name}/multilevel"]
        given = settings_of(algorithm, placement.ranks, reduces="halving_gather", algorithms="flat")
        schedule = algorithm.schedule(placement.ranks, 96, itemsize=8, placement=placement, **given)
        copies = schedule.program.copies()
        assert copies is not None
        assert len(list(copies)) < placement.ranks
        check(schedule, random_levels(random, placement, combining=number != 1))


def test_where_messages_meet_at_no_port(monkeypatch: pytest.MonkeyPatch) -> None:
    """On every machine of the postal law, with and without a compiler."""
    for number, schedule in enumerate(alike()):
        if schedule.problem.kind.combines:
            continue
        with in_case(schedule.algorithm):
            for machine in MACHINES[number % 3 :: 4]:
                monkeypatch.setattr(level_queues, "COMPILED", number % 2 == 0)
                timing, expected = vectorised_timing(schedule, machine), ideal(schedule, machine)
                assert timing is not None
                assert timing.finish == expected.finish
                assert sorted(timing.transfers) == sorted(expected.transfers)


LANES: dict[str, Any] = {"across": "halving_doubling", "gather": "bruck"}


@pytest.mark.usefixtures("loop")
def test_ticks_beyond_int64() -> None:
    laws = [
        Machine.postal(t0_s=Fraction(1, 998244353), lam=Fraction(2**62 + 1, 2**62)) for _ in "12"
    ]
    machine = Machine.levels(laws, Placement.regular(3, 2), ports=[Fraction(1, 2**61 - 1)])
    algorithm = ALGORITHMS["allreduce/multilane"]
    check(algorithm.schedule(6, 480, itemsize=8, placement=machine.placement, **LANES), machine)


@pytest.mark.usefixtures("loop")
def test_it_ends_at_a_limit() -> None:
    machine = parse("4x4: 200ns,2,300ns; 1.7us+0.8ns/B,4")
    algorithm = ALGORITHMS["allreduce/multilane"]
    schedule = algorithm.schedule(16, 1600, itemsize=8, placement=machine.placement, **LANES)
    whole = ideal(schedule, machine).completion
    timing = vectorised_timing(schedule, machine, whole)
    assert timing is not None
    assert timing.completion == whole
    for limit in (whole / 2, whole * Fraction(99, 100)):
        with pytest.raises(PastLimit):
            vectorised_timing(schedule, machine, limit)


A = (Block(0, 0, 8),)


@pytest.mark.usefixtures("loop")
@pytest.mark.parametrize(
    "lists",
    [
        ([Recv(1, A, scratch(0))], [Recv(0, A, scratch(0))]),
        ([Send(1, A, Slot.INPUT)], [Recv(0, A, scratch(0)), Recv(0, A, scratch(1))]),
        (
            [Recv(1, A, scratch(0)), Combine(0, scratch(0), 1, A), Send(1, A, 1)],
            [Recv(0, A, scratch(0)), Combine(0, scratch(0), 1, A), Send(0, A, 1)],
        ),
    ],
)
def test_what_never_ends_is_left_to_the_event_engine(lists: Any) -> None:
    machine = Machine.levels(
        [Machine.postal(t0_s=1, lam=2)] * 2, Placement.regular(2, 1), ports=[1]
    )
    written: tuple[tuple[Operation, ...], ...] = tuple(map(tuple, lists))
    schedule = Schedule(Problem("allreduce", 2, 8), Written(written))
    assert vectorised_timing(schedule, machine) is None


@dataclass(frozen=True)
class OwnExchange(Program):
    """All ranks do alike, but not around a circle."""

    exchange: Exchange

    def operations(self, rank: int) -> list[Operation]:
        return self.exchange.operations(rank)

    def is_alike(self) -> bool:
        return True


def test_ranks_that_do_alike_in_another_way() -> None:
    machine = parse("2x4: 200ns,2,300ns; 1.7us+0.8ns/B,4")
    problem = Problem("allreduce", 8, 64, itemsize=8)
    program = OwnExchange(Exchange(problem, (Stage(2, divided=True),) * 3))
    check(Schedule(problem, program), machine)
