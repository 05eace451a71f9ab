"""Every check of the rank programs, on both libraries, at 1, 2, 3, 4, 5, 7 and 8 ranks."""

import ast
from functools import lru_cache
from pathlib import Path

import pytest

from tests.mpi.launching import Library, outcomes

PROGRAMS = Path(__file__).parent / "programs"
RANKS = (1, 2, 3, 4, 5, 7, 8)


def checks() -> list[tuple[str, str]]:
    """Program and name of every check, read from the programs (running them needs ranks)."""
    return [
        (path.stem, name)
        for path in sorted(PROGRAMS.glob("*.py"))
        if (names := _checks(path))
        for name in [*names, "ends without a warning"]
    ]


def _checks(path: Path) -> list[str]:
    return [
        node.name
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef)
        and any(isinstance(d, ast.Name) and d.id == "check" for d in node.decorator_list)
    ]


@lru_cache
def run(library: Library, ranks: int, program: str) -> dict[str, list[str]]:
    return outcomes(library, ranks, program)


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize(("program", "name"), checks())
def test_on_ranks(mpi: Library, ranks: int, program: str, name: str) -> None:
    found = run(mpi, ranks, program)
    assert name in found, f"the program did not come to this check; {found}"
    assert found[name] == [], "\n".join(found[name])
