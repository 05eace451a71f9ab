"""What fingerprints say about exported rules; `tests/mpi/test_exported_rules.py` has real ones."""

from typing import Any

import pytest

from collwise.errors import RanksLost
from collwise.formats.selection_rules import Rule
from collwise.measure.statistics import Interval
from collwise.tuning import export_check
from collwise.tuning.export_check import check

RULE = Rule("allreduce", "Allreduce", 4, 100, 200, (128,), "ring", 4, {}, {}, ())
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
    (found,) = check([RULE], {"FILE": "it"}, {})
    assert says in str(found)
    assert found.failed == failed
    assert found.speedup in (None, Interval(2.0, 1.5, 2.5))
    monkeypatch.setattr(export_check, "ask", lambda *_: ([], "they crashed"))
    with pytest.raises(RanksLost, match=r"the check on 4 ranks: with FILE they .*: they crashed"):
        check([RULE], {"FILE": "it"}, {})


def test_ranks_that_lie_otherwise_on_nodes_prove_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    told = {**OLD, "here": "1x4"}
    monkeypatch.setattr(export_check, "ask", lambda *_: ([{"rules": [told]}], ""))
    monkeypatch.setattr(export_check, "command_line", lambda ranks, command: command)
    on_nodes = RULE._replace(ranks_per_node="2x2")
    (found,) = check([on_nodes], {"FILE": "it"}, {})
    assert str(found).endswith("(2x2): ring; not checked: the ranks lie 1x4 here")
    assert (found.in_force, found.failed) == (None, False)
    (found,) = check([on_nodes._replace(ranks_per_node="1x4")], {"FILE": "it"}, {})
    assert found.here == ""
    assert found.in_force is False


def test_where_the_job_forces_an_algorithm_other_sizes_get_the_librarys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    undone = {"COLLWISE_TEST_FORCED": "0"}
    launches: list[dict[str, str]] = []

    def ask(command: object, environment: dict[str, str], limit_s: float) -> tuple[list[Any], str]:
        launches.append(environment)
        told = {**OLD, "outside": ["usual" if environment else "forced"]}
        return [{"rules": [{**told, "plain": ["ring"] if "FILE" in environment else ["tree"]}]}], ""

    monkeypatch.setattr(export_check, "ask", ask)
    monkeypatch.setattr(export_check, "command_line", lambda ranks, command: command)
    (found,) = check([RULE], {"FILE": "it", **undone}, undone)
    assert "other sizes have CHANGED" in str(found), "nothing is forced that would explain it"
    monkeypatch.setenv("COLLWISE_TEST_FORCED", "1")
    (found,) = check([RULE], {"FILE": "it", **undone}, undone)
    assert (found.in_force, found.elsewhere, found.failed) == (True, True, False)
    assert launches[2:] == [{"FILE": "it", **undone}, {}, undone]


def test_sizes_outside_of_a_rule_are_in_no_other() -> None:
    assert export_check._outside(RULE, [RULE]) == [64, 256]
    assert export_check._outside(RULE, [RULE, NEXT]) == [64]
    assert export_check._outside(RULE._replace(first=0), [RULE]) == [256]
