"""`--picture` of `plan` and `simulate`: which files are drawn, and which are refused at once."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.cli.running import HOCKNEY, POSTAL

PLAN = ("plan", "-n", 8, "--bytes", 512, *POSTAL)
ON_A_MESH = (
    *("simulate", "allgatherv", "-n", 20, "--bytes", "4k", "--sources", "0,7,13"),
    *("--topology", "mesh:4x5", *HOCKNEY, "--algorithm", "br_lin"),
)


@pytest.mark.no_cover
@pytest.mark.parametrize("suffix", [".png", ".svg", ".SVG"])
@pytest.mark.parametrize("asked", [PLAN, ON_A_MESH], ids=["a tree", "a mesh"])
def test_two_files(collwise: Run, folder: Path, asked: tuple[object, ...], suffix: str) -> None:
    """In a new folder; both are told, to people and to programs."""
    names = [f"new/it{suffix}", f"new/it-timeline{suffix}"]
    if suffix == ".SVG":
        ended = collwise(*asked, "--picture", names[0], "--json")
        assert json.loads(ended.out)["pictures"] == names
    else:
        ended = collwise(*asked, "--picture", names[0])
        told = f"picture      {names[0]}\ntimeline     {names[1]}\n"
        assert ended.out.endswith(told)
    assert (ended.code, ended.err) == (0, "")
    magic = b"\x89PNG" if suffix == ".png" else b"<?xml"
    assert {str(path.relative_to(folder)) for path in folder.glob("new/*")} == {*names}
    assert all((folder / name).read_bytes().startswith(magic) for name in names)


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("command", "asked", "in_space"),
    [
        ("plan", ["reduce", "-n", 8, *POSTAL], False),
        ("simulate", ["reduce", "-n", 8, *POSTAL], False),
        ("simulate", ["reduce", "-n", 8, "--topology", "mesh:2x4", *HOCKNEY], True),
        ("plan", ["broadcast", "-n", 8, "--topology", "hypercube:3", *HOCKNEY], True),  # a tree
        ("simulate", ["allreduce", "-n", 8, "--topology", "torus:2x2x2", *HOCKNEY], False),
        ("plan", ["allgatherv", "-n", 8, "--topology=complete:8", "--sources=1,", *HOCKNEY], True),
        ("simulate", ["broadcast", "-n", 1, *POSTAL], True),
    ],
)
def test_what_is_drawn(
    collwise: Run, folder: Path, command: str, asked: list[object], in_space: bool
) -> None:
    """The timeline always has the name of one; networks that do not lie flat are no reason to draw
    nothing.  What is written is told, and what is not: here by `plan` in words, by `simulate` as
    JSON."""
    written = ["it.svg"] * in_space + ["it-timeline.svg"]
    asked = [command, *asked, "--bytes", 64, "--picture", "it.svg"]
    if command == "plan":
        ended = collwise(*asked)
        assert (ended.code, ended.err) == (0, "")
        told = [line.split()[1] for line in ended.out.splitlines()[-2:]]
        assert told == ["it.svg" if in_space else "none", "it-timeline.svg"]
    else:
        assert json.loads(collwise(*asked, "--json").out)["pictures"] == written
    assert sorted(path.name for path in folder.iterdir()) == sorted(written)


@pytest.mark.parametrize("command", ["plan", "simulate"])
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("it.pdf", ["'--picture'", "ends in .png or .svg"]),
        ("it", ["'--picture'", "has no suffix"]),
        ("it.png.txt", ["ends in .png or .svg"]),
        ("file/it.png", ["file/it.png cannot be made", "is no folder; name another file"]),
        ("mistyped/deep/it.svg", ["there is no folder ", "/mistyped;"]),
    ],
)
def test_refused(collwise: Run, folder: Path, command: str, name: str, words: list[str]) -> None:
    (folder / "file").touch()
    collwise(command, *PLAN[1:], "--picture", name, "--json").refused(*words)
    assert [path.name for path in folder.iterdir()] == ["file"]


@pytest.mark.parametrize("command", ["plan", "simulate"])
def test_too_many_ranks(collwise: Run, folder: Path, command: str) -> None:
    """Before anything is planned."""
    asked = (command, "-n", 1_000_000, "--bytes", 8, "--preset", "t3d", "--picture", "it.png")
    collwise(*asked).refused("1000000 ranks", "at most 4096 ranks")
    assert list(folder.iterdir()) == []
