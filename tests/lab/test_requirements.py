"""What is missing is said before anything is done."""

import sys
from pathlib import Path

import pytest

from collwise.errors import InvalidArgument, LabUnavailable, NoMPI
from collwise.lab import Cluster, mpi_launch, requirements
from collwise.lab.mpi_launch import check_command, find_library, launch

EVERYTHING = (1 << 40) - 1


@pytest.mark.parametrize(
    ("capabilities", "tun", "path", "system", "message"),
    [
        (
            1 << 12, None, "/bin:/usr/bin", "Linux",
            "root, or CAP_NET_ADMIN and CAP_SYS_ADMIN: no CAP_SYS_ADMIN;"
            " run it as root (sudo, or a privileged container)",
        ),
        (
            EVERYTHING, "No such file or directory", "/bin:/usr/bin", "Linux",
            "/dev/net/tun: No such file or directory; load it (`modprobe tun`);"
            " in a container pass --device /dev/net/tun",
        ),
        (EVERYTHING, None, "/none", "Linux", "nsenter: not on the PATH; install util-linux"),
        (0, "", "", "Darwin", "Linux: Darwin; run it on Linux (a virtual machine will do)"),
    ],
)  # fmt: skip
def test_what_is_missing_is_said_at_the_start(
    monkeypatch: pytest.MonkeyPatch,
    capabilities: int, tun: str | None, path: str, system: str, message: str,
) -> None:  # fmt: skip
    monkeypatch.setattr(requirements, "_effective_capabilities", lambda: capabilities)
    monkeypatch.setattr(requirements, "_tun_problem", lambda: tun)
    monkeypatch.setattr("platform.system", lambda: system)
    monkeypatch.setenv("PATH", path)
    with pytest.raises(LabUnavailable) as raised:
        Cluster(2, "5ms", "10mbit", mpi="none").start()
    assert str(raised.value) == f"emulated hosts on this machine: needs {message}"


def test_what_only_helps_is_not_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "compiler", lambda: None)
    monkeypatch.setattr(requirements, "_effective_capabilities", lambda: 1 << 12 | 1 << 21)
    optional = [one for one in requirements.unmet() if not one.needed]
    assert [one.problem for one in optional] == ["none on the PATH", "not allowed"]
    assert all(one.remedy for one in optional)


def test_a_library_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mpi_launch, "find_mpiexec", lambda: "mpiexec")
    monkeypatch.setattr(mpi_launch, "is_open_mpi", lambda mpiexec: False)
    assert find_library(None) == ("mpich", "mpiexec")
    assert find_library("none") == ("none", "")
    with pytest.raises(NoMPI, match=r"a lab with openmpi: .* is that of mpich; run the collwise"):
        find_library("openmpi")


def test_commands_that_do_not_exist(tmp_path: Path) -> None:
    here = {"PATH": str(Path(sys.executable).parent)}
    check_command([Path(sys.executable).name], here, tmp_path)
    with pytest.raises(InvalidArgument, match="no such program on the PATH"):
        check_command(["no-such-program"], here, tmp_path)
    with pytest.raises(InvalidArgument, match="no such program in this folder"):
        check_command(["./no-such-program"], here, tmp_path)
    with pytest.raises(InvalidArgument, match="a command to run: there is none"):
        check_command([], here, tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hosts": 2, "rate": "10mbit"}, "latency missing"),
        ({}, "hosts and latency and rate missing"),
        ({"network": "x.toml", "rate": "10mbit"}, "say it in the file"),
        ({"network": "no-such-file.toml"}, "No such file"),
    ],
)
def test_a_network_that_is_not_said(options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        Cluster(**options)  # type: ignore[arg-type]


def test_more_ranks_than_places() -> None:
    cluster = Cluster(2, "5ms", "10mbit", mpi="none")
    with pytest.raises(InvalidArgument, match="there are 4 places"):
        cluster.check(["true"], 5, 2)
    with pytest.raises(InvalidArgument, match="at least one is needed"):
        cluster.check(["true"], 0)
    with pytest.raises(InvalidArgument, match="it is not started"):
        cluster.run(["true"])


@pytest.mark.parametrize("library", ["mpich", "openmpi"])
def test_ranks_fill_hosts_one_after_the_other(library: mpi_launch.Library) -> None:
    places = {"h0": 2, "h1": 1}
    arguments, _ = launch(library, "mpiexec", ["program", "x"], places, has_shim=True)
    assert arguments[-4:] == ["-n", "3", "program", "x"]
    assert "h0:2,h1:1" in arguments
    assert any("LD_PRELOAD" in argument for argument in arguments)
    arguments, _ = launch(library, "mpiexec", ["program"], dict.fromkeys(places, 1), has_shim=False)
    assert not any("LD_PRELOAD" in argument for argument in arguments)


def test_hosts_may_have_different_numbers_of_ranks() -> None:
    cluster = Cluster(3, "5ms", "10mbit", mpi="none")
    assert cluster._places(None, (5, 3, 8)) == {"h0": 5, "h1": 3, "h2": 8}
    assert cluster._places(6, (5, 3, 8)) == {"h0": 5, "h1": 1}
    assert cluster._places(None, (1, 2)) == {"h0": 1, "h1": 2}
    with pytest.raises(InvalidArgument, match=r"with 5\+3\+8\+1 on them: there are 16 places"):
        cluster._places(None, (5, 3, 8, 1))
    with pytest.raises(InvalidArgument, match="at least one is needed"):
        cluster._places(None, (1, 0))
