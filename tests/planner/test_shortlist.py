"""The shortlist: few, close to the best, no schedule twice."""

from fractions import Fraction
from functools import partial
from itertools import combinations

import pytest

from collwise.algorithms.registry import ALGORITHMS, Algorithm
from collwise.model.machine import Machine
from collwise.model.measured_machine import measured
from collwise.model.placement import Placement
from collwise.planner.candidates import predicted
from collwise.planner.choose import plan
from collwise.planner.plans import Candidate, Plan
from collwise.planner.shortlist import shortlist, worth_a_race
from collwise.schedule.operations import Recv, Send
from collwise.schedule.problem import Problem
from collwise.timing import ideal
from tests.planner.machines import HOCKNEY, MACHINES, MEASURED, POSTAL
from tests.schedule.messages import messages


def rows(estimate: Plan, candidate: Candidate) -> list[tuple[int, ...]]:
    p = estimate.problem
    algorithm = ALGORITHMS[candidate.name]
    return messages(algorithm.schedule(p.ranks, p.nbytes, p.root, **candidate.settings))


@pytest.mark.no_cover
@pytest.mark.parametrize("machine", [HOCKNEY, MEASURED, MACHINES["loggp"]], ids=lambda m: m.kind)
@pytest.mark.parametrize("most", [1, 3, 20])
def test_few_and_close(machine: Machine, most: int) -> None:
    for ranks, nbytes, within in ((2, 100, 1.5), (5, 4000, 1.0), (9, 70_000, 2.5), (8, 100, 40)):
        estimate = plan("broadcast", ranks=ranks, nbytes=nbytes, machine=machine, root=1)
        picked = shortlist(estimate, most, within)
        assert 1 <= len(picked) <= most
        assert picked[0] == estimate.choice
        limit = estimate.choice.predicted * Fraction(str(within))
        assert all(c.predicted <= limit for c in picked)
        assert all(rows(estimate, a) != rows(estimate, b) for a, b in combinations(picked, 2))
        if len(picked) < most:  # nobody was passed over but doubles
            kept = [rows(estimate, c) for c in picked]
            rest = [c for c in estimate.candidates if c.predicted <= limit and c not in picked]
            assert all(rows(estimate, c) in kept for c in rest)


of_all = partial(plan, score=lambda *asked: predicted(*asked))
"""A plan that tries every algorithm, as with any score of one's own."""


def test_equal_schedules_run_once() -> None:
    """The λ-tree and the α-tree of 8 ranks at λ = 9/5 are the same; other trees are as fast."""
    estimate = of_all("broadcast", ranks=8, nbytes=100, machine=POSTAL)
    table, tree = (
        estimate.candidate(f"broadcast/{name}(lam=9/5)") for name in ("alpha_table", "postal_tree")
    )
    assert table.predicted == tree.predicted == estimate.choice.predicted
    assert rows(estimate, table) == rows(estimate, tree)
    everybody = shortlist(estimate, 100, 100)
    assert (tree in everybody) + (table in everybody) == 1
    assert len(everybody) < len(estimate.candidates)


def test_equally_fast_but_different_ones_both_run() -> None:
    estimate = of_all("broadcast", ranks=3, nbytes=8, machine=Machine.postal(t0_s=1, lam=1))
    picked = shortlist(estimate, 10, 1)
    assert len(picked) > 1
    assert len({c.predicted for c in picked}) == 1


def test_very_many_ranks_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    estimate = plan("broadcast", ranks=1 << 20, nbytes=8, machine=POSTAL)

    def never(*_: object, **__: object) -> None:
        raise AssertionError("made a schedule of a million ranks")

    monkeypatch.setattr(Algorithm, "schedule", never)
    picked = shortlist(estimate)
    assert picked == estimate.candidates[: len(picked)]
    assert len(picked) == 2


def test_nobody_is_as_close_as_asked() -> None:
    estimate = plan("broadcast", ranks=8, nbytes=100, machine=MEASURED)
    assert shortlist(estimate, most=0) == ()
    assert shortlist(estimate, within=0.5) == ()


LEVELS = Machine.levels([Machine.postal(t0_s=1e-6, lam=2), MEASURED], Placement.regular(4, 2))


@pytest.mark.no_cover
@pytest.mark.parametrize("machine", [HOCKNEY, MEASURED, LEVELS], ids=lambda machine: machine.kind)
def test_fewer_messages_are_raced_too(machine: Machine) -> None:
    """What many messages cost hosts and switches besides t0, no law knows."""
    nbytes = 1 << 18 if machine is LEVELS else 1 << 20
    plain = plan("broadcast", ranks=8, nbytes=nbytes, machine=machine)
    estimate, picked = worth_a_race(plain)
    assert picked[0] == estimate.choice == plain.choice
    added = [one for one in picked if one.verdict.endswith("the best if messages cost more")]
    assert len(added) == (1 if machine is LEVELS else 2)  # there t0/16 changes nothing
    for fewer in added:
        assert fewer not in plain.candidates
        assert fewer in estimate.candidates
        assert fewer.predicted == ideal(fewer.schedule(plain.problem), machine).completion
    sent = [len(messages(one.schedule(plain.problem))) for one in (picked[0], *added)]
    assert sent == sorted(sent, reverse=True)
    assert sent[0] > sent[-1]
    assert len({candidate.label for candidate in estimate.candidates}) == len(estimate.candidates)


def test_where_ranks_share_cores_the_one_with_the_fewest_messages_is_raced_too() -> None:
    """The choice sends to all others at once: of 16 on two cores, each waits for eight."""
    machine = measured([[(8, "40e-6", 33), (65536, "5.3e-3", "1.25")]])
    plain = plan("allreduce", ranks=16, nbytes=8, machine=machine)
    estimate, alone = worth_a_race(plain)
    same, crowded = worth_a_race(plain, share_cores=True)
    assert crowded[0] == alone[0] == plain.choice
    assert same == estimate
    [fewest] = {one.label: one for one in crowded if one not in alone}.values()
    sent = [len(messages(one.schedule(plain.problem))) for one in (fewest, *plain.candidates)]
    assert sent[0] == min(sent) == 2 * 15
    many = plan("allreduce", ranks=65, nbytes=8, machine=machine)
    assert worth_a_race(many, share_cores=True) == worth_a_race(many)


def test_where_no_fewer_messages_are_to_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    for machine, nbytes in ((HOCKNEY, 8), (POSTAL, 1 << 20)):
        few = plan("broadcast", ranks=8, nbytes=nbytes, machine=machine)
        assert worth_a_race(few)[0] == few
    loggp = plan("broadcast", ranks=8, nbytes=1 << 20, machine=MACHINES["loggp"])
    assert worth_a_race(loggp)[0] == loggp
    only = plan("broadcast", ranks=8, nbytes=1 << 20, machine=HOCKNEY, algorithm="chain_segmented")
    assert {one.name for one in worth_a_race(only, only.choice.name)[1]} == {only.choice.name}
    many = plan("broadcast", ranks=9, nbytes=1 << 20, machine=HOCKNEY)
    assert worth_a_race(many)[0] != many
    monkeypatch.setattr("collwise.planner.shortlist.SEARCHED_RANKS", 8)
    assert worth_a_race(many)[0] == many


def _depends_on_one(candidate: Candidate, ranks: int, problem: Problem) -> bool:
    """Whether each rank receives from one at most, or each sends to one at most."""
    lists = [candidate.schedule(problem).rank(rank) for rank in range(ranks)]
    peers = [
        [{op.peer for op in operations if isinstance(op, kind)} for operations in lists]
        for kind in (Send, Recv)
    ]
    return any(all(len(found) <= 1 for found in of_ranks) for of_ranks in peers)


@pytest.mark.no_cover
@pytest.mark.parametrize("collective", ["broadcast", "reduce"])
@pytest.mark.parametrize("ranks", [8, 12])
def test_one_on_whom_nobody_waits_for_many_is_raced_too(collective: str, ranks: int) -> None:
    """In ideal time every message comes when it should; on real hosts some are late."""
    machine = measured([[(1, 1e-6, 8), (1 << 20, 1e-3, 8)]])
    estimate = plan(collective, ranks=ranks, nbytes=1 << 16, machine=machine)
    problem = estimate.problem
    assert not _depends_on_one(estimate.choice, ranks, problem)
    _, picked = worth_a_race(estimate)
    steady = [one for one in picked if _depends_on_one(one, ranks, problem)]
    assert steady
    best = (one for one in estimate.candidates if _depends_on_one(one, ranks, problem))
    assert steady[0] == next(best)


def test_a_tree_needs_no_other() -> None:
    estimate = plan("broadcast", ranks=9, nbytes=8, machine=HOCKNEY)
    assert worth_a_race(estimate) == (estimate, shortlist(estimate))
