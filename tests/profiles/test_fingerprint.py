"""Fingerprints: what makes two machines strangers."""

import os
import platform
import sys
from pathlib import Path

import msgspec
import pytest
from tests.profiles.example import FINGERPRINT, example

from collwise.profiles.fingerprint import LABELS, local_fingerprint
from collwise.profiles.store import default_path, find
from collwise.system.host import affinity, core_limit, cpu_model, network, usable_cores
from collwise.tuning.saving import merge


def test_equal_machines_do_not_differ() -> None:
    assert FINGERPRINT.differences(msgspec.structs.replace(FINGERPRINT)) == []


def test_every_field_makes_a_difference_and_has_a_name() -> None:
    assert tuple(LABELS) == FINGERPRINT.__struct_fields__
    for field, label in LABELS.items():
        if field == "network":
            continue  # where only one knows it, it makes none
        other = msgspec.structs.replace(FINGERPRINT, **{field: "x"})
        (line,) = FINGERPRINT.differences(other)
        assert line == f"{label}: {getattr(FINGERPRINT, field)!r} there, 'x' here"


def test_several_differences() -> None:
    other = msgspec.structs.replace(FINGERPRINT, cores_per_node=64, mpi_library="Open MPI 5.0.11")
    assert FINGERPRINT.differences(other) == [
        "cores per node: 16 there, 64 here",
        "MPI library: 'MPICH 5.0.2' there, 'Open MPI 5.0.11' here",
    ]


def test_the_local_machine() -> None:
    fingerprint = local_fingerprint("MPICH 5.0.2", "one node")
    assert fingerprint == local_fingerprint("MPICH 5.0.2", "one node")
    assert fingerprint.architecture == platform.machine()
    assert fingerprint.operating_system == platform.system()
    assert fingerprint.cores_per_node == os.cpu_count()
    assert fingerprint.cpu_model


@pytest.mark.parametrize(
    ("text", "model"),
    [
        (
            "processor\t: 0\nmodel\t\t: 85\nmodel name\t: AMD  EPYC 7763\n\nprocessor\t: 1\n",
            "AMD EPYC 7763",
        ),
        ("processor : 0\ncpu : POWER9, altivec supported\n", "POWER9, altivec supported"),
        ("CPU implementer : 0x41\nCPU part : 0xd0c\n", "Arm implementer 0x41 part 0xd0c"),
        ("CPU part : 0xd0c\n", "Arm implementer ? part 0xd0c"),
        ("uarch : sifive,u74-mc\n", "sifive,u74-mc"),
    ],
)
def test_the_name_of_the_processor(text: str, model: str, tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(text)
    assert cpu_model(cpuinfo) == model


def test_a_processor_without_a_name(tmp_path: Path) -> None:
    assert cpu_model(tmp_path / "absent") == cpu_model(tmp_path / "absent") != ""
    (tmp_path / "empty").write_text("model name :\nbogus\n")
    assert cpu_model(tmp_path / "empty") == cpu_model(tmp_path / "absent")


@pytest.mark.parametrize(
    ("quota", "cores"),
    [
        ("max 100000", sys.maxsize),
        ("200000 100000", 2),
        ("150000 100000", 2),
        ("1000 100000", 1),
        ("nonsense", sys.maxsize),
        ("1 0", sys.maxsize),
    ],
)
def test_a_container_may_allow_fewer_cores(quota: str, cores: int, tmp_path: Path) -> None:
    file = tmp_path / "cpu.max"
    file.write_text(quota + "\n")
    assert core_limit(file) == cores
    assert core_limit(tmp_path / "absent") == sys.maxsize


def test_where_the_system_knows_no_affinity(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 1 <= usable_cores() <= len(affinity()) <= (os.cpu_count() or 1)
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert affinity() == frozenset()
    assert usable_cores() == min(os.cpu_count() or 1, core_limit())


def test_the_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two fabrics of one cluster shared a profile."""
    for name in ("FI_PROVIDER", "UCX_TLS", "OMPI_MCA_pml"):
        monkeypatch.delenv(name, raising=False)
    assert network("", tmp_path) == ""
    card = tmp_path / "sys/class/infiniband/mlx5_0/ports/1"
    for folder in (card, tmp_path / "sys/class/net/eth0", tmp_path / "proc/net"):
        folder.mkdir(parents=True)
    (tmp_path / "proc/net/route").write_text("Iface\tDestination\neth0\t00000000\t010200C0\n")
    assert network("", tmp_path) == "", "nobody knows the speed"
    (tmp_path / "sys/class/net/eth0/speed").write_text("25000\n")
    (card / "rate").write_text("100 Gb/sec (4X EDR)\n")
    monkeypatch.setenv("FI_PROVIDER", "tcp")
    said = "MPICH Version:  5.0.2\nMPICH Device:  ch4:ofi\nMPICH CC: cc\n"
    seen = "ch4:ofi, FI_PROVIDER=tcp, 100 Gb/sec (4X EDR), 25000 Mbit/s"
    assert network(said, tmp_path) == seen
    (tmp_path / "sys/class/net/eth0/speed").write_text("-1\n")
    assert network(said, tmp_path) == seen.removesuffix(", 25000 Mbit/s")


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
