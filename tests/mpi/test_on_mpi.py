"""Every check of the rank programs, on communicators of 1, 2, 3, 4, 5, 7 and 8 ranks.

One start of 8 ranks serves them all: the whole world, and parts of it.  On MPICH all these numbers
run always, on Open MPI 2, 3 and 8.  `-m exhaustive` starts a world of each number, on both.
"""

import ast
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conftest import LIBRARIES
from tests.mpi.launching import Library, Outcomes, outcomes, rounds

PROGRAMS = Path(__file__).parent / "programs"
RANKS = (1, 2, 3, 4, 5, 7, 8)
TOGETHER = {"mpich": RANKS, "openmpi": (2, 3, 8)}
STARTS = [
    *(pytest.param(name, n, False, id=f"{name}-{n}") for name in LIBRARIES for n in TOGETHER[name]),
    *(
        pytest.param(name, n, True, id=f"{name}-{n}-alone", marks=pytest.mark.exhaustive)
        for name in LIBRARIES
        for n in RANKS
    ),
]
every_start = pytest.mark.parametrize(("mpi", "ranks", "alone"), STARTS, indirect=["mpi"])


def checks() -> list[tuple[str, str]]:
    """Program and name of every check, read from the programs (running them needs ranks)."""
    return [(path.stem, name) for path in sorted(PROGRAMS.glob("*.py")) for name in _checks(path)]


def _checks(path: Path) -> list[str]:
    return [
        node.name
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef)
        and any(isinstance(d, ast.Name) and d.id == "check" for d in node.decorator_list)
    ]


class Start(NamedTuple):
    """Of ranks, once: for these numbers of them and the checks of these programs."""

    library: Library
    sizes: tuple[int, ...]
    programs: tuple[str, ...]


@pytest.fixture
def start(mpi: Library, ranks: int, alone: bool, request: pytest.FixtureRequest) -> Start:
    """For all the checks that somebody asked for."""
    asked = [
        item.callspec.params
        for item in request.session.items
        if isinstance(item, pytest.Function) and "start" in item.fixturenames
    ]
    sizes = {one["ranks"] for one in asked if (one["mpi"], one["alone"]) == (mpi.name, False)}
    programs = {one["program"] for one in asked if "program" in one}
    programs = programs or {program for program, _ in checks()}
    return Start(mpi, (ranks,) if alone else tuple(sorted(sizes)), tuple(sorted(programs)))


@lru_cache
def run(start: Start) -> Outcomes:
    return outcomes(*start)


@pytest.mark.mpi
@every_start
@pytest.mark.parametrize(("program", "name"), checks())
def test_on_ranks(start: Start, ranks: int, program: str, name: str) -> None:
    told = run(start)
    complaints = told.complaints.get((ranks, program, name))
    assert complaints is not None, f"{ranks} ranks did not come to this check; {told.end}"
    assert complaints == [], "\n".join(complaints)


@pytest.mark.mpi
@every_start
def test_ranks_end_without_a_warning(start: Start) -> None:
    assert run(start).end == ""


def test_rounds() -> None:
    assert rounds(RANKS) == [[8], [7, 1], [5, 3], [4, 2]]
    assert rounds([3]) == [[3]]
