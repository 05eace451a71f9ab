"""Profiles on the command line: absent, damaged, somebody else's, and saved whole or not at all."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from collwise.cli import profile_option
from collwise.errors import InvalidArgument
from collwise.profiles.profile import VERSION
from tests.cli.conftest import Run
from tests.profiles.example import example

PLAN = ("plan", "-n", "8", "--bytes", "512")


def test_a_plan_by_a_profile(collwise: Run, folder: Path) -> None:
    saved = example().save(folder / "it.json")
    document = json.loads(collwise(*PLAN, "--profile", saved, "--json").out)
    assert document["machine_from"] == "profile of elsewhere"
    found = collwise(*PLAN, "--json")
    found.refused("profile.json: there is no such file", "collwise measure")
    example().save(folder / "profile.json")
    assert json.loads(collwise(*PLAN, "--json").out) == document


def test_no_profile_at_all(collwise: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLLWISE_PROFILE")
    collwise(*PLAN).refused(
        "the saved profile", str(folder), "`collwise tune`", "describe a machine by its parameters"
    )


DAMAGE: dict[str, tuple[Callable[[str], str], str]] = {
    "empty": (lambda text: "", "it is empty"),
    "cut off": (lambda text: text[: len(text) // 2], "read the profile"),
    "another document": (lambda text: '{"a": 1}', "its format is None"),
    "of a later version": (
        lambda text: text.replace(f'"version": {VERSION}', '"version": 77'),
        "update",
    ),
    "λ is a word": (lambda text: text.replace('"lam": 3.0', '"lam": "three"'), "lam"),
    "t0 is negative": (lambda text: text.replace('"t0_s": 1e-6', '"t0_s": -1e-6'), "t0_s"),
    "no points": (lambda text: text[: text.index('"points"')].rstrip(", \n") + "}", "points"),
}


@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_profile(collwise: Run, folder: Path, how: str) -> None:
    spoil, word = DAMAGE[how]
    whole = example().to_json()
    spoiled = spoil(whole)
    assert spoiled != whole
    (folder / "it.json").write_text(spoiled, encoding="utf-8")
    collwise(*PLAN, "--profile", "it.json").refused("read the profile it.json")
    assert word in collwise(*PLAN, "--profile", "it.json").err


def test_a_folder_is_no_profile(collwise: Run, folder: Path) -> None:
    collwise(*PLAN, "--profile", folder).refused("Is a directory", "name a file that can be read")


@pytest.mark.parametrize("command", ["tune", "measure"])
def test_what_cannot_be_saved_is_refused_before_measuring(
    collwise: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    (folder / "file").touch()
    for option in ("--save", "--report") if command == "tune" else ("--save",):
        collwise(command, option, "file/it").refused(
            f"'{option}'", "file/it cannot be made: ", "is no folder", "name another file"
        )
        collwise(command, option, folder).refused(f"'{option}'", "is a folder; name another file")
    monkeypatch.setenv("COLLWISE_PROFILE", str(folder / "file" / "it"))
    collwise(command).refused("cannot be made: ", "name another file in COLLWISE_PROFILE")
    assert [path.name for path in folder.iterdir()] == ["file"]


def test_a_folder_without_permission(
    collwise: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def access(path: Path, mode: int) -> bool:
        asked.append((path, mode))
        return False

    monkeypatch.setattr(os, "access", access)  # the superuser may write anywhere
    collwise("measure", "--save", "new/it.json").refused(
        f"new/it.json cannot be made: {folder} may not be written"
    )
    assert (folder, os.W_OK | os.X_OK) in asked


@pytest.mark.parametrize("broken", ["fsync", "replace"])
def test_a_save_that_fails_leaves_the_old_profile(
    folder: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    path = folder / "it.json"
    profile_option.save(example("Old MPI 1.0"), path)
    old = path.read_bytes()

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, broken, fail)
        with pytest.raises(InvalidArgument) as error:
            profile_option.save(example("New MPI 1.0"), path)
    assert error.value.seen == "No space left on device"
    assert "--save" in error.value.remedy
    assert path.read_bytes() == old
    assert list(folder.iterdir()) == [path]
    profile_option.save(example("New MPI 1.0"), path)
    assert path.read_bytes() != old
