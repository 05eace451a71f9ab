"""Groups of nodes, from the times between any two of them."""

from itertools import combinations

import numpy as np
import pytest

from collwise.measure.clustering import cluster, rounds
from collwise.model.level_notation import parse_placement


@pytest.mark.parametrize("members", [1, 2, 3, 4, 7, 8])
def test_every_pair_meets_once_and_nobody_twice_in_a_round(members: int) -> None:
    turns = rounds(members)
    pairs = [tuple(sorted(pair)) for turn in turns for pair in turn]
    assert sorted(pairs) == list(combinations(range(members), 2))
    for turn in turns:
        both = [rank for pair in turn for rank in pair]
        assert len(both) == len(set(both))


def times(placement: str, *latencies: float, noise: float = 0) -> np.ndarray:
    """The times of pairs in such a placement, whose level by level latencies are these."""
    where, random = parse_placement(placement), np.random.default_rng(1)
    matrix = np.zeros((where.ranks, where.ranks))
    for a, b in combinations(range(where.ranks), 2):
        latency = latencies[where.meeting(a, b) - 1] * random.lognormal(0, noise)
        matrix[a, b] = matrix[b, a] = latency
    return matrix


@pytest.mark.parametrize(
    ("placement", "latencies", "levels"),
    [
        ("2x8", (1, 20), 1),
        ("2x8", (1, 1.5), 0),  # too near to be told apart
        ("3x2x4", (1, 3, 30), 2),
        ("3x2x4", (1, 1.2, 30), 1),
        ("2+3+1, round robin", (1, 5), 1),
    ],
)
def test_groups_are_found(placement: str, latencies: tuple[float, ...], levels: int) -> None:
    rows = cluster(times(placement, *latencies, noise=0.05))
    where = parse_placement(placement)
    assert rows == list(where.groups[len(where.groups) - levels :])


def test_what_falls_into_no_groups_makes_no_level() -> None:
    """A chain: its ends are far from each other, and near to the one between them."""
    matrix = np.array([[0, 1, 10], [1, 0, 1], [10, 1, 0]], dtype=float)
    assert cluster(matrix) == []
    assert cluster(np.zeros((1, 1))) == []
