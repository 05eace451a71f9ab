"""Worked examples print what stands beside them."""

import runpy
from pathlib import Path

import pytest

from tests.mpi.launching import mpich

FOLDER = Path(__file__).parents[1] / "examples"
ON_RANKS = {"run_it": 4, "own_algorithm": 4, "share_a_table": 4, "same_bits": 5}
EXAMPLES = sorted(path.stem for path in FOLDER.glob("*.py"))


def printed(name: str) -> str:
    return (FOLDER / f"{name}.out").read_text(encoding="utf-8")


def test_each_is_listed() -> None:
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert all(f"({name}.py)" in text for name in EXAMPLES)
    assert {path.stem for path in FOLDER.glob("*.out")} == set(EXAMPLES)


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name not in ON_RANKS])
def test_it_prints_what_it_should(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(FOLDER / f"{name}.py"))
    assert capsys.readouterr().out == printed(name)


@pytest.mark.mpi
@pytest.mark.parametrize("name", ON_RANKS)
def test_it_runs_on_mpi(name: str) -> None:
    ran = mpich().run(ON_RANKS[name], str(FOLDER / f"{name}.py"))
    assert (ran.returncode, ran.stdout) == (0, printed(name)), ran.stderr
