"""What is looked at, what is told of it, and the names of what libraries do; no MPI runs."""

from types import SimpleNamespace
from typing import Any

import pytest

from collwise.errors import InvalidArgument
from collwise.mpi.library.fingerprints import sided
from collwise.report.inspection_tables import inspection_document, inspection_table
from collwise.tuning.inspection import (
    SUM,
    Inspection,
    Seen,
    Subject,
    _looks,
    _not_looked_at,
    _stretches,
    inspect,
)
from collwise.tuning.known_shapes import name_of_expressions, name_of_tree, tree_text
from tests.case import in_case

TREE, REDUCE = ("broadcast", ""), ("reduce", SUM)
SMALL, LARGE = Seen("binomial", "0(1)", (None, 0)), Seen("all for all", "")


def looked(*, changes_at: int, sizes: tuple[int, ...], most: int) -> dict[Subject, dict[int, Seen]]:
    """What is seen by `most` looks at a library that changes at a size."""
    seen: dict[Subject, dict[int, Seen]] = {TREE: {}, REDUCE: {}}
    for (subject, nbytes), _ in zip(_looks(seen, sizes), range(most), strict=False):
        assert nbytes not in seen[subject], "it was looked at before"
        seen[subject][nbytes] = SMALL if nbytes < changes_at else LARGE
    return seen


@pytest.mark.parametrize("changes_at", [2, 8, 9, 1000, 4095, 4096])
@pytest.mark.parametrize("sizes", [(1, 4096), (8, 512, 4096), (7, 9, 4097)])
def test_changes_are_narrowed_down(changes_at: int, sizes: tuple[int, ...]) -> None:
    """To a byte, and to an element where vectors are combined."""
    seen = looked(changes_at=changes_at, sizes=sizes, most=1000)
    assert not _not_looked_at(seen, sizes)
    stretches = _stretches(seen)
    assert {(one.collective, one.operator) for one in stretches} == {TREE, REDUCE}
    trees = [one for one in stretches if one.collective == "broadcast"]
    if changes_at > sizes[0]:
        assert [one.first for one in trees] == [sizes[0], changes_at]
        assert trees[0].last == changes_at - 1
    firsts = [one.first for one in stretches if one.collective == "reduce"]
    assert firsts[-1] == max(-(-changes_at // 8) * 8, firsts[0])


def test_what_is_left_out() -> None:
    seen = looked(changes_at=100, sizes=(8, 512, 4096), most=5)
    assert _not_looked_at(seen, (8, 512, 4096)) == [
        "broadcast: it changes somewhere in 8 B … 512 B",
        "reduce (MPI.SUM): it changes somewhere in 8 B … 512 B",
        "4 KiB of reduce (MPI.SUM)",
    ]
    assert _not_looked_at({TREE: {}}, (8, 512)) == ["8 B … 512 B of broadcast"]


def test_one_rank_is_refused() -> None:
    alone: Any = SimpleNamespace(Get_size=lambda: 1)
    with pytest.raises(InvalidArgument, match="inspect 1 rank: one rank sends nothing; use 2 to"):
        inspect(alone, "MPI 9", ["broadcast"], [8], 1.0, lambda what, done: None)


def test_table_and_document_tell_the_same() -> None:
    seen = looked(changes_at=100, sizes=(8, 512), most=4)
    seen[REDUCE][512] = Seen("ring", "", (), False, True)
    inspection = Inspection(2, "MPI 9", _stretches(seen), ["nothing"])
    table, document = inspection_table(inspection), inspection_document(inspection)
    assert table.title == "MPI 9 on 2 ranks, seen from outside"
    assert (document["version"], document["left_out"]) == (1, ["nothing"])
    assert len(table.rows) == len(document["stretches"]) == 4
    assert [*table.rows[-1].values()] == [
        "reduce", "MPI.SUM", "512 B", "512 B", "ring", "-", "differ", "agree",
    ]  # fmt: skip
    assert document["stretches"][-1] == {
        "collective": "reduce",
        "operator": "MPI.SUM",
        "first": 512,
        "last": 512,
        "shape": "ring",
        "example": "",
        "parents": (),
        "ranks_agree": False,
        "elements_agree": True,
    }


def test_names_of_trees() -> None:
    for parents, text, name in (
        ((None, 0, 0, 2, 0), "0(1 2(3) 4)", "binomial"),  # MPICH's
        ((None, 0, 0, 1, 0), "0(1(3) 2 4)", "binomial"),  # Open MPI's
        ((None, 0, 1, 2, 3), "0(1(2(3(4))))", "chain"),
        ((3, 3, 3, None, 3), "3(0 1 2 4)", "flat"),
        ((None, 0, 0, 1, 2), "0(1(3) 2(4))", "a tree 2 deep, of at most 2 children"),
        ((None,), "0", "binomial"),
    ):
        with in_case(text):
            assert (tree_text(parents), name_of_tree(parents)) == (text, name)


def test_names_of_expressions() -> None:
    """As libraries were seen to combine on five ranks."""
    ring = [f"((((({a} {b}) {c}) {d}) {e}))"[1:-1] for a, b, c, d, e in map(_from, range(5))]
    for collective, seen, name in (
        ("reduce", ["(4 ((3 2) (1 0)))"], "binomial"),
        ("reduce", ["(0 (1 (2 (3 4))))"], "chain"),
        ("allreduce", ["((4 3) (2 (0 1)))"], "recursive_doubling or halving_doubling"),
        ("allreduce", ring, "ring"),
        ("allreduce", ["(((0 (1 2)) 4) 3)"], ""),
    ):
        with in_case(collective, *seen):
            these = frozenset(map(sided, seen))
            assert name_of_expressions(collective, 5, these.__eq__) == name


def test_many_ranks_have_names_of_usual_algorithms() -> None:
    text = "0"
    for rank in range(1, 40):
        text = f"({text} {rank})"
    assert "chain" in name_of_expressions("reduce", 40, {sided(_chain(40))}.__eq__)
    assert name_of_expressions("reduce", 40, {text}.__eq__).startswith("flat")


def _chain(ranks: int) -> str:
    return "".join(f"({rank} " for rank in range(ranks - 1)) + f"{ranks - 1}" + ")" * (ranks - 1)


def _from(first: int) -> list[int]:
    return [(first + step) % 5 for step in range(5)]
