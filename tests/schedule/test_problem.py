"""Problems in which any ranks have data: what they mean, and what is none."""

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collwise.errors import InvalidArgument, UnknownName
from collwise.model.topology import near_square
from collwise.schedule.collectives import ABOUT, COLLECTIVES, check_about
from collwise.schedule.operations import Block, Slot
from collwise.schedule.problem import Order, Problem, Source


def allgatherv(ranks: Any = 10, nbytes: Any = 8, **given: Any) -> Problem:
    return Problem.of("allgatherv", ranks, nbytes, **{"sources": [0, 3, 4], **given})


def test_one_size_for_all_or_one_for_each() -> None:
    same = allgatherv()
    assert same.sources == (Source(0, 8), Source(3, 8), Source(4, 8))
    assert (same.nbytes, same.shape) == (24, (2, 5))
    assert same.gathered == (Block(0, 0, 8), Block(3, 0, 8), Block(4, 0, 8))
    assert str(same) == "allgatherv of 24 bytes from 3 to 10 ranks (2 × 5)"
    each = allgatherv(nbytes=[5, 0, 7], sources=[9, 2, 1], shape=(5, 2))
    assert each == Problem("allgatherv", 10, 12, sources=(Source(1, 7), Source(9, 5)), shape=(5, 2))
    assert each.sources == (Source(1, 7), Source(9, 5))  # by rank, none of 0 bytes


@given(st.data(), st.integers(1, 40))
def test_the_order_of_the_sources_does_not_matter(data: st.DataObject, ranks: int) -> None:
    sources = data.draw(st.lists(st.integers(0, ranks - 1), min_size=1, unique=True))
    lengths = [7 * source % 5 for source in sources]
    turned = sorted(zip(sources, lengths, strict=True))
    problem = allgatherv(ranks, lengths, sources=sources)
    assert problem == allgatherv(ranks, [n for _, n in turned], sources=[r for r, _ in turned])
    assert hash(problem) == hash(allgatherv(ranks, np.array(lengths), sources=np.array(sources)))
    assert problem.nbytes == sum(lengths) == sum(block.length for block in problem.gathered)
    assert problem.shape == near_square(ranks)


@pytest.mark.parametrize("sources", [{0, 3, 4}, range(0, 5, 2), iter([4, 0]), np.array([1, 7])])
def test_sources_of_many_kinds(sources: Any) -> None:
    problem = allgatherv(np.int64(10), np.int32(3), sources=sources, shape=np.array([5, 2]))
    assert {type(number) for source in problem.sources for number in source} == {int}
    assert {type(size) for size in (*problem.shape, problem.ranks, problem.nbytes)} == {int}
    assert hash(problem)


REFUSED = {
    "broadcast(0)": "broadcast over `ranks`: ranks = 0; give an integer of at least 1",
    "broadcast(4.0)": "broadcast over `ranks`: ranks = 4.0; give an integer of at least 1",
    "broadcast(4, -1)": "broadcast of `nbytes`: nbytes = -1; give an integer of at least 0",
    "broadcast(4, 8, -1)": "broadcast from `root`: root = -1; give an integer of at least 0",
    "broadcast(4, 8, 4)": "broadcast from root 4: it has 4 ranks; give a root from 0 to 3",
    "broadcast(1, 8, 9)": "broadcast from root 9: it has 1 rank; give a root from 0 to 0",
    "reduce(itemsize=3)": "reduce of elements of 3 bytes: nbytes = 8, which is no multiple; give",
    "reduce(itemsize=0)": "reduce of `itemsize`: itemsize = 0; give an integer of at least 1",
    "reduce(order='rnak')": "order 'rnak': there is none; did you mean rank?",
    "allgatherv(sources=None)": "allgatherv over 10 ranks: nothing says which ranks have data; gi",
    "allgatherv(sources=[0, 3, 0])": "sources among 10 ranks: rank 0 is given twice; give each",
    "allgatherv(10, -1)": "allgatherv over 10 ranks, of `nbytes`: nbytes = -1; give an integer of",
    "allgatherv(10, [1, 2, -3])": "allgatherv over 10 ranks, of `nbytes`: nbytes = -3; give an in",
    "allgatherv(10, [1, 2, 2.5])": "allgatherv over 10 ranks, of `nbytes`: nbytes = 2.5; give an",
    "allgatherv(10, {0: 1, 3: 2})": "allgatherv over 10 ranks, of `nbytes`: nbytes = a dict",
    "allgatherv(10, [1, 2])": "allgatherv over 10 ranks: 3 sources, and bytes for 2; give one num",
    "allgatherv(0)": "allgatherv over `ranks`: ranks = 0; give an integer of at least 1",
    "allgatherv(shape=(3, 3))": "allgatherv over 10 ranks: a mesh of 3 × 3 has 9; give rows and",
    "allgatherv(shape=(0, 0))": "allgatherv over 10 ranks: rows = 0; give an integer of at least",
    "allgatherv(shape=(10,))": "allgatherv over 10 ranks: shape = (10,); give (rows, columns), su",
    "allgatherv(shape=10)": "allgatherv over 10 ranks: shape = 10; give (rows, columns), such as",
    "allgatherv(root=3)": "allgatherv with root 3: it has no root: all ranks get the result; leave",
    "allgatherv(sources=[5], itemsize=3)": "allgatherv of elements of 3 bytes: nbytes = 8, which",
    "allgatherv(10, [4, 2, 2], itemsize=4)": "allgatherv over 10 ranks: source 3 has 2 bytes, an",
    "given(9, (0, 8))": "allgatherv over 4 ranks: nbytes = 9, but the sources have others; give",
    "given(8)": "allgatherv over 4 ranks: nbytes = 8, but the sources have others; give the sum of",
    "given(8, (0, 16), (1, -8))": "allgatherv over 4 ranks: its nbytes = -8; give an integer of at",
    "given(8, (0, 8), (1, 0))": "allgatherv over 4 ranks: its nbytes = 0; give an integer of at",
    "given(8, (0, 8.0))": "allgatherv over 4 ranks: its nbytes = 8.0; give an integer of at least",
    "given(8, (-1, 8))": "allgatherv over 4 ranks: a source = -1; give an integer of at least 0",
    "given(8, 8)": "allgatherv over 4 ranks: a source is 8; give its rank and its bytes",
    "given(8, (0, 8, 8))": "allgatherv over 4 ranks: a source is (0, 8, 8); give its rank and its",
    "given(8, (2, 4), (2, 4))": "sources among 4 ranks: rank 2 is given twice; give each source",
    "given(8, (4, 8))": "sources among 4 ranks: a source = 4; give an integer from 0 to 3",
}
NAMES = {
    "broadcast": lambda ranks, nbytes=8, root=0: Problem("broadcast", ranks, nbytes, root),
    "reduce": partial(Problem, "reduce", 4, 8),
    "allgatherv": allgatherv,
    "given": lambda nbytes, *sources: Problem("allgatherv", 4, nbytes, sources=sources),
}


@pytest.mark.parametrize("call", REFUSED)
def test_problems_that_are_none(call: str) -> None:
    with pytest.raises((InvalidArgument, UnknownName)) as caught:
        eval(call, NAMES)
    assert str(caught.value).startswith(REFUSED[call])


@pytest.mark.parametrize("collective", ["broadcast", "reduce", "allreduce"])
def test_where_there_are_no_sources(collective: str) -> None:
    told = "it has no sources, and no mesh; leave sources and shape out"
    named: list[dict[str, Any]] = [{"sources": [0]}, {"sources": []}]
    for odd in (*named, {"shape": (2, 2)}, {"shape": (0, 0)}):
        with pytest.raises(InvalidArgument, match=f"{collective}: {told}"):
            Problem.of(collective, 4, 8, **odd)
    with pytest.raises(InvalidArgument, match=f"{collective} over 4 ranks: {told}"):
        Problem(collective, 4, 8, sources=(Source(0, 8),))
    with pytest.raises(InvalidArgument, match=f"{collective} over 4 ranks: {told}"):
        Problem(collective, 4, 8, shape=(2, 2))
    with pytest.raises(InvalidArgument, match=r"of several sizes: nbytes = \[8\]; give one number"):
        Problem.of(collective, 4, [8])


@pytest.mark.parametrize("order", ["same", "rank", "fixed"])
def test_where_nothing_is_combined(order: Order) -> None:
    for collective in ("broadcast", *ABOUT["sources"]):
        Problem(collective, 4, 0, order="any")
        with pytest.raises(InvalidArgument) as caught:
            Problem(collective, 4, 0, order=order)
        assert str(caught.value) == (
            f"{collective} with order: it is for reduce, allreduce and reduce_scatter_block only;"
            " leave out order"
        )
    for collective in ABOUT["order"]:
        assert Problem(collective, 4, 0, order=order).order == order


def test_what_is_about_one_of_several_collectives() -> None:
    check_about(["broadcast", "reduce"], ["op", "dtype", "order", "root"])
    check_about(["broadcast", "allgatherv"], ["sources", "shape", "root"])
    check_about(["broadcast"], [])
    with pytest.raises(InvalidArgument) as caught:
        check_about(["allreduce", "allgatherv"], ["op", "root"], mark="--")
    assert str(caught.value) == (
        "allreduce and allgatherv with --root: it is for broadcast and reduce only;"
        " leave out --root"
    )


def test_nothing_is_a_problem_too() -> None:
    for nothing in (
        allgatherv(nbytes=0),
        allgatherv(nbytes=[0, 0, 0]),
        Problem("allgatherv", 10, 0),
    ):
        assert nothing == Problem("allgatherv", 10, 0, shape=(2, 5))
        assert nothing.gathered == ()


def test_far_too_many_sources_are_refused_at_once() -> None:
    with pytest.raises(InvalidArgument):
        Problem.of("allgatherv", 8, 64, sources=range(10**12))


def test_blocks_that_ranks_begin_and_end_with() -> None:
    whole, vector = (Block(1, 0, 6),), (Block(0, 0, 6),)
    gathered = (Block(0, 0, 4), Block(2, 0, 2))
    for problem, inputs, outputs in (
        (Problem("broadcast", 3, 6, root=1), [(), whole, ()], [whole] * 3),
        (Problem("reduce", 3, 6, root=1), [whole] * 3, [(), whole, ()]),
        (Problem("allreduce", 3, 6), [vector] * 3, [vector] * 3),
        (
            Problem("reduce_scatter_block", 3, 6, itemsize=2),
            [vector] * 3,
            [(Block(0, 2 * rank, 2),) for rank in range(3)],
        ),
        (
            Problem.of("allgatherv", 3, [2, 4, 0], sources=[2, 0, 1]),
            [gathered[:1], (), gathered[1:]],
            [gathered] * 3,
        ),
    ):
        assert [problem.input_of(rank) for rank in range(3)] == inputs
        assert [problem.output_of(rank) for rank in range(3)] == outputs
        assert problem.input_slot == (Slot.INPUT if problem.kind.combines else Slot.OUTPUT)


def test_a_reduce_scatter_has_equal_blocks_of_whole_elements() -> None:
    assert COLLECTIVES["reduce_scatter_block"].unit(6, 8) == 48
    with pytest.raises(InvalidArgument) as caught:
        Problem("reduce_scatter_block", 6, 40, itemsize=8)
    assert str(caught.value) == (
        "reduce_scatter_block of 40 bytes over 6 ranks: they are not 6 equal blocks of whole"
        " elements; give a multiple of 48 bytes"
    )
