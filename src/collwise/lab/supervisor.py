"""The process that owns a lab: process 1 of a PID namespace, holder of all other namespaces.

When it ends, for whatever reason, the kernel ends every process of the lab and frees its
namespaces and devices.  It ends when its maker, the process that made the lab, closes the control
socket; its parent, which only waits, kills it when the maker ends.
It runs without site-packages, so this module and what it imports use the standard library only.
"""

import contextlib
import os
import select
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from collwise.lab import control_messages, hosts, kernel, poll_shim
from collwise.lab.switch import forward

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_ENTER = """#!/bin/sh
# Stands in for ssh: enters the host that is named and runs a command there.
while :; do
  case "$1" in
    -[bcDEeFIiLlmOopQRSWw]) shift 2 ;;
    -*) shift ;;
    *) break ;;
  esac
done
host=$1
shift
case "$host" in
%s
  *) echo "collwise lab: there is no host $host" >&2; exit 255 ;;
esac
exec nsenter --net=/proc/1/fd/$1 --uts=/proc/1/fd/$2 --ipc=/proc/1/fd/$3 --mount=/proc/1/fd/$4 \
  -- /bin/sh -c "$command"
"""


def main() -> None:
    """Fork the supervisor and wait until it, or its maker, ends.

    Arguments on the command line: the control socket's descriptor, and the maker's process id.
    """
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    maker = os.pidfd_open(os.getppid())
    if os.getppid() != int(sys.argv[2]):
        os._exit(1)  # the maker had ended before it could be watched
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    with _ending(control):
        kernel.unshare(kernel.CLONE_NEWPID | kernel.CLONE_NEWNS)
        child = os.fork()
        if child == 0:
            kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
            kernel.prctl(kernel.PR_SET_NAME, b"collwise-lab")
            Supervisor(control).serve()
            os._exit(0)
        # This process stays in the maker's PID namespace, so that the maker can wait for it.  It
        # only waits, so nothing that happens to the lab keeps it from killing the lab when the
        # maker ends.
        control.close()
        poll = select.poll()
        for process in (maker, os.pidfd_open(child)):
            poll.register(process, select.POLLIN)
        poll.poll()
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0x7F)


@contextlib.contextmanager
def _ending(control: socket.socket | None = None) -> Iterator[None]:
    """A context that ends this process with code 1; an exception is reported on `control` first."""
    try:
        yield
    except Exception as problem:  # reported to the maker, who raises it
        reason = f"{type(problem).__name__}: {problem}"
        if isinstance(problem, OSError) and problem.strerror:
            place = f"{problem.filename}: " if problem.filename else ""
            reason = place + problem.strerror
        if control is not None:
            with contextlib.suppress(OSError):
                control_messages.send(control, {"failed": reason})
    finally:
        os._exit(1)


class Supervisor:
    """Makes the hosts and the switch, then runs commands for the maker of the lab.

    control: this process's end of the socket to the maker.
    """

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._command: int | None = None
        received = control_messages.receive(control)
        if received is None:
            os._exit(0)  # the maker hung up
        configuration, _ = received
        names, addresses = configuration["names"], configuration["addresses"]
        hosts.prepare(names, addresses)
        has_shim = configuration["poll_shim"] and poll_shim.compile_into(Path(hosts.SHARED))
        self._base = hosts.own_namespaces()
        self._hosts = [
            hosts.make_host(name, address, configuration["netmask"], rate, self._base)
            for name, address, rate in zip(names, addresses, configuration["rates"], strict=True)
        ]
        self._write_enter_script()
        self._switch, self._switch_end = self._start_switch(configuration)
        self._counters = hosts.counters(self._hosts, self._base)
        self._wake, waker = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        control_messages.send(control, {"ready": True, "shim": has_shim})

    def _write_enter_script(self) -> None:
        cases = []
        for host in self._hosts:
            descriptors = " ".join(str(host.namespaces[kind]) for kind in hosts.KINDS)
            cases.append(f'  {host.name}) command="$*"; set -- {descriptors} ;;')
        script = Path(hosts.SHARED, "enter")
        script.write_text(_ENTER % "\n".join(cases), encoding="utf-8")
        script.chmod(0o755)

    def _start_switch(self, configuration: dict[str, Any]) -> tuple[int, socket.socket]:
        ours, theirs = control_messages.pair()
        child = os.fork()
        if child == 0:
            with _ending():
                kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
                kernel.prctl(kernel.PR_SET_NAME, b"collwise-switch")
                ours.close()
                fields = ("rates", "latencies_ns", "trunk_rates", "trunks")
                ports = [configuration[field] for field in fields]
                forward([h.tun for h in self._hosts], configuration["addresses"], ports, theirs)
                os._exit(0)
        theirs.close()
        for host in self._hosts:
            os.close(host.tun)
        return child, ours

    def serve(self) -> None:
        """Run and stop commands as the maker asks, until it closes the control socket."""
        poll = select.poll()
        for descriptor in (self._control.fileno(), self._wake):
            poll.register(descriptor, select.POLLIN)
        while True:
            ready = [descriptor for descriptor, _ in poll.poll()]
            if self._wake in ready:
                os.read(self._wake, 4096)
            self._reap()
            if self._control.fileno() in ready:
                received = control_messages.receive(self._control)
                if received is None:
                    return
                message, descriptors = received
                if "run" in message:
                    self._reset_counters()
                    self._command = self._start(message, descriptors)
                elif "stop" in message:
                    # SIGTERM would make launchers print banners, and wait for ranks that wait for
                    # each other.
                    self._kill_all()
                for descriptor in descriptors:
                    os.close(descriptor)

    def _start(self, message: dict[str, Any], descriptors: list[int]) -> int:
        """Start the command of a message on the first host; returns its process id.

        descriptors: the command's standard input, standard output and standard error.
        """
        child = os.fork()
        if child == 0:
            with _ending():
                os.setsid()
                signal.set_wakeup_fd(-1)
                for number in (*_SIGNALS, signal.SIGCHLD, signal.SIGPIPE):
                    signal.signal(number, signal.SIG_DFL)
                program, environment = message["run"][0], message["environment"]
                try:
                    hosts.enter(self._hosts[0].namespaces)
                    os.chdir(message["folder"])
                    for target, descriptor in enumerate(descriptors):
                        os.dup2(descriptor, target)
                    os.execvpe(program, message["run"], environment)
                except OSError as problem:
                    os.write(2, f"collwise lab: {program}: {problem.strerror}\n".encode())
                    os._exit(127)
        return child

    def _reap(self) -> None:
        """Collect ended processes; after the command's end, kill the others and report it."""
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG)) != (0, 0):
                child, status = ended
                if child == self._switch:
                    self._lose_switch(status)
                if child == self._command:
                    self._command = None
                    self._kill_all()
                    report = self._reset_counters()
                    code = os.waitstatus_to_exitcode(status)
                    control_messages.send(self._control, {"ended": code, "report": report})

    def _kill_all(self) -> None:
        """Kill every process of the lab except the supervisor and the switch."""
        kept = {os.getpid(), self._switch}
        for entry in os.listdir("/proc"):  # noqa: PTH208
            if entry.isdigit() and int(entry) not in kept:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(entry), signal.SIGKILL)

    def _reset_counters(self) -> dict[str, Any]:
        """The counts of the switch and the hosts since this method was last called."""
        try:
            control_messages.send(self._switch_end, {"reset": True})
            answer = control_messages.receive(self._switch_end)
        except BrokenPipeError:
            answer = None
        if answer is None:
            self._lose_switch(os.waitpid(self._switch, 0)[1])
        before, self._counters = self._counters, hosts.counters(self._hosts, self._base)
        increases = {name: count - before[name] for name, count in self._counters.items()}
        return {**answer[0], **increases}

    def _lose_switch(self, status: int) -> NoReturn:
        raise OSError(0, f"the switch ended (exit code {os.waitstatus_to_exitcode(status)})")
