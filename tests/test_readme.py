"""What the README says of the model is so: the gains it prints, the programs that need no MPI."""

import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

import pytest

import collwise as cw
from collwise.algorithms import ALGORITHMS

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
GAIN = re.compile(r"^\| (.+?) \| ([0-9.]+) \| .+ \| (?:the model, exact|simulated, .+) \|$", re.M)
MESH = cw.topology.Mesh(10, 10)


def gain(collective: str, rivals: Sequence[str], machine: cw.Machine, **asked: object) -> Fraction:
    plan: Callable[..., cw.Plan] = cw.plan
    usual = [plan(collective, machine=machine, algorithm=rival, **asked) for rival in rivals]
    best = plan(collective, machine=machine, **asked)
    return min(one.choice.predicted for one in usual) / best.choice.predicted


def postal(lam: str) -> cw.Machine:
    return cw.Machine.postal(t0_s=1e-6, lam=Fraction(lam))


def cross() -> Fraction:
    sources = cw.sources.distribute("cross", MESH.shape, 30)
    machine = cw.presets["paragon"].machine
    asked = {"ranks": 100, "sources": sources, "nbytes": 4096, "topology": MESH}
    return gain("allgatherv", ["br_xy_source"], machine, **asked)


def of_allreduces() -> Fraction:
    asked = {"ranks": 64, "nbytes": 8, "order": "same"}
    return gain("allreduce", ["recursive_doubling"], postal("4"), **asked)


def of_allgathers() -> Fraction:
    asked = {"ranks": 64, "sources": range(64), "nbytes": 8}
    return gain("allgatherv", ["recursive_doubling", "bruck"], postal("8"), **asked)


def of_scatters() -> Fraction:
    rivals = [name for name in ALGORITHMS if name.startswith("broadcast/scatter_")]
    machine = cw.Machine.hockney(alpha_s=1e-6, beta_s=1e-9)
    return gain("broadcast", rivals, machine, ranks=64, nbytes=1 << 16)


GAINS: Mapping[str, Callable[[], Fraction]] = {
    "broadcast, 64 ranks, λ = 1.8": lambda: gain(
        "broadcast", ["binomial"], postal("1.8"), ranks=64, nbytes=8
    ),
    "broadcast, 64 ranks, λ = 4": lambda: gain(
        "broadcast", ["binomial"], postal("4"), ranks=64, nbytes=8
    ),
    "broadcast of 64 KiB, 64 ranks, α = 1 µs, β = 1 ns/B": of_scatters,
    "allreduce of short vectors, 64 ranks, λ = 4, the same bits everywhere": of_allreduces,
    "allgatherv of short blocks, 64 ranks, λ = 8": of_allgathers,
    "allgatherv (s-to-p), 3 of 32 ranks give 1 KB, λ = 4": lambda: gain(
        "allgatherv", ["ring"], postal("4"), ranks=32, sources=(0, 11, 21), nbytes=1024
    ),
    "allgatherv (s-to-p), 30 of 10 × 10 ranks, a cross, 4 KB": cross,
}


def test_every_gain_is_computed() -> None:
    assert [task for task, _ in GAIN.findall(README)] == list(GAINS)


@pytest.mark.parametrize(("task", "printed"), GAIN.findall(README))
def test_it_gains(task: str, printed: str) -> None:
    digits = len(printed.partition(".")[2])
    assert f"{float(GAINS[task]()):.{digits}f}" == printed


@pytest.mark.parametrize("program", re.findall(r"```python\n(import collwise.+?)```", README, re.S))
def test_programs_without_mpi(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The second one continues the first."""
    exec(compile(program, "README.md", "exec"), {})
    assert capsys.readouterr().out
