"""Reduces and allreduces: the papers' closed forms, claims and counts, on schedules as they run."""

from fractions import Fraction
from itertools import product
from math import ceil, floor, log2
from random import Random
from typing import Any

import pytest

from collwise.algorithms import ALGORITHMS
from collwise.algorithms.exchanges import best_strategy, by_strategy, cube_dimension, multiplied
from collwise.algorithms.reduce import segmented
from collwise.algorithms.search import program_time, settings_to_try
from collwise.errors import InvalidArgument
from collwise.model import hybrid, postal
from collwise.model.machine import Hockney, Machine
from collwise.schedule.exchange import Exchange, Stage
from collwise.schedule.operations import Send, size_of
from collwise.schedule.problem import Problem
from collwise.schedule.program import Schedule
from collwise.timing import ideal
from collwise.verifier import verify
from tests.algorithms.examples import LATENCIES, MACHINES

F = Fraction
ITEM = 4
LOGGP = Machine.loggp(L_s=1e-5, o_s=2e-6, g_s=3e-6, G_s=1e-9)
NUMBERS = [*range(1, 35), *range(35, 131, 6)]
"""Of ranks, where formulas are compared."""


class Cube:
    """van de Geijn's machine: α, β and γ per item of 4 bytes."""

    def __init__(self, seed: int) -> None:
        random = Random(seed)
        self.law = tuple(F(random.randrange(1, 2000), random.randrange(1, 40)) for _ in range(3))
        if seed % 4 == 1:
            self.law = (*self.law[:2], F(0))

    def machine(self, *, exchange_only: bool = False) -> Hockney:
        alpha, beta, gamma = self.law
        return Machine.hockney(
            alpha_s=alpha, beta_s=beta / ITEM, gamma_s=gamma / ITEM, exchange_only=exchange_only
        )

    def cost(self, items: int) -> Fraction:
        """Of a message."""
        return self.law[0] + items * self.law[1]

    def combine(self, items: int) -> Fraction:
        return items * self.law[2]


def time(
    name: str, machine: Machine, p: int, count: int, root: int = 0, /, **given: Any
) -> Fraction:
    """The ideal time of a schedule, equal to what is predicted."""
    algorithm = ALGORITHMS[name]
    schedule = algorithm.schedule(p, count * ITEM, root, itemsize=ITEM, **given)
    timing = ideal(schedule, machine)
    predicted = algorithm.predict(machine, p, count * ITEM, root, itemsize=ITEM, **given)
    assert predicted == timing.completion
    return timing.completion


# --- van de Geijn ---


@pytest.mark.no_cover
@pytest.mark.parametrize("d", range(5))
def test_g4_g6_every_strategy_takes_the_time_of_the_recursion(d: int) -> None:
    """For any length, if a rank has one partner at a time; if lengths divide, in any case."""
    every = product(product((0, 1), repeat=d), (2**d, 1, 3, 13))
    for seed, (strategy, n) in enumerate(every):
        cube = Cube(seed)
        for name in ("allreduce/hybrid", "reduce/hybrid"):
            to_root = name == "reduce/hybrid"
            expected = hybrid.time_for(strategy, cube.cost, cube.combine, n, to_root=to_root)
            one_partner = cube.machine(exchange_only=True)
            assert time(name, one_partner, 2**d, n, strategy=strategy) == expected
            if n == 2**d:
                assert expected == hybrid.time(strategy, n, *cube.law)
                assert time(name, cube.machine(), 2**d, n, strategy=strategy) == expected


def test_g_c3_the_strategy_that_is_chosen_is_theorem_1s() -> None:
    kinds = set()
    for seed in range(18):
        cube, d = Cube(seed), 1 + seed % 6
        for parts in (1, 20, 3000):
            n = parts * 2**d
            for collective in ("reduce", "allreduce"):
                problem = Problem(collective, 2**d, n * ITEM, itemsize=ITEM)
                chosen = best_strategy(problem, cube.machine())
                assert chosen == hybrid.best(n, d, *cube.law)
                kinds.add(sum(chosen))
                algorithm = ALGORITHMS[f"{collective}/hybrid"]
                assert settings_to_try(algorithm, problem, cube.machine()) == [{"strategy": chosen}]
    assert kinds == set(range(7))


def test_the_strategy_is_for_the_largest_cube() -> None:
    for p in range(1, 70):
        problem = Problem("allreduce", p, 64)
        assert len(best_strategy(problem, Cube(3).machine())) == cube_dimension(p) == floor(log2(p))


@pytest.mark.parametrize("n", [1, 25, 64, 87, 500, 4096])
def test_g_c5_the_hybrid_is_never_above_either(n: int) -> None:
    """d = 6, α = 525 µs, β = 2 µs, γ = 0.35 µs an item: for any n, divisible or not."""
    machine = Machine.hockney(alpha_s="525e-6", beta_s="5e-7", gamma_s="8.75e-8")
    strategy = best_strategy(Problem("allreduce", 64, n * ITEM, itemsize=ITEM), machine)
    best = time("allreduce/hybrid", machine, 64, n, strategy=strategy)
    others = [
        time(f"allreduce/{name}", machine, 64, n)
        for name in ("recursive_doubling", "halving_doubling")
    ]
    assert best <= min(others) < time("allreduce/reduce_broadcast", machine, 64, n)


def sends(schedule: Schedule) -> list[list[int]]:
    """The bytes of every message that each rank sends."""
    return [[size_of(op) for op in ops if isinstance(op, Send)] for ops in schedule.lists]


def test_g6_messages_of_halving_and_gathering() -> None:
    """d·2^d halves, and 2^d − 1 in the gather, to which only those send with low bits 0."""
    for d in range(1, 7):
        schedule = ALGORITHMS["reduce/halving_gather"].schedule(2**d, 2**d * ITEM, itemsize=ITEM)
        counts = [len(sent) for sent in sends(schedule)]
        assert sum(counts) == d * 2**d + 2**d - 1
        assert counts[0] == d
    whole = ALGORITHMS["reduce/hybrid"].schedule(8, 8, strategy=(0, 0, 0))
    assert [len(sent) for sent in sends(whole)] == [0] + [1] * 7, "a tree"


# --- the postal model ---


@pytest.mark.no_cover
@pytest.mark.parametrize("lam", [*map(F, ("1", "3/2", "9/5", "2", "5/2", "7"))], ids=str)
def test_censuses_and_time_reversed_trees_take_the_times_of_the_model(lam: Fraction) -> None:
    """Which tests/model compares with the paper's: a census is optimal for an integer λ."""
    machine = Machine.postal(t0_s="1/1000", lam=lam)
    for p in NUMBERS:
        least = postal.broadcast_time(p, lam) / 1000
        for name, k in (("delay_receive", ceil(lam)), ("delay_send", floor(lam))):
            census = ALGORITHMS[f"allreduce/census_{name}"]
            time = postal.census_time(p, k, lam) / 1000
            assert census.predict(machine, p, 8, lam=lam) == time >= least
        tree = ALGORITHMS["reduce/postal_tree"]
        assert {tree.predict(machine, p, 8, root, lam=lam) for root in (0, p - 1)} == {least}
        both = ALGORITHMS["allreduce/postal_reduce_broadcast"]
        assert both.predict(machine, p, 8, lam=lam) == 2 * least


@pytest.mark.parametrize("lam", LATENCIES, ids=str)
def test_the_times_in_words(lam: Fraction) -> None:
    """The formula of every algorithm that has one, in t0."""
    machine = Machine.postal(t0_s=1, lam=lam)
    for p in (2, 3, 7, 18):
        assert time("reduce/flat", machine, p, 2, p // 3) == p - 2 + lam
        assert time("allreduce/gather_combine", machine, p, 2) == p - 2 + lam
        broadcast = ALGORITHMS["broadcast/binomial"].predict(machine, p, 8)
        assert time("reduce/binomial", machine, p, 2, p - 1) == broadcast
        assert time("allreduce/reduce_broadcast", machine, p, 2) == 2 * broadcast
        assert time("allreduce/ring", machine, p, p) == 2 * (p - 1) * lam
        assert time("reduce_scatter_block/pairwise", machine, p, p) == p - 2 + lam
    for p, root in ((9, 0), (9, 1), (20, 7), (64, 32), (64, 63)):
        two = postal.broadcast_time(p - root, lam)
        if root:
            two = max(two, postal.broadcast_time(root, lam) + lam)
        spent = time("reduce/in_order", machine, p, 2, root, lam=lam)
        assert two <= spent <= two + 1
        assert spent == two or root
    for k, r in ((2, 5), (3, 3), (4, 2), (5, 1)):
        spent = time("allreduce/recursive_multiplying", machine, k**r, 2, radix=k)
        assert spent == r * (k - 2 + lam)


def test_the_times_in_words_where_combining_takes_time() -> None:
    """On a Hockney machine: α = 7, β = 1/3 and γ = 1/5 a byte."""
    alpha, beta, gamma = F(7), F(1, 3), F(1, 5)
    machine = Machine.hockney(alpha_s=alpha, beta_s=beta, gamma_s=gamma)
    for p in (2, 3, 5, 8, 12, 17):
        n, d = 4 * p * 3, ceil(log2(p))
        moved = F(p - 1, p) * n * (2 * beta + gamma)
        ring = 2 * (p - 1) * (alpha + F(n, p) * beta) + F(p - 1, p) * n * gamma
        assert time("allreduce/ring", machine, p, n // 4) == ring
        assert time("allreduce/circulant", machine, p, n // 4) == 2 * d * alpha + moved
        half = F(p - 1, p) * n * (beta + gamma)
        assert time("reduce_scatter_block/ring", machine, p, n // 4) == (p - 1) * alpha + half
        assert time("reduce_scatter_block/circulant", machine, p, n // 4) == d * alpha + half
        if p == 2**d:
            halving = time("reduce_scatter_block/recursive_halving", machine, p, n // 4)
            assert halving == d * alpha + half


# --- Träff's circulant ---


def test_traeffs_circulant_in_rounds() -> None:
    """At most 2⌈log2 p⌉ messages of every rank, and no byte more than has to be."""
    for p, count in product((*range(2, 34), 63, 64, 65, 129), (1, None, 1000)):
        nbytes = (count or p) * ITEM
        schedule = ALGORITHMS["allreduce/circulant"].schedule(p, nbytes, itemsize=ITEM)
        for rank in (0, 1, p // 2, p - 1):
            sent = [size_of(op) for op in schedule.rank(rank) if isinstance(op, Send)]
            assert len(sent) <= 2 * ceil(log2(p))
            if count is None:  # a block for each rank
                assert len(sent) == 2 * ceil(log2(p))
                assert sum(sent) == 2 * (p - 1) * ITEM


@pytest.mark.parametrize("d", [1, 3, 5])
def test_of_a_cube_it_takes_the_time_of_halving_and_doubling(d: int) -> None:
    cube, p = Cube(d), 2**d
    for count in (p, 5 * p):
        algorithms = (ALGORITHMS[f"allreduce/{name}"] for name in ("circulant", "halving_doubling"))
        times = {a.predict(cube.machine(), p, count * ITEM, itemsize=ITEM) for a in algorithms}
        assert times == {hybrid.version3(count, d, *cube.law)}


# --- groups ---


def test_recursive_multiplying_by_2_is_recursive_doubling() -> None:
    for p in range(1, 40):
        both = (
            ALGORITHMS["allreduce/recursive_multiplying"].schedule(p, 8, radix=2),
            ALGORITHMS["allreduce/recursive_doubling"].schedule(p, 8),
        )
        assert both[0].lists == both[1].lists


def test_groups_leave_less_than_half_of_the_ranks_over() -> None:
    for radix, p in product((2, 3, 5, 16), range(1, 300)):
        groups = multiplied(Problem("allreduce", p, 8), {"radix": radix})
        exchange = Exchange(Problem("allreduce", p, 8), groups)
        assert 0 <= 2 * exchange.extra < max(p, 1)
        assert all(2 <= group.radix <= radix and not group.divided for group in groups)


STAGES = [
    by_strategy(Problem("allreduce", 8, 8, itemsize=8), {"strategy": (1, 0, 1)}),
    (Stage(3, True), Stage(2, False), Stage(2, True)),
    (Stage(5, True), Stage(3, True)),
    (Stage(2, False), Stage(4, True)),
]


@pytest.mark.no_cover
@pytest.mark.parametrize("parts", STAGES, ids=lambda s: " ".join(map(str, s)))
def test_groups_of_any_size_whole_or_divided(parts: tuple[Stage, ...]) -> None:
    """More than the registry makes of it: any radices, any ranks left over, any root."""
    core = 1
    for stage in parts:
        core *= stage.radix
    for extra, collective in product((0, 1, core // 2), ("allreduce", "reduce")):
        for count, root in ((1, 0), (7, 0), (core, core // 2), (100, 3)):
            if collective == "allreduce":
                root = 0
            problem = Problem(collective, core + extra, 8 * count, root, 8, "rank")
            verify(Schedule(problem, Exchange(problem, parts)))


# --- choices ---


@pytest.mark.no_cover
@pytest.mark.parametrize("machine", [MACHINES[0], *MACHINES[-3:], LOGGP], ids=str)
def test_segments_are_chosen_as_if_all_were_played(machine: Machine) -> None:
    """Those after the first few follow at their pace."""
    for name, p, count in product(("chain", "postal_tree"), (2, 3, 5), (3, 40)):
        algorithm = ALGORITHMS[f"reduce/{name}_segmented"]
        problem = Problem("reduce", p, count * ITEM, p - 1, ITEM)
        [chosen] = settings_to_try(algorithm, problem, machine)
        times = []
        for number in (n for n in segmented.COUNTS if n <= count):
            settings = {**chosen, "segment": -(-count // number) * ITEM}
            program = algorithm.build(problem, settings)
            times.append((program_time(problem, program, machine), number, settings))
        assert chosen == min(times, key=lambda row: row[:2])[2]


def test_long_chains_are_no_deep_recursion() -> None:
    """Planning a reduce ended in a RecursionError from 255 ranks on."""
    algorithm = ALGORITHMS["reduce/chain_segmented"]
    problem = Problem("reduce", 2000, 80, 0, 8)
    assert list(settings_to_try(algorithm, problem, MACHINES[0])) != []


def test_where_an_algorithm_does_not_apply() -> None:
    machine = MACHINES[0]
    for name, most in (("allreduce/ring", 1024), ("allreduce/gather_combine", 64)):
        algorithm = ALGORITHMS[name]
        assert list(settings_to_try(algorithm, Problem("allreduce", most, 1 << 20), machine)) == [
            {}
        ]
        assert not list(
            settings_to_try(algorithm, Problem("allreduce", most + 1, 1 << 20), machine)
        )


# --- groups of any size ---


def test_stages_must_take_in_half_of_the_ranks() -> None:
    mixed = ALGORITHMS["allreduce/mixed_radix"]
    with pytest.raises(InvalidArgument) as caught:
        mixed.schedule(9, 64, itemsize=8, stages="2 2").rank(0)
    assert str(caught.value) == ("allreduce on 9 ranks: the stages 2 2 are for 4 to 8; give others")


def test_large_groups_where_latency_is_high() -> None:
    """100 ranks, λ = 20: two stages of ten, not seven of two; of two ranks, one of both."""
    mixed = ALGORITHMS["allreduce/mixed_radix"]
    high = Machine.postal(t0_s=1, lam=20)
    (settings,) = settings_to_try(mixed, mixed.problem(100, 80, itemsize=8), high)
    assert settings == {"stages": "10 10"}
    assert mixed.predict(high, 100, 80, itemsize=8, **settings) == 2 * (8 + 20)
    (settings,) = settings_to_try(mixed, mixed.problem(2, 80, itemsize=8), high)
    assert mixed.predict(high, 2, 80, itemsize=8, **settings) == 20
