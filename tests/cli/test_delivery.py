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


SAVINGS = [saving("one", False), saving("two", True), saving("three", False)]


def test_what_cannot_be_saved(capsys: pytest.CaptureFixture[str]) -> None:
    """Everything is shown, whatever can be is saved, and what was not is said, each once."""
    with pytest.raises(InvalidArgument, match="save three: No space left on device"):
        deliver(False, dict, lambda: print("the table"), SAVINGS)
    out, err = capsys.readouterr()
    assert out == "the table\ntwo saved\n"
    assert err == "collwise: save one: No space left on device; make room\n"


def test_what_cannot_be_saved_stands_in_the_document(capsys: pytest.CaptureFixture[str]) -> None:
    context = click.Context(click.Command("tune"), info_name="tune")
    with context, pytest.raises(InvalidArgument, match="save three"):
        deliver(True, lambda: {"found": 1}, print, SAVINGS)
    document = json.loads(capsys.readouterr().out)
    not_saved = [line.partition(":")[0] for line in document.pop("not_saved")]
    assert not_saved == ["save one", "save three"]
    assert document == {"format": "tune", "version": 1, "found": 1, "two_path": "two"}


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
