"""Placements: groups within groups, any numbering, and what is none."""

from random import Random
from typing import Any

import numpy as np
import pytest
from tests.timing.schedules import random_placement

from collwise.errors import InvalidArgument
from collwise.model.placement import Placement

NAMES = ("node", "rack")
ANY: Any = Placement
"""For calls that no type allows."""


@pytest.mark.parametrize(
    ("placement", "words", "lines_up"),
    [
        (Placement.regular(16), "16 ranks", True),
        (Placement.regular(4, 16), "4 nodes × 16 ranks", True),
        (Placement.regular(2, 4, 16), "2 racks × 4 nodes × 16 ranks", True),
        (Placement.regular(2, 4, 3, round_robin=True), "2 racks × 4 nodes × 3 ranks", False),
        (Placement.nodes([3, 1, 5]), "3 nodes × 1 to 5 ranks", True),
        (Placement.nodes([3, 1, 5], round_robin=True), "3 nodes × 1 to 5 ranks", False),
        (Placement.nodes([3, 1, 5, 1], [2]), "2 racks × 2 nodes × 1 to 5 ranks", True),
        (Placement.of("aabbc", "xxxxy"), "2 racks × 1 to 2 nodes × 1 to 2 ranks", True),
        (Placement.of("aba"), "2 nodes × 1 to 2 ranks", False),
    ],
)
def test_described(placement: Placement, words: str, lines_up: bool) -> None:
    assert placement.describe(NAMES[: placement.depth - 1]) == words
    assert placement.lines_up() == lines_up


def test_round_robin_fills_nodes_in_turn() -> None:
    assert Placement.nodes([3, 1, 2], round_robin=True) == Placement.of([0, 1, 2, 0, 2, 0])
    racks = Placement.regular(2, 2, 2, round_robin=True)
    assert racks == Placement.of([0, 1, 2, 3] * 2, [0, 0, 1, 1] * 2)


def test_equal_however_groups_are_named() -> None:
    assert Placement.of(["n7", "n3", "n7"]) == Placement.of_members([[[1], [0, 2]]], 3)
    assert hash(Placement.of("aba")) == hash(Placement.of([5, 1, 5]))


@pytest.mark.parametrize("seed", range(10))
def test_where_ranks_meet(seed: int) -> None:
    random = Random(seed)
    ranks = random.randrange(1, 12)
    placement = random_placement(random, ranks)
    pairs = [(a, b) for a in range(ranks) for b in range(ranks) if a != b]
    for a, b in pairs:
        level = placement.meeting(a, b)
        assert placement.group(level, a) == placement.group(level, b)
        assert level == 1 or placement.group(level - 1, a) != placement.group(level - 1, b)
    assert all(placement.meeting(a, a) == 0 for a in range(ranks))
    ones, others = (np.array([pair[i] for pair in pairs], dtype=np.int64) for i in (0, 1))
    expected = [placement.meeting(*pair) for pair in pairs]
    assert placement.meetings(ones, others).tolist() == expected
    for level, groups in enumerate(placement.members, 1):
        assert sorted(rank for ranks in groups for rank in ranks) == list(range(placement.ranks))
        assert all(placement.group(level, r) == n for n, rs in enumerate(groups) for r in rs)


def test_ranks_and_levels_that_there_are_not() -> None:
    placement: Any = Placement.regular(2, 3)
    asks: list[tuple[str, tuple[Any, ...]]] = [
        ("meeting", (0, 6)), ("meeting", (-1, 0)), ("meeting", ("0", 1)), ("group", (3, 0)),
        ("group", (0, 0)), ("group", (1, 6)), ("sizes", (0,)), ("sizes", (3,)), ("part", ([0, 6],)),
        ("part", (7,)), ("part", ([],)), ("from_rank", (6,)),
    ]  # fmt: skip
    for name, arguments in asks:
        with pytest.raises(InvalidArgument) as caught:
            getattr(placement, name)(*arguments)
        assert caught.value.asked == "a placement of ranks", (name, arguments)
