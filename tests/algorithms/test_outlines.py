"""Outlines, and lists that stand for all ranks: the slow way is to make the whole list."""

from collections import Counter, defaultdict
from typing import Any

import pytest

from collwise.algorithms import ALGORITHMS
from collwise.model.placement import Placement
from collwise.schedule.dependencies import matching
from collwise.schedule.operations import Operation, Recv, Send, size_of
from collwise.schedule.program import Schedule
from tests.algorithms.examples import settings_of, sources_for


def of_each(operations: list[Operation]) -> list[tuple[type[Operation], int, int]]:
    """Its kind, with whom, of how many bytes."""
    return [
        (type(op), op.peer if isinstance(op, Send | Recv) else -1, size_of(op)) for op in operations
    ]


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("ranks", [2, 5, 8, 13])
def test_an_outline_is_the_list_but_for_its_blocks(name: str, ranks: int) -> None:
    algorithm = ALGORITHMS[name]
    given = settings_of(algorithm, ranks) | sources_for(algorithm, ranks)
    nodes = Placement.nodes([2] * (ranks // 2) + [1] * (ranks % 2))
    for nbytes in (0, 8 * ranks, 24 * ranks):
        if algorithm.kind.has_sources and nbytes > 8 * ranks:
            given["sources"] = range(ranks)
        schedule = algorithm.schedule(ranks, nbytes, 0, itemsize=8, placement=nodes, **given)
        program = schedule.program
        lists = [program.operations(rank) for rank in range(ranks)]
        outlines = program.outlines(range(ranks))
        assert list(map(of_each, outlines)) == list(map(of_each, lists))
        check_classes(schedule)


def check_classes(schedule: Schedule) -> None:
    """Members send and receive alike; what is k-th out of one class is k-th into the other.

    Their lists differ in where sends are among receives, which are at other ports.
    """
    _, class_of = schedule.representative_rows(combines=True)
    if class_of is None:
        return
    alike: defaultdict[Any, set[Any]] = defaultdict(set)
    number: dict[tuple[int, int], int] = {}
    for rank, operations in enumerate(schedule.lists):
        for kind in (Send, Recv):
            peers, counted = list[tuple[int, int]](), Counter[int]()
            for step, op in enumerate(operations):
                if isinstance(op, Send | Recv) and isinstance(op, kind):
                    other = int(class_of[op.peer])
                    number[rank, step], counted[other] = counted[other], counted[other] + 1
                    peers.append((other, size_of(op)))
            alike[class_of[rank], kind].add(tuple(peers))
    assert all(len(lists) == 1 for lists in alike.values())
    assert all(number[send] == number[got] for send, got in matching(schedule.lists).items())
