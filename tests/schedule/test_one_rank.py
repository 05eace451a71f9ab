"""One rank's list, made quickly, is what the obvious slow way makes of it."""

from dataclasses import replace
from math import prod
from typing import Any

import pytest

from collwise.algorithms import ALGORITHMS
from collwise.errors import InvalidArgument
from collwise.schedule.exchange import Exchange, Stage
from collwise.schedule.operations import Block, Recv, Send
from collwise.schedule.postal_rounds import PostalRounds
from collwise.schedule.problem import Problem
from collwise.schedule.program import Schedule


@pytest.mark.parametrize("radices", [(2,), (2, 2, 2), (3, 2), (4, 3, 2), (5, 7)])
@pytest.mark.parametrize("more", [0, 1, 2, 5])
def test_the_parts_of_a_reduce_scatter(radices: tuple[int, ...], more: int) -> None:
    """A rank sends others the blocks of all ranks that agree with them in the digits so far."""
    core = prod(radices)
    ranks = core + min(more, core)
    extra = ranks - core
    problem = Problem("reduce_scatter_block", ranks, 8 * ranks, itemsize=8)
    exchange = Exchange(problem, tuple(Stage(radix, divided=True) for radix in radices))

    def digits(number: int, count: int) -> list[int]:
        weights = [prod(radices[:place]) for place in range(count)]
        return [number // w % radices[place] for place, w in enumerate(weights)]

    number_of = {n + min(n, extra): n for n in range(core)}
    for rank, number in number_of.items():
        sent = [op for op in exchange.operations(rank) if isinstance(op, Send)]
        sent = sent[: sum(radices) - len(radices)]
        for op in sent:
            partner = number_of[op.peer]
            same = next(
                i for i in range(1, len(radices) + 1) if digits(number, i) != digits(partner, i)
            )
            theirs = [r for r, n in number_of.items() if digits(n, same) == digits(partner, same)]
            ends = [(r, r + 1 + (number_of[r] < extra)) for r in theirs]
            assert op.blocks == tuple(Block(0, 8 * a, 8 * (b - a)) for a, b in ends)


@pytest.mark.parametrize("name", ["broadcast/scatter_ring", "reduce/mixed_radix"])
def test_another_root(name: str) -> None:
    """Peers and owners move on by the root; all else stays."""
    settings: dict[str, Any] = {"stages": "4d 3"} if "mixed" in name else {}
    made = ALGORITHMS[name].schedule(13, 130, **settings)
    moved = Schedule(replace(made.problem, root=4), made.program)
    for rank in range(13):
        expected = []
        for op in made.rank(rank):
            blocks = tuple(b._replace(owner=(b.owner + 4) % 13) for b in op.blocks)
            here = op._replace(blocks=blocks)
            if isinstance(here, Send | Recv):
                here = here._replace(peer=(here.peer + 4) % 13)
            expected.append(here)
        assert list(moved.rank((rank + 4) % 13)) == expected


@pytest.mark.parametrize("name", ["broadcast/postal_rounds", "allgatherv/postal_rounds"])
def test_rounds_that_would_be_played_too_long(name: str) -> None:
    more: dict[str, Any] = {"sources": [0, 5], "pieces": 4} if "allgatherv" in name else {}
    with pytest.raises(InvalidArgument, match="would be played on all of them; choose fewer"):
        ALGORITHMS[name].schedule(1 << 20, 512, latency=3, **more or {"segment": 128})
    assert len(PostalRounds(1 << 10, 4, 3).every()) > 10
