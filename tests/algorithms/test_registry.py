"""The registry: what an algorithm has to say of itself, and what it refuses."""

import re
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest

from collwise.algorithms import ALGORITHMS, Algorithm, registry
from collwise.algorithms.registry import (
    algorithms_for,
    collectives,
    describe,
    find,
    fraction,
    integer,
    register,
)
from collwise.algorithms.search import settings_to_try
from collwise.errors import BeyondLimits, CollwiseError, InvalidArgument, UnknownName
from collwise.model.machine import Machine
from collwise.model.placement import Placement
from collwise.schedule.problem import Problem
from collwise.timing import ideal
from collwise.verifier import verify
from tests.algorithms.examples import (
    MACHINES,
    fitting,
    root_of,
    settings_of,
    sources_for,
)
from tests.case import in_case

each = pytest.mark.parametrize("algorithm", ALGORITHMS.values(), ids=lambda a: a.name)
POSTAL = Machine.postal(t0_s=1, lam=2)


def some() -> list[Algorithm]:
    """The first of every collective, and the first with every parameter: all share the rest."""
    chosen: dict[Any, str] = {}
    for algorithm in ALGORITHMS.values():
        parameters = [(name, one.meaning) for name, one in algorithm.parameters.items()]
        for what in (algorithm.collective, *parameters):
            chosen.setdefault(what, algorithm.name)
    return [ALGORITHMS[name] for name in sorted(set(chosen.values()))]


of_some = pytest.mark.parametrize("algorithm", some(), ids=lambda a: a.name)


@each
def test_an_algorithm_tells_of_itself(algorithm: Algorithm) -> None:
    assert ALGORITHMS[algorithm.name] is algorithm
    assert algorithm.name == f"{algorithm.collective}/{algorithm.short_name}"
    assert re.fullmatch(r"[a-z_]+/[a-z_]+", algorithm.name)
    assert algorithm.summary
    assert "\n" not in algorithm.summary
    assert algorithm.time
    assert algorithm.source
    assert all(parameter.meaning for parameter in algorithm.parameters.values())
    root, settings = root_of(algorithm, 1), settings_of(algorithm, 5)
    given = sources_for(algorithm, 5)
    if algorithm.levels:
        given["placement"] = Placement.of([0, 0, 1, 0, 2])
    schedule = algorithm.schedule(5, 1000, root, itemsize=8, **given, **settings)
    problem = schedule.problem
    order = algorithm.order(problem) if algorithm.kind.combines else "any"
    assert problem == Problem.of(
        algorithm.collective, 5, 1000, root, itemsize=8, order=order, **given
    )
    assert schedule.algorithm == describe(algorithm.name, algorithm.settings(settings))


def test_labels() -> None:
    assert describe("broadcast/chain", {}) == "broadcast/chain"
    assert describe("a/b", {"lam": Fraction(9, 5), "segment": 7}) == "a/b(lam=9/5, segment=7)"


def test_names_are_found() -> None:
    for algorithm in ALGORITHMS.values():
        assert find(algorithm.name) is algorithm
        assert find(algorithm.short_name, algorithm.collective) is algorithm
        assert find(algorithm.name, algorithm.collective) is algorithm
    for collective in collectives():
        assert all(a.collective == collective for a in algorithms_for(collective))
    assert sum(len(algorithms_for(c)) for c in collectives()) == len(ALGORITHMS)


@pytest.mark.parametrize(
    ("name", "collective", "asked", "remedy"),
    [
        ("broadcast/postal_three", None, "algorithm 'broadcast/postal_three'", "postal_tree"),
        (
            "binominal",
            "broadcast",
            "broadcast algorithm 'binominal'",
            "did you mean broadcast/binomial",
        ),
        ("chain", None, "algorithm 'chain'", "did you mean broadcast/chain, "),
        ("chain", "braodcast", "collective 'braodcast'", "did you mean broadcast"),
        ("broadcast/chain", "reduction", "collective 'reduction'", "did you mean reduce, allred"),
        ("broadcast/chain", "sorting", "collective 'sorting'", "allreduce, bcast, broadcast"),
        ("quicksort", "broadcast", "broadcast algorithm 'quicksort'", "known: broadcast/"),
        ("", None, "algorithm ''", "known: "),
    ],
)
def test_names_that_are_none(name: str, collective: str | None, asked: str, remedy: str) -> None:
    with pytest.raises(UnknownName) as caught:
        find(name, collective)
    assert (caught.value.asked, caught.value.seen) == (asked, "there is none")
    assert remedy in caught.value.remedy


def test_every_name_is_new() -> None:
    with pytest.raises(ValueError, match="two algorithms are named"):
        register(next(iter(ALGORITHMS.values())))


PROBLEMS_THAT_ARE_NONE: list[tuple[tuple[Any, ...], str]] = [
    ((0, 8), "broadcast over `ranks`: ranks = 0; give an integer of at least 1"),
    ((4, -1), "broadcast of `nbytes`: nbytes = -1; give an integer of at least 0"),
    ((4, 8, 4), "broadcast from root 4: it has 4 ranks; give a root from 0 to 3"),
    ((4, 8, -1), "broadcast from `root`: root = -1; give an integer of at least 0"),
    ((4.5, 8), "broadcast over `ranks`: ranks = 4.5; give an integer of at least 1"),
]


@of_some
def test_problems_that_are_none(algorithm: Algorithm) -> None:
    more = {**sources_for(algorithm, 4), **settings_of(algorithm, 4)}
    for arguments, broadcast in PROBLEMS_THAT_ARE_NONE:
        text = broadcast.replace("broadcast", algorithm.collective)
        if algorithm.kind.has_sources:  # the bytes of every source
            text = text.replace("of `nbytes`", "over 4 ranks, of `nbytes`")
        for call in (algorithm.schedule, partial(algorithm.predict, POSTAL)):
            with in_case(arguments), pytest.raises(InvalidArgument) as caught:
                call(*arguments, **more)
            assert str(caught.value) == text


@of_some
def test_settings_that_are_none(algorithm: Algorithm) -> None:
    """They are read even where they could not matter."""
    for ranks, nbytes in ((5, 40), (1, 8), (5, 0)):
        check_settings_that_are_none(algorithm, ranks, nbytes)


def check_settings_that_are_none(algorithm: Algorithm, ranks: int, nbytes: int) -> None:
    good = settings_of(algorithm, ranks)
    takes = ", ".join(good) or "none"
    odd = {**good, "speed": 3}
    cases = [(odd, f"{algorithm.name} with speed: it has no such parameter; it takes {takes}")]
    for name in good:
        lacking = {key: value for key, value in good.items() if key != name}
        meaning = algorithm.parameters[name].meaning
        text = f"{algorithm.name} without {name}: nothing says which to use; give {name}: {meaning}"
        cases.append((lacking, text))
    sources = sources_for(algorithm, ranks)
    for settings, text in cases:
        for call in (algorithm.schedule, partial(algorithm.predict, POSTAL)):
            with in_case(ranks, nbytes, settings), pytest.raises(InvalidArgument) as caught:
                call(ranks, nbytes, **sources, **settings)
            assert str(caught.value) == text


BAD: dict[str, list[Any]] = {
    "segment": [0, -1, 1.5, "100", None, True],
    "k": [1, 0, -3, 2.0, None, True],
    "pieces": [0, -3, 2.0, None, True],
    "latency": [0, -3, 2.0, None, True],
    "stages": [5, None, "", "1d", "2 x", "0", "d"],
    "lam": [0, 0.0009, "1/1025", -1, float("nan"), None, "much"],
    "alpha": [0.49, 1, "5/4", 0, -1, float("inf"), None],
    "radix": [1, 0, -3, 2.0, None, True],
    **{
        name: [3, None, "", "3x"]
        for name in ("algorithms", "trees", "reduces", "broadcasts", "inside")
    },
    **{
        name: [3, None, "", "3x", "ring | ring"]
        for name in ("algorithm", "across", "exchange", "gather")
    },
    "latencies": [3, None, "", "0 4", "4 x"],
    "costs": [3, None, "", "1,0", "1,2,3,4", "a,b"],
    "strategy": [5, None, (0, 2), "0x", ("a", 1), (None, 1)],
}


@of_some
def test_values_that_are_none(algorithm: Algorithm) -> None:
    for name in algorithm.parameters:
        for value in BAD[name]:
            with pytest.raises(InvalidArgument) as caught:
                algorithm.schedule(
                    4, 8, **sources_for(algorithm, 4), **{**settings_of(algorithm, 4), name: value}
                )
            assert name in caught.value.asked
            if name != "strategy":
                assert str(value).strip("'") in caught.value.seen
            assert caught.value.remedy


ITEM = 4
LOGGP = Machine.loggp(L_s=1e-5, o_s=2e-6, g_s=3e-6, G_s=1e-9)


def cases(algorithm: Algorithm) -> Iterator[tuple[Machine, int, int]]:
    """A fourteenth of a product, another one for each algorithm."""
    every = product([MACHINES[2], *MACHINES[-3:], LOGGP], (1, 2, 3, 8, 13), (0, 1, 90, 2000))
    place = [*ALGORITHMS].index(algorithm.name)
    return (case for number, case in enumerate(every) if (number + place) % 14 == 0)


@pytest.mark.no_cover
@pytest.mark.parametrize(
    "algorithm", [a for a in ALGORITHMS.values() if not a.levels], ids=lambda a: a.name
)
def test_what_it_would_choose_is_right(algorithm: Algorithm) -> None:
    """Settings that the algorithm proposes for a machine: valid, timed exactly, verified."""
    for machine, p, count in cases(algorithm):
        root, item = root_of(algorithm, p - 1), ITEM if algorithm.kind.combines else 1
        nbytes = fitting(algorithm, p, count * ITEM, item)
        given: dict[str, Any] = {"itemsize": item, **sources_for(algorithm, p)}
        problem = algorithm.problem(p, nbytes, root, **given)
        for settings in settings_to_try(algorithm, problem, machine):
            schedule = algorithm.schedule(p, nbytes, root, **given, **settings)
            if count < 100 or not algorithm.kind.combines:
                verify(schedule, machine)
            predicted = algorithm.predict(machine, p, nbytes, root, **given, **settings)
            assert predicted == ideal(schedule, machine).completion


def test_what_would_take_minutes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "MAX_PLAYED", 1000)
    down, up = (ALGORITHMS[f"{name}/chain_segmented"] for name in ("broadcast", "reduce"))
    assert down.predict(POSTAL, 500, 8000, segment=8) == 2 * (500 - 1) + 1000 - 1
    with pytest.raises(BeyondLimits) as caught:
        up.predict(POSTAL, 101, 100, segment=10)
    assert str(caught.value) == (
        "the time of reduce/chain_segmented(segment=10): about 1,515 messages would have to be "
        "simulated for it; choose fewer ranks, larger segments or another algorithm"
    )


def test_a_prediction_of_earlier_versions_is_ignored() -> None:
    chain = ALGORITHMS["broadcast/chain"]
    given: dict[str, Any] = {"summary": "s", "source": (), "time": "t", "build": chain.build}
    with pytest.warns(DeprecationWarning, match="broadcast/mine: predicted= is ignored; the time"):
        mine = Algorithm(name="broadcast/mine", predicted=lambda *_: 0, **given)
    assert mine.predict(POSTAL, 4, 8) == chain.predict(POSTAL, 4, 8) == 6


@pytest.mark.no_cover
@of_some
def test_numpys_integers_will_do(algorithm: Algorithm) -> None:
    plain = {**sources_for(algorithm, 9), **settings_of(algorithm, 9)}
    root = root_of(algorithm, 2)
    odd = {k: np.array(v) if isinstance(v, tuple | list) else v for k, v in plain.items()}
    odd = {k: np.int64(v) if isinstance(v, int) else v for k, v in odd.items()}
    args = np.int64(9), np.int64(1008), np.int64(root)
    schedule = algorithm.schedule(*args, itemsize=np.int64(4), **odd)  # type: ignore[arg-type]
    assert schedule.lists == algorithm.schedule(9, 1008, root, itemsize=4, **plain).lists
    blocks = [block for ops in schedule.lists for op in ops for block in op.blocks]
    assert {type(number) for block in blocks for number in block} == {int}
    time = algorithm.predict(POSTAL, *args, itemsize=np.int64(4), **odd)  # type: ignore[arg-type]
    assert time == algorithm.predict(POSTAL, 9, 1008, root, itemsize=4, **plain)


def test_parameters() -> None:
    number = fraction("share", Fraction(1, 2), Fraction(1), "a share in [1/2, 1)")
    assert number.read("0.5") == number.read(0.5) == Fraction(1, 2)
    for value in (1, "1/3"):
        with pytest.raises(InvalidArgument, match=r"share: it is .*; give a share in \[1/2, 1\)"):
            number.read(value)
    assert fraction("size", Fraction(1), None, "more").read(10**30) == 10**30
    count = integer("count", 3, "at least 3")
    assert count.read(3) == 3
    for bad in (2, 3.0, "3", True):
        with pytest.raises(InvalidArgument, match=r"count: it is .*; give at least 3"):
            count.read(bad)


@of_some
def test_every_error_is_ours(algorithm: Algorithm) -> None:
    """Odd things of odd types: a CollwiseError, never a bare TypeError from deep inside."""
    settings = settings_of(algorithm, 4)
    good = {**sources_for(algorithm, 4), **settings}
    for odd in (None, "x", [], 1j, object()):
        for arguments in ((odd, 8, 0), (4, odd, 0), (4, 8, odd)):
            with pytest.raises(CollwiseError):
                algorithm.schedule(*arguments, **good)
        with pytest.raises(CollwiseError):
            algorithm.schedule(4, 8, itemsize=odd, **good)  # type: ignore[arg-type]
        order: Any = "odd" if odd is None else odd
        with pytest.raises(
            UnknownName, match=r"order .*: there is none; known: any, fixed, rank, same"
        ):
            algorithm.schedule(4, 8, order=order, **good)
        for name in algorithm.parameters:
            with pytest.raises(CollwiseError):
                algorithm.schedule(4, 8, **{**good, name: odd})
        for name in ("sources", "shape"):
            if odd is not None or (name == "sources" and algorithm.kind.has_sources):
                with pytest.raises(CollwiseError):
                    algorithm.schedule(4, 8, **{**good, name: odd})


@of_some
def test_elements_that_do_not_fit(algorithm: Algorithm) -> None:
    one: dict[str, Any] = {name: [2] for name in sources_for(algorithm, 4)}
    with pytest.raises(InvalidArgument) as caught:
        algorithm.schedule(4, 10, itemsize=4, **one, **settings_of(algorithm, 4))
    assert str(caught.value) == (
        f"{algorithm.collective} of elements of 4 bytes: nbytes = 10, which is no multiple; "
        "give the bytes of whole elements"
    )


@pytest.mark.parametrize(
    "algorithm", [a for a in some() if not a.kind.rooted], ids=lambda a: a.name
)
def test_where_there_is_no_root(algorithm: Algorithm) -> None:
    with pytest.raises(InvalidArgument, match=r"with root 1: it has no root: .*; leave the root"):
        algorithm.schedule(4, 8, 1, **sources_for(algorithm, 4), **settings_of(algorithm, 4))


@pytest.mark.parametrize(
    "algorithm",
    [a for a in ALGORITHMS.values() if "strategy" in a.parameters],
    ids=lambda a: a.name,
)
def test_a_strategy_for_another_cube(algorithm: Algorithm) -> None:
    cases: list[tuple[int, Any]] = [(4, (1,)), (7, ()), (1, (1,)), (2, "01")]
    for ranks, strategy in cases:
        d = ranks.bit_length() - 1
        for nbytes in (0, 8):
            with pytest.raises(InvalidArgument) as caught:
                algorithm.schedule(ranks, nbytes, strategy=strategy)
            assert str(caught.value) == (
                f"a hybrid strategy: {len(strategy)} choices for {d} directions; "
                f"{1 << d} ranks are a cube of dimension {d}: give S_0 … S_(d−1)"
            )


def test_a_strategy_as_it_is_written() -> None:
    """As the label has it, and as profiles keep it."""
    for name in ("reduce/hybrid", "allreduce/hybrid"):
        algorithm = find(name)
        plain = algorithm.schedule(9, 64, strategy=(0, 1, 1))
        assert plain.algorithm == f"{name}(strategy=(0, 1, 1))"
        for told in ("(0, 1, 1)", "011", [False, True, True], np.array([0, 1, 1])):
            schedule = algorithm.schedule(9, 64, strategy=told)
            assert schedule.lists == plain.lists
            assert schedule.algorithm == plain.algorithm
