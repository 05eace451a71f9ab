"""Every check of the rank programs, at 1, 2, 3, 4, 5, 7 and 8 ranks: on MPICH always, on Open MPI
and where Python walks at 2, 3 and 8, and at the others with `-m exhaustive`.  Where the compiled
engine is not built, Python walks everywhere."""

import ast
from functools import lru_cache
from pathlib import Path

import pytest

from tests.mpi.launching import Library, Outcomes, outcomes

PROGRAMS = Path(__file__).parent / "programs"
RANKS = (1, 2, 3, 4, 5, 7, 8)
FEW = (2, 3, 8)
ALWAYS = {
    ("mpich", "compiled"): RANKS,
    ("mpich", "python"): FEW,
    ("openmpi", "compiled"): FEW,
    ("openmpi", "python"): (),
}
STARTS = [
    pytest.param(name, engine, ranks, marks=[pytest.mark.exhaustive] * (ranks not in always))
    for (name, engine), always in ALWAYS.items()
    for ranks in RANKS
]
every_start = pytest.mark.parametrize(("mpi", "engine", "ranks"), STARTS, indirect=["mpi"])


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


@pytest.fixture(scope="session")
def programs(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """The programs of the checks that somebody asked for; all of them, usually."""
    asked = {
        str(item.callspec.params["program"])
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.originalname == test_on_ranks.__name__
    }
    return tuple(sorted(asked or {program for program, _ in checks()}))


@lru_cache
def run(library: Library, engine: str, ranks: int, programs: tuple[str, ...]) -> Outcomes:
    return outcomes(library, engine, ranks, programs)


@pytest.mark.mpi
@every_start
@pytest.mark.parametrize(("program", "name"), checks())
def test_on_ranks(
    mpi: Library, engine: str, ranks: int, programs: tuple[str, ...], program: str, name: str
) -> None:
    told = run(mpi, engine, ranks, programs)
    found = told.complaints.get((program, name))
    assert found is not None, f"the ranks did not come to this check; {told.end}"
    assert found == [], "\n".join(found)


@pytest.mark.mpi
@every_start
def test_ranks_end_without_a_warning(
    mpi: Library, engine: str, ranks: int, programs: tuple[str, ...]
) -> None:
    assert run(mpi, engine, ranks, programs).end == ""
