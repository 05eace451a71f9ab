"""S-to-p broadcasts on every mesh up to 12 × 12, from every distribution of any number of sources.

Everything here is parametrised over the registry, the distributions and the meshes.  What runs
always is a sample, seeded by the algorithm: small meshes with every number of sources, greater ones
with some distributions.  `-m exhaustive` runs the whole product, every set of
sources once, whichever distributions lead to it: hours of work, shared out with `--dist=load`.
"""

from collections.abc import Iterable
from functools import cache
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collwise.algorithms import Algorithm
from collwise.algorithms.allgatherv.spreading import Spreading
from collwise.algorithms.registry import algorithms_for
from collwise.model.machine import Machine
from collwise.model.sources import DISTRIBUTIONS, distribute
from collwise.schedule.program import Schedule
from collwise.timing import ideal
from collwise.verifier import check_flow, check_ports
from tests.algorithms.examples import LATENCIES, MACHINES, settings_of

MAX_SIDE = 12
MAX_SMALL_MESH = 6
"""On meshes of up to so many ranks the sample has every number of sources."""
MAX_TIMED_RANKS = 36
"""Up to so many ranks the sample is timed, and its ports are checked."""
LOGGP = Machine.loggp(L_s=7, o_s=2, g_s=3, G_s="1/100")
S_TO_P = algorithms_for("allgatherv")
SHAPES = [(rows, columns) for rows in range(1, MAX_SIDE + 1) for columns in range(1, MAX_SIDE + 1)]

each = pytest.mark.parametrize("algorithm", S_TO_P, ids=lambda a: a.name)


def length(rank: int) -> int:
    """Bytes that a rank gives: not all the same."""
    return 1 + rank % 7


def made(
    algorithm: Algorithm, shape: tuple[int, int], sources: Iterable[int], turn: int = 0
) -> Schedule:
    """turn: which λ its trees are for, if it has any."""
    sources, p = tuple(sources), shape[0] * shape[1]
    lengths = [length(rank) for rank in sources]
    return algorithm.schedule(
        p, lengths, sources=sources, shape=shape, **some_settings(algorithm, p, turn)
    )


def some_settings(algorithm: Algorithm, p: int, turn: int) -> dict[str, Any]:
    return settings_of(algorithm, p, lam=LATENCIES[turn % len(LATENCIES)])


@cache
def source_sets(shape: tuple[int, int], count: int) -> tuple[tuple[int, ...], ...]:
    """The distributions of so many sources, each set but once."""
    return tuple(dict.fromkeys(distribute(name, shape, count) for name in DISTRIBUTIONS))


def sees_the_mesh(algorithm: Algorithm) -> bool:
    """Whether it goes along the lines of a mesh; others have but the numbers of the ranks."""
    return isinstance(made(algorithm, (2, 2), [0]).program, Spreading)


# --- what runs always ---


@pytest.mark.no_cover
@each
def test_small_meshes_with_every_number_of_sources(algorithm: Algorithm) -> None:
    for shape in SHAPES:
        p = shape[0] * shape[1]
        for count in range(1, p + 1) if p <= MAX_SMALL_MESH else ():
            for sources in source_sets(shape, count):
                schedule = made(algorithm, shape, sources, count)
                check_flow(schedule)
                check_every_rank(schedule, range(p))


@pytest.mark.no_cover
@each
def test_great_meshes(algorithm: Algorithm) -> None:
    """Some distributions, of any number of sources on any mesh."""
    random = Random(algorithm.name)
    for turn, distribution in enumerate(random.sample(list(DISTRIBUTIONS), 4)):
        shape = random.choice([(r, c) for r, c in SHAPES if r * c > MAX_SMALL_MESH])
        p = shape[0] * shape[1]
        count = random.choice((1, 2, shape[1], p // 2, random.randint(2, p), p - 1, p))
        schedule = made(algorithm, shape, distribute(distribution, shape, count), count)
        check_flow(schedule)
        check_every_rank(schedule, random.sample(range(p), min(4, p)))
        if p <= MAX_TIMED_RANKS:
            machine = MACHINES[turn % len(MACHINES)]
            timing = ideal(schedule, machine)
            check_ports(schedule, timing, machine)
            given = some_settings(algorithm, p, count)
            assert algorithm.time_of(schedule.problem, machine, given) == timing.completion
            check_ports(schedule, ideal(schedule, LOGGP), LOGGP)


def check_every_rank(schedule: Schedule, ranks: Iterable[int]) -> None:
    """One rank's list is that of all ranks' lists."""
    for rank in ranks:
        assert schedule.rank(rank) == schedule.lists[rank], (schedule.problem, rank)


@pytest.mark.parametrize(
    "algorithm", [a for a in S_TO_P if not sees_the_mesh(a)], ids=lambda a: a.name
)
def test_the_shape_means_nothing_to_those_that_do_not_see_it(algorithm: Algorithm) -> None:
    """So that it is enough to check them on one shape."""
    for p, sources in ((12, (0, 5, 7)), (16, range(16)), (24, (23,))):
        shapes = [(rows, p // rows) for rows in range(1, p + 1) if p % rows == 0]
        assert len({made(algorithm, shape, sources).lists for shape in shapes}) == 1


# --- random ones ---


@st.composite
def problems(
    draw: st.DrawFn, most: int = 100, pairs: int = 4000
) -> tuple[tuple[int, int], dict[int, int]]:
    """A mesh of ranks, and the bytes of its sources in any order, 0 among them.

    most: ranks.   pairs: of a rank and a source.
    """
    rows = draw(st.integers(1, 24))
    shape = rows, draw(st.integers(1, most // rows))
    p = shape[0] * shape[1]
    ranks = draw(st.permutations(range(p)))[: draw(st.integers(1, min(p, pairs // p)))]
    nbytes = st.integers(0, 3) | st.integers(0, 10**9)
    return shape, {rank: draw(nbytes) for rank in ranks}


def check_any_lengths(
    problem: tuple[tuple[int, int], dict[int, int]], algorithm: Algorithm, lam: Any, seed: int
) -> None:
    shape, lengths = problem
    p = shape[0] * shape[1]
    schedule = algorithm.schedule(
        p,
        list(lengths.values()),
        sources=list(lengths),
        shape=shape,
        **settings_of(algorithm, p, lam=lam, algorithm="chain_segmented(segment=400m)"),
    )
    check_flow(schedule)
    check_every_rank(schedule, {0, seed % p, p - 1})
    some = [length > 0 for length in lengths.values()]
    assert any(schedule.lists) == (p > 1 and any(some))


any_lengths = given(problems(), st.sampled_from(S_TO_P), st.fractions(1, 20), st.integers(0, 10**6))
test_any_sources_with_any_lengths = pytest.mark.no_cover(
    settings(max_examples=20)(any_lengths(check_any_lengths))
)
test_many_sources_with_any_lengths = pytest.mark.exhaustive(
    settings(max_examples=2000)(any_lengths(check_any_lengths))
)


# --- everything ---


def check_all(algorithms: Iterable[Algorithm], shape: tuple[int, int], sources: Any) -> None:
    """Of algorithms that come to the same schedule, the first stands for all."""
    checked: list[Any] = []
    for algorithm in algorithms:
        schedule = made(algorithm, shape, sources, len(sources))
        check_every_rank(schedule, [sum(sources) % schedule.ranks])
        if schedule.lists not in checked:
            check_flow(schedule)
            checked.append(schedule.lists)


@pytest.mark.exhaustive
@pytest.mark.parametrize("rows", range(1, MAX_SIDE + 1))
def test_everything_on_meshes(rows: int) -> None:
    """Every algorithm that sees the mesh, every distribution, every number of sources."""
    algorithms = [algorithm for algorithm in S_TO_P if sees_the_mesh(algorithm)]
    for shape in [shape for shape in SHAPES if shape[0] == rows]:
        for count in range(1, shape[0] * shape[1] + 1):
            for sources in source_sets(shape, count):
                check_all(algorithms, shape, sources)


@pytest.mark.exhaustive
@pytest.mark.parametrize("p", sorted({rows * columns for rows, columns in SHAPES}))
def test_everything_on_ranks(p: int) -> None:
    """Every algorithm that does not see the mesh, from all sets of sources on any mesh of p."""
    algorithms = [algorithm for algorithm in S_TO_P if not sees_the_mesh(algorithm)]
    shapes = [shape for shape in SHAPES if shape[0] * shape[1] == p]
    for count in range(1, p + 1):
        for sources in dict.fromkeys(s for shape in shapes for s in source_sets(shape, count)):
            check_all(algorithms, shapes[0], sources)
