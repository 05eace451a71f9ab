"""What the rooms say of themselves: each names all of its modules."""

from pathlib import Path

import collwise

PACKAGE = Path(collwise.__file__).parent
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
