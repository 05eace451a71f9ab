"""Odd arguments of the programs in benchmarks/: usage errors, before anything is timed."""

import runpy
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.mark.parametrize(
    "command",
    [
        "engine.py --ranks 0",
        "engine.py --budget nan",
        "exported.py --hosts 1",
        "fallback.py --engine fortran",
        "fixed_order.py --bytes 0",
        "lab.py --rows nope",
        "lab.py --mpi intel",
        "levels.py --rows 4x4,",
        "levels.py --scale inf",
        "libraries.py --budget nan",
        "mpi4py_suite.py --ranks 2,-1",
        "one_rank.py --sources 0",
        "overhead.py --ranks x",
        "own_proofs.py --ranks 0",
        "planning.py --ranks 1",
        "planted.py --hosts 1",
        "ratios.py --sample 0",
        "slurm.py --nodes 0",
        "switching.py --rounds 0",
        "simulating.py --ranks 1e6",
        "simulating_levels.py --only nope",
        "sweeping.py --budget 0",
    ],
)
def test_usage(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program, *words = command.split()
    monkeypatch.syspath_prepend(FOLDER)
    monkeypatch.setattr(sys, "argv", [program, *words])
    with pytest.raises(SystemExit) as end:
        runpy.run_path(f"{FOLDER / program}", run_name="__main__")
    assert end.value.code == 2
    assert f"error: argument {words[0]}: " in capsys.readouterr().err
