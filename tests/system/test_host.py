"""What this machine is, as far as the system tells it."""

import os
import sys
from pathlib import Path

import pytest

from collwise.system.host import affinity, core_limit, cpu_model, network, usable_cores


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
    """Of version 2, at the root, of the job's group, or of one around it; and of version 1."""
    assert core_limit(tmp_path / "absent") == sys.maxsize
    for group, limited in (("/", "."), ("/slurm/job_1", "slurm/job_1"), ("/slurm/job_1", "slurm")):
        root = tmp_path / f"{len(group)} {len(limited)}"
        grouped(root, f"0::{group}", f"{limited}/cpu.max", quota)
        assert core_limit(root) == cores
        (root / "proc/self/cgroup").write_text("0::/elsewhere\n")
        assert core_limit(root) == (cores if limited == "." else sys.maxsize)


@pytest.mark.parametrize(("quota", "cores"), [("150000", 2), ("100000", 1), ("-1", sys.maxsize)])
def test_a_limit_of_version_1(quota: str, cores: int, tmp_path: Path) -> None:
    grouped(tmp_path, "4:cpu,cpuacct:/job", "cpu,cpuacct/job/cpu.cfs_period_us", "100000")
    grouped(tmp_path, "4:cpu,cpuacct:/job", "cpu,cpuacct/job/cpu.cfs_quota_us", quota)
    assert core_limit(tmp_path) == cores


def grouped(root: Path, line: str, file: str, text: str) -> None:
    """Make the files of a process in a control group with a limit."""
    (root / "proc/self").mkdir(parents=True, exist_ok=True)
    (root / "proc/self/cgroup").write_text(f"1:name=systemd:/\n{line}\n")
    limit = root / "sys/fs/cgroup" / file
    limit.parent.mkdir(parents=True, exist_ok=True)
    limit.write_text(text + "\n")


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
