"""Trees: one rank's family, all edges, spans and shapes are four readings of one definition."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.algorithms.examples import LATENCIES

from collwise.algorithms.broadcast import (
    alpha_tree,
    binary,
    binomial,
    chain,
    flat,
    knomial,
    postal_tree,
)
from collwise.model import postal
from collwise.schedule.trees import Family, HeapTree, LastFirst, Part, SplitTree, Tree

SIZES = [*range(1, 41), 63, 64, 65, 100, 127, 128, 130]


def trees(n: int) -> list[Tree]:
    found: list[Tree] = [
        binomial.tree(n),
        flat.tree(n),
        LastFirst(n),
        chain.tree(n),
        binary.tree(n),
    ]
    found += [HeapTree(n, k) for k in (3, 4, 7)]
    found += [knomial.tree(n, k) for k in (2, 3, 4, 8)]
    found += [alpha_tree.fixed(n, Fraction(a, 100)) for a in (50, 62, 75, 99)]
    for lam in LATENCIES:
        found += [postal_tree.tree(n, lam), alpha_tree.table(n, lam)]
    return found


def descendants(children: Sequence[Sequence[int]]) -> list[set[int]]:
    """By the parents' numbers being smaller than their children's."""
    below = [{v} for v in range(len(children))]
    for v in reversed(range(len(children))):
        for child in children[v]:
            below[v] |= below[child]
    return below


@pytest.mark.parametrize("n", SIZES)
def test_all_readings_agree(n: int) -> None:
    for tree in trees(n):
        assert tree.size == n
        families = [tree.family(v) for v in range(n)]
        assert families[0].parent == -1
        assert families[0].place == 0
        edges = tree.edges()
        assert len(edges.parent) == len(edges.place) == n - 1
        for v in range(1, n):
            parent, place, _ = families[v]
            assert (edges.parent[v - 1], edges.place[v - 1]) == (parent, place)
            assert parent < v
            assert families[parent].children[place] == v
        children = [list(f.children) for f in families]
        assert sorted(c for some in children for c in some) == list(range(1, n))
        below = descendants(children)
        assert below[0] == set(range(n))
        if isinstance(tree, SplitTree):
            spans = tree.spans().tolist()
            for v in range(n):
                assert tree.span(v) == spans[v] == len(below[v])
                assert below[v] == set(range(v, v + spans[v]))
        check_shapes(tree, [len(b) for b in below], families)


def check_shapes(tree: Tree, sizes: list[int], families: list[Family]) -> None:
    """Down from the root, the shapes of the children have the sizes of their subtrees."""
    todo = [(0, tree.root_shape)]
    while todo:
        v, shape = todo.pop()
        shapes = tree.child_shapes(shape)
        assert len(shapes) == len(families[v].children)
        for child, below in zip(families[v].children, shapes, strict=True):
            size = below.size if isinstance(below, Part) else below
            assert child == below if isinstance(tree, LastFirst) else size == sizes[child]
            todo.append((child, below))


@pytest.mark.parametrize("lam", LATENCIES)
def test_the_postal_tree_is_the_doubled_one(lam: Fraction) -> None:
    for n in SIZES:
        tree = postal_tree.tree(n, lam)
        children: dict[int, list[tuple[Fraction, int]]] = {v: [] for v in range(n)}
        for edge in postal.doubling(n, lam).edges(n):
            children[edge.parent].append((edge.sent, edge.child))
        for v in range(n):
            assert tree.family(v).children == [child for _, child in sorted(children[v])]


@given(st.integers(1, 200), st.data())
def test_any_rule_makes_a_tree(n: int, data: Any) -> None:
    """A rule may keep any share of the ranks, and change its mind with the state."""
    share = data.draw(st.lists(st.fractions(0, 1), min_size=1, max_size=4))

    def rule(part: Part) -> tuple[Part, Part]:
        kept = min(max(round(share[part.state % len(share)] * part.size), 1), part.size - 1)
        return Part(kept, part.state), Part(part.size - kept, part.state + 1)

    tree = SplitTree(rule, Part(n))
    edges, spans = tree.edges(), tree.spans()
    for v in range(n):
        family = tree.family(v)
        assert tree.span(v) == spans[v]
        if v:
            assert (edges.parent[v - 1], edges.place[v - 1]) == family[:2]
        assert sum(int(spans[c]) for c in family.children) == spans[v] - 1


@given(st.integers(1, 10**12), st.integers(1, 12), st.data())
def test_a_heap_of_any_size(n: int, k: int, data: Any) -> None:
    """Parent and children agree, and child_shapes adds up, without building anything."""
    tree = HeapTree(n, k)
    v = data.draw(st.integers(0, n - 1))
    parent, place, children = tree.family(v)
    assert len(children) <= k
    for i, child in enumerate(children):
        assert tree.family(child)[:2] == (v, i)
    if v:
        assert tree.family(parent).children[place] == v
    assert 1 + sum(s for s in tree.child_shapes(n) if isinstance(s, int)) == n
    assert len(tree.child_shapes(n)) == len(tree.family(0).children)


def test_of_great_trees_only_one_path_is_walked() -> None:
    """2^20 ranks: O(log p) splits for a family."""
    splits = 0

    def halves(part: Part) -> tuple[Part, Part]:
        nonlocal splits
        splits += 1
        kept = (part.size + 1) // 2
        return Part(kept), Part(part.size - kept)

    tree = SplitTree(halves, Part(1 << 20))
    for rank in (0, 1, 12345, (1 << 20) - 1):
        splits = 0
        assert len(tree.family(rank).children) <= 20
        assert splits <= 20


def test_small_examples() -> None:
    assert [list(binomial.tree(8).family(v).children) for v in range(8)] == [
        [4, 2, 1], [], [3], [], [6, 5], [], [7], [],
    ]  # fmt: skip
    assert list(knomial.tree(9, 3).family(0).children) == [6, 3, 2, 1]
    assert [list(binary.tree(6).family(v).children) for v in range(3)] == [[1, 2], [3, 4], [5]]
    assert list(chain.tree(4).family(1).children) == [2]
    assert list(flat.tree(4).family(0).children) == [1, 2, 3]
    assert list(flat.tree(1).family(0).children) == []
    assert HeapTree(6, 2).child_shapes(6) == (3, 2)
    assert HeapTree(3, 5).child_shapes(1) == ()
