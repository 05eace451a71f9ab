"""A cluster of emulated hosts, from Python."""

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, NamedTuple, TextIO

import msgspec

from collwise.errors import InvalidArgument, LabFailed, LabUnavailable
from collwise.lab import addresses, control_messages, requirements
from collwise.lab.lab_report import Report
from collwise.lab.mpi_launch import Library, check_command, find_library, launch
from collwise.lab.network import Network
from collwise.system.host import LAB
from collwise.system.launcher import alone, await_end

_START_S = 30.0
_CLOSE_S = 10.0

# The packages' own __init__ would load NumPy and more; the supervisor needs none of it.
_SUPERVISOR = """
import sys, types
folder = sys.argv.pop(1)
for name, path in (("collwise", folder), ("collwise.lab", folder + "/lab")):
    package = sys.modules[name] = types.ModuleType(name)
    package.__path__ = [path]
from collwise.lab.supervisor import main
main()
"""


class CompletedCommand(NamedTuple):
    """The result of a command that ran on the hosts.

    code: the exit code; 128 + n if signal n ended the command.   report: how well the switch kept
    time.   stdout, stderr: what the command printed; None if that was not captured.
    """

    code: int
    report: Report
    stdout: str | None = None
    stderr: str | None = None


class Cluster:
    """Emulated hosts with a chosen latency and rate, on this machine.  A context manager.

    hosts: the number of hosts.   latency: from any host to any other, one way, such as "5ms".
    rate: of each host's port, such as "10mbit".
    network: a `Network` or the path of its TOML file, instead of the three above.
    mpi: "mpich", "openmpi", or "none" to run commands without a launcher; if None, the library that
    is installed.   addresses: the hosts' range, such as "10.77.0.0/24"; a free one if None.
    quiet: preload the poll shim, which lets waiting ranks sleep, if there is a C compiler.

    Raises LabUnavailable if this machine cannot emulate hosts, InvalidArgument for values out of
    range, NoMPI if the library is missing.  No host or process of a cluster outlives the cluster,
    or the process that made it.
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
        self._range, self._mpi, self._quiet = addresses, mpi, quiet
        self._process: subprocess.Popen[bytes] | None = None
        self.names = [f"h{number}" for number in range(self.network.hosts)]

    def __enter__(self) -> "Cluster":
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def start(self) -> None:
        """Make the hosts and the switch, and wait until they are ready.

        Raises the errors that the class names, and InvalidArgument if the hosts are there already.
        """
        if self._process is not None:
            raise InvalidArgument("starting a lab", "it runs already", "start it once")
        requirements.check()
        self.library, self._mpiexec = find_library(self._mpi)
        self.addresses, netmask = addresses.choose(self.network.hosts, self._range)
        self._control, theirs = control_messages.pair()
        arguments = (Path(__file__).resolve().parents[1], theirs.fileno(), os.getpid())
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-B", "-c", _SUPERVISOR, *map(str, arguments)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
                cwd="/",
            )
        configuration = {
            "names": self.names,
            "addresses": self.addresses,
            "netmask": netmask,
            "poll_shim": self._quiet,
            **asdict(self.network),
        }
        try:
            with contextlib.suppress(BrokenPipeError):
                control_messages.send(self._control, configuration)
            answer = self._receive(_START_S)
            if "ready" not in answer:
                seen = answer.get("failed", f"no answer within {_START_S:g} s")
                raise LabUnavailable(
                    f"a lab of {self.network}",
                    f"the system refused ({seen})",
                    "`collwise doctor` says what a lab needs; containers need --privileged",
                )
            self._shim = bool(answer["shim"])
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Kill all processes on the hosts, and remove the hosts.  A second call does nothing."""
        process, self._process = self._process, None
        if process is None:
            return
        self._control.close()
        await_end(process, _CLOSE_S)

    def run(
        self,
        command: Sequence[str | Path],
        ranks: int | None = None,
        *,
        ranks_per_host: int | Sequence[int] | None = None,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
        timeout_s: float | None = None,
        capture: bool | Literal["stdout"] = False,
    ) -> CompletedCommand:
        """Run a command under the MPI launcher, by default with one rank on each host.

        ranks: how many; None for one in every place.  Ranks fill one host after another.
        ranks_per_host: places on every host, or a list of them for the first hosts; None for 1,
        or as many as `ranks` need.
        environment: the command's environment variables; this process's if None.
        folder: where the command runs; the current folder if None.
        timeout_s: seconds after which the command is killed and LabFailed raised.
        capture: True returns standard output and error instead of letting them through; "stdout",
        standard output only.  Unless `capture` is True, rank 0 reads this process's standard input.
        Raises InvalidArgument for a missing program or too many ranks, LabFailed if the lab ends.
        """
        if timeout_s is not None and not 0 < timeout_s < threading.TIMEOUT_MAX:
            seen, remedy = f"timeout_s = {timeout_s!r}", "give seconds > 0, or None"
            raise InvalidArgument("running in a lab", seen, remedy)
        if self._process is None:
            raise InvalidArgument("running in a lab", "it is not started", "use `with Cluster(…)`")
        arguments = [str(argument) for argument in command]
        variables = alone(os.environ if environment is None else environment)
        folder = (folder or Path.cwd()).absolute()
        places = self._places(ranks, ranks_per_host)
        check_command(arguments, variables, folder)
        arguments, forced = launch(
            self.library, self._mpiexec, arguments, places, has_shim=self._shim
        )
        variables |= {**forced, LAB: self.network.description}
        message = {"run": arguments, "environment": variables, "folder": str(folder)}
        sys.stdout.flush()
        sys.stderr.flush()

        def new_file() -> TextIO:
            memory = os.memfd_create("collwise")  # there may be no room on any disk
            return open(memory, "w+", errors="replace", newline="")  # noqa: PTH123

        with contextlib.ExitStack() as files:
            stdin = files.enter_context(Path(os.devnull).open("rb")) if capture is True else None
            stdout = files.enter_context(new_file()) if capture else None
            stderr = files.enter_context(new_file()) if capture is True else None
            streams = [f.fileno() if f else n for n, f in enumerate((stdin, stdout, stderr))]
            try:
                control_messages.send(self._control, message, streams)
                answer = self._await_end(timeout_s, str(command[0]))
            except BaseException:
                # Whatever happened, no command may go on that nobody waits for.
                self._stop()
                raise
            code = answer["ended"]
            code = code if code >= 0 else 128 - code
            own = {
                "network": str(self.network),
                "least_latency_s": self.network.least_latency_ns / 1e9,
                "quiet": self._shim or not self._quiet,
            }
            report = msgspec.convert({**answer["report"], **own}, Report)
            return CompletedCommand(code, report, _content(stdout), _content(stderr))

    def check(
        self,
        command: Sequence[str],
        ranks: int | None = None,
        ranks_per_host: int | Sequence[int] | None = None,
    ) -> None:
        """Raise the errors of `start` and `run` that can be known before hosts are made."""
        requirements.check()
        self._places(ranks, ranks_per_host)
        check_command(command, os.environ, Path.cwd())
        find_library(self._mpi)
        addresses.choose(self.network.hosts, self._range)

    def _places(
        self, ranks: int | None, ranks_per_host: int | Sequence[int] | None
    ) -> dict[str, int]:
        """The number of ranks on each host that has any, by the host's name."""
        hosts = self.network.hosts
        if ranks_per_host is None:
            ranks_per_host = 1 if ranks is None else -(-ranks // hosts)
        listed = not isinstance(ranks_per_host, int)
        rooms = [ranks_per_host] * hosts if isinstance(ranks_per_host, int) else [*ranks_per_host]
        count = sum(rooms) if ranks is None else ranks
        if min(rooms, default=0) < 1 or count < 1:
            raise InvalidArgument(f"{count} ranks", "at least one is needed", "give 1 or more")
        if count > sum(rooms) or len(rooms) > hosts:
            each = f"{'+'.join(map(str, rooms))} on them" if listed else f"{rooms[0]} on each"
            asked = f"{count} ranks on {hosts} hosts with {each}"
            seen = f"there are {sum(rooms[:hosts])} places"
            raise InvalidArgument(asked, seen, "raise --ranks-per-host or --hosts")
        places: dict[str, int] = {}
        for name, room in zip(self.names, rooms, strict=False):
            places[name] = min(room, count)
            count -= places[name]
        return {name: number for name, number in places.items() if number}

    def _await_end(self, timeout_s: float | None, program: str) -> dict[str, Any]:
        answer = self._receive(timeout_s)
        if "ended" in answer:
            return answer
        if "late" in answer:
            seen = f"it did not end within {timeout_s:g} s"
            remedy = "give it more time, or look where its ranks wait for each other"
        else:
            self.close()
            seen = f"{answer['failed']}, and all ranks with it"
            remedy = "start it again; if memory ran out, use fewer ranks; if not, please report it"
        raise LabFailed(f"running {program} on {self.network}", seen, remedy)

    def _receive(self, timeout_s: float | None) -> dict[str, Any]:
        """The supervisor's next message; {"late": True} after `timeout_s` seconds.

        {"failed": reason} if the supervisor has ended.   timeout_s: None to wait for ever.
        """
        self._control.settimeout(timeout_s)
        try:
            received = control_messages.receive(self._control)
        except (TimeoutError, BlockingIOError):
            return {"late": True}
        return {"failed": "the lab's supervisor was killed"} if received is None else received[0]

    def _stop(self) -> None:
        """Kill the running command; close the whole cluster if that fails."""
        if self._process is None:
            return
        try:
            control_messages.send(self._control, {"stop": True})
            if "ended" not in self._receive(_CLOSE_S):
                self.close()
        except (OSError, KeyboardInterrupt):
            self.close()


def _network(
    hosts: int | None,
    latency: str | None,
    rate: str | None,
    network: Network | str | Path | None,
) -> Network:
    asked = "an emulated network"
    if network is None:
        if hosts is None or latency is None or rate is None:
            parameters = {"hosts": hosts, "latency": latency, "rate": rate}
            missing = " and ".join(name for name, value in parameters.items() if value is None)
            remedy = "give hosts, latency and rate, or a network file"
            raise InvalidArgument(asked, f"{missing} missing", remedy)
        return Network.uniform(hosts, latency, rate)
    if latency is not None or rate is not None:
        seen = "a network file and a latency or rate beside it"
        raise InvalidArgument(asked, seen, "say it in the file")
    if not isinstance(network, Network):
        network = Network.load(Path(network))
    if hosts not in (None, network.hosts):
        asked, seen = f"{hosts} emulated hosts", f"the network file has {network.hosts}"
        raise InvalidArgument(asked, seen, "leave out the number, or correct it")
    return network


def _content(file: TextIO | None) -> str | None:
    if file is None:
        return None
    file.seek(0)
    return file.read()
