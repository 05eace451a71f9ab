"""Results are shown first, and saved as far as they can be."""

import json
from collections.abc import Callable

import click
import pytest

from collwise.cli.output import deliver
from collwise.errors import InvalidArgument
from collwise.report.tables import Saved


def saving(name: str, works: bool) -> Callable[[], Saved]:
    def save() -> Saved:
        if not works:
            raise InvalidArgument(f"save {name}", "No space left on device", "make room")
        return Saved([f"{name} saved"], {f"{name}_path": name})

    return save


@pytest.mark.parametrize("works", [(True, True), (True, False), (False, True), (False, False)])
@pytest.mark.parametrize("as_json", [True, False])
def test_what_cannot_be_saved(
    capsys: pytest.CaptureFixture[str], as_json: bool, works: tuple[bool, bool]
) -> None:
    """Everything is shown, whatever can be is saved, and what was not is said, each once."""
    savings = [saving(name, well) for name, well in zip(("one", "two"), works, strict=True)]
    troubles = [
        f"save {name}" for name, well in zip(("one", "two"), works, strict=True) if not well
    ]
    said = ""
    try:
        with click.Context(click.Command("tune"), info_name="tune"):
            deliver(as_json, lambda: {"found": 1}, lambda: print("the table"), savings)
    except InvalidArgument as problem:
        said = str(problem)
    out, err = capsys.readouterr()
    assert [name for name in ("save one", "save two") if name in err + said] == troubles
    assert bool(said) == bool(troubles)
    if as_json:
        document = json.loads(out)
        assert (document["format"], document["version"], document["found"]) == ("tune", 1, 1)
        assert [line.partition(":")[0] for line in document["not_saved"]] == troubles
        assert [f"{name}_path" in document for name in ("one", "two")] == list(works)
    else:
        saved = [f"{name} saved" for name, well in zip(("one", "two"), works, strict=True) if well]
        assert out.splitlines() == ["the table", *saved]


def test_nobody_reads() -> None:
    """It is saved all the same."""
    done = []

    def show() -> None:
        raise BrokenPipeError

    def save() -> Saved:
        done.append("saved")
        return Saved([], {})

    with pytest.raises(BrokenPipeError):
        deliver(False, dict, show, [save])
    assert done == ["saved"]
