"""The facts that every algorithm declares, for every number of ranks from 1 to 130.

Everything here is parametrised over the registry.  What runs always is a sample, by the places of
the algorithms: every algorithm on few ranks and beside powers of two, every p, every kind of root,
every machine.  `-m exhaustive` runs the whole product.
"""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache, cached_property, lru_cache
from itertools import product
from random import Random
from typing import Any

import pytest

from collwise.algorithms import ALGORITHMS, Algorithm
from collwise.algorithms.exchanges import cube_dimension
from collwise.errors import InvalidArgument, InvalidSchedule
from collwise.model import postal
from collwise.schedule.problem import ORDERS, Problem
from collwise.schedule.program import Schedule
from collwise.schedule.rows import of_classes, of_lists
from collwise.timing import ideal, simulate
from collwise.verifier import check_flow, check_ports
from tests.algorithms.examples import (
    LATENCIES,
    MACHINES,
    MEMORY,
    fitting,
    root_of,
    roots,
    settings_of,
    sources_for,
    stages_for,
    strategy_for,
    told,
    written_out,
)
from tests.case import in_case

MAX_RANKS = 130
FEW_RANKS = 8
"""Up to so many ranks the sample has every algorithm."""
EVERY_LAW = [*MACHINES, MEMORY]
SEGMENTS = (1, 2, 3, 5)
ITEM_SIZES = (1, 4, 8, 16)

each = pytest.mark.parametrize("algorithm", ALGORITHMS.values(), ids=lambda a: a.name)


def combines(what: Algorithm | Problem) -> bool:
    return what.kind.combines


def lengths(p: int) -> list[int]:
    """In elements: none, one, fewer than ranks, as many, numbers that do not divide."""
    return sorted({0, 1, p - 1, p, 1000, 4097})


class Settings:
    """Values for the parameters of an algorithm: drawn ones where any will do."""

    def __init__(
        self, p: int, nbytes: int, segments: int, exactly: bool, lam: Fraction, seed: int
    ) -> None:
        self.p = p
        self.segment = max(-(-nbytes // segments), 1)
        if not exactly:  # a last segment that is shorter, if that can be
            self.segment += (nbytes % self.segment == 0 < self.segment < nbytes) or 0
        radix = 2 + seed % 7
        self.drawn = {
            "segment": self.segment,
            "lam": lam,
            "alpha": Fraction(50 + 7 * seed % 50, 100),
            "k": radix,
            "radix": radix,
            "latency": 1 + seed % 7,
            "pieces": 1 + seed % 5,
            "stages": stages_for(p, radix),
            "strategy": strategy_for(p, Random(seed).getrandbits(8)),
        }

    def of(self, algorithm: Algorithm, **others: Any) -> dict[str, Any]:
        drawn = self.drawn | others
        if algorithm.kind.has_sources:
            drawn["algorithm"] = f"chain_segmented(segment={self.segment})"
        return settings_of(algorithm, self.p, **drawn)


def segmentings(algorithm: Algorithm, p: int, nbytes: int, seed: int) -> list[Settings]:
    """Settings for every way to cut a message into segments, each length of a segment once."""
    cuts = [*product(SEGMENTS, (True, False))] if "segment" in algorithm.parameters else [(1, True)]
    every = (Settings(p, nbytes, *cut, LATENCIES[p % 7], seed) for cut in cuts)
    return list({settings.segment: settings for settings in every}.values())


@lru_cache(maxsize=4)
def made(
    name: str, p: int, nbytes: int, root: int, item: int, settings: tuple[Any, ...]
) -> Schedule:
    algorithm = ALGORITHMS[name]
    return algorithm.schedule(
        p, nbytes, root, itemsize=item, **sources_for(algorithm, p), **dict(settings)
    )


class Case:
    """An algorithm and a number of ranks, with a length, a root and settings drawn for both."""

    def __init__(self, algorithm: Algorithm, p: int, number: int = 0) -> None:
        """number: of the case among those of the algorithm; what is drawn takes turns by it."""
        self.algorithm, self.p, self.number = algorithm, p, number
        all_roots = roots(algorithm, p)
        self.root = all_roots[(self.number + len(algorithm.name)) % len(all_roots)]
        self.item = ITEM_SIZES[self.number % len(ITEM_SIZES)] if combines(algorithm) else 1
        self.segments = SEGMENTS[self.number % len(SEGMENTS)]
        self.exactly = (number + number // 4) % 2 == 0
        counts = [n for n in lengths(p) if n > 1] or [1]
        self.count = counts[(2 * number + 2 + number // 8) % len(counts)]

    @property
    def nbytes(self) -> int:
        exact = -(-self.count // self.segments) * self.segments
        count = exact if self.exactly else self.count
        return fitting(self.algorithm, self.p, count * self.item, self.item)

    def settings(self, lam: Fraction) -> dict[str, Any]:
        drawn = Settings(self.p, self.nbytes, self.segments, self.exactly, lam, self.p)
        return drawn.of(self.algorithm)

    def schedule(self, lam: Fraction) -> Schedule:
        """The schedule; the same object for all λ if no setting depends on it."""
        settings = tuple(self.settings(lam).items())
        return made(self.algorithm.name, self.p, self.nbytes, self.root, self.item, settings)

    @cached_property
    def machines(self) -> list[Any]:
        """Three on few ranks, one on more, in turn."""
        first, count = 3 * self.number, 3 if self.p <= FEW_RANKS else 1
        return [EVERY_LAW[(first + i) % len(EVERY_LAW)] for i in range(count)]


@cache
def sample(name: str) -> tuple[Case, ...]:
    """Every p up to FEW_RANKS; beyond, algorithms take turns: together they have every p."""
    place = [*ALGORITHMS].index(name)
    beside = (31, 32, 33, 63, 64, 65)
    turns = range(FEW_RANKS + 1 + place, MAX_RANKS + 1, len(ALGORITHMS))
    ranks = [*range(1, FEW_RANKS + 1), *turns, beside[place % len(beside)]]
    return tuple(Case(ALGORITHMS[name], p, number) for number, p in enumerate(ranks, 1))


@pytest.mark.parametrize("few", [True, pytest.param(False, marks=pytest.mark.no_cover)])
@each
def test_the_facts(algorithm: Algorithm, few: bool) -> None:
    """The promise is kept (the ports are checked with the times); predict is the ideal time.

    That of every rank's list, whatever arrays, classes of ranks or shapes of trees it comes from.
    """
    for case in [case for case in sample(algorithm.name) if (case.p <= FEW_RANKS) == few]:
        check_flow(case.schedule(LATENCIES[case.p % len(LATENCIES)]))
        check_predictions(case)
        check_rows(case.schedule(LATENCIES[0]))


def check_predictions(case: Case) -> None:
    algorithm, p, nbytes, root = case.algorithm, case.p, case.nbytes, case.root
    for i, machine in enumerate(case.machines):
        cost = machine.message(nbytes)
        other = (p + i) % 5 == 0  # a λ-tree for another λ than the machine's
        lam = Fraction(7, 3) if other else cost.lam
        schedule = case.schedule(lam)
        if machine.ports_block and schedule.program.needs_posted_receives:
            continue
        predicted = algorithm.predict(
            machine,
            p,
            nbytes,
            root,
            itemsize=case.item,
            **sources_for(algorithm, p),
            **case.settings(lam),
        )
        where = machine.describe(), schedule.algorithm, p, nbytes, root
        assert type(predicted) is Fraction
        timing = ideal(written_out(schedule), machine)
        assert predicted == timing.completion, where
        if not i:
            assert timing.completion_s == max(timing.finish_s) == float(predicted)
            trace = simulate(schedule, machine)
            assert (trace.finish, trace.finish_s) == (timing.finish, timing.finish_s), where
            assert sorted(trace.transfers) == sorted(timing.transfers), where
            assert sorted(trace.timing.combines) == sorted(timing.combines), where
            check_ports(schedule, timing, machine)
        bounds = schedule.problem.lower_bounds(machine)
        assert predicted >= bounds[not algorithm.segmented].time, where
        if algorithm.time == "T_λ(p)·t0" and not other and not machine.shares_memory:
            assert predicted == postal.broadcast_time(p, cost.lam) * cost.gap, where


def check_rows(schedule: Schedule) -> None:
    """Rows made of arrays, and of ranks that stand for others, are those of every rank's list."""
    program, p = schedule.program, schedule.ranks
    lists = program.every(p)
    for combining in (False, True):
        made = [program.rows(combines=combining)]
        if combines(schedule.problem) and (classes := program.classes()):
            made.append(of_classes(classes, program.operations, combines=combining))
        expected = told(of_lists(lists, combines=combining))
        assert all(told(rows) == expected for rows in made if rows), schedule.problem


@pytest.mark.no_cover
@each
def test_every_length_and_root_of_few_ranks(algorithm: Algorithm) -> None:
    """On 5 to 7 ranks a third of them."""
    for p in range(1, 8):
        with in_case(p, "ranks"):
            check_every_length_and_root(algorithm, p)


def check_every_length_and_root(algorithm: Algorithm, p: int) -> None:
    for place, (count, root) in enumerate(product(lengths(p), roots(algorithm, p))):
        if p > 4 and (place + p) % 3:
            continue
        item = (1, 16)[(place + p) % 2] if combines(algorithm) else 1
        nbytes = fitting(algorithm, p, count * item, item)
        cuts = segmentings(algorithm, p, nbytes, p + nbytes)
        for settings in cuts if root == 0 else cuts[place % len(cuts) :][:1]:
            more = {**sources_for(algorithm, p), **settings.of(algorithm)}
            schedule = algorithm.schedule(p, nbytes, root, itemsize=item, **more)
            check_flow(schedule)
            assert any(schedule.lists) == (nbytes > 0 and (p > 1 or combines(algorithm)))


@pytest.mark.no_cover
def test_the_sample_has_every_kind_of_case() -> None:
    """Every p; for every algorithm each root, item, machine, segmenting."""
    ranks = {case.p for name in ALGORITHMS for case in sample(name)}
    assert ranks == set(range(1, MAX_RANKS + 1))
    for algorithm in ALGORITHMS.values():
        big = [case for case in sample(algorithm.name) if case.p > 4]
        assert max(case.p for case in big) > 30
        kinds = {roots(algorithm, case.p).index(case.root) for case in big}
        assert kinds == set(range(len(roots(algorithm, 9))))
        assert {case.exactly for case in big} == {True, False}
        assert {machine for case in big for machine in case.machines} == set(EVERY_LAW)
        assert any(case.count < case.p for case in big)
        assert any(case.count % case.p for case in big if case.count > case.p)
        if combines(algorithm):
            assert {case.item for case in big} == set(ITEM_SIZES)
        if "segment" in algorithm.parameters:
            counts = {-(-case.nbytes // case.settings(LATENCIES[0])["segment"]) for case in big}
            assert counts >= set(SEGMENTS)
            rests = {case.nbytes % case.settings(LATENCIES[0])["segment"] > 0 for case in big}
            assert rests == {True, False}


# --- the order in which contributions are combined ---


@pytest.mark.no_cover
@pytest.mark.parametrize(
    "algorithm", [a for a in ALGORITHMS.values() if combines(a)], ids=lambda a: a.name
)
def test_the_declared_order_is_the_best(algorithm: Algorithm) -> None:
    """What is declared is proved with everything above; no stronger order is kept anywhere."""
    for p in (2, 3, 4, 7, 8):
        for root in roots(algorithm, p):
            settings = Settings(p, 4 * p, 1, True, Fraction(2), p).of(algorithm)
            schedule = algorithm.schedule(p, 4 * p, root, itemsize=4, **settings)
            declared = schedule.problem.order
            assert declared == algorithm.order(schedule.problem)
            for weaker in ORDERS[: ORDERS.index(declared) + 1]:
                asked = algorithm.schedule(p, 4 * p, root, itemsize=4, order=weaker, **settings)
                assert asked.problem.order == weaker
                assert asked.lists == schedule.lists
                check_flow(asked)
            for stronger in ORDERS[ORDERS.index(declared) + 1 :]:
                if algorithm.order(replace(schedule.problem, order=stronger)) == stronger:
                    continue  # settings decide: see test_fixed_order
                with pytest.raises(InvalidArgument) as caught:
                    algorithm.schedule(p, 4 * p, root, itemsize=4, order=stronger, **settings)
                assert str(caught.value) == (
                    f"{algorithm.name} in the order {stronger!r}: it combines in the order "
                    f"{declared!r}; choose an algorithm that keeps the order, or an operator that "
                    "does not need it"
                )
                if stronger == "fixed" and declared == "rank":
                    continue  # some p have few brackets: see test_fixed_order
                stricter = replace(schedule.problem, order=stronger)
                with pytest.raises(InvalidSchedule, match="order"):
                    check_flow(replace(schedule, problem=stricter))


# --- everything ---


def whole_product(algorithm: Algorithm, p: int) -> Iterator[tuple[int, int, int, Settings]]:
    """Every length, item, root and way to cut a message into segments, each but once."""
    for number, count in enumerate(lengths(p)):
        item = ITEM_SIZES[(p + number) % len(ITEM_SIZES)] if combines(algorithm) else 1
        nbytes = fitting(algorithm, p, count * item, item)
        cuts = segmentings(algorithm, p, nbytes, p)
        for root, settings in product(roots(algorithm, p), cuts):
            yield nbytes, item, root, settings


BLOCKS = [range(first, min(first + 10, MAX_RANKS + 1)) for first in range(1, MAX_RANKS + 1, 10)]
"""Numbers of ranks: thousands of tests would take each run long to collect."""
in_blocks = pytest.mark.parametrize("block", BLOCKS, ids=lambda ps: f"{ps[0]}-{ps[-1]}")


@pytest.mark.exhaustive
@in_blocks
@each
def test_everything(algorithm: Algorithm, block: range) -> None:
    """Every size, root and segmenting is right; for root 0, every machine's time is predicted."""
    for p in block:
        check_everything(algorithm, p)


def check_everything(algorithm: Algorithm, p: int) -> None:
    for nbytes, item, root, settings in whole_product(algorithm, p):
        sources = sources_for(algorithm, p)
        schedule = algorithm.schedule(
            p, nbytes, root, itemsize=item, **sources, **settings.of(algorithm)
        )
        check_flow(schedule)
        if root:
            continue
        for machine in EVERY_LAW:
            if machine.ports_block and schedule.program.needs_posted_receives:
                continue
            more = {**sources, **settings.of(algorithm, lam=machine.message(nbytes).lam)}
            if "lam" in more:
                schedule = algorithm.schedule(p, nbytes, root, itemsize=item, **more)
            predicted = algorithm.predict(machine, p, nbytes, root, itemsize=item, **more)
            timing = ideal(written_out(schedule), machine)
            assert predicted == timing.completion, machine.describe()
            if machine in (MACHINES[2], *MACHINES[-3:]):
                check_ports(schedule, timing, machine)


@pytest.mark.exhaustive
@in_blocks
@pytest.mark.parametrize(
    "algorithm",
    [a for a in ALGORITHMS.values() if combines(a) and a.parameters],
    ids=lambda a: a.name,
)
def test_everything_for_all_settings(algorithm: Algorithm, block: range) -> None:
    """Every λ that the papers name, every radix, and strategies of every number of halvings."""
    for p in block:
        check_all_settings(algorithm, p)


def check_all_settings(algorithm: Algorithm, p: int) -> None:
    d = cube_dimension(p)
    for lam in [*LATENCIES, Fraction(3), Fraction(7)]:
        for k in range(2, 9) if "radix" in algorithm.parameters else [2]:
            settings = Settings(p, 4 * p, 1, True, lam, k)
            for halvings in range(d + 1) if "strategy" in algorithm.parameters else [0]:
                strategy = (0,) * (d - halvings) + (1,) * halvings
                chosen = settings.of(algorithm, radix=k, strategy=strategy)
                nbytes, root = fitting(algorithm, p, 4 * (p - 1), 4), root_of(algorithm, p // 2)
                schedule = algorithm.schedule(p, nbytes, root, itemsize=4, **chosen)
                check_flow(schedule)
        if "lam" not in algorithm.parameters:
            break
