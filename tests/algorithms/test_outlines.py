"""Outlines, and lists that stand for all ranks: the slow way is to make the whole list."""

import pytest

from collwise.algorithms import ALGORITHMS
from collwise.model.placement import Placement
from collwise.schedule.operations import Operation, Recv, Send, size_of
from collwise.timing import ideal_alike
from tests.algorithms.examples import COMBINES, HOCKNEY, MACHINES, settings_of, sources_for


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
        schedule = algorithm.schedule(ranks, nbytes, 0, itemsize=8, placement=nodes, **given)
        program = schedule.program
        lists = [program.operations(rank) for rank in range(ranks)]
        outlines = program.outlines(range(ranks))
        assert list(map(of_each, outlines)) == list(map(of_each, lists))
        if program.is_alike():
            for machine in (MACHINES[1], HOCKNEY, COMBINES):
                alone = ideal_alike(program.one_for_all(), machine)
                assert alone == ideal_alike(lists[0], machine)
