"""Profiles on the command line: absent, damaged, somebody else's, and saved whole or not at all."""

import json
import os
import re
from math import exp
from pathlib import Path
from unittest import mock

import msgspec
import pytest

from collwise.cli import profile_option
from collwise.errors import InvalidArgument
from collwise.profiles import store
from collwise.profiles.fingerprint import local_fingerprint
from collwise.profiles.profile import Profile, is_profile, with_measurements
from collwise.profiles.store import default_path
from tests.cli.conftest import Run
from tests.cli.running import document
from tests.profiles.example import example

PLAN = ("plan", "-n", "8", "--bytes", "512")


def test_a_plan_by_a_profile(collwise: Run, folder: Path) -> None:
    saved = example().save(folder / "it.json")
    planned = document(collwise, *PLAN, "--profile", saved)
    made = "elsewhere, Test MPI 1.0, one node, 2025-01-02"
    assert planned["machine_from"] == f"profile of {made}"
    found = collwise(*PLAN, "--json")
    found.refused("profile.json: there is no such file", "collwise measure")
    example().save(folder / "profile.json")
    assert document(collwise, *PLAN) == planned


def test_no_profile_at_all(collwise: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLLWISE_PROFILE", "")
    collwise(*PLAN).refused(
        "the saved profile", str(folder), "`collwise tune`", "describe a machine by its parameters"
    )
    saved = store.folder()
    saved.mkdir(parents=True)
    (saved / "damaged.json").write_text("{")
    collwise(*PLAN).refused("there is none in", "1 other profile saved")
    monkeypatch.setenv("COLLWISE_PROFILE", "~nobodys_name/x")
    collwise(*PLAN).refused("~nobodys_name/x: there is no such file")


def test_the_profile_of_this_machine(
    collwise: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one saved last was taken, also where an emulated network or another machine was."""
    monkeypatch.delenv("COLLWISE_PROFILE")
    profiles = {
        name: msgspec.structs.replace(
            example(), fingerprint=local_fingerprint(f"{name} 1.0", "one node", emulated)
        )
        for name, emulated in (("Other", ""), ("Mine", ""), ("Slow", "8 hosts, 5 ms"))
    }
    last = [*profiles.values(), example()]
    for age, profile in enumerate(last[1:]):
        os.utime(profile.save(default_path(profile.fingerprint)), (age, age))
    found = document(collwise, *PLAN)
    assert "Mine 1.0" in found["machine_from"]
    assert found["machine_notes"] == []
    why = document(collwise, "wisdom", "why", "broadcast", *PLAN[1:])
    assert why["profile_path"] == str(default_path(profiles["Mine"].fingerprint))
    for command in ("plan", "simulate"):
        assert "(profile of elsewhere, Mine 1.0, one node, 2025" in collwise(command, *PLAN[1:]).out
    other = profiles["Other"].save(default_path(profiles["Other"].fingerprint))
    note = f"2 profiles are of this machine; {other.stem}, saved last, counts: --profile names"
    for words in (PLAN, ("simulate", *PLAN[1:]), ("wisdom", "why", "broadcast", *PLAN[1:])):
        assert collwise(*words).out.count(note) == 1
    monkeypatch.setenv("COLLWISE_LAB", "8 hosts, 5 ms")
    assert "(profile of elsewhere, Slow 1.0, 8 hosts, 5 ms, 2025" in collwise(*PLAN).out
    monkeypatch.setenv("COLLWISE_LAB", "9 hosts, 5 ms")
    other.write_text("{")
    collwise(*PLAN).refused(
        "the saved profile of this machine: there is none in", "4 other profiles saved"
    )


@pytest.mark.parametrize(
    ("width", "time"), [(0.09, "7.00 µs"), (0.4, "7.0 µs"), (1.9, "7 µs"), (8, "unknown")]
)
def test_uncertain_times(collwise: Run, folder: Path, width: float, time: str) -> None:
    """Times from t0 ± 190 % had three digits and no warning."""
    ends = (1e-6 * exp(-width), 1e-6 * exp(width))
    sure = example()
    points = [msgspec.structs.replace(p, t0_interval_s=ends) for p in sure.points]
    with_measurements(sure, points=tuple(points)).save(folder / "profile.json")
    note = f"at 64 bytes t0 is known to ± {width:.0%}, λ to ± 3%; measure again"
    notes = document(collwise, *PLAN)["machine_notes"]
    noisy = width > 0.1
    assert [one.startswith(note) for one in notes] == [True] * noisy
    for command in (PLAN, ("simulate", *PLAN[1:]), ("simulate", *PLAN[1:], "--algorithm", "chain")):
        said = collwise(*command).out
        assert said.count(note) == noisy
        assert re.search(rf"lower bound +{time} ", said), said
        assert ("% slower" in said) == (command == PLAN and time != "unknown"), said
    assert f" {time.replace('7', '1')} " in collwise("wisdom", "show", "profile.json").out


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


@pytest.mark.parametrize("command", ["tune", "measure"])
def test_what_is_no_profile_is_not_replaced(
    collwise: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """It is refused before ranks are started; a profile of any version counts as one."""
    measured = json.dumps({"format": "collwise measurement", "profile": example().to_document()})
    for number, text in enumerate(("important", "{}", '["collwise profile"]', "\0\xff", measured)):
        kept = folder / f"{number}.json"
        kept.write_text(text, encoding="latin-1")
        collwise(command, "--save", kept).refused("is there and is no profile; name another file")
        monkeypatch.setenv("COLLWISE_PROFILE", str(kept))
        collwise(command).refused("is no profile", "name another file in COLLWISE_PROFILE")
        collwise("wisdom", "import", example().save(folder / "it.json")).refused("is no profile")
        assert kept.read_text(encoding="latin-1") == text
    large = folder / "large.json"
    with large.open("wb") as file:
        file.truncate(1 << 34)  # a hole: it takes no room
    collwise(command, "--save", large).refused("large.json cannot be read: it has more than")


def test_what_counts_as_a_profile() -> None:
    text = example().to_json().encode()
    other = json.dumps(dict(reversed(json.loads(text).items())) | {"version": 99}).encode()
    for content in (text, text[: len(text) // 2], b"\xef\xbb\xbf" + text, other):
        assert is_profile(content)
    for content in (b"", b"x", b"[1]", text[5:], other[: len(other) // 2], b"\xff" + text):
        assert not is_profile(content)


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


def test_a_save_that_fails_says_how_to_save_elsewhere(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old profile stays."""
    path = folder / "it.json"
    profile_option.save(example("Old MPI 1.0"), path)

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(InvalidArgument, match=r"No space left on device; name .* --save"):
        profile_option.save(example("New MPI 1.0"), path)
    assert Profile.load(path).fingerprint.mpi_library == "Old MPI 1.0"


def test_a_home_that_cannot_be_written(
    collwise: Run, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    """It was noticed after the whole time of measuring."""
    monkeypatch.delenv("COLLWISE_PROFILE")
    (folder / "file").write_text("in the way of every folder below")
    monkeypatch.setattr(profile_option, "folder", lambda: folder / "file" / "profiles")
    for command in ("tune", "measure"):
        collwise(command, "-n", 2).refused(
            "cannot be written", "name a file here, or in COLLWISE_PROFILE"
        )
    lost = InvalidArgument("the folder of profiles", "there is no home", "set HOME")
    monkeypatch.setattr(profile_option, "folder", mock.Mock(side_effect=lost))
    collwise("tune", "-n", 2).refused("there is no home", "set HOME")
