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
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pytest

from collwise.errors import InvalidArgument, LabFailed
from collwise.lab import Cluster
from tests.mpi import launching

pytestmark = [pytest.mark.mpi, pytest.mark.usefixtures("allowed")]

LIMIT_S = 30
KINDS = ("net", "mnt", "uts", "ipc", "pid")
PROGRAM = f"""
import json, os, sys, time
line = json.dumps([os.readlink("/proc/self/ns/" + kind) for kind in {KINDS}]) + "\\n"
os.write(1, line.encode())  # in one piece: the lines of other ranks come between pieces
end = time.monotonic() + 120
while not os.path.exists(sys.argv[1]) and time.monotonic() < end:
    time.sleep(0.02)
"""
"""Prints the namespaces of a rank, then runs until a file appears, or for two minutes."""


class Traces(NamedTuple):
    """What a lab could leave behind."""

    devices: list[str]
    files: list[str]
    processes: list[int]
    namespaces: set[str]


class Lab:
    """A lab in a process of its own, which this test watches.

    The kernel gives the number of a namespace to the next one that anybody makes, so this holds
    descriptors of the lab's namespaces: as long as they are open, their numbers mean these.
    """

    def __init__(self, folder: Path, *options: str) -> None:
        self.mark = f"mark-{os.getpid()}-{random.random()}"
        self.folder = folder
        self.devices = sorted(os.listdir("/sys/class/net"))  # noqa: PTH208
        self.held: dict[str, int] = {}
        self.go = folder.with_name(f"{folder.name}-go")
        folder.mkdir()
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "collwise", "lab", "--hosts", "3", *options),
                *("--", sys.executable, "-c", PROGRAM, str(self.go)),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            cwd=launching.ROOT,
            env={**os.environ, "TMPDIR": str(folder), "COLLWISE_TEST_MARK": self.mark},
        )

    def wait_for_ranks(self, count: int) -> None:
        """Wait until so many ranks have printed their namespaces; hold these."""
        assert self.process.stdout is not None
        outside = {str(Path("/proc/self/ns", kind).readlink()) for kind in KINDS}
        namespaces: set[str] = set()
        for _ in range(count):
            line = self.process.stdout.readline()
            assert line, self.process.communicate(timeout=LIMIT_S)
            namespaces |= set(json.loads(line)) - outside
        for process, kind in product(self.descendants(), KINDS):
            with contextlib.suppress(OSError):
                descriptor = os.open(f"/proc/{process}/ns/{kind}", os.O_RDONLY)
                name = str(Path(f"/proc/self/fd/{descriptor}").readlink())
                if name in namespaces - self.held.keys():
                    self.held[name] = descriptor
                else:
                    os.close(descriptor)
        assert self.held.keys() == namespaces

    def descendants(self) -> dict[int, str]:
        """The names of the processes below the lab's, by their ids."""
        parents = {}
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                name, _, rest = (entry / "stat").read_text().partition("(")[2].rpartition(")")
                parents[int(entry.name)] = int(rest.split()[1]), name
        below = {self.process.pid}
        while children := {p for p, (parent, _) in parents.items() if parent in below} - below:
            below |= children
        return {p: parents[p][1] for p in below - {self.process.pid}}

    def kill(self, name: str, number: int = signal.SIGKILL) -> None:
        """Send a signal to the descendant of this name."""
        (process,) = [one for one, its_name in self.descendants().items() if its_name == name]
        os.kill(process, number)

    def traces(self) -> Traces:
        """Devices here, files in its folder, its processes, and its namespaces, if held by any."""
        processes, namespaces = [], set()
        for entry in Path("/proc").glob("[0-9]*"):
            if int(entry.name) == os.getpid():
                continue
            with contextlib.suppress(OSError):
                if self.mark.encode() in (entry / "environ").read_bytes():
                    processes.append(int(entry.name))
            links = [entry / "ns" / kind for kind in KINDS]
            with contextlib.suppress(OSError):
                links += (entry / "fd").iterdir()
            for link in links:
                with contextlib.suppress(OSError):
                    namespaces.add(str(link.readlink()))
        return Traces(
            sorted(os.listdir("/sys/class/net")),  # noqa: PTH208
            sorted(str(path) for path in self.folder.rglob("*")),
            sorted(processes),
            namespaces & self.held.keys(),
        )

    def ends(self) -> tuple[int, str]:
        """Wait for its end; nothing may be left.  Returns its exit code and standard error."""
        _, errors = self.process.communicate(timeout=LIMIT_S)
        deadline = time.monotonic() + LIMIT_S
        nothing = Traces(self.devices, [], [], set())
        while (traces := self.traces()) != nothing:
            assert time.monotonic() < deadline, traces
            time.sleep(0.05)
        return self.process.returncode, errors

    def clear(self) -> None:
        """End what a failed test left, and hold nothing any more."""
        if self.process.returncode is None:
            self.process.kill()
            self.process.communicate(timeout=LIMIT_S)
        while self.held:
            os.close(self.held.popitem()[1])


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Callable[..., Lab]]:
    """Makes labs, each with a folder of its own."""
    labs: list[Lab] = []

    def make(*options: str) -> Lab:
        labs.append(Lab(tmp_path / str(len(labs)), *options))
        return labs[-1]

    yield make
    for one in labs:
        one.clear()


def test_after_an_ordinary_end(lab: Callable[..., Lab]) -> None:
    one = lab()
    one.wait_for_ranks(3)
    one.go.touch()
    code, errors = one.ends()
    assert code == 0
    assert "lateness p50" in errors


def test_after_signals_and_beside_another_lab(lab: Callable[..., Lab]) -> None:
    """Each of two labs ends by its own signal; the traces of the other remain until then."""
    labs = [lab(), lab()]
    for one in labs:
        one.wait_for_ranks(3)
        assert len(one.held) == 3 * 4 + 1  # the PID namespace is common
    assert not labs[0].held.keys() & labs[1].held.keys()
    for one, number, code in zip(labs, (signal.SIGINT, signal.SIGTERM), (130, 143), strict=True):
        # Otherwise an end without traces would prove nothing.
        traces = one.traces()
        assert len(traces.processes) >= 3 + 3  # lab, supervisor, switch; ranks
        assert traces.namespaces == one.held.keys()
        one.process.send_signal(number)
        exit_code, errors = one.ends()
        assert exit_code == code
        assert errors.strip() in ("", "collwise: interrupted")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("collwise-switch", "the switch ended (exit code -9)"),
        ("collwise-lab", "the lab's supervisor was killed"),
    ],
)
def test_after_another_process_was_killed(lab: Callable[..., Lab], name: str, message: str) -> None:
    one = lab()
    one.wait_for_ranks(3)
    one.kill(name)
    code, errors = one.ends()
    assert code == 1
    assert f"{message}, and all ranks with it" in errors


@pytest.mark.parametrize("name", ["collwise-lab", "collwise-switch"])
def test_after_its_maker_was_killed_while_it_hangs(lab: Callable[..., Lab], name: str) -> None:
    """The kernel ends them, whatever they are doing."""
    one = lab()
    one.wait_for_ranks(3)
    one.kill(name, signal.SIGSTOP)
    one.process.kill()
    assert one.ends() == (-signal.SIGKILL, "")


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
    victims = [one.process.pid, *one.descendants()]
    with contextlib.suppress(ProcessLookupError):
        os.kill(chance.choice(victims), signal.SIGKILL)
    time.sleep(0.2)
    one.process.kill()
    one.ends()
    _settle(before, tmp_path)


def _everything(folder: Path) -> set[str]:
    """Namespaces and devices on this machine, other people's included; files in a folder."""
    everything = {f"device {name}" for name in os.listdir("/sys/class/net")}  # noqa: PTH208
    for entry in Path("/proc").glob("[0-9]*/ns/*"):
        with contextlib.suppress(OSError):
            everything.add(str(entry.readlink()))
    return everything | {f"file {path}" for path in folder.rglob("*") if not path.is_dir()}


def _settle(before: set[str], folder: Path) -> None:
    """Until nothing new is there; what others make meanwhile goes, or the wait is too short."""
    deadline = time.monotonic() + LIMIT_S
    while new := _everything(folder) - before:
        assert time.monotonic() < deadline, new
        time.sleep(0.05)
