"""What is raced for a program that told what it called."""

import json
from pathlib import Path
from typing import Any

import pytest

from collwise.errors import InvalidArgument
from collwise.tuning.occurred import MAX_TASKS, tasks_of


def call(nbytes: int = 800, times: int = 1, **more: Any) -> dict[str, Any]:
    given = {"method": "Bcast", "form": "blocking", "ranks": 4, "collective": "broadcast"}
    return {**given, "nbytes": nbytes, "times": times, **more}


def summary(folder: Path, *calls: dict[str, Any], **more: Any) -> Path:
    path = folder / "calls.json"
    document = {"format": "collwise calls", "version": 1, "ranks": 4, "calls": calls, **more}
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_the_most_frequent_first(tmp_path: Path) -> None:
    path = summary(
        tmp_path,
        call(800, 3),
        call(1600, 9),  # so near that its race decides about the one before
        call(100_000, 1),
        call(80, 5, collective="allreduce", op="max", dtype="int64"),
        call(16, 4, collective="allgatherv", sources=[[0, 8], [2, 8]]),
        call(80, 7, ranks=2),
        {"method": "Barrier", "form": "blocking", "ranks": 4, "times": 99},
    )
    told = [(t.problem.collective, t.problem.nbytes, t.op, t.dtype) for t in tasks_of(path, 4)]
    assert told == [
        ("broadcast", 1600, "sum", "float64"),
        ("allreduce", 80, "max", "int64"),
        ("allgatherv", 16, "sum", "float64"),
        ("broadcast", 100_000, "sum", "float64"),
    ]
    assert [source.rank for source in [*tasks_of(path, 4)][2].problem.sources] == [0, 2]
    assert [t.problem.nbytes for t in tasks_of(path, 2)] == [80]


def test_those_that_took_most_time_first(tmp_path: Path) -> None:
    path = summary(
        tmp_path,
        call(800, 90, spent_s=1.4e-3),
        call(80, 5, form="persistent", collective="reduce"),
        call(1000, 3, collective="allreduce", spent_s=588.0),
    )
    told = [task.problem.collective for task in tasks_of(path, 4)]
    assert told == ["allreduce", "broadcast", "reduce"]


def test_not_too_many(tmp_path: Path) -> None:
    names = "broadcast", "allreduce", "reduce"
    calls = [call(8 * 3**n, collective=name, op=None) for n in range(14) for name in names]
    assert len(tasks_of(summary(tmp_path, *calls), 4)) == MAX_TASKS


def test_operators_that_races_do_not_know(tmp_path: Path) -> None:
    path = summary(
        tmp_path, call(80, collective="allreduce", op="noncommutative", dtype="int64"), call(80)
    )
    assert [t.problem.collective for t in tasks_of(path, 4)] == ["broadcast"]


@pytest.mark.parametrize(
    ("calls", "told"),
    [
        ([], "it has no calls on 4 ranks that plans could serve; nothing is to be tuned"),
        ([call(ranks=8), call(ranks=1)], "on 4 ranks that plans could serve; try -n 8"),
        ([call(10**15)], "it has no calls on 4 ranks that plans could serve"),
    ],
)
def test_nothing_to_race(tmp_path: Path, calls: list[dict[str, Any]], told: str) -> None:
    with pytest.raises(InvalidArgument, match=told):
        tasks_of(summary(tmp_path, *calls), 4)


def test_what_is_no_summary(tmp_path: Path) -> None:
    """What else can be wrong with a document: `test_race_records.py`."""
    path = summary(tmp_path, format="profile")
    with pytest.raises(InvalidArgument, match=r"'profile'.*write it with collwise run --json"):
        tasks_of(path, 4)
