"""A cluster of emulated hosts, from Python."""

import contextlib
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple

import msgspec

from collwise.errors import InvalidArgument, LabFailed, LabUnavailable
from collwise.lab import addresses, control_messages, leftovers, requirements
from collwise.lab.lab_report import Report
from collwise.lab.mpi_launch import Library, check_command, find_library, launch
from collwise.lab.network import Network
from collwise.system.host import LAB
from collwise.system.launcher import alone

_START_S = 30.0
_CLOSE_S = 10.0

# `import collwise` loads NumPy and more; the keeper needs none of it.
_KEEPER = """
import sys, types
package = types.ModuleType("collwise")
package.__path__ = [sys.argv.pop(1)]
sys.modules["collwise"] = package
from collwise.lab.supervisor import main
main()
"""


class Finished(NamedTuple):
    """What came of a command.

    code: its exit code; 128 + n if signal n ended it.   report: how well the switch kept time.
    stdout, stderr: what it printed, if that was captured.
    """

    code: int
    report: Report
    stdout: str | None = None
    stderr: str | None = None


class Cluster:
    """Emulated hosts with a chosen latency and rate, on this machine.  A context manager.

    hosts: how many.   latency: one way, with its unit.   rate: of each host's port, with its unit.
    network: a `Network` or its TOML file, instead of these three.
    mpi: "mpich" or "openmpi", "none" for commands without a launcher; what is installed if None.
    addresses: a range such as "10.77.0.0/24"; a free one if None.
    quiet: let waiting ranks sleep where a compiler makes it possible.

    Raises LabUnavailable if this machine cannot do it, InvalidArgument for values out of range,
    NoMPI without the library.  Nothing outlives it, nor the process that made it.
    """

    def __init__(
        self,
        hosts: int | None = None,
        latency: str | None = None,
        rate: str | None = None,
        *,
        network: Network | str | Path | None = None,
        mpi: Library | None = None,
        addresses: str | None = None,
        quiet: bool = True,
    ) -> None:
        self.network = _network(hosts, latency, rate, network)
        self._range = addresses
        self._quiet = quiet
        self._mpi = mpi
        self._process: subprocess.Popen[bytes] | None = None
        self._watch = -1
        self.names = [f"h{number}" for number in range(self.network.hosts)]

    def __enter__(self) -> "Cluster":
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def start(self) -> None:
        """Make the hosts."""
        if self._process is not None:
            raise InvalidArgument("starting a lab", "it runs already", "start it once")
        requirements.check()
        self.library, self._mpiexec = find_library(self._mpi)
        self.addresses, netmask = addresses.choose(self.network.hosts, self._range)
        leftovers.remove(leftovers.find())
        self._control, theirs = control_messages.pair()
        package = Path(__file__).resolve().parents[1]
        try:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-I", "-S", "-B", "-c", _KEEPER, str(package)),
                    *(str(theirs.fileno()), str(os.getpid())),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
                cwd="/",
            )
        finally:
            theirs.close()
        self._watch = os.pidfd_open(self._process.pid)
        wanted = {
            "names": self.names,
            "addresses": self.addresses,
            "netmask": netmask,
            "rates": self.network.rates,
            "latencies_ns": self.network.latencies_ns,
            "trunk_rates": self.network.trunk_rates,
            "trunks": self.network.trunks,
            "quiet": self._quiet,
        }
        try:
            with contextlib.suppress(BrokenPipeError):
                control_messages.send(self._control, wanted)
            answer = self._receive(_START_S)
            if answer is None or "ready" not in answer:
                seen = "the lab's keeper ended" if answer is None else str(answer.get("failed"))
                raise LabUnavailable(
                    f"a lab of {self.network}",
                    f"the system refused ({seen})",
                    "`collwise doctor` says what a lab needs; containers need --privileged",
                )
            self._has_shim = bool(answer["shim"])
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End everything that runs on the hosts, and the hosts.  May be called again."""
        process, self._process = self._process, None
        if process is None:
            return
        self._control.close()
        try:
            process.wait(_CLOSE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        finally:
            os.close(self._watch)

    def run(
        self,
        command: Sequence[str | Path],
        ranks: int | None = None,
        *,
        ranks_per_host: int | None = None,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
        timeout_s: float | None = None,
        capture: bool | Literal["stdout"] = False,
    ) -> Finished:
        """Run a command under the MPI launcher, one rank per host unless said otherwise.

        ranks: all hosts full, if not given; they fill one host after the other.
        environment: instead of this process's.   folder: where it runs; here if not given.
        timeout_s: after so many seconds it is ended, and LabFailed says so.
        capture: return what it prints (or its standard output only) instead of letting it through.
        Standard input goes to it (to rank 0) unless all its output is captured.
        """
        if self._process is None:
            raise InvalidArgument("running in a lab", "it is not started", "use `with Cluster(…)`")
        words = [str(word) for word in command]
        given = alone(os.environ if environment is None else environment)
        place = (folder or Path.cwd()).absolute()
        each, count = self._places(ranks, ranks_per_host)
        check_command(words, given, place)
        started = launch(
            self.library, self._mpiexec, words, self.names, count, each, quiet=self._has_shim
        )
        told = {**given, **started.environment, LAB: self.network.description}
        message = {"run": started.arguments, "environment": told, "folder": str(place)}
        with _streams(capture) as streams:
            try:
                control_messages.send(self._control, message, streams)
                answer = self._await_end(timeout_s, words)
            except BaseException:
                # Whatever happened, nothing may run on that nobody waits for.
                self._stop()
                raise
            printed = [_content(stream) if stream > 2 else None for stream in streams[1:]]
        code = answer["ended"]
        return Finished(code if code >= 0 else 128 - code, self._report(answer["report"]), *printed)

    def check(
        self, command: Sequence[str], ranks: int | None = None, ranks_per_host: int | None = None
    ) -> None:
        """Raise what `start` and `run` would raise, as far as it can be known before."""
        requirements.check()
        self._places(ranks, ranks_per_host)
        check_command(command, os.environ, Path.cwd())
        find_library(self._mpi)
        addresses.choose(self.network.hosts, self._range)

    def _places(self, ranks: int | None, ranks_per_host: int | None) -> tuple[int, int]:
        """Ranks on each host, and in all."""
        hosts = self.network.hosts
        each = ranks_per_host or (1 if ranks is None else -(-ranks // hosts))
        count = hosts * each if ranks is None else ranks
        if each < 1 or count < 1:
            raise InvalidArgument(f"{count} ranks", "at least one is needed", "give 1 or more")
        if count > each * hosts:
            raise InvalidArgument(
                f"{count} ranks on {hosts} hosts with {each} on each",
                f"there are {each * hosts} places",
                "raise --ranks-per-host or --hosts",
            )
        return each, count

    def _report(self, counted: dict[str, Any]) -> Report:
        return msgspec.convert(
            {
                **counted,
                "network": str(self.network),
                "least_latency_s": self.network.least_latency_ns / 1e9,
                "quiet": self._has_shim or not self._quiet,
            },
            Report,
        )

    def _await_end(self, timeout_s: float | None, command: Sequence[str]) -> dict[str, Any]:
        answer = self._receive(timeout_s)
        if answer is None:
            self.close()
            raise LabFailed(
                f"running {command[0]} on {self.network}",
                "the lab's keeper was killed, and all ranks with it",
                "start it again; if memory ran out, use fewer ranks",
            )
        if "lost" in answer or "failed" in answer:
            self.close()
            seen = answer.get("failed") or f"the switch ended (exit code {answer['lost']})"
            raise LabFailed(
                f"running {command[0]} on {self.network}",
                f"{seen}, and all ranks with it",
                "start it again; if it happens again, please report it",
            )
        if "late" in answer:
            raise LabFailed(
                f"running {command[0]} on {self.network}",
                f"it did not end within {timeout_s:g} s",
                "give it more time, or look where its ranks wait for each other",
            )
        return answer

    def _receive(self, timeout_s: float | None) -> dict[str, Any] | None:
        """The keeper's next message; None if it is gone, {"late": True} if the time is over."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        control = self._control.fileno()
        poll = select.poll()
        for descriptor in (control, self._watch):
            poll.register(descriptor, select.POLLIN)
        while True:
            left = None if deadline is None else max(deadline - time.monotonic(), 0) * 1e3
            ready = [descriptor for descriptor, _ in poll.poll(left)]
            if control in ready:
                received = control_messages.receive(self._control)
                return None if received is None else received[0]
            if self._watch in ready:
                return None
            if deadline is not None and time.monotonic() >= deadline:
                return {"late": True}

    def _stop(self) -> None:
        """End the running command."""
        if self._process is None:
            return
        try:
            control_messages.send(self._control, {"stop": True})
            if self._receive(_CLOSE_S) is None:
                self.close()
        except (OSError, KeyboardInterrupt):
            self.close()


def _network(
    hosts: int | None,
    latency: str | None,
    rate: str | None,
    network: Network | str | Path | None,
) -> Network:
    if network is None:
        missing = [
            name
            for name, value in (("hosts", hosts), ("latency", latency), ("rate", rate))
            if value is None
        ]
        if hosts is None or latency is None or rate is None:
            raise InvalidArgument(
                "an emulated network",
                f"{' and '.join(missing)} missing",
                "give hosts, latency and rate, or a network file",
            )
        return Network.uniform(hosts, latency, rate)
    if latency is not None or rate is not None:
        raise InvalidArgument(
            "an emulated network",
            "a network file and a latency or rate beside it",
            "say it in the file",
        )
    found = network if isinstance(network, Network) else Network.load(Path(network))
    if hosts is not None and hosts != found.hosts:
        raise InvalidArgument(
            f"{hosts} emulated hosts",
            f"the network file has {found.hosts}",
            "leave out the number, or correct it",
        )
    return found


@contextlib.contextmanager
def _streams(capture: bool | Literal["stdout"]) -> Iterator[list[int]]:
    """Standard input, output and error for a command."""
    sys.stdout.flush()
    sys.stderr.flush()
    made = []
    if capture:
        made.append(os.memfd_create("stdout"))
    if capture is True:
        made += [os.memfd_create("stderr"), os.open(os.devnull, os.O_RDONLY)]
    streams = [0, 1, 2] if not made else [0, made[0], 2] if len(made) == 1 else [made[2], *made[:2]]
    try:
        yield streams
    finally:
        for descriptor in made:
            os.close(descriptor)


def _content(descriptor: int) -> str:
    with os.fdopen(os.dup(descriptor), "rb") as file:
        file.seek(0)
        return file.read().decode(errors="replace")
