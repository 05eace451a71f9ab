"""Simulations as they are told: against the planner, the lists, and sums done by hand."""

from fractions import Fraction

import pytest

from collwise.algorithms.registry import ALGORITHMS
from collwise.errors import InvalidArgument, UnknownName
from collwise.model.level_notation import parse
from collwise.model.limits import SEARCHED_RANKS
from collwise.model.machine import Machine
from collwise.model.topology import Mesh, Topology
from collwise.planner.choose import plan_for, problem_for
from collwise.report.simulation_tables import (
    comparison_table,
    heading,
    simulation_document,
    simulation_lines,
)
from collwise.schedule.problem import Problem
from collwise.tuning import simulations as module
from collwise.tuning.simulations import LinkWaits, read_settings, simulations
from tests.planner.machines import HOCKNEY, LOGGP, POSTAL

WORMHOLE = Machine.wormhole(send_s="1e-6", receive_s="2e-6", hop_s="1e-8", beta_s="1e-9")
PROBLEM = Problem.of("allgatherv", 20, 4096, sources=[0, 7, 13], shape=(4, 5))


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("collective", "machine", "topology"),
    [
        ("broadcast", LOGGP, None),
        ("allreduce", POSTAL, None),
        ("allreduce", WORMHOLE, Mesh(4, 5)),
        ("allgatherv", HOCKNEY, Mesh(4, 5)),
    ],
)
def test_the_same_times_as_planned(
    collective: str, machine: Machine, topology: Topology | None
) -> None:
    sources = [0, 7, 13] if collective == "allgatherv" else None
    problem, reason = problem_for(collective, ranks=20, nbytes=960, sources=sources)
    found, excluded = simulations(problem, machine, topology, reason=reason)
    planned = plan_for(problem, machine, topology=topology, reason=reason)
    times = {one.label: one.trace.completion for one in found}
    assert times.items() >= {(c.label, c.predicted) for c in planned.candidates}
    assert min(times.values()) == planned.choice.predicted
    hardly = {a.name for a in ALGORITHMS.values() if not (a.searched or a.usual)}
    assert {one.name for one in found} - {c.name for c in planned.candidates} - hardly == (
        planned.excluded.keys() - excluded.keys() - hardly
    )
    assert all(one.bound == planned.bound for one in found)
    assert found[0].trace.completion == planned.choice.predicted


def test_ranks_are_where_the_machine_has_them() -> None:
    machine = parse("4x2: 1us,2; 5us,4")
    problem = Problem.of("broadcast", 8, 64)
    (one,), _ = simulations(problem, machine, algorithm="multilevel")
    assert one.problem.placement == machine.placement


def test_each_schedule_is_played_once(monkeypatch: pytest.MonkeyPatch) -> None:
    played = []

    def simulate(*arguments: object) -> object:
        played.append(arguments)
        return original(*arguments)

    original = vars(module)["simulate"]
    monkeypatch.setattr(module, "simulate", simulate)
    found, excluded = simulations(PROBLEM, WORMHOLE, Mesh(4, 5))
    assert len(played) == len(found)
    assert sorted([*excluded, *(one.name for one in found)]) == sorted(ALGORITHMS_OF_S_TO_P)
    assert set(excluded) == {"allgatherv/as_broadcast"}  # for one source


ALGORITHMS_OF_S_TO_P = [
    name for name, one in ALGORITHMS.items() if name.startswith("allgatherv/") and not one.levels
]


def test_what_is_said_of_one() -> None:
    """Three messages of 1 s on a line of three, where nobody can wait."""
    machine = Machine.hockney(alpha_s="1/2", beta_s="1/2")
    problem = Problem.of("allgatherv", 3, 1, sources=[0], shape=(1, 3))
    (one,), excluded = simulations(problem, machine, Mesh(1, 3), algorithm="ring")
    assert not excluded
    assert one.traffic == (2, 2, 1, 1)
    assert one.waits == LinkWaits(0, Fraction(0), Fraction(0))
    assert [(load.source, load.target) for load in one.loads] == [(0, 1), (1, 2)]
    assert all(load.busy == 1 for load in one.loads)
    assert one.loads[0].share == 0.5
    told = simulation_lines(one)
    assert "complete     after 2.00 s: nothing can be faster" in told
    done = "the first is done after 1.00 s (rank 0), the last after 2.00 s (rank 1)"
    assert f"ranks        {done}" in told
    assert "messages     2 of 1 bytes; 2 bytes in all" in told
    assert "waiting      no message waited for a link" in told
    assert "links        2 used; the busiest: 0 → 1 (50%), 1 → 2 (50%)" in told
    assert heading(one, "given")[:2] == [str(problem), "sources      ● · ·"]
    assert heading(one, "given")[-2:] == [
        f"machine      {machine.describe()} (given)",
        "topology     mesh of 1 × 3",
    ]


def test_waiting() -> None:
    machine = Machine.hockney(alpha_s=1, beta_s=0)
    problem = Problem.of("allgatherv", 4, 1, sources=[0, 1, 2, 3], shape=(1, 4))
    (one,), _ = simulations(problem, machine, Mesh(1, 4), algorithm="recursive_doubling")
    # 0 ↔ 1 and 2 ↔ 3; then 0 → 2 and 1 → 3 meet on the link 1 → 2, as do 2 → 0 and 3 → 1 on 2 → 1.
    assert one.waits == LinkWaits(2, Fraction(2), Fraction(1))
    assert (
        "waiting      2 of 8 messages waited for links, 1.00 s at most, 2.00 s in all"
        in simulation_lines(one)
    )
    (told,) = simulation_document([one], {}, "")["simulations"]
    waiting = [t for t in told["transfers"] if t["waited_for"]]
    assert [(t["source"], t["target"]) for t in waiting] == [(1, 3), (3, 1)]
    for transfer in waiting:
        holder = told["transfers"][transfer["waited_for"]["held_by"]]
        assert transfer["waited_for"]["link"] in {*transfer["links"]} & {*holder["links"]}
        assert holder["sent_s"] == transfer["entry_s"]


def test_rows() -> None:
    found, _ = simulations(PROBLEM, HOCKNEY, Mesh(4, 5))
    table = comparison_table(found)
    assert table.columns[0] == "algorithm"
    assert table.columns[-1] == "busiest link"
    assert [row["algorithm"] for row in table.rows] == [
        one.label.removeprefix("allgatherv/") for one in found
    ]
    without, _ = simulations(PROBLEM, HOCKNEY)
    assert table.columns[:-2] == comparison_table(without).columns
    assert all(float(row["over the bound"]) >= 1 for row in table.rows)


def test_messages_of_several_blocks_count_once() -> None:
    """In columns, as for many ranks, and one by one."""
    problem = Problem.of("allgatherv", 1100, 5, sources=[0, 3, 1000])
    (one,), _ = simulations(problem, POSTAL, algorithm="br_lin")
    schedule = one.trace.schedule
    sent = [op for operations in schedule.lists for op in operations if type(op).__name__ == "Send"]
    sizes = [sum(block.length for block in op.blocks) for op in sent]
    assert one.traffic == (len(sent), sum(sizes), 5, 15)


@pytest.mark.parametrize("compared", [True, False])
def test_too_many_messages(monkeypatch: pytest.MonkeyPatch, compared: bool) -> None:
    """Of 8 sources xor sends 152, by the lists of a few ranks 260; br_lin sends fewer."""
    problem = Problem.of("allgatherv", 20, 4096, sources=range(0, 16, 2), shape=(4, 5))
    monkeypatch.setattr(module, "MAX_SIMULATED", 8 * 200)
    if compared:
        found, excluded = simulations(problem, HOCKNEY, Mesh(4, 5))
        assert "allgatherv/br_lin" in {one.name for one in found}
        seen = excluded["allgatherv/xor"]
        assert seen.endswith("at most 200 are simulated beside other algorithms")
    else:
        simulations(problem, HOCKNEY, Mesh(4, 5), algorithm="xor")
        monkeypatch.setattr(module, "MAX_SIMULATED", 200)
        with pytest.raises(InvalidArgument, match="messages, and at most 200 are simulated"):
            simulations(problem, HOCKNEY, Mesh(4, 5), algorithm="xor")


def test_a_machine_on_which_nothing_can_be_played() -> None:
    with pytest.raises(InvalidArgument, match="knows no links"):
        simulations(PROBLEM, POSTAL, Mesh(4, 5))


def test_many_ranks() -> None:
    """The best by the model only, and what was left out; without a model somebody has to choose."""
    problem = Problem("broadcast", SEARCHED_RANKS + 1, 64)
    (one,), excluded = simulations(problem, POSTAL)
    planned = plan_for(problem, POSTAL)
    assert one.trace.completion == planned.choice.predicted
    assert set(excluded) == {c.name for c in planned.candidates[1:]} | set(planned.excluded)
    assert all("not simulated beyond" in excluded[c.name] for c in planned.candidates[1:])
    with pytest.raises(InvalidArgument, match="name one with --algorithm"):
        simulations(problem, LOGGP)


def test_settings_from_text() -> None:
    tree = ALGORITHMS["broadcast/postal_tree_segmented"]
    assert read_settings(tree, {"lam": "1.8", "segment": "4k"}) == {
        "lam": Fraction(9, 5),
        "segment": 4096,
    }
    assert read_settings(tree, {}) == {}
    hybrid = ALGORITHMS["allreduce/hybrid"]
    assert read_settings(hybrid, {"strategy": "01"}) == {"strategy": (0, 1)}
    for given in ({"segment": "0"}, {"segment": "-1"}, {"segment": "k"}, {"k": "2"}):
        with pytest.raises(InvalidArgument):
            read_settings(tree, given)


def test_unknown_algorithms() -> None:
    with pytest.raises(UnknownName, match="did you mean allgatherv/br_lin"):
        simulations(PROBLEM, POSTAL, algorithm="br_line")


def test_an_order_that_an_algorithm_does_not_keep() -> None:
    problem = Problem("allreduce", 6, 48, itemsize=8, order="rank")
    found, excluded = simulations(problem, POSTAL, reason="somebody wants it")
    assert found
    assert "somebody wants it" in excluded["allreduce/ring"]
    with pytest.raises(InvalidArgument, match="combines in"):
        simulations(problem, POSTAL, algorithm="ring")
