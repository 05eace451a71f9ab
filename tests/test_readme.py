"""README and site are true: the gains they print, and every block of code, which runs."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

import pytest

import collwise as cw
from collwise.algorithms import ALGORITHMS
from tests.case import in_case
from tests.page_blocks import LANGUAGES, ROOT, Block, Reader, blocks, not_understood, pages

README = (ROOT / "README.md").read_text(encoding="utf-8")
TABLE = (ROOT / "docs" / "gains.md").read_text(encoding="utf-8")
PAGES = pages()
RUN = [page for page in PAGES if any(not block.waits for block in blocks(page))]
LONG = [page for page in PAGES if any(block.how == "exhaustive" for block in blocks(page))]
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
    assert [task for task, _ in GAIN.findall(TABLE)] == list(GAINS)


def test_gains_of_the_readme_are_from_the_table() -> None:
    """It has four of them, with the same rivals."""
    row = re.compile(r"^\| .+ \| ([0-9.]+) \| (.+?) \| .+ \|$", re.M)
    assert len(row.findall(README)) == 4
    assert {*row.findall(README)} <= {*row.findall(TABLE)}


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 150


@pytest.mark.parametrize(("task", "printed"), GAIN.findall(TABLE))
def test_it_gains(task: str, printed: str) -> None:
    digits = len(printed.partition(".")[2])
    assert f"{float(GAINS[task]()):.{digits}f}" == printed


def name_of(page: Path) -> str:
    return os.path.relpath(page, ROOT)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_blocks_are_understood(page: Path) -> None:
    """Every block says its language; collwise knows every option of every command."""
    for block in blocks(page):
        assert block.language in LANGUAGES, f"{page}:{block.line}: which language is this?"
        assert not not_understood(block), f"{page}:{block.line}"
        if block.language == "text":
            assert not re.search(r"^(\$ |collwise |mpiexec )", block.text, re.M), (
                f"{page}:{block.line}: commands are run if their language is console"
            )


@pytest.mark.mpi
@pytest.mark.parametrize("page", RUN, ids=name_of)
def test_blocks_run(page: Path, tmp_path: Path) -> None:
    read_all(page, tmp_path, [block for block in blocks(page) if not block.waits])


@pytest.mark.mpi
@pytest.mark.exhaustive
@pytest.mark.parametrize("page", LONG, ids=name_of)
def test_long_blocks_run(page: Path, tmp_path: Path) -> None:
    here = [block for block in blocks(page) if not block.how.startswith("elsewhere")]
    read_all(page, tmp_path, here)


def read_all(page: Path, folder: Path, chosen: Sequence[Block]) -> None:
    reader = Reader(folder)
    for block in chosen:
        with in_case(f"{name_of(page)}:{block.line}"):
            reader.read(block)


@pytest.mark.parametrize(
    ("page", "lie"),
    [
        ("```console\n$ echo one\ntwo\n```\n", "printed"),
        ("```console\n$ false\n```\n", "false"),
        ("<!-- test: exit 2 -->\n```console\n$ collwise plan\nfine\n```\n", "printed"),
        ("```python\nprint(1)\n```\n<!-- test: printed -->\n```text\n…\n2\n```\n", "printed"),
        ("```\n$ true\n```\n", "language"),
    ],
)
def test_a_page_that_lies_is_found(tmp_path: Path, page: str, lie: str) -> None:
    path = tmp_path / "page.md"
    path.write_text(page, encoding="utf-8")
    with pytest.raises(AssertionError, match=lie):
        read_all(path, tmp_path, blocks(path))


@pytest.mark.parametrize("printed", ["a\n", "a\nb\nc\nd\n"])
def test_lines_that_a_page_leaves_out(tmp_path: Path, printed: str) -> None:
    path = tmp_path / "page.md"
    command = f"printf {printed!r}"
    path.write_text(f"```console\n$ {command}\na\n…\n```\n", encoding="utf-8")
    read_all(path, tmp_path, blocks(path))


def test_options_that_there_are_not(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("```console\n$ mpiexec -n 2 collwise tune --fast\n```\n", encoding="utf-8")
    (block,) = blocks(path)
    assert "--fast" in not_understood(block)[0]
