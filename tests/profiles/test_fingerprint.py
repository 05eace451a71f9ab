"""Fingerprints: what makes two machines strangers."""

import os
import platform
from pathlib import Path

import msgspec
import pytest
from tests.profiles.example import FINGERPRINT, example

from collwise.profiles.fingerprint import LABELS, local_fingerprint
from collwise.profiles.profile import Profile
from collwise.profiles.store import default_path, find, transport_of
from collwise.tuning.saving import merge


def test_every_field_makes_a_difference_and_has_a_name() -> None:
    assert FINGERPRINT.differences(msgspec.structs.replace(FINGERPRINT)) == []
    assert tuple(LABELS) == FINGERPRINT.__struct_fields__
    for field, label in LABELS.items():
        if field == "network":
            continue  # where only one knows it, it makes none
        other = msgspec.structs.replace(FINGERPRINT, **{field: "x"})
        (line,) = FINGERPRINT.differences(other)
        assert line == f"{label}: {getattr(FINGERPRINT, field)!r} there, 'x' here"


def test_the_local_machine() -> None:
    fingerprint = local_fingerprint("MPICH 5.0.2", "one node")
    assert fingerprint == local_fingerprint("MPICH 5.0.2", "one node")
    assert fingerprint.architecture == platform.machine()
    assert fingerprint.operating_system == platform.system()
    assert fingerprint.cores_per_node == os.cpu_count()
    assert fingerprint.cpu_model


def test_memory_and_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was raced with one transport says nothing of the other: each has a profile."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.delenv("COLLWISE_PROFILE", raising=False)
    messages = msgspec.structs.replace(example(), fingerprint=FINGERPRINT)
    shared = msgspec.structs.replace(FINGERPRINT, transport="memory")
    memory = msgspec.structs.replace(messages, fingerprint=shared)
    assert "transport" not in messages.to_json()
    assert Profile.from_json(memory.to_json()) == memory
    messages.save(default_path(FINGERPRINT))
    assert find(shared) is None
    memory.save(default_path(shared))
    assert (find(FINGERPRINT), find(shared)) == (messages, memory)
    assert "-memory-" in default_path(shared).name
    here = local_fingerprint("MPICH 5.0.2", "one node", transport="memory")
    assert here.is_here
    monkeypatch.setenv("COLLWISE_NODE", "messages")
    assert not here.is_here
    assert transport_of(None) == ""
    monkeypatch.setenv("COLLWISE_PROFILE", str(default_path(shared)))
    assert transport_of(None) == transport_of(memory) == "memory"
    assert transport_of(False) == transport_of(str(tmp_path / "none")) == ""


def test_two_fabrics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Each has a profile; an older one, which does not know its network, serves both."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.delenv("COLLWISE_PROFILE", raising=False)
    old = msgspec.structs.replace(example(), fingerprint=FINGERPRINT)
    slow, fast = (msgspec.structs.replace(FINGERPRINT, network=name) for name in ("tcp", "verbs"))
    assert FINGERPRINT.differences(slow) == fast.differences(FINGERPRINT) == []
    assert slow.differences(fast) == ["network: 'tcp' there, 'verbs' here"]
    assert find(slow) is None
    assert merge(old, msgspec.structs.replace(old, fingerprint=slow)).dropped == ()
    old.save(default_path(FINGERPRINT))
    assert find(slow) == find(fast) == old
    assert "does not say of which network; tune again" in caplog.text
    new = msgspec.structs.replace(old, fingerprint=slow)
    new.save(default_path(slow))
    assert (find(slow), find(fast)) == (new, old)
