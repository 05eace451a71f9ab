"""Plans where ranks share memory: nothing is typed in; the law alone makes them so."""

from collections.abc import Iterable
from itertools import product
from typing import Any

import pytest

import collwise as cw
from collwise.algorithms.registry import ALGORITHMS
from collwise.model.level_notation import parse
from collwise.model.measured_machine import measured
from collwise.planner.plans import Plan
from collwise.planner.relaxed import by_parts
from collwise.schedule.dependencies import publications
from collwise.schedule.operations import Combine, Operation, Recv, Send, size_of
from tests.planner.machines import below_bounds

COSTS = "60ns+0.05ns/B,200ns+0.15ns/B"
READ = ",read 80ns+0.1ns/B"
ACROSS = "1.7us,4"


def combining(ranks: int) -> cw.Machine:
    """A node whose ranks share memory, where combining takes about as long as reading."""
    publishing = measured([[(8, "60e-9", 3), (1 << 20, "50e-6", 3)]]).with_combining(
        [(8, "5e-9"), (1 << 20, "1e-4")]
    )
    return cw.Machine.memory(publishing, read=[(8, "80e-9"), (1 << 20, "1e-4")])


def sent(operations: Iterable[Operation]) -> list[Send]:
    return [op for op in operations if isinstance(op, Send)]


@pytest.mark.no_cover
@pytest.mark.parametrize("ranks", [2, 5, 8])
def test_among_few_a_flat_broadcast_is_best(ranks: int) -> None:
    """And no faster one is possible.  With messages of the same costs it is not."""
    for nbytes in (8, 512):
        made = cw.plan(
            "broadcast", ranks=ranks, nbytes=nbytes, machine=parse(f"{ranks}: {COSTS}{READ}")
        )
        (root, *others) = made.schedule.lists
        assert len(sent(root)) == ranks - 1
        assert not any(map(sent, others))
        assert made.choice.predicted == made.unsegmented_bound.time
        assert not below_bounds(made)
    messages = cw.plan("broadcast", ranks=ranks, nbytes=8, machine=parse(f"{ranks}: {COSTS}"))
    assert any(map(sent, messages.schedule.lists[1:])) == (ranks > 5)


def received_and_combined(made: Plan) -> list[tuple[float, float]]:
    """For each rank, how often it receives the vector, and combines it."""
    return [
        tuple(  # type: ignore[misc]
            sum(size_of(op) for op in operations if isinstance(op, kind)) / made.problem.nbytes
            for kind in (Recv, Combine)
        )
        for operations in made.schedule.lists
    ]


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_long_vectors_are_combined_in_slices_by_all(ranks: int) -> None:
    """Every rank combines its share, (p − 1)/p of a vector, and reads the others' results."""
    share = (ranks - 1) / ranks
    made = cw.plan("allreduce", ranks=ranks, nbytes=1 << 20, machine=combining(ranks))
    for received, combined in received_and_combined(made):
        assert received == pytest.approx(2 * share, rel=0.01)
        assert combined == pytest.approx(share, rel=0.01)
    assert not below_bounds(made)


def test_short_vectors_are_combined_by_all_ranks() -> None:
    """Each rank publishes its vector once for several: in one round among few."""
    made = cw.plan("allreduce", ranks=4, nbytes=8, machine=combining(4))
    for operations in made.schedule.lists:
        firsts = publications(operations, range(4))
        published = {firsts[place] for place, op in enumerate(operations) if isinstance(op, Send)}
        assert len(published) < len(sent(operations))


@pytest.mark.no_cover
@pytest.mark.parametrize(("shape", "nbytes"), [("4x8", 8), ("2x4x4", 512)])
def test_trees_start_between_nodes(shape: str, nbytes: int) -> None:
    """Other nodes are reached by one message each, the first before anything is read anywhere."""
    levels = [f"{COSTS}{READ}", *[ACROSS] * shape.count("x")]
    machine = parse(f"{shape}: {'; '.join(levels)}")
    made = cw.plan("broadcast", ranks=machine.placement.ranks, nbytes=nbytes, machine=machine)
    placement = machine.placement
    transfers = cw.simulate(made.schedule, machine).transfers
    crossing = [t for t in transfers if placement.meeting(t.source, t.target) > 1]
    inside = [t for t in transfers if placement.meeting(t.source, t.target) == 1]
    nodes = len(placement.members[0])
    assert len(crossing) == nodes - 1
    assert min(t.start for t in crossing) < min(t.received for t in inside)
    elsewhere = {(t.source, t.start) for t in inside if placement.group(1, t.source)}
    assert len(elsewhere) == nodes - 1, "one publication in each"
    assert not below_bounds(made)


def test_the_rules_of_races_take_publications_as_they_are() -> None:
    """With a dearer message the flat tree is still the first candidate."""
    from collwise.planner.shortlist import worth_a_race

    machine: Any = parse(f"8: {COSTS}{READ}")
    estimate, raced = worth_a_race(cw.plan("broadcast", ranks=8, nbytes=512, machine=machine))
    assert raced[0] == estimate.choice
    assert not any(map(sent, raced[0].schedule(estimate.problem).lists[1:]))


def test_pieces_are_roughly_timed_by_what_is_published() -> None:
    """One message to all others of the node is one publication, for each further piece, too."""
    algorithm = ALGORITHMS["allreduce/multilane_pieces"]
    words = {"across": "recursive_doubling", "gather": "xor", "latencies": "1 5"}
    settings = {name: algorithm.parameters[name].read(word) for name, word in words.items()}
    rough = {}
    for pieces, read in product((2, 6), (READ, "")):
        machine: Any = parse(f"2x8: {COSTS}{read}; {ACROSS}")
        about = {"placement": machine.placement, "itemsize": 8, **settings, "pieces": pieces}
        made = algorithm.schedule(16, 4096 * pieces, **about)
        time = by_parts(made.program, made.problem, machine)
        assert time is not None
        rough[pieces, read] = time
    saved = [rough[6, read] - rough[2, read] for read in ("", READ)]
    assert saved[0] - saved[1] == 4 * 6 * machine.at(1, 512).gap
