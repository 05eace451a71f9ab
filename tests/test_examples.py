"""Worked examples print what stands beside them."""

import runpy
from itertools import chain
from pathlib import Path

import pytest

from tests.in_turn import printed_in_turn

FOLDER = Path(__file__).parents[1] / "examples"
ON_RANKS = {4: ("run_it", "share_a_table", "own_algorithm"), 5: ("same_bits",)}
"""By their number of ranks."""
EXAMPLES = sorted(path.stem for path in FOLDER.glob("*.py"))
ALONE = [name for name in EXAMPLES if name not in chain(*ON_RANKS.values())]


def printed(name: str) -> str:
    return (FOLDER / f"{name}.out").read_text(encoding="utf-8")


def test_each_is_listed() -> None:
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert all(f"({name}.py)" in text for name in EXAMPLES)
    assert {path.stem for path in FOLDER.glob("*.out")} == set(EXAMPLES)


@pytest.mark.parametrize("name", ALONE)
def test_it_prints_what_it_should(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(FOLDER / f"{name}.py"))
    assert capsys.readouterr().out == printed(name)


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", ON_RANKS)
def test_they_run_on_mpi(ranks: int) -> None:
    names = ON_RANKS[ranks]
    told = printed_in_turn(ranks, [FOLDER / f"{name}.py" for name in names])
    assert told == [printed(name) for name in names]
