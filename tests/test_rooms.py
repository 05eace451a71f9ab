"""What the rooms say of themselves, and CONTRIBUTING of them: each names what there is."""

import re
from pathlib import Path

import collwise

PACKAGE = Path(collwise.__file__).parent
ROOT = PACKAGE.parents[1]
LISTED_ELSEWHERE = ("algorithms", "papers")
"""What lies in folders of these rooms: algorithms in the registry, exhibits in each paper."""


def _missing(room: Path) -> set[str]:
    """The modules and rooms in a room that its docstring does not name."""
    text = (room / "__init__.py").read_text(encoding="utf-8").split('"""')[1]
    inside = {path.stem for path in room.glob("*.py")}
    inside |= {path.parent.name for path in room.glob("*/__init__.py")}
    if room.name == "algorithms":
        inside -= {path.parent.name for path in room.glob("*/__init__.py")}  # collectives
    if room.name == "cli":
        inside = {name for name in inside if not name.endswith("_command")}  # COMMANDS
    return {name for name in inside - {"__init__"} if f"`{name}`" not in text}


def test_every_room_names_its_modules() -> None:
    rooms = [init.parent for init in PACKAGE.rglob("__init__.py") if init.parent != PACKAGE]
    rooms = [room for room in rooms if room.parent.name not in LISTED_ELSEWHERE]
    assert len(rooms) > 20
    assert not {str(room): names for room in rooms if (names := _missing(room))}


def test_no_module_is_longer_than_400_lines() -> None:
    modules = PACKAGE.rglob("*.py")
    lines = {str(path): len(path.read_text(encoding="utf-8").splitlines()) for path in modules}
    assert len(lines) > 300
    assert not {path: number for path, number in lines.items() if number > 400}


def test_what_contributing_names_is_there() -> None:
    """Files by the end of their path, other words anywhere; but for those with a gap to fill in."""
    text = (
        (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## Where does it go?")[2]
    )
    words = {" ".join(word.split()) for word in re.findall(r"`([^`]+)`", text)}
    words = {word for word in words if not re.search(r"NAME|PAPER|ROOM|COLLECTIVE|METHOD|…", word)}
    folders = [ROOT / name for name in ("src", "tests", "benchmarks", "examples", "docs")]
    files = [f for folder in folders for f in folder.rglob("*.*") if "__pycache__" not in f.parts]
    files.append(ROOT / "pyproject.toml")
    sources = [f for f in files if f.suffix in (".py", ".pyi", ".c", ".h", ".toml")]
    known = set(re.findall(r"\w+", "".join(f.read_text(encoding="utf-8") for f in sources)))
    paths = [f"/{file.relative_to(ROOT)}" for file in files]
    named = {
        word for word in words if re.fullmatch(r"[\w./-]+\.(pyi?|[ch]|json|toml|bib)", word)
    } - {"mpi.h"}
    assert len(named) > 60
    assert not [name for name in named if not any(path.endswith(f"/{name}") for path in paths)]
    others = {word for word in words - named if re.fullmatch(r"\w+", word)}
    assert len(others) > 60
    assert not others - known
