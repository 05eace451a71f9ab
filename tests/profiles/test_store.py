"""Where profiles live, and finding them."""

import os
from pathlib import Path
from unittest import mock

import msgspec
import pytest
from tests.profiles.example import FINGERPRINT, profile, race_result

from collwise.errors import DamagedProfile, ForeignProfile, InvalidArgument
from collwise.profiles.profile import ENVIRONMENT
from collwise.profiles.store import add_learned, default_path, find

PROFILE = profile(race_results=(race_result(512),))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    monkeypatch.setattr("platformdirs.user_data_path", lambda *_args, **_options: tmp_path / "data")
    return tmp_path


def test_every_machine_has_its_own_file(home: Path) -> None:
    path = default_path(FINGERPRINT)
    assert path.parent == home / "data" / "profiles"
    assert path.name.startswith("mpich-5.0.2-one-node-")
    assert path.suffix == ".json"
    other = msgspec.structs.replace(FINGERPRINT, cpu_model="Other")
    assert default_path(other) != path == default_path(FINGERPRINT)
    odd = msgspec.structs.replace(FINGERPRINT, mpi_library="../Évil MPI/" + "x" * 300)
    assert default_path(odd).parent == path.parent
    assert len(default_path(odd).name) < 100


def test_a_user_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container whose system does not know the user."""
    for name in ("HOME", "XDG_DATA_HOME", ENVIRONMENT):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 54321)
    assert find(FINGERPRINT) is None
    with pytest.raises(InvalidArgument, match=ENVIRONMENT):
        default_path(FINGERPRINT)


def test_finding_a_saved_profile(home: Path) -> None:
    assert find(FINGERPRINT) is None
    PROFILE.save(default_path(FINGERPRINT))  # makes the directories
    assert find(FINGERPRINT) == PROFILE
    assert find(msgspec.structs.replace(FINGERPRINT, cores_per_node=9)) is None


def test_what_was_learned_while_running_replaces_no_race(home: Path) -> None:
    learned = race_result(512, learned=True, ours_s=5e-7), race_result(64, learned=True)
    add_learned(FINGERPRINT, learned)
    assert find(FINGERPRINT) is None  # nothing to add to
    PROFILE.save(default_path(FINGERPRINT))
    add_learned(FINGERPRINT, learned)
    again = race_result(64, learned=True, ours_s=9e-7)
    add_learned(FINGERPRINT, [again])
    found = find(FINGERPRINT)
    assert found is not None
    assert found.race_results == (again, race_result(512))
    with (
        mock.patch("collwise.profiles.store.locked", side_effect=OSError(13, "no permission")),
        pytest.raises(InvalidArgument, match=r"save what was learned in .*: no permission"),
    ):
        add_learned(FINGERPRINT, learned)


def test_the_environment_names_a_file(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = home / "mine.json"
    monkeypatch.setenv(ENVIRONMENT, str(mine))
    assert default_path(FINGERPRINT) == mine
    with pytest.raises(DamagedProfile, match=f"correct {ENVIRONMENT}, or make the file"):
        find(FINGERPRINT)
    PROFILE.save(mine)
    assert find(FINGERPRINT) == PROFILE
    with pytest.raises(ForeignProfile, match="cores per node"):
        find(msgspec.structs.replace(FINGERPRINT, cores_per_node=9))
    mine.write_text("{")
    with pytest.raises(DamagedProfile):
        find(FINGERPRINT)
    monkeypatch.setenv(ENVIRONMENT, "~/profile.json")
    assert default_path(FINGERPRINT) == Path.home() / "profile.json"


def test_a_directory_that_may_not_be_searched(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, **_: object) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "exists", refuse)
    monkeypatch.setattr(Path, "stat", refuse)
    with pytest.raises(DamagedProfile, match="Permission denied"):
        find(FINGERPRINT)


def test_equal_fingerprints_have_one_file() -> None:
    """Also if a default was read from a message or a variable, so that it is another object."""
    told = msgspec.structs.replace(FINGERPRINT, transport="".join(["mess", "ages"]))
    assert told == FINGERPRINT
    assert default_path(told) == default_path(FINGERPRINT)
    assert default_path(msgspec.structs.replace(told, transport="memory")) != default_path(told)
