"""Every check of the rank programs, on both libraries, at 1, 2, 3, 4, 5, 7 and 8 ranks."""

import ast
from functools import lru_cache
from pathlib import Path

import pytest

from tests.mpi.launching import Library, outcomes

PROGRAM = Path(__file__).parent / "programs" / "broadcasting.py"
RANKS = (1, 2, 3, 4, 5, 7, 8)


def checks() -> list[str]:
    """The names of the checks, read from the program itself (running it needs ranks)."""
    return [
        node.name
        for node in ast.parse(PROGRAM.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef)
        and any(isinstance(d, ast.Name) and d.id == "check" for d in node.decorator_list)
    ]


@lru_cache
def run(library: Library, ranks: int) -> dict[str, list[str]]:
    return outcomes(library, ranks, PROGRAM.stem)


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("name", [*checks(), "ends without a warning"])
def test_on_ranks(mpi: Library, ranks: int, name: str) -> None:
    found = run(mpi, ranks)
    assert name in found, f"the program did not come to this check; {found}"
    assert found[name] == [], "\n".join(found[name])
