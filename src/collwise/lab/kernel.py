"""What the Linux kernel does for a lab, called by its own names.

Python has `os.unshare` and `os.setns` since 3.12 only, and no `mount` or `prctl` at all.
"""

import ctypes
import fcntl
import os
import socket
import struct

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_PR_SET_TIMERSLACK = 29

_TUNSETIFF = 0x400454CA
_IFF_TUN = 0x0001
_IFF_NO_PI = 0x1000

_SIOCGIFFLAGS = 0x8913
_SIOCSIFFLAGS = 0x8914
_SIOCSIFADDR = 0x8916
_SIOCSIFNETMASK = 0x891C
_SIOCSIFMTU = 0x8922
_SIOCSIFTXQLEN = 0x8943
_IFF_UP = 0x1

_RTM_NEWQDISC = 36
_NLM_F_REQUEST, _NLM_F_ACK, _NLM_F_REPLACE, _NLM_F_CREATE = 0x1, 0x4, 0x100, 0x400
_NLMSG_ERROR = 2
_TC_H_ROOT = 0xFFFFFFFF
_TCA_KIND, _TCA_OPTIONS = 1, 2
_TCA_TBF_PARMS, _TCA_TBF_BURST = 1, 6
_ETHERNET = 1  # how the kernel counts a packet's bytes: as they are

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), what)


def unshare(kinds: int) -> None:
    """Give this process new namespaces of these kinds."""
    _checked(_libc.unshare(kinds), "unshare")


def setns(descriptor: int) -> None:
    """Enter the namespace of an open descriptor."""
    _checked(_libc.setns(descriptor, 0), "setns")


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    """Mount, as the system call does."""
    result = _libc.mount(
        source.encode(),
        target.encode(),
        kind.encode() or None,
        ctypes.c_ulong(flags),
        data.encode() or None,
    )
    _checked(result, f"mount {source} on {target}")


def sethostname(name: str) -> None:
    """Name this process's UTS namespace."""
    _checked(_libc.sethostname(name.encode(), len(name.encode())), "sethostname")


def die_with_parent(signal: int) -> None:
    """Have the kernel send this signal when the parent's thread ends."""
    _prctl(_PR_SET_PDEATHSIG, signal)


def set_timer_slack(nanoseconds: int) -> None:
    """How late the kernel may wake this thread to spare power."""
    _prctl(_PR_SET_TIMERSLACK, nanoseconds)


def set_name(name: str) -> None:
    """The name of this process in lists of processes, 15 characters."""
    buffer = ctypes.create_string_buffer(name.encode()[:15])
    _checked(_libc.prctl(_PR_SET_NAME, buffer, 0, 0, 0), "prctl")


def _prctl(option: int, value: int) -> None:
    _checked(_libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0), "prctl")


def open_tun(name: str) -> int:
    """Make a TUN device in this network namespace; it lives as long as the descriptor is open."""
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.ioctl(
            descriptor, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _IFF_TUN | _IFF_NO_PI)
        )
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def configure(
    device: str,
    *,
    address: str | None = None,
    netmask: str | None = None,
    mtu: int | None = None,
    queue: int | None = None,
) -> None:
    """Set what is given of a device of this network namespace, and bring it up."""
    name = device.encode()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for request, number in ((_SIOCSIFMTU, mtu), (_SIOCSIFTXQLEN, queue)):
            if number is not None:
                fcntl.ioctl(control, request, struct.pack("16si20x", name, number))
        for request, text in ((_SIOCSIFADDR, address), (_SIOCSIFNETMASK, netmask)):
            if text is not None:
                inet = struct.pack("HH4s8x", socket.AF_INET, 0, socket.inet_aton(text))
                fcntl.ioctl(control, request, struct.pack("16s16s8x", name, inet))
        seen = fcntl.ioctl(control, _SIOCGIFFLAGS, struct.pack("16sH22x", name, 0))
        (flags,) = struct.unpack_from("H", seen, 16)
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sH22x", name, flags | _IFF_UP))


def shape(device: str, rate: int, burst: int) -> None:
    """Let packets out of a device at a rate (bits per second), `burst` bytes of them at once.

    What waits then waits where TCP sees it, as behind a real network card.
    """
    speed = rate // 8
    spec = struct.pack("BBHhHI", 0, _ETHERNET, 0, 0, 0, speed)
    bucket = spec + bytes(12) + struct.pack("III", 1 << 27, 0, 0)
    options = _attribute(_TCA_TBF_PARMS, bucket) + _attribute(
        _TCA_TBF_BURST, struct.pack("I", burst)
    )
    body = struct.pack("BxxxiIII", 0, socket.if_nametoindex(device), 0, _TC_H_ROOT, 0)
    body += _attribute(_TCA_KIND, b"tbf\0") + _attribute(_TCA_OPTIONS, options)
    flags = _NLM_F_REQUEST | _NLM_F_ACK | _NLM_F_REPLACE | _NLM_F_CREATE
    message = struct.pack("IHHII", 16 + len(body), _RTM_NEWQDISC, flags, 1, 0) + body
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as link:
        link.send(message)
        answer = link.recv(4096)
    kind, code = struct.unpack_from("4xH10xi", answer)
    if kind == _NLMSG_ERROR and code:
        raise OSError(-code, os.strerror(-code), f"tbf on {device}")


def _attribute(kind: int, content: bytes) -> bytes:
    padding = bytes(-len(content) % 4)
    return struct.pack("HH", 4 + len(content), kind) + content + padding
