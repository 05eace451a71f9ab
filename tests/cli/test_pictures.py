"""`--picture` of `plan` and `simulate`: which files are drawn, and which are refused at once."""

from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.cli.running import HOCKNEY, POSTAL, document

PLAN = ("plan", "-n", 8, "--bytes", 512, *POSTAL)
ON_A_MESH = (
    *("simulate", "allgatherv", "-n", 20, "--bytes", "4k", "--sources", "0,7,13"),
    *("--topology", "mesh:4x5", *HOCKNEY, "--algorithm", "br_lin"),
)


@pytest.mark.no_cover
def test_two_files(collwise: Run, folder: Path) -> None:
    """In a new folder; both are told, to people and to programs."""
    names = ["new/it.png", "new/it-timeline.png", "new/mesh.SVG", "new/mesh-timeline.SVG"]
    out = collwise(*PLAN, "--picture", names[0]).printed()
    assert out.endswith(f"picture      {names[0]}\ntimeline     {names[1]}\n")
    told = document(collwise, *ON_A_MESH, "--picture", names[2])
    assert told["pictures"] == names[2:]
    assert {str(path.relative_to(folder)) for path in folder.glob("new/*")} == {*names}
    begins = [(folder / name).read_bytes()[:5] for name in names]
    assert begins == [b"\x89PNG\r"] * 2 + [b"<?xml"] * 2


@pytest.mark.no_cover
def test_what_is_not_drawn_in_space_is_told(collwise: Run, folder: Path) -> None:
    """The timeline has the same name as beside a picture in space."""
    asked = ("reduce", "-n", 8, "--bytes", 64, *POSTAL, "--picture", "it.svg")
    lines = collwise("simulate", *asked).out.splitlines()[-2:]
    assert [line.split()[1] for line in lines] == ["none", "it-timeline.svg"]
    assert document(collwise, "plan", *asked)["pictures"] == ["it-timeline.svg"]
    assert [path.name for path in folder.iterdir()] == ["it-timeline.svg"]


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
