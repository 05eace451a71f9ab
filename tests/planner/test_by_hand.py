"""Algorithms chosen by hand: what can be written, and what it means."""

from fractions import Fraction
from typing import Any

import pytest

from collwise.algorithms import ALGORITHMS
from collwise.errors import CollwiseError, InvalidArgument, UnknownName
from collwise.measure.race import LIBRARY
from collwise.model.level_notation import parse as parse_levels
from collwise.model.machine import Machine
from collwise.planner.by_hand import (
    EXAMPLE,
    Choice,
    choice_for,
    own_choice,
    parse_choices,
    planned,
    read_choices,
)
from collwise.planner.candidates import predicted
from collwise.planner.choose import plan
from collwise.schedule.problem import Problem

MACHINE = Machine.postal(t0_s="1e-6", lam=4)


def test_every_algorithm_by_its_name() -> None:
    for name in ALGORITHMS:
        collective, _, short = name.partition("/")
        for text in (name, short, f" {short} "):
            assert read_choices({collective: text}) == {collective: (Choice(name),)}


def test_sizes_and_settings() -> None:
    chosen = read_choices(parse_choices(f" {EXAMPLE} ; ", "here"))
    binomial, chain = chosen["broadcast"]
    assert binomial == Choice("broadcast/binomial", (), 4096)
    assert chain == Choice("broadcast/chain_segmented", (("segment", 8192),))
    assert chosen["allreduce"] == (Choice("allreduce/ring"),)
    (two,) = read_choices({"broadcast": "postal_tree_segmented(lam=7/2, segment=1k)"})["broadcast"]
    assert dict(two.settings) == {"lam": Fraction(7, 2), "segment": 1024}
    levels = "multilevel_pipelined(trees=binomial | knomial(k=3), segment=4k)<=1M,library"
    outer, rest = read_choices({"broadcast": levels})["broadcast"]
    assert dict(outer.settings) == {"trees": "binomial | knomial(k=3)", "segment": 4096}
    assert (outer.most, rest) == (1 << 20, Choice(LIBRARY))


def test_algorithms_of_the_library() -> None:
    """Only a communicator knows which of them there are."""
    some = "library:tree(k=4, segment=8k) <= 1M, library:in-order_binary"
    tree, binary = read_choices({"reduce": some})["reduce"]
    settings = (("k", "4"), ("segment", "8192"))
    assert tree == Choice("reduce/library:tree", settings, 1 << 20)
    assert (binary.algorithm, binary.settings) == ("reduce/library:in-order_binary", ())
    made = own_choice("reduce", " library:tree(k=4)")
    assert made is not None
    assert (made.label, made.settings) == ("reduce/library:tree(k=4)", {"k": "4"})
    assert own_choice("reduce", "binomial") is None


def test_the_first_whose_size_is_not_exceeded() -> None:
    some = read_choices({"broadcast": "binomial <= 4k, chain<=1M"})["broadcast"]
    assert choice_for(some, 0) == choice_for(some, 4096) == some[0]
    assert choice_for(some, 4097) == choice_for(some, 1 << 20) == some[1]
    assert choice_for(some, (1 << 20) + 1) is None
    assert choice_for((), 5) is None


@pytest.mark.parametrize(
    ("text", "error", "told"),
    [
        ("", InvalidArgument, "that is no name with settings"),
        ("library:", InvalidArgument, "write it as in library:tree"),
        ("library:tree(k)", InvalidArgument, "write it as in library:tree"),
        ("library:tree(k=much)", InvalidArgument, "much"),
        ("chan", UnknownName, "did you mean"),
        ("chain, binomial", InvalidArgument, "that is no name with settings"),
        ("chain <= 4k, <= 8k", InvalidArgument, "that is no name with settings"),
        ("chain <= 4k, flat <= 4k", InvalidArgument, "nothing is left for flat <= 4k"),
        ("knomial(k=²)", InvalidArgument, "²"),
        ("chain <= much", InvalidArgument, "no size"),
        ("chain(segment=8k)", InvalidArgument, "it has no such parameter"),
        ("chain_segmented(segment=0)", InvalidArgument, "it is 0"),
        ("chain_segmented(segment", InvalidArgument, "that is no name with settings"),
        ("postal_tree_segmented(segment=8k)", InvalidArgument, "without lam"),
        ("postal_tree(lam=x)", InvalidArgument, "x"),
    ],
)
def test_what_is_refused(text: str, error: type[CollwiseError], told: str) -> None:
    with pytest.raises(error, match=told):
        read_choices({"broadcast": text})


def test_what_is_no_text() -> None:
    odd: list[tuple[Any, str]] = [
        ({"broadcast": 3}, r"algorithm \(3\)"),
        (["ring"], "give them by collective"),
        ({"nope": "ring"}, "known: .*broadcast"),
    ]
    for algorithms, told in odd:
        with pytest.raises(CollwiseError, match=told):
            read_choices(algorithms)
    ends = read_choices({"broadcast": "library<=1k,"})["broadcast"]
    assert ends == (Choice(LIBRARY, (), 1024),)


@pytest.mark.parametrize("text", ["broadcast", "broadcast=", "=chain", "a=b;c"])
def test_what_is_no_choice(text: str) -> None:
    with pytest.raises(InvalidArgument, match=r"here: '.*' is no choice; write it as in"):
        parse_choices(text, "here")


def test_a_collective_that_is_chosen_twice() -> None:
    with pytest.raises(InvalidArgument, match="here: reduce is chosen twice; write its choices"):
        parse_choices("reduce=flat <= 4k; reduce = binomial", "here")
    with pytest.raises(InvalidArgument, match="bcast: that is another name of broadcast"):
        read_choices({"broadcast": "flat", "bcast": "chain"})


def test_the_plan_has_these_settings() -> None:
    problem = Problem.of("broadcast", 8, 100_000)
    (choice,) = read_choices({"broadcast": "chain_segmented(segment=1000)"})["broadcast"]
    made = planned(problem, MACHINE, choice, reason="", score=predicted)
    assert made.choice.label == "broadcast/chain_segmented(segment=1000)"
    assert made.schedule.problem == problem
    chain = ALGORITHMS["broadcast/chain_segmented"]
    assert made.choice.predicted == chain.predict(MACHINE, 8, 100_000, segment=1000)
    levels = parse_levels("2x4: 1us,2; 5us,4")
    (two,) = read_choices({"broadcast": "multilevel(algorithms=binomial)"})["broadcast"]
    outer = planned(problem, levels, two, reason="", score=predicted)
    assert outer.problem.placement == levels.placement
    assert outer.choice.predicted > 0
    usual = plan("broadcast", ranks=8, nbytes=100_000, machine=MACHINE)
    assert made.lower_bound_s == usual.lower_bound_s
