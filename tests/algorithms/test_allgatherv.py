"""S-to-p broadcasts: each is what its twin tells, and what the papers say of it."""

import tracemalloc
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, product
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collwise.algorithms import ALGORITHMS, Algorithm
from collwise.algorithms.allgatherv.ideal_places import in_line, rows, snake
from collwise.algorithms.allgatherv.spreading import fullest, spread_snake
from collwise.algorithms.registry import algorithms_for
from collwise.model import postal
from collwise.model.machine import Machine
from collwise.model.sources import DISTRIBUTIONS, distribute
from collwise.schedule.grids import Grid
from collwise.schedule.operations import Recv, Send
from collwise.schedule.program import Schedule
from tests.algorithms.allgatherv_twins import (
    TWINS,
    Message,
    Told,
    halving,
    mesh_of,
    messages_of,
    snaked,
    told_of,
)
from tests.algorithms.examples import LATENCIES, settings_of

S_TO_P = [a for a in algorithms_for("allgatherv", levels=False) if not a.segmented]
SHAPES = [(r, c) for r, c in product(range(1, 14), repeat=2) if r * c <= 40] + [(9, 11), (16, 8)]
UNIT = Machine.postal(t0_s=1, lam=1)
each = pytest.mark.parametrize("algorithm", S_TO_P, ids=lambda a: a.name)


def allgatherv(name: str) -> Algorithm:
    return ALGORITHMS[f"allgatherv/{name}"]


def made(algorithm: Algorithm, shape: tuple[int, int], sources: Sequence[int]) -> Schedule:
    p = shape[0] * shape[1]
    return algorithm.schedule(p, 8, sources=sources, shape=shape, **settings_of(algorithm, p))


def some_sources(shape: tuple[int, int], random: Random) -> list[tuple[int, ...]]:
    """One, all, some of a distribution, and any."""
    p = shape[0] * shape[1]
    pattern = distribute(random.choice(list(DISTRIBUTIONS)), shape, random.randint(1, p))
    anyone = random.sample(range(p), random.randint(1, p))
    return [(random.randrange(p),), tuple(range(p)), pattern, tuple(sorted(anyone))]


# --- the twins ---


@pytest.mark.no_cover
@pytest.mark.parametrize("name", TWINS)
def test_the_messages_are_those_that_are_told(name: str) -> None:
    """All of them, and every rank has its own in the order of the rounds."""
    random = Random(name)
    for shape in random.sample(SHAPES, 9):
        for sources in some_sources(shape, random):
            schedule, rounds = made(allgatherv(name), shape, sources), told_of(name, shape, sources)
            assert messages_of(schedule) == Counter(m for told in rounds for m in told)
            check_order(schedule, rounds)


def check_order(schedule: Schedule, rounds: list[list[Message]]) -> None:
    turn = {message: turn for turn, told in enumerate(rounds) for message in told}
    for rank, operations in enumerate(schedule.lists):
        for kind in (Send, Recv):
            turns = []
            for op in operations:
                if isinstance(op, Send | Recv) and isinstance(op, kind):
                    what = frozenset(block.owner for block in op.blocks)
                    ends = (rank, op.peer) if kind is Send else (op.peer, rank)
                    turns.append(turn[*ends, what])
                    assert [b.owner for b in op.blocks] == sorted(what)
            assert turns == sorted(turns)


# --- the words in which they tell their times ---


def times_of(
    names: str, p: int, sources: Sequence[int], machine: Machine, **more: Any
) -> dict[str, Fraction]:
    """names: of algorithms, apart by blanks.  Trees are for the machine's own λ."""
    lam = machine.message(8).lam
    return {
        name: allgatherv(name).predict(
            machine, p, 8, sources=sources, **more, **settings_of(allgatherv(name), p, lam=lam)
        )
        for name in names.split()
    }


@pytest.mark.parametrize("d", range(6))
def test_rounds_on_cubes(d: int) -> None:
    p, shape = 2**d, (2 ** (d // 2), 2 ** (d - d // 2))
    for sources in some_sources(shape, Random(d)):
        names = "br_lin br_xy_source br_xy_dim bruck recursive_doubling"
        assert set(times_of(names, p, sources, UNIT, shape=shape).values()) == {d}
        names = "repos_lin repos_xy_source part_lin part_xy_source"
        assert set(times_of(names, p, sources, UNIT, shape=shape).values()) <= {d, d + 1}
        times = times_of("ring xor two_step", p, sources, UNIT, shape=shape)
        assert times["ring"] == times["xor"] == p - 1
        assert d <= times["two_step"] <= len(sources) + d


@pytest.mark.no_cover
@given(st.data(), st.integers(2, 33), st.sampled_from(LATENCIES))
def test_times_of_any_number_of_ranks(data: st.DataObject, p: int, lam: Fraction) -> None:
    sources = data.draw(st.lists(st.integers(0, p - 1), min_size=1, unique=True))
    s, machine = len(sources), Machine.postal(t0_s=1, lam=lam)
    times = times_of("source_tree broadcasts ring xor", p, sources, machine)
    best = postal.broadcast_time(p, lam)
    assert best <= times["source_tree"] <= best + (lam + s - 2 if s > 1 else 0)
    assert best <= times["broadcasts"] <= s * best
    assert times["ring"] == (p - 1) * lam
    if s == 1:
        assert times["broadcasts"] == best
        assert times["xor"] == p - 2 + lam
    unit = times_of("bruck recursive_doubling xor", p, sources, UNIT)
    logs = (p - 1).bit_length()
    assert unit["bruck"] == logs
    assert logs <= unit["recursive_doubling"] <= logs + 1  # ⌊log2 p⌋ + 2, or log2 p
    assert p - 1 <= unit["xor"] <= 2**logs - 1


@pytest.mark.no_cover
def test_the_census_is_optimal_for_an_integer_latency() -> None:
    """Nobody has the first rank's contribution earlier than by a broadcast alone."""
    for p in (*range(2, 34), 65, 100, 130):
        for k in (2, 4, 10):
            machine = Machine.postal(t0_s=1, lam=k)
            time = allgatherv("census").predict(machine, p, 8, sources=range(p), latency=k)
            assert time == postal.broadcast_time(p, k)


# --- ideal places (H-c9) ---


def holders(mesh: Any, sources: Sequence[int], along: str) -> list[int]:
    """How many ranks hold anything, before and after every round along all rows or columns."""
    lines = mesh if along == "rows" else list(zip(*mesh, strict=True))
    told = Told({rank: frozenset([rank]) for rank in sources})
    counts = [len(told.held)]
    for pairs in zip_rounds(lines):
        told.all(pairs)
        counts.append(len(told.held))
    return counts


def zip_rounds(lines: Any) -> list[list[tuple[int, int]]]:
    several = [halving(line) for line in lines]
    return [[pair for rounds in several for pair in rounds[k]] for k in range(len(several[0]))]


def test_two_rows_that_are_well_placed_and_two_that_are_not() -> None:
    """H-c9: R(20) on 10 × 10 is rows 1 and 6, counted from 1; 1 and 7 are better."""
    mesh = mesh_of((10, 10))
    assert distribute("row", (10, 10), 20) == (*mesh[0], *mesh[5])
    assert holders(mesh, [*mesh[0], *mesh[5]], "columns")[:2] == [20, 20]
    assert holders(mesh, [*mesh[0], *mesh[6]], "columns")[:2] == [20, 40]
    ideal = rows((10, 10), 20)
    assert holders(mesh, ideal, "columns") == [20, 40, 80, 100, 100]


def doubling(count: int, most: int, rounds: int) -> list[int]:
    return [min(count * 2**k, most) for k in range(rounds + 1)]


def test_ideal_places_on_a_line_double_in_every_round() -> None:
    """As long as that is possible: no placement can do better, in any round."""
    for count, n in combinations_with_replacement((*range(1, 18), 31, 32, 33), 2):
        places = in_line(n, count)
        assert list(places) == sorted(set(places))
        assert len(places) == count
        told = holders([range(n)], places, "rows")
        assert told == doubling(count, n, (n - 1).bit_length())


@pytest.mark.no_cover
@pytest.mark.parametrize("shape", [(1, 7), (7, 1), (2, 5), (5, 2), (4, 4), (3, 8), (9, 11)])
def test_ideal_places_on_a_mesh(shape: tuple[int, int]) -> None:
    """Full rows double along columns, which `br_xy_source` takes first; or the other way round."""
    r, c = shape
    mesh, p = mesh_of(shape), r * c
    for count in range(1, p + 1):
        places = rows(shape, count)
        assert list(places) == sorted(set(places))
        assert len(places) == count
        tall = -(-count // c) > c
        in_row, in_column = fullest(Grid.of(shape), places)
        line, lines, other = (c, r, "rows") if tall else (r, c, "columns")
        assert (in_row < in_column) == tall
        if count % lines == 0:  # full ones only
            assert holders(mesh, places, other) == doubling(count, p, (line - 1).bit_length())
        on_snake = snake(shape, count)
        told = holders([snaked(mesh)], on_snake, "rows")
        assert told == doubling(count, p, (p - 1).bit_length())


# --- one rank ---


def test_one_rank_of_a_line_hears_of_its_own_messages_only() -> None:
    for rank in range(12):
        holdings: Any = {1: ("one",), 6: ("two",), 7: ("three",)}
        grid, every = Grid.of((3, 4)), list[Any]()
        every += (d for d in spread_snake(grid, holdings, None) if rank in d[:2])
        assert list(spread_snake(grid, holdings, rank)) == every


@each
def test_one_rank_of_a_million(algorithm: Algorithm) -> None:
    """Nothing of the size of the communicator is built, whatever the mesh."""
    p, sources = 2**20, [2**19 + 7, 5, 900_000]
    for shape in ((1024, 1024), (1, p), (p, 1)):
        schedule = made(algorithm, shape, sources)
        for rank in (77, 2**19 + 7):
            if algorithm.short_name == "xor" and rank in sources:
                continue  # it sends to everybody itself
            tracemalloc.start()
            operations = schedule.rank(rank)
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert peak < 200_000
            brought = [b.owner for op in operations if isinstance(op, Recv) for b in op.blocks]
            assert sorted(brought) == sorted(set(sources) - {rank})
