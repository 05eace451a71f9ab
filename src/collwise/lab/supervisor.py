"""The process that owns a lab: process 1 of a PID namespace, holder of all other namespaces.

When it ends, for whatever reason, the kernel ends every process of the lab and takes back its
namespaces and devices.  It ends when the process that made the lab ends or hangs up.
"""

import contextlib
import json
import os
import select
import signal
import socket
import sys
from pathlib import Path
from typing import Any, NoReturn

from collwise.lab import control_messages, hosts, kernel, poll_shim
from collwise.lab.hosts import Host
from collwise.lab.switch import carry
from collwise.lab.wires import Wires

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


def main() -> NoReturn:
    """Become a keeper: `control` descriptor and the maker's process id are the arguments."""
    control = socket.socket(fileno=int(sys.argv[1]))
    maker = int(sys.argv[2])
    watched = os.pidfd_open(os.getppid())
    if os.getppid() != maker:
        os._exit(1)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    try:
        kernel.unshare(kernel.CLONE_NEWPID | kernel.CLONE_NEWNS)
        child = os.fork()
    except OSError as problem:
        control_messages.send(
            control, {"failed": f"{problem.filename or 'fork'}: {problem.strerror}"}
        )
        os._exit(1)
    if child:
        # This one stays outside, so that the maker has somebody to wait for.
        control.close()
        _, status = os.waitpid(child, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0x7F)
    code = 1
    try:
        kernel.die_with_parent(signal.SIGKILL)
        kernel.set_name("collwise-lab")
        Keeper(control, watched).serve()
        code = 0
    except OSError as problem:
        place = f"{problem.filename}: " if problem.filename else ""
        with contextlib.suppress(OSError):
            control_messages.send(control, {"failed": place + (problem.strerror or str(problem))})
    except Exception as problem:  # told to the maker, who raises it
        with contextlib.suppress(OSError):
            control_messages.send(control, {"failed": f"{type(problem).__name__}: {problem}"})
    finally:
        os._exit(code)


class Keeper:
    """Makes hosts and switch, then runs commands for the maker until it hangs up."""

    def __init__(self, control: socket.socket, maker: int) -> None:
        self._control = control
        self._maker = maker
        self._running: int | None = None
        received = control_messages.receive(control)
        if received is None:
            os._exit(0)
        wanted, _ = received
        self._wake, waker = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        names, addresses = wanted["names"], wanted["addresses"]
        hosts.prepare(names, addresses)
        shim = wanted["quiet"] and poll_shim.compile_into(Path(hosts.SHELF))
        base = hosts.own_namespaces()
        self._base = base
        self._hosts = [
            hosts.make_host(name, address, wanted["netmask"], rate, base)
            for name, address, rate in zip(names, addresses, wanted["rates"], strict=True)
        ]
        enter = Path(hosts.SHELF, "enter")
        enter.write_text(_wrapper(self._hosts), encoding="utf-8")
        enter.chmod(0o755)
        self._switch, self._switch_end = self._start_switch(wanted)
        self._before = self._counters()
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        control_messages.send(control, {"ready": True, "shim": shim})

    def _start_switch(self, wanted: dict[str, Any]) -> tuple[int, socket.socket]:
        ours, theirs = socket.socketpair()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                kernel.die_with_parent(signal.SIGKILL)
                kernel.set_name("collwise-switch")
                ours.close()
                self._control.close()
                for host in self._hosts:
                    for descriptor in host.namespaces.values():
                        os.close(descriptor)
                wires = Wires(
                    wanted["rates"],
                    wanted["latencies_ns"],
                    wanted["trunk_rates"],
                    wanted["trunks"],
                )
                carry([h.tun for h in self._hosts], [h.address for h in self._hosts], wires, theirs)
                code = 0
            finally:
                os._exit(code)
        theirs.close()
        for host in self._hosts:
            os.close(host.tun)
        return child, ours

    def serve(self) -> None:
        """Do what the maker says until it hangs up or ends, or the switch ends."""
        poll = select.poll()
        for descriptor in (self._control.fileno(), self._maker, self._wake):
            poll.register(descriptor, select.POLLIN)
        while True:
            ready = [descriptor for descriptor, _ in poll.poll()]
            if self._maker in ready:
                return
            if self._wake in ready:
                os.read(self._wake, 4096)
            self._reap()
            if self._control.fileno() in ready:
                received = control_messages.receive(self._control)
                if received is None:
                    return
                self._obey(*received)

    def _obey(self, message: dict[str, Any], descriptors: list[int]) -> None:
        if "run" in message:
            self._ask_switch()  # what was counted before does not belong to this command
            self._before = self._counters()
            self._running = self._start(message, descriptors)
            for descriptor in descriptors:
                os.close(descriptor)
        elif "stop" in message:
            # Asked politely, launchers print banners, and wait for ranks that wait for each other.
            self._end_all()

    def _start(self, message: dict[str, Any], descriptors: list[int]) -> int:
        child = os.fork()
        if child:
            return child
        try:
            os.setsid()
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
                signal.signal(number, signal.SIG_DFL)
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            hosts.enter(self._hosts[0].namespaces)
            os.chdir(message["folder"])
            for target, descriptor in enumerate(descriptors):
                os.dup2(descriptor, target)
            os.execvpe(message["run"][0], message["run"], message["environment"])
        except OSError as problem:
            os.write(2, f"collwise lab: {message['run'][0]}: {problem.strerror}\n".encode())
        finally:
            os._exit(127)

    def _reap(self) -> None:
        while True:
            try:
                child, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if child == 0:
                return
            if child == self._switch:
                control_messages.send(self._control, {"lost": os.waitstatus_to_exitcode(status)})
                raise SystemExit(1)
            if child == self._running:
                self._running = None
                self._end_all()
                counted = self._ask_switch()
                now = self._counters()
                counted["host_drops"] = now["drops"] - self._before["drops"]
                counted["resent"] = now["resent"] - self._before["resent"]
                code = os.waitstatus_to_exitcode(status)
                control_messages.send(self._control, {"ended": code, "report": counted})

    def _end_all(self) -> None:
        """End every process of the lab but the keeper and the switch."""
        kept = {os.getpid(), self._switch}
        for entry in os.listdir("/proc"):  # noqa: PTH208
            if entry.isdigit() and int(entry) not in kept:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(entry), signal.SIGKILL)

    def _ask_switch(self) -> dict[str, Any]:
        try:
            self._switch_end.sendall(b"?\n")
            answer = b""
            while not answer.endswith(b"\n"):
                part = self._switch_end.recv(1 << 16)
                if not part:
                    raise BrokenPipeError
                answer += part
        except OSError:
            _, status = os.waitpid(self._switch, 0)
            control_messages.send(self._control, {"lost": os.waitstatus_to_exitcode(status)})
            raise SystemExit(1) from None
        found: dict[str, Any] = json.loads(answer)
        return found

    def _counters(self) -> dict[str, int]:
        each = [hosts.counters(host, self._base) for host in self._hosts]
        return {name: sum(one[name] for one in each) for name in ("drops", "resent")}


def _wrapper(made: list[Host]) -> str:
    cases = []
    for host in made:
        descriptors = " ".join(str(host.namespaces[kind]) for kind in hosts.KINDS)
        cases.append(f'  {host.name}) command="$*"; set -- {descriptors} ;;')
    return _ENTER % "\n".join(cases)
