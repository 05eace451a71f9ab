"""What fingerprints say about exported rules; `tests/mpi/test_exported_rules.py` has real ones."""

from typing import Any

import pytest

from collwise.errors import RanksLost
from collwise.formats import mpich_selection, openmpi_rules
from collwise.formats.selection_rules import Rule
from collwise.measure.statistics import Interval
from collwise.tuning import export_check
from collwise.tuning.export_check import check

RULE = Rule("allreduce", "Allreduce", 4, 100, 200, (128,), "ring", 4, {}, {}, ())
FORM = openmpi_rules.FORMAT._replace(undoing=lambda rules: {})
NEXT = RULE._replace(first=201, last=300, raced=(256,))
OLD = {"plain": ["usual"], "forced": ["ring"], "outside": ["usual"], "speedup": [2.0, 1.5, 2.5]}


@pytest.mark.parametrize(
    ("new", "old", "says", "failed"),
    [
        ({"plain": ["ring"]}, {}, "in force; 1.50 to 2.50 times as fast as the default", False),
        ({"plain": ["usual"]}, {}, "NOT in force; 1.50 to 2.50 times", True),
        ({"plain": ["tree"]}, {}, "NOT in force", True),
        ({"plain": ["ring"]}, {"plain": ["ring"]}, "no fingerprint tells it from the", False),
        ({"plain": ["ring"], "outside": ["ring"]}, {}, "other sizes have CHANGED, too", True),
        ({"plain": ["ring"]}, {"forced": None, "speedup": None}, "ring; in force", False),
        ({"plain": ["usual"]}, {"forced": None, "speedup": None}, "no fingerprint tells", False),
        ({"plain": [None], "outside": [None]}, {}, "no fingerprint tells", False),
    ],
)
def test_verdicts(
    monkeypatch: pytest.MonkeyPatch, new: Any, old: Any, says: str, failed: bool
) -> None:
    def ask(command: object, environment: object, limit_s: float) -> tuple[list[Any], str]:
        told = {"outside": ["usual"], **new} if environment else {**OLD, **old}
        return [{"rules": [told]}], ""

    monkeypatch.setattr(export_check, "ask", ask)
    monkeypatch.setattr(export_check, "command_line", lambda ranks, command: command)
    (found,) = check([RULE], {"FILE": "it"}, FORM)
    assert says in str(found)
    assert found.failed == failed
    assert found.speedup in (None, Interval(2.0, 1.5, 2.5))
    monkeypatch.setattr(export_check, "ask", lambda *_: ([], "they crashed"))
    with pytest.raises(RanksLost, match=r"the check on 4 ranks: with FILE they .*: they crashed"):
        check([RULE], {"FILE": "it"}, FORM)


def test_ranks_that_lie_otherwise_on_nodes_prove_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    told = {**OLD, "here": "1x4"}
    monkeypatch.setattr(export_check, "ask", lambda *_: ([{"rules": [told]}], ""))
    monkeypatch.setattr(export_check, "command_line", lambda ranks, command: command)
    on_nodes = RULE._replace(ranks_per_node="2x2")
    (found,) = check([on_nodes], {"FILE": "it"}, FORM)
    assert str(found).endswith("(2x2): ring; not checked: the ranks lie 1x4 here")
    assert (found.in_force, found.failed) == (None, False)
    (found,) = check([on_nodes._replace(ranks_per_node="1x4")], {"FILE": "it"}, FORM)
    assert found.here == ""
    assert found.in_force is False


def test_where_the_job_forces_an_algorithm_other_sizes_get_the_librarys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    undone = {"COLLWISE_TEST_FORCED": "0"}
    form = FORM._replace(undoing=lambda rules: undone)
    launches: list[dict[str, str]] = []

    def ask(command: object, environment: dict[str, str], limit_s: float) -> tuple[list[Any], str]:
        launches.append(environment)
        told = {**OLD, "outside": ["usual" if environment else "forced"]}
        return [{"rules": [{**told, "plain": ["ring"] if "FILE" in environment else ["tree"]}]}], ""

    monkeypatch.setattr(export_check, "ask", ask)
    monkeypatch.setattr(export_check, "command_line", lambda ranks, command: command)
    (found,) = check([RULE], {"FILE": "it", **undone}, form)
    assert "other sizes have CHANGED" in str(found), "nothing is forced that would explain it"
    monkeypatch.setenv("COLLWISE_TEST_FORCED", "1")
    (found,) = check([RULE], {"FILE": "it", **undone}, form)
    assert (found.in_force, found.elsewhere, found.failed) == (True, True, False)
    assert launches[2:] == [{"FILE": "it", **undone}, {}, undone]


def test_sizes_outside_of_a_rule_are_in_no_other() -> None:
    assert export_check._outside(RULE, [RULE]) == [64, 256]
    assert export_check._outside(RULE, [RULE, NEXT]) == [64]
    assert export_check._outside(RULE._replace(first=0), [RULE]) == [256]


@pytest.mark.parametrize(
    ("dump", "changed", "says"),
    [
        ({"Allreduce_intra_ring": 201, "Bcast_intra_tree": 3}, {}, "ring; in force"),
        ({"Allreduce_intra_ring_2": 200, "Allreduce_intra_ring": 3}, {}, "NOT in force"),
        ({"Bcast_intra_tree": 3}, {}, "NOT in force"),
        ({"Allreduce_intra_ring": 400}, {}, "NOT in force"),  # in parts of another algorithm
        ({"Allreduce_intra_ring": 200}, {"k": 8}, "no fingerprint tells"),  # nor do counters
        ({}, {}, "no fingerprint tells"),
    ],
)
def test_counters_tell_where_fingerprints_do_not(
    monkeypatch: pytest.MonkeyPatch, dump: dict[str, int], changed: dict[str, int], says: str
) -> None:
    """A launch of its own makes 100 calls of each size that was raced.

    The lines are as MPICH 5.1 printed them for its authors (mpich#7547).
    """
    launches: list[Any] = []

    def ran(command: list[str], environment: object, limit_s: float) -> tuple[str, str]:
        launches.append([command[-1], environment])
        lines = [f"[0] {calls:10}  MPIR_{name}\n" for name, calls in dump.items()]
        begin = "[0] ==== Dump collective algorithm counters ====\n"
        return begin + "".join(lines) + "[0] ==== END collective algorithm counters ====\n", ""

    told = {"plain": ["usual"], "forced": ["usual"]}
    monkeypatch.setattr(export_check, "ask", lambda *_: ([{"rules": [{**OLD, **told}]}], ""))
    monkeypatch.setattr(export_check, "command_line", lambda ranks, command: command)
    monkeypatch.setattr(export_check, "ran", ran)
    form = mpich_selection.FORMAT.read_by("MPICH 5.1.0b1")
    both = RULE._replace(raced=(128, 192), changed=changed)
    (found,) = check([both], {"FILE": "it"}, form)
    assert says in str(found)
    assert found.failed == ("NOT" in says)
    code = "from collwise.tuning.export_check import repeat; repeat('Allreduce', (128, 192))"
    environment = {"FILE": "it", "MPIR_CVAR_DUMP_COLL_ALGO_COUNTERS": "0"}
    assert launches == [[code, environment]] * (not changed)
