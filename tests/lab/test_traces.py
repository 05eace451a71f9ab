"""Nothing outlives a lab: no process, no namespace, no device, no file; however it ends."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from collwise.errors import InvalidArgument, LabFailed
from collwise.lab import Cluster, leftovers
from tests.mpi import launching

pytestmark = [pytest.mark.mpi, pytest.mark.usefixtures("allowed")]

LIMIT_S = 30
KINDS = ("net", "mnt", "uts", "ipc", "pid")
TELL = f"""
import json, os, sys, time
line = json.dumps([os.readlink("/proc/self/ns/" + kind) for kind in {KINDS}]) + "\\n"
os.write(1, line.encode())  # in one piece: the lines of other ranks come between pieces
time.sleep(float(sys.argv[1]))
"""


class Traces(NamedTuple):
    """What a lab could leave behind."""

    devices: list[str]
    files: list[str]
    processes: list[int]
    namespaces: set[str]


def _look(mark: str, folder: Path, of_lab: set[str]) -> Traces:
    """Devices here, files in its temporary folder, processes and namespaces of that lab."""
    processes, namespaces = [], set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            if mark.encode() in (entry / "environ").read_bytes():
                processes.append(int(entry.name))
        held = [entry / "ns" / kind for kind in KINDS]
        with contextlib.suppress(OSError):
            held += (entry / "fd").iterdir()
        for link in held:
            with contextlib.suppress(OSError):
                namespaces.add(str(link.readlink()))
    return Traces(
        sorted(os.listdir("/sys/class/net")),  # noqa: PTH208
        sorted(str(path) for path in folder.rglob("*")),
        sorted(set(processes) - {os.getpid()}),
        namespaces & of_lab,
    )


class Lab:
    """A lab in a process of its own, which this test watches."""

    def __init__(self, mark: str, folder: Path, *options: str, sleep_s: float = 60) -> None:
        self.mark, self.folder = mark, folder
        self.devices = sorted(os.listdir("/sys/class/net"))  # noqa: PTH208
        self.outside = {str(Path("/proc/self/ns", kind).readlink()) for kind in KINDS}
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "collwise", "lab", "--hosts", "3", *options),
                *("--", sys.executable, "-c", TELL, str(sleep_s)),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            cwd=launching.ROOT,
            env={**os.environ, "TMPDIR": str(folder), "COLLWISE_TEST_MARK": mark},
        )
        self.namespaces: set[str] = set()

    def wait_for_ranks(self, count: int) -> None:
        """Until so many ranks have told their namespaces."""
        assert self.process.stdout is not None
        for _ in range(count):
            line = self.process.stdout.readline()
            assert line, self.process.communicate(timeout=LIMIT_S)
            self.namespaces |= set(json.loads(line)) - self.outside

    def descendants(self) -> Iterator[tuple[int, str]]:
        """(number, name) of the processes below the lab's."""
        parents = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    name, _, rest = (entry / "stat").read_text().partition("(")[2].rpartition(")")
                    parents[int(entry.name)] = int(rest.split()[1]), name
        below = {self.process.pid}
        while found := {p for p, (parent, _) in parents.items() if parent in below} - below:
            below |= found
        yield from ((p, parents[p][1]) for p in below - {self.process.pid})

    def ends(self) -> tuple[int, str]:
        """Wait for its end; nothing may be left.  Returns its exit code and what it complained."""
        _, complaint = self.process.communicate(timeout=LIMIT_S)
        deadline = time.monotonic() + 5
        nothing = Traces(self.devices, [], [], set())
        while (seen := _look(self.mark, self.folder, self.namespaces)) != nothing:
            assert time.monotonic() < deadline, seen
            time.sleep(0.05)
        return self.process.returncode, complaint


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Callable[..., Lab]]:
    """Makes labs, each with a folder of its own, and ends those that a failed test left."""
    made: list[Lab] = []

    def make(*options: str, sleep_s: float = 60) -> Lab:
        folder = tmp_path / str(len(made))
        folder.mkdir()
        mark = f"mark-{os.getpid()}-{random.random()}"
        made.append(Lab(mark, folder, *options, sleep_s=sleep_s))
        return made[-1]

    yield make
    for one in made:
        if one.process.returncode is None:
            one.process.kill()
            one.process.communicate(timeout=LIMIT_S)


def test_the_traces_of_a_running_lab_are_seen(lab: Callable[..., Lab]) -> None:
    """Otherwise the other tests would prove nothing."""
    one = lab("--mpi", "none")
    one.wait_for_ranks(1)
    seen = _look(one.mark, one.folder, one.namespaces)
    assert len(seen.processes) >= 4  # lab, keeper, switch, program
    assert len(seen.namespaces) == len(KINDS)
    one.process.send_signal(signal.SIGTERM)
    assert one.ends()[0] == 128 + signal.SIGTERM


def test_after_an_ordinary_end(lab: Callable[..., Lab]) -> None:
    one = lab(sleep_s=0)
    one.wait_for_ranks(3)
    code, complaint = one.ends()
    assert code == 0
    assert "lateness p50" in complaint
    assert len(one.namespaces) == 3 * 4 + 1  # the PID namespace is common


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)]
)
def test_after_a_signal(lab: Callable[..., Lab], number: int, code: int) -> None:
    one = lab()
    one.wait_for_ranks(3)
    one.process.send_signal(number)
    seen, complaint = one.ends()
    assert seen == code
    assert complaint.strip() in ("", "collwise: interrupted")


def test_after_the_switch_was_killed(lab: Callable[..., Lab]) -> None:
    one = lab()
    one.wait_for_ranks(3)
    (switch,) = [number for number, name in one.descendants() if name == "collwise-switch"]
    os.kill(switch, signal.SIGKILL)
    code, complaint = one.ends()
    assert code == 1
    assert "the switch ended (exit code -9), and all ranks with it" in complaint


def test_after_the_keeper_was_killed(lab: Callable[..., Lab]) -> None:
    one = lab()
    one.wait_for_ranks(3)
    (keeper,) = [number for number, name in one.descendants() if name == "collwise-lab"]
    os.kill(keeper, signal.SIGKILL)
    code, complaint = one.ends()
    assert code == 1
    assert "the lab's keeper was killed, and all ranks with it" in complaint


def test_two_labs_at_once(lab: Callable[..., Lab]) -> None:
    labs = [lab("--mpi", "none") for _ in range(2)]
    for one in labs:
        one.wait_for_ranks(1)
    assert not labs[0].namespaces & labs[1].namespaces
    for one in labs:
        one.process.terminate()
    assert [one.ends()[0] for one in labs] == [143, 143]


def test_a_stopped_leftover_is_found_and_ended(lab: Callable[..., Lab]) -> None:
    one = lab("--mpi", "none")
    one.wait_for_ranks(1)
    (keeper,) = [number for number, name in one.descendants() if name == "collwise-lab"]
    os.kill(keeper, signal.SIGSTOP)
    one.process.kill()
    one.process.wait(LIMIT_S)
    found = leftovers.find()
    assert (keeper, one.process.pid) in found
    leftovers.remove([x for x in found if x.maker == one.process.pid])
    assert one.ends()[0] == -9


def test_from_python(capfd: pytest.CaptureFixture[str]) -> None:
    with Cluster(hosts=2, latency="1ms", rate="100mbit", mpi="none") as cluster:
        finished = cluster.run(["sh", "-c", "hostname; echo wrong >&2; exit 3"], capture=True)
        assert (finished.code, finished.stdout, finished.stderr) == (3, "h0\n", "wrong\n")
        assert finished.report.packets == 0
        assert cluster.run(["sh", "-c", "hostname"]).code == 0
        assert cluster.run(["sh", "-c", "kill -9 $$"]).code == 128 + 9
        with pytest.raises(LabFailed, match=r"did not end within 0.2 s"):
            cluster.run(["sleep", "60"], timeout_s=0.2)
        assert cluster.run(["true"]).code == 0  # it goes on after that
        name = f"/dev/shm/collwise-test-{os.getpid()}"
        assert cluster.run(["touch", name]).code == 0
        assert not Path(name).exists()  # memory is the host's own
        with pytest.raises(InvalidArgument, match="it runs already"):
            cluster.start()
    cluster.close()
    assert capfd.readouterr().out == "h0\n"


@pytest.mark.exhaustive
def test_fifty_cycles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    before = _everything(tmp_path)
    for _ in range(50):
        with Cluster(hosts=8, latency="1ms", rate="100mbit", mpi="none") as cluster:
            assert cluster.run(["true"], capture=True).code == 0
    _settle(before, tmp_path)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(20))
def test_kills_at_random_moments(lab: Callable[..., Lab], tmp_path: Path, seed: int) -> None:
    """Any process of a lab may be killed at any time, while it starts, runs or ends."""
    chance = random.Random(seed)
    before = _everything(tmp_path)
    one = lab("--mpi", "mpich" if seed % 2 else "none")
    time.sleep(chance.uniform(0.5, 6))
    victims = [one.process.pid, *(number for number, _ in one.descendants())]
    with contextlib.suppress(ProcessLookupError):
        os.kill(chance.choice(victims), signal.SIGKILL)
    time.sleep(0.2)
    one.process.kill()
    one.ends()
    _settle(before, tmp_path)


def _everything(folder: Path) -> set[str]:
    """Namespaces and devices on this machine, other people's included; files in a folder."""
    found = {f"device {name}" for name in os.listdir("/sys/class/net")}  # noqa: PTH208
    for entry in Path("/proc").glob("[0-9]*/ns/*"):
        with contextlib.suppress(OSError):
            found.add(str(entry.readlink()))
    return found | {f"file {path}" for path in folder.rglob("*") if not path.is_dir()}


def _settle(before: set[str], folder: Path) -> None:
    """Until nothing new is there; what others make meanwhile goes, or the wait is too short."""
    deadline = time.monotonic() + 10
    while new := _everything(folder) - before:
        assert time.monotonic() < deadline, new
        time.sleep(0.05)
