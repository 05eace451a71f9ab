"""Every check of the rank programs, on communicators of 1, 2, 3, 4, 5, 7 and 8 ranks.

One start serves several numbers: the whole world, and parts of it.  By default every check runs on
1, 2 or 3, and one of 4, 5, 7 and 8 ranks with the compiled engine and MPICH, on one of 2 to 5 with
Open MPI, and on 2 or 3 with Python's engine (`has_turn`).  `-m exhaustive` starts a world of each
number, with both libraries and both engines, with Intel MPI, and with messages that go through the
memory of a node.  Where the compiled engine is not built, Python walks everywhere.
"""

import ast
from functools import lru_cache
from itertools import chain, product
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.mpi.launching import Library, Outcomes, outcomes, rounds
from tests.mpi.turns import ON_ONE_NUMBER, Turns, has_turn

PROGRAMS = Path(__file__).parent / "programs"
RANKS = (1, 2, 3, 4, 5, 7, 8)
TURNS: dict[tuple[str, str], Turns] = {
    ("mpich", "compiled"): ((1,), (3, 2), (5, 4, 5, 4, 5, 4, 8, 7)),  # 7, 8: on two cores
    ("mpich", "python"): ((2, 3),),
    ("openmpi", "compiled"): ((2, 3, 5, 4),),
    ("openmpi", "python"): (),
}
ANY_ENGINE = {"inspecting", "learning", "own_algorithms", "racing"}
"""Programs that are about the library and about times: the compiled engine has them."""
STARTS = [
    (*which, ranks) for which in TURNS for group in TURNS[which] for ranks in sorted({*group})
]
WORLDS = [(*which, ranks, "") for which in (*TURNS, ("intel", "compiled")) for ranks in RANKS]
WORLDS += [
    (mpi, "compiled", ranks, "messages") for mpi in ("mpich", "openmpi") for ranks in (2, 3, 5)
]
LEFT_OUT = {
    "intel": {
        "own_algorithms": "Intel MPI reads its variables before MPI_Init only",
        "own_candidates": "the same",
        "the_librarys_other_algorithms_are_tried": "it has none that can be switched",
        "buffers_in_all_notations": "plain mpi4py alone crashes on the same calls",
        "odd_arguments_end_as_mpi4pys": "the same",
    }
}
"""Programs and checks that a library cannot run, with the reason."""
every_start = pytest.mark.parametrize(("mpi", "engine", "ranks"), STARTS, indirect=["mpi"])


@lru_cache
def checks() -> dict[str, list[str]]:
    """The names of the checks by program, read from the programs (running them needs ranks)."""
    every = {path.stem: _checks(path) for path in sorted(PROGRAMS.glob("*.py"))}
    return {program: names for program, names in every.items() if names}


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
    engine: str
    sizes: tuple[int, ...]
    programs: tuple[str, ...]


@pytest.fixture
def start(mpi: Library, engine: str, request: pytest.FixtureRequest) -> Start:
    """For all the checks of this file that somebody asked for."""
    asked: list[dict[str, Any]] = [
        item.callspec.params
        for item in request.session.items
        if isinstance(item, pytest.Function)
        and item.path == request.path
        and "start" in item.fixturenames
    ]
    asked = [one for one in asked if (one["mpi"], one["engine"]) == (mpi.name, engine)]
    sizes = {one["ranks"] for one in asked}
    programs = {one["program"] for one in asked if "program" in one}
    programs = programs or {*checks()}
    return Start(mpi, engine, tuple(sorted(sizes)), tuple(sorted(programs)))


@lru_cache
def run(start: Start) -> Outcomes:
    return outcomes(*start, TURNS[start.library.name, start.engine])


def in_turn(program: str, library: str, engine: str, ranks: int) -> list[str]:
    """The checks of a program that run on so many ranks by default."""
    if engine == "python" and program in ANY_ENGINE:
        return []
    turns = TURNS[library, engine]
    return [name for name in checks()[program] if has_turn(name, ranks, turns)]


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("program", "mpi", "engine", "ranks"),
    [(program, *one) for one in STARTS for program in checks() if in_turn(program, *one)],
    indirect=["mpi"],
)
def test_on_ranks(start: Start, ranks: int, program: str) -> None:
    """One test for all checks of a program: every worker collects every test."""
    ran = run(start)
    wrong = []
    for name in in_turn(program, start.library.name, start.engine, ranks):
        complaints = ran.complaints.get((ranks, program, name))
        if complaints is None:
            wrong.append(f"{name}: {ranks} ranks did not come to it; {ran.end}")
        elif complaints:
            wrong.append("\n".join((f"{name}:", *complaints)))
    assert not wrong, "\n\n".join(wrong)


@pytest.mark.mpi
@every_start
def test_ranks_end_without_a_warning(start: Start, ranks: int) -> None:
    assert run(start).end == "", f"{ranks} ranks"


@pytest.mark.mpi
@pytest.mark.exhaustive
@pytest.mark.parametrize(("mpi", "engine", "ranks", "node"), WORLDS, indirect=["mpi"])
def test_in_a_world_of_their_own(mpi: Library, engine: str, ranks: int, node: str) -> None:
    """node: what carries messages inside a node; memory, where the ranks can, if it is empty."""
    left_out = LEFT_OUT.get(mpi.name, {})
    programs = [program for program in checks() if program not in left_out]
    told = outcomes(mpi, engine, (ranks,), programs, without=[*left_out], COLLWISE_NODE=node)
    assert told.end == ""
    every: dict[tuple[int, str, str], list[str]] = {
        (ranks, program, name): []
        for program in programs
        for name in checks()[program]
        if name not in left_out
    }
    assert told.complaints == every


def test_turns() -> None:
    """Each check has one number of each group, and each number has checks of most programs."""
    names = {*chain.from_iterable(checks().values())}
    assert names > {*ON_ONE_NUMBER}
    for turns in TURNS.values():
        for name, group in product(names, turns):
            number = sum(has_turn(name, ranks, turns) for ranks in {*group})
            assert number == (name not in ON_ONE_NUMBER or ON_ONE_NUMBER[name] in group)
        for ranks in chain.from_iterable(turns):
            having = [any(has_turn(name, ranks, turns) for name in c) for c in checks().values()]
            assert sum(having) > len(having) // 2
    for name in ON_ONE_NUMBER:
        assert all(any(has_turn(name, n, turns) for n in RANKS) for turns in TURNS.values())
        assert not has_turn(name, 1, TURNS["mpich", "compiled"])


def test_rounds() -> None:
    assert rounds(RANKS) == [[8], [7, 1], [5, 3], [4, 2]]
    assert rounds([3]) == [[3]]
