"""The facts that every algorithm declares, for every number of ranks from 1 to 130.

Everything here is parametrised over the registry.  What runs always is a sample, seeded by the
algorithm and the number of ranks, in which every p, every kind of root and every machine occurs;
`-m exhaustive` runs the whole product.
"""

import gc
from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest

from collwise.algorithms import ALGORITHMS, Algorithm
from collwise.model import postal
from collwise.model.machine import Machine, measured
from collwise.schedule.data import Schedule, tabulate
from collwise.schedule.timing import ideal
from collwise.verifier import check_flow, check_ports

MOST = 130
LATENCIES = [Fraction(lam) for lam in ("1", "3/2", "9/5", "2", "5/2", "4", "10")]
MACHINES = [Machine.postal(t0_s=Fraction(1, 1000), lam=lam) for lam in LATENCIES] + [
    Machine.hockney(alpha_s="1e-6", beta_s="1/3000000000"),
    measured(
        [
            [(8, 1.25e-6, 2.5), (256, 1.5e-6, "2.2"), (1024, 4e-6, 1.3)],
            [(2048, 7e-6, 3), (4096, 1.1e-5, "9/4")],
        ]
    ),
]
SEGMENTS = (1, 2, 3, 5)
AT_ONCE = 2_500
"""Messages to time for one algorithm and p in a run that is not exhaustive."""


def sizes(p: int) -> list[int]:
    return sorted({0, 1, p - 1, p, 1000, 4097})


def roots(p: int) -> list[int]:
    return sorted({0, min(1, p - 1), p // 2, p - 1})


class Settings:
    """Values for the parameters of an algorithm: one for every name that a parameter has."""

    def __init__(self, nbytes: int, segments: int, exactly: bool, lam: Fraction, seed: int) -> None:
        self.segment = max(-(-nbytes // segments), 1)
        if not exactly:  # a last segment that is shorter, if that can be
            self.segment += (nbytes % self.segment == 0 < self.segment < nbytes) or 0
        self.lam = lam
        self.alpha = Fraction(50 + 7 * seed % 50, 100)
        self.k = 2 + seed % 7

    def of(self, algorithm: Algorithm) -> dict[str, Any]:
        return {name: getattr(self, name) for name in algorithm.parameters}


@lru_cache(maxsize=4)
def made(name: str, p: int, nbytes: int, root: int, settings: tuple[Any, ...]) -> Schedule:
    return ALGORITHMS[name].schedule(p, nbytes, root, **dict(settings))


class Case:
    """An algorithm and a number of ranks, with a size, a root and settings drawn for both."""

    def __init__(self, algorithm: Algorithm, p: int) -> None:
        self.algorithm, self.p = algorithm, p
        self.random = Random(f"{algorithm.name} {p}")
        kind = (p + len(algorithm.name)) % 4
        self.root = [0, min(1, p - 1), p // 2, p - 1][kind]
        self.nbytes = self.random.choice([n for n in sizes(p) if n > 1] or [1])
        self.segments = SEGMENTS[p % 4]
        self.exactly = bool(self.random.getrandbits(1))
        if self.exactly:
            self.nbytes = -(-self.nbytes // self.segments) * self.segments

    def settings(self, lam: Fraction) -> dict[str, Any]:
        return Settings(self.nbytes, self.segments, self.exactly, lam, self.p).of(self.algorithm)

    def schedule(self, lam: Fraction) -> Schedule:
        """The schedule; the same object for all λ if no setting depends on it."""
        settings = tuple(self.settings(lam).items())
        return made(self.algorithm.name, self.p, self.nbytes, self.root, settings)

    @cached_property
    def machines(self) -> list[Machine]:
        """All of them where that is quick, else some, in turn."""
        messages = sum(map(len, self.schedule(LATENCIES[0]).lists)) // 2
        count = max(1, min(len(MACHINES), AT_ONCE // max(messages, 1)))
        return [MACHINES[(self.p * count + i) % len(MACHINES)] for i in range(count)]


@pytest.fixture(scope="module", autouse=True)
def _no_garbage_collector() -> Iterator[None]:
    """Millions of small tuples without a cycle: looking for one takes a quarter of the time."""
    gc.disable()
    yield
    gc.enable()


@pytest.fixture(scope="module", params=range(1, MOST + 1))
def p(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(scope="module", params=ALGORITHMS.values(), ids=lambda a: a.name)
def case(request: pytest.FixtureRequest, p: int) -> Case:
    return Case(request.param, p)


def test_is_right(case: Case) -> None:
    """The promise is kept: data and progress; the ports are checked with the times."""
    check_flow(case.schedule(LATENCIES[case.p % len(LATENCIES)]))


def test_predict_is_the_ideal_time(case: Case) -> None:
    algorithm, p, nbytes, root = case.algorithm, case.p, case.nbytes, case.root
    for i, machine in enumerate(case.machines):
        cost = machine.message(nbytes)
        other = (p + i) % 5 == 0  # a λ-tree for another λ than the machine's
        lam = Fraction(7, 3) if other else cost.lam
        schedule = case.schedule(lam)
        timing = ideal(schedule, machine)
        predicted = algorithm.predict(machine, p, nbytes, root, **case.settings(lam))
        assert predicted == timing.completion, (machine.describe(), schedule.algorithm, nbytes)
        assert type(predicted) is Fraction
        assert timing.completion_s == max(timing.finish_s) == float(predicted)
        if i == 0 and (p < 40 or p % 5 == 0):
            check_ports(schedule, timing, machine)
        bound = postal.broadcast_time(p, cost.lam) * cost.gap
        if not algorithm.segmented:
            assert predicted >= bound
        if algorithm.time == "T_λ(p)·t0" and not other:
            assert predicted == bound


def test_columns_are_the_lists(case: Case) -> None:
    schedule = case.schedule(LATENCIES[0])
    assert rows(schedule.columns()) == rows(tabulate(schedule.lists))


def rows(columns: Any) -> list[list[int]]:
    """All rows by source and place; the blocks of one message stay in their order."""
    order = np.lexsort((columns.place_at_source, columns.source))
    assert all(column.dtype == np.int64 for column in vars(columns).values())
    return np.stack([column[order] for column in vars(columns).values()]).tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("algorithm", ALGORITHMS.values(), ids=lambda a: a.name)
@pytest.mark.parametrize("p", range(1, 11))
def test_every_size_and_root_of_few_ranks(algorithm: Algorithm, p: int) -> None:
    for nbytes, root in product(sizes(p), roots(p)):
        for segments, exactly in (
            product(SEGMENTS, (True, False)) if "segment" in algorithm.parameters else [(1, True)]
        ):
            settings = Settings(nbytes, segments, exactly, LATENCIES[p % 7], p + nbytes)
            schedule = algorithm.schedule(p, nbytes, root, **settings.of(algorithm))
            check_flow(schedule)
            assert rows(schedule.columns()) == rows(tabulate(schedule.lists))


def test_the_sample_has_every_kind_of_case() -> None:
    """For every algorithm: each kind of root, each size, each number of segments, each machine."""
    for algorithm in ALGORITHMS.values():
        cases = [Case(algorithm, p) for p in range(1, MOST + 1)]
        big = [case for case in cases if case.p > 4]
        kinds = {roots(case.p).index(case.root) for case in big}
        assert kinds == {0, 1, 2, 3}
        assert {case.exactly for case in big} == {True, False}
        if "segment" in algorithm.parameters:
            counts = {-(-case.nbytes // case.settings(LATENCIES[0])["segment"]) for case in big}
            assert counts >= set(SEGMENTS)
            rests = {case.nbytes % case.settings(LATENCIES[0])["segment"] > 0 for case in big}
            assert rests == {True, False}


def whole_product(algorithm: Algorithm, p: int) -> Iterator[tuple[int, int, Settings]]:
    """Every size, root and way to cut a message into segments, each but once."""
    segmentings = [*product(SEGMENTS, (True, False))]
    if "segment" not in algorithm.parameters:
        segmentings = [(1, True)]
    for nbytes in sizes(p):
        cuts = {
            s.segment: s
            for s in (Settings(nbytes, *how, LATENCIES[p % 7], p) for how in segmentings)
        }
        yield from ((nbytes, root, s) for root in roots(p) for s in cuts.values())


@pytest.mark.exhaustive
@pytest.mark.parametrize("p", range(1, MOST + 1))
@pytest.mark.parametrize("algorithm", ALGORITHMS.values(), ids=lambda a: a.name)
def test_everything(algorithm: Algorithm, p: int) -> None:
    """Every size, root and segmenting is right; for root 0, every machine's time is predicted."""
    for nbytes, root, settings in whole_product(algorithm, p):
        schedule = algorithm.schedule(p, nbytes, root, **settings.of(algorithm))
        check_flow(schedule)
        if root:
            continue
        for machine in MACHINES:
            settings.lam = machine.message(nbytes).lam
            if "lam" in algorithm.parameters:
                schedule = algorithm.schedule(p, nbytes, root, **settings.of(algorithm))
            predicted = algorithm.predict(machine, p, nbytes, root, **settings.of(algorithm))
            timing = ideal(schedule, machine)
            assert predicted == timing.completion, machine.describe()
            if machine in (MACHINES[2], MACHINES[-1]):
                check_ports(schedule, timing, machine)
